//! The nearest float of an integer times a power of ten, by one or two multiplications.
//!
//! The method is that of D. Lemire, "Number parsing at a gigabyte per second", Software: Practice
//! and Experience 51 (2021), doi:10.1002/spe.2984. That two words of the power always suffice, so
//! that no fallback is needed, is proved in N. Mushtak and D. Lemire, "Fast number parsing without
//! fallback", Software: Practice and Experience 53 (2023, online 2022), doi:10.1002/spe.3198.

/// The least and the greatest power of ten that any double needs.
const LEAST: i64 = -342;
const GREATEST: i64 = 308;

/// The 128 highest bits of each power of five, 5^-342 to 5^308, as (high word, low word): exact up
/// to 5^55, cut off beyond. Of the negative powers, those to 5^-27 are rounded up, and the rest cut
/// off, as both papers have it.
pub(crate) static POWERS: [(u64, u64); (GREATEST - LEAST + 1) as usize] = powers();

/// Words of the large integer that the table is made with: 5^342 has 795 bits, and a reciprocal
/// needs 128 more and a few to spare.
const WORDS: usize = 16;

const fn powers() -> [(u64, u64); (GREATEST - LEAST + 1) as usize] {
    let mut table = [(0, 0); (GREATEST - LEAST + 1) as usize];
    let zero = -LEAST as usize;

    let mut number = [0u64; WORDS];
    number[0] = 1;
    let mut power = 0;
    while power <= GREATEST as usize {
        table[zero + power] = split(highest(&number));
        let mut carry = 0u128;
        let mut i = 0;
        while i < WORDS {
            carry += number[i] as u128 * 5;
            number[i] = carry as u64;
            carry >>= 64;
            i += 1;
        }
        power += 1;
    }

    // floor(floor(x / 5) / 5) = floor(x / 25), so each step is exact to the last bit but one.
    let mut number = [0u64; WORDS];
    number[WORDS - 1] = 1 << 63;
    let mut power = 1;
    while power <= zero {
        let mut rest = 0u128;
        let mut i = WORDS;
        while i > 0 {
            i -= 1;
            rest = rest << 64 | number[i] as u128;
            number[i] = (rest / 5) as u64;
            rest %= 5;
        }
        table[zero - power] = split(highest(&number) + if power <= 27 { 1 } else { 0 });
        power += 1;
    }
    table
}

const fn split(bits: u128) -> (u64, u64) {
    ((bits >> 64) as u64, bits as u64)
}

/// The 128 bits from the highest set bit on.
const fn highest(number: &[u64; WORDS]) -> u128 {
    let mut top = WORDS - 1;
    while number[top] == 0 {
        top -= 1;
    }
    let second = if top >= 1 { number[top - 1] } else { 0 };
    let third = if top >= 2 { number[top - 2] } else { 0 };
    let shift = number[top].leading_zeros();
    let pair = (number[top] as u128) << 64 | second as u128;
    if shift == 0 { pair } else { pair << shift | (third >> (64 - shift)) as u128 }
}

/// What the method has to know of a float type.
struct Format {
    mantissa_bits: u32,
    minimum_exponent: i32,
    infinite_power: i32,
    /// Below the first, every product is a zero; above the second, an infinity.
    powers: (i64, i64),
    /// The powers for which a 64-bit integer times ten to them can lie half way between two floats.
    ties: (i64, i64),
}

const F64: Format = Format {
    mantissa_bits: 52,
    minimum_exponent: -1023,
    infinite_power: 0x7FF,
    powers: (LEAST, GREATEST),
    ties: (-4, 23),
};

const F32: Format = Format {
    mantissa_bits: 23,
    minimum_exponent: -127,
    infinite_power: 0xFF,
    powers: (-65, 38),
    ties: (-17, 10),
};

/// The double nearest to `mantissa` * 10^`power`, or an infinity.
#[inline]
pub(crate) fn lemire_f64(mantissa: u64, power: i64) -> f64 {
    f64::from_bits(nearest(&F64, mantissa, power))
}

/// The `f32` nearest to `mantissa` * 10^`power`, or an infinity.
#[inline]
pub(crate) fn lemire_f32(mantissa: u64, power: i64) -> f32 {
    f32::from_bits(nearest(&F32, mantissa, power) as u32)
}

#[inline(always)]
fn nearest(format: &Format, mantissa: u64, power: i64) -> u64 {
    if mantissa == 0 || power < format.powers.0 {
        return 0;
    }
    let infinity = (format.infinite_power as u64) << format.mantissa_bits;
    if power > format.powers.1 {
        return infinity;
    }
    let zeros = mantissa.leading_zeros();
    let (low, high) = product(format, mantissa << zeros, power);
    let upper = (high >> 63) as i32;
    let shift = upper + 64 - format.mantissa_bits as i32 - 3;
    // floor(log2(10^power)) + 63, for all the powers of the table.
    let log = (((152_170 + 65_536) * power as i32) >> 16) + 63;
    let exponent = log + upper - zeros as i32 - format.minimum_exponent;
    let mut bits = high >> shift;
    if exponent <= 0 {
        if -exponent + 1 >= 64 {
            return 0;
        }
        bits >>= -exponent + 1;
        // Rounding up may make the least normal number, whose exponent bit is then in place.
        return (bits + (bits & 1)) >> 1;
    }
    // Half way exactly, so to the even one.
    if low <= 1 && format.ties.0 <= power && power <= format.ties.1 && bits & 3 == 1 && bits << shift == high
    {
        bits &= !1;
    }
    bits = (bits + (bits & 1)) >> 1;
    // The leading bit, and a carry beyond it, add to the exponent.
    ((((exponent - 1) as u64) << format.mantissa_bits) + bits).min(infinity)
}

/// The upper 128 bits of a normalised integer times the power of five, as far as they matter.
#[inline(always)]
fn product(format: &Format, mantissa: u64, power: i64) -> (u64, u64) {
    let (five_high, five_low) = POWERS[(power - LEAST) as usize];
    let mask = u64::MAX >> (format.mantissa_bits + 3);
    let first = u128::from(mantissa) * u128::from(five_high);
    let (mut low, mut high) = (first as u64, (first >> 64) as u64);
    if high & mask == mask {
        let second = ((u128::from(mantissa) * u128::from(five_low)) >> 64) as u64;
        low = low.wrapping_add(second);
        high += u64::from(second > low);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few rows as published with the papers.
    #[test]
    fn the_table_is_the_published_one() {
        let row = |power: i64| POWERS[(power - LEAST) as usize];
        assert_eq!(row(-342), (0xeef4_53d6_923b_d65a, 0x113f_aa29_06a1_3b3f));
        assert_eq!(row(-1), (0xcccc_cccc_cccc_cccc, 0xcccc_cccc_cccc_cccd));
        assert_eq!(row(0), (1 << 63, 0));
        assert_eq!(row(1), (0xa << 60, 0));
        assert_eq!(row(308), (0x8e67_9c2f_5e44_ff8f, 0x570f_09ea_a7ea_7648));
    }

    /// Each row times five, normalised, is the next one but for what was cut off.
    #[test]
    fn the_rows_follow_each_other() {
        for pair in POWERS.windows(2) {
            let joined = |(high, low): (u64, u64)| u128::from(high) << 64 | u128::from(low);
            let (this, next) = (joined(pair[0]), joined(pair[1]));
            // Five times a number of 128 bits, less its two or three lowest bits.
            let product = this.checked_add(this >> 2).unwrap_or(this / 2 + (this >> 3));
            assert!(product.abs_diff(next) <= 2, "{this:x} {next:x}");
        }
    }
}
