//! Finding the few bytes that mean something, 64 at a time.

/// A set of up to six bytes, and where they stand in the block of text looked at last.
#[derive(Clone)]
pub(super) struct Marks {
    set: [u8; 6],
    base: usize,
    bits: u64,
}

const BLOCK: usize = 64;

impl Marks {
    /// For the first six of `bytes`, at least one.
    pub(super) fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut bytes = bytes.into_iter();
        let first = bytes.next().unwrap_or(b'\n');
        let mut set = [first; 6];
        for (slot, byte) in set[1..].iter_mut().zip(bytes) {
            *slot = byte;
        }
        // no place of a text is in this block: none is longer than half the address space
        Self { set, base: 1 << (usize::BITS - 1), bits: 0 }
    }

    /// The first byte of the set at or after `at` in `text`, or the end of `text`. Calls for one
    /// `Marks` must be about one text.
    #[inline]
    pub(super) fn find(&mut self, text: &[u8], at: usize) -> usize {
        let offset = at.wrapping_sub(self.base);
        if offset < BLOCK {
            let bits = self.bits >> offset;
            if bits != 0 {
                return at + bits.trailing_zeros() as usize;
            }
            return self.find_from(text, self.base + BLOCK);
        }
        self.find_from(text, at)
    }

    fn find_from(&mut self, text: &[u8], at: usize) -> usize {
        let mut at = at;
        while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
            let bits = bits_of(block, |byte| self.is_in(byte));
            if bits != 0 {
                (self.base, self.bits) = (at, bits);
                return at + bits.trailing_zeros() as usize;
            }
            at += BLOCK;
        }
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().position(|&byte| self.is_in(byte)).map_or(text.len(), |found| at + found)
    }

    #[inline(always)]
    fn is_in(&self, byte: u8) -> bool {
        let [a, b, c, d, e, f] = self.set;
        (byte == a) | (byte == b) | (byte == c) | (byte == d) | (byte == e) | (byte == f)
    }
}

/// One bit for each byte of `block`, the lowest for the first: whether it is `wanted`.
#[inline(always)]
pub(super) fn bits_of(block: &[u8; BLOCK], wanted: impl Fn(u8) -> bool) -> u64 {
    let mut hits = [0_u8; BLOCK];
    for (hit, &byte) in hits.iter_mut().zip(block) {
        *hit = u8::from(wanted(byte));
    }
    gather(&hits)
}

/// One bit for each of 64 bytes that are 0 or 1. The factor moves the lowest bit of byte `i` of
/// eight to bit `56 + i`, and no two of its products meet.
#[inline(always)]
pub(super) fn gather(hits: &[u8; BLOCK]) -> u64 {
    let mut bits = 0;
    for (i, eight) in hits.as_chunks::<8>().0.iter().enumerate() {
        bits |= (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_loop_finds(
            text in proptest::collection::vec(proptest::sample::select(&b"aaaaaaaaaaaaaaaaaaaaaaab,\n"[..]), 0..300),
            from in 0..300_usize,
        ) {
            let mut marks = Marks::new(*b",\nc");
            let mut at = from.min(text.len());
            while at < text.len() {
                let wanted = (at..text.len()).find(|&i| b",\nc".contains(&text[i])).unwrap_or(text.len());
                at = marks.find(&text, at);
                prop_assert_eq!(at, wanted);
                at += 1;
            }
            prop_assert_eq!(marks.find(&text, text.len()), text.len());
        }
    }
}
