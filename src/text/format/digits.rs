//! Integers as decimal digits, eight at a time in one register.

/// Room for one number: the longest that the fast paths write is `-`, 20 digits, a point and 24.
pub(super) const WINDOW: usize = 64;
/// A piece of the output that a number is written into.
pub(super) type Window = [u8; WINDOW];

const ZEROS: u64 = 0x3030_3030_3030_3030;

pub(super) const POW10: [u64; 20] = {
    let mut table = [1; 20];
    let mut i = 1;
    while i < 20 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// The eight digits of `n` below 10^8, one a byte (0 to 9), the first in the lowest byte.
#[inline(always)]
fn spread(n: u64) -> u64 {
    // Quarters, pairs, digits: each step divides all lanes at once by multiplying with the
    // reciprocal, exact for lanes this small.
    let quarters = n / 10_000 + ((n % 10_000) << 32);
    let hundreds = ((quarters * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds + ((quarters - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens + ((pairs - tens * 10) << 8)
}

/// `n` below 10^8 as exactly eight digits.
#[inline(always)]
pub(super) fn eight(n: u64) -> [u8; 8] {
    (spread(n) + ZEROS).to_le_bytes()
}

/// `n` below 10^8 as eight digits, and how many there are up to the last that is not 0, at least one.
#[inline(always)]
pub(super) fn eight_trimmed(n: u64) -> ([u8; 8], usize) {
    let digits = spread(n);
    ((digits + ZEROS).to_le_bytes(), 8 - (digits | 1).leading_zeros() as usize / 8)
}

/// `n` below 100 as two digits.
#[inline(always)]
pub(super) fn two(n: u32) -> [u8; 2] {
    let tens = (n * 103) >> 10;
    [b'0' + tens as u8, b'0' + (n - tens * 10) as u8]
}

/// Writes `n` without leading zeros at `at` and gives the end. Bytes after the end may be overwritten.
#[inline(always)]
pub(super) fn put(n: u64, w: &mut Window, at: usize) -> usize {
    const E8: u64 = 100_000_000;
    if n < E8 {
        return put_short(n, w, at);
    }
    let (upper, last) = (n / E8, n % E8);
    let mut end;
    if upper < E8 {
        end = put_short(upper, w, at);
    } else {
        end = put_short(upper / E8, w, at);
        w[end..end + 8].copy_from_slice(&eight(upper % E8));
        end += 8;
    }
    w[end..end + 8].copy_from_slice(&eight(last));
    end + 8
}

#[inline(always)]
fn put_short(n: u64, w: &mut Window, at: usize) -> usize {
    let digits = spread(n);
    // The last digit stays even if it is 0.
    let zeros = (digits | 1 << 56).trailing_zeros() & !7;
    w[at..at + 8].copy_from_slice(&((digits + ZEROS) >> zeros).to_le_bytes());
    at + 8 - (zeros / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(n: u64) -> String {
        let mut w = [b'?'; WINDOW];
        let end = put(n, &mut w, 1);
        String::from_utf8(w[1..end].to_vec()).unwrap()
    }

    #[test]
    fn every_quarter_and_pair() {
        for n in 0..10_000 {
            assert_eq!(eight(n * 10_001), format!("{:08}", n * 10_001).as_bytes());
            assert_eq!(text(n), n.to_string());
        }
        for n in 0..100 {
            assert_eq!(two(n), format!("{n:02}").as_bytes());
        }
        for power in POW10 {
            for n in [power - 1, power, power + 1] {
                assert_eq!(text(n), n.to_string());
            }
        }
        assert_eq!(text(u64::MAX), u64::MAX.to_string());
    }

    proptest! {
        #[test]
        fn like_std(n: u64, shift in 0u32..64) {
            prop_assert_eq!(text(n >> shift), (n >> shift).to_string());
        }
    }
}
