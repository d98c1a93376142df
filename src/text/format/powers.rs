//! Powers of ten to 128 bits, cut off, over the range that 19 digits of any double need.

/// The powers that the table holds: 10^-325 for the smallest subnormal, 10^345 for its 19th digit.
const RANGE: std::ops::RangeInclusive<i32> = -325..=345;

/// 5^55 is the last power of five below 2^128, so these entries are exact.
pub(super) const EXACT: std::ops::RangeInclusive<i32> = 0..=55;

static TABLE: [u128; (*RANGE.end() - *RANGE.start() + 1) as usize] = table();

/// The upper 128 bits of 10^n, the topmost being set: 10^n = (bits + less than 1) · 2^([`log2`] - 127).
#[inline]
pub(super) fn bits(n: i32) -> u128 {
    TABLE[(n - *RANGE.start()) as usize]
}

/// The integer below the binary logarithm of 10^n.
#[inline]
pub(super) fn log2(n: i32) -> i32 {
    (n * 217_706) >> 16
}

/// The integer below the decimal logarithm of 2^n.
#[inline]
pub(super) fn log10(n: i32) -> i32 {
    (n * 315_653) >> 20
}

const fn table() -> [u128; (*RANGE.end() - *RANGE.start() + 1) as usize] {
    let zero = -*RANGE.start() as usize;
    let mut table = [0; (*RANGE.end() - *RANGE.start() + 1) as usize];
    // 5^345 has 802 bits.
    let mut limbs = [0u64; 13];
    limbs[0] = 1;
    let mut n = 0;
    while n <= *RANGE.end() as usize {
        table[zero + n] = top(&limbs);
        let (mut i, mut carry) = (0, 0);
        while i < limbs.len() {
            let product = limbs[i] as u128 * 5 + carry;
            limbs[i] = product as u64;
            carry = product >> 64;
            i += 1;
        }
        n += 1;
    }
    // 2^1023 / 5^325 still has 268 bits, and dividing step by step loses nothing to dividing at once.
    let mut limbs = [0u64; 16];
    limbs[15] = 1 << 63;
    let mut n = 1;
    while n <= zero {
        let (mut i, mut rest) = (limbs.len(), 0);
        while i > 0 {
            i -= 1;
            let dividend = (rest << 64) | limbs[i] as u128;
            limbs[i] = (dividend / 5) as u64;
            rest = dividend % 5;
        }
        table[zero - n] = top(&limbs);
        n += 1;
    }
    table
}

/// The 128 bits from the topmost set one down.
const fn top(limbs: &[u64]) -> u128 {
    let mut i = limbs.len() - 1;
    while limbs[i] == 0 {
        i -= 1;
    }
    let mid = if i >= 1 { limbs[i - 1] } else { 0 };
    let low = if i >= 2 { limbs[i - 2] } else { 0 };
    let shift = limbs[i].leading_zeros();
    let upper = ((limbs[i] as u128) << 64) | mid as u128;
    (upper << shift) | ((low as u128) << shift >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_powers_are_exact() {
        for n in 0..=38 {
            let power = 10u128.pow(n as u32);
            assert_eq!(bits(n), power << power.leading_zeros());
            assert_eq!(log2(n), 127 - power.leading_zeros() as i32);
        }
        assert!(5u128.checked_pow(55).is_some() && 5u128.checked_pow(56).is_none());
    }

    #[test]
    fn neighbours_agree_and_the_logarithms_hold() {
        for n in *RANGE.start()..*RANGE.end() {
            // 10 · x in units of the next entry: the cut-off tails make up less than 2 + 10/8 units.
            let (now, next) = (bits(n), bits(n + 1));
            let shift = log2(n + 1) - log2(n);
            assert!(next >> 127 == 1 && (shift == 3 || shift == 4), "{n}");
            let tenfold = (now >> shift) * 10 + (((now & ((1 << shift) - 1)) * 10) >> shift);
            assert!(next.abs_diff(tenfold) <= 3, "{n}");
        }
        for n in -1074..1024 {
            let k = log10(n);
            assert!(log2(k + 1) >= n && log2(k) <= n, "{n}");
            assert!(log2(k) < n || k == 0 || bits(k) != 1 << 127, "{n}");
        }
    }
}
