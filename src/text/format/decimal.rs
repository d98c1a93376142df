//! Correctly rounded decimals of doubles: ties go to the even digit, judged on the exact binary
//! value, as C's printf and Python do.
//!
//! The fast paths are integer arithmetic on at most 192 bits. Where they can't be sure, they say
//! so, and the caller takes the exact text from the standard library (about 1 µs).

use super::digits::{self, POW10, Window, eight, two};
use super::powers;

/// The most digits after the point for which [`significant`] is defined: 19 digits fit a `u64`.
pub(super) const MAX_EXPONENT_PRECISION: usize = 18;
/// The most digits after the point for which [`fixed`] is defined.
pub(super) const MAX_FIXED_PRECISION: usize = 19;

const FRACTION: u64 = (1 << 52) - 1;

/// The first `p + 1` significant digits of |v| as one integer, and the decimal exponent of the first.
/// `v` is finite and not zero, `p` at most 18. `None`: too near a tie for 128-bit powers.
#[inline(always)]
pub(super) fn significant(v: f64, p: usize) -> Option<(u64, i32)> {
    let raw = v.to_bits() & !(1 << 63);
    // |v| = m / 2^63 · 2^e with the top bit of m set.
    let (m, e) = if raw > FRACTION {
        ((raw << 11) | 1 << 63, (raw >> 52) as i32 - 1023)
    } else {
        let zeros = raw.leading_zeros();
        (raw << zeros, -1011 - zeros as i32)
    };
    // At most one power of ten lies among the numbers with this e: above or below it?
    let below = powers::log10(e);
    let above = (powers::log2(below + 1) == e) & (u128::from(m) << 64 >= powers::bits(below + 1));
    let k = below + i32::from(above);

    // |v| · 10^n as t / 2^shift, where t is too small by less than 2. Only a number from 9.2 on with all 19
    // digits has a shift of 63.
    let n = p as i32 - k;
    let power = powers::bits(n);
    let (high, low) = ((power >> 64) as u64, power as u64);
    let low_product = u128::from(m) * u128::from(low);
    let t = u128::from(m) * u128::from(high) + (low_product >> 64);
    let shift = (126 - e - powers::log2(n)) as u32 & 127;
    let down = shift.wrapping_sub(64);
    let (t_high, t_low) = ((t >> 64) as u64, t as u64);
    let rest = (t_high << 1 << (63 - (down & 63))) | (t_low >> (down & 63));
    const HALF: u64 = 1 << 63;
    let q = if down >= 64 || rest.wrapping_sub(HALF - 1) < 2 {
        carefully(t, shift, low_product as u64 != 0, n)?
    } else {
        (t_high >> down) + (rest >> 63)
    };
    if q == POW10[p + 1] { Some((POW10[p], k + 1)) } else { Some((q, k)) }
}

/// Rounds t / 2^shift where 64 bits of the fraction are not enough to tell. `beyond`: there are set bits below t.
#[cold]
fn carefully(t: u128, shift: u32, beyond: bool, n: i32) -> Option<u64> {
    let q = (t >> shift) as u64;
    let rest = t << (128 - shift);
    const HALF: u128 = 1 << 127;
    if HALF.wrapping_sub(rest) < 2 << (128 - shift) {
        if !powers::EXACT.contains(&n) {
            return None;
        }
        return Some(q + u64::from(rest == HALF && (beyond || q & 1 == 1)));
    }
    Some(q + u64::from(rest > HALF))
}

/// |v| rounded to `p` digits after the point, as the integer part and those digits. `v` is finite, `p` at
/// most 19. `None`: the integer part takes more than 64 bits.
#[inline(always)]
pub(super) fn fixed(v: f64, p: usize) -> Option<(u64, u64)> {
    let raw = v.to_bits() & !(1 << 63);
    let exponent = (raw >> 52) as i32;
    let m = if exponent == 0 { raw } else { (raw & FRACTION) | 1 << 52 };
    let down = 1075 - exponent.max(1);
    if down <= 0 {
        return if down >= -11 { Some((m << -down, 0)) } else { None };
    }
    // The fraction as 64 bits, or a number below 2^-11.
    let (mut integer, mut digits, rest);
    if down <= 64 {
        let fraction = m << (64 - down);
        integer = if down < 64 { m >> down } else { 0 };
        let product = u128::from(fraction) * u128::from(POW10[p]);
        (digits, rest) = ((product >> 64) as u64, product as u64);
    } else {
        integer = 0;
        (digits, rest) = small(m, down, p);
    }
    let odd = if p == 0 { integer } else { digits } & 1;
    digits += (rest >> 63) & (odd | u64::from(rest << 1 != 0));
    if digits == POW10[p] {
        digits = 0;
        integer += 1;
    }
    Some((integer, digits))
}

/// The digits of m / 2^down for [`fixed`], and 64 bits of the fraction, the last of which stands for all below.
fn small(m: u64, down: i32, p: usize) -> (u64, u64) {
    if down >= 128 {
        // Below 2^-75, so 10^19 times it is below a half.
        return (0, 0);
    }
    // 53 bits by 64.
    let product = u128::from(m) * u128::from(POW10[p]);
    let rest = product << (128 - down);
    ((product >> down) as u64, (rest >> 64) as u64 | u64::from(rest as u64 != 0))
}

/// Writes |v| as `%.{p}e` at `at` (at most 1) and gives the end; 0 where [`significant`] gives up.
/// `v` is finite, `p` at most 18.
#[inline(always)]
pub(super) fn put_exponent(v: f64, p: usize, w: &mut Window, at: usize) -> usize {
    let (q, k) = if v == 0.0 {
        (0, 0)
    } else {
        match significant(v, p) {
            Some(found) => found,
            None => return 0,
        }
    };
    // Always 19 digits at fixed places, of which the unwanted last ones are then written over.
    let q = q * POW10[MAX_EXPONENT_PRECISION - p];
    const E8: u64 = 100_000_000;
    let (upper, last) = (q / E8, q % E8);
    let (first, middle) = ((upper / E8) as u32, upper % E8);
    let lead = first / 100;
    w[at] = b'0' + lead as u8;
    w[at + 1] = b'.';
    w[at + 2..at + 4].copy_from_slice(&two(first - lead * 100));
    w[at + 4..at + 12].copy_from_slice(&eight(middle));
    w[at + 12..at + 20].copy_from_slice(&eight(last));
    let end = if p == 0 { at + 1 } else { at + 2 + p };
    put_power(k, w, end)
}

/// Writes `e+05` at `at` and gives the end.
#[inline(always)]
pub(super) fn put_power(k: i32, w: &mut Window, at: usize) -> usize {
    w[at] = b'e';
    // Not a branch, which numbers around 1 would make a coin toss: '-' is two after '+'.
    w[at + 1] = b'+' + (k as u32 >> 31 << 1) as u8;
    let size = k.unsigned_abs();
    if size < 100 {
        w[at + 2..at + 4].copy_from_slice(&two(size));
        at + 4
    } else {
        w[at + 2] = b'0' + (size / 100) as u8;
        w[at + 3..at + 5].copy_from_slice(&two(size % 100));
        at + 5
    }
}

/// Writes |v| as `%.{p}f` at `at` (at most 1) and gives the end; 0 where [`fixed`] gives up.
/// `v` is finite, `p` at most 19.
#[inline(always)]
pub(super) fn put_fixed(v: f64, p: usize, w: &mut Window, at: usize) -> usize {
    let Some((integer, fraction)) = fixed(v, p) else { return 0 };
    let mut end = at + 1;
    if integer < 10 {
        w[at] = b'0' + integer as u8;
    } else {
        end = digits::put(integer, w, at);
    }
    if p == 0 {
        return end;
    }
    w[end] = b'.';
    end += 1;
    const E8: u64 = 100_000_000;
    if p <= 8 {
        w[end..end + 8].copy_from_slice(&eight(fraction * POW10[8 - p]));
    } else if p <= 16 {
        let fraction = fraction * POW10[16 - p];
        w[end..end + 8].copy_from_slice(&eight(fraction / E8));
        w[end + 8..end + 16].copy_from_slice(&eight(fraction % E8));
    } else {
        let fraction = fraction * POW10[19 - p];
        let (upper, last) = (fraction / E8, fraction % E8);
        let (first, middle) = ((upper / E8) as u32, upper % E8);
        w[end] = b'0' + (first / 100) as u8;
        w[end + 1..end + 3].copy_from_slice(&two(first % 100));
        w[end + 3..end + 11].copy_from_slice(&eight(middle));
        w[end + 11..end + 19].copy_from_slice(&eight(last));
    }
    end + p
}

/// The first `p + 1` significant digits of |v| and the decimal exponent of the first, for any `p`:
/// the exact twin of [`significant`]. `v` is finite.
pub(super) fn significant_slow(v: f64, p: usize) -> (Vec<u8>, i32) {
    let text = format!("{:.*e}", p, v.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.bytes().filter(u8::is_ascii_digit).collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// |v| as `%.{p}f`, for any `p`: the exact twin of [`put_fixed`]. `v` is finite.
pub(super) fn fixed_slow(v: f64, p: usize) -> String {
    format!("{:.*}", p, v.abs())
}

#[cfg(test)]
mod tests {
    use super::super::digits::WINDOW;
    use super::*;
    use proptest::prelude::*;

    fn check(v: f64) {
        for p in 0..=MAX_EXPONENT_PRECISION {
            let mut w = [b'?'; WINDOW];
            let end = put_exponent(v, p, &mut w, 0);
            if end > 0 {
                let (digits, k) = significant_slow(v, p);
                let mut plain = String::from_utf8(digits).unwrap();
                if p > 0 {
                    plain.insert(1, '.');
                }
                plain += &format!("e{}{:02}", if k < 0 { '-' } else { '+' }, k.abs());
                assert_eq!(std::str::from_utf8(&w[..end]).unwrap(), plain, "{v:e} to {p}");
            } else {
                // Only an exact tie, or a chance of 2^-61.
                let (digits, _) = significant_slow(v, 800);
                assert_eq!(digits[p + 1], b'5', "{v:e} to {p} gave up");
            }
        }
        for p in 0..=MAX_FIXED_PRECISION {
            let mut w = [b'?'; WINDOW];
            let end = put_fixed(v, p, &mut w, 0);
            if end > 0 {
                assert_eq!(std::str::from_utf8(&w[..end]).unwrap(), fixed_slow(v, p), "{v:e} to {p}");
            } else {
                assert!(v.abs() >= 2f64.powi(64));
            }
        }
    }

    #[test]
    fn every_power_of_two_and_ten_and_their_neighbours() {
        for e in -1074..1024 {
            let v = 2f64.powi(e.max(-1022)) * 2f64.powi(e.min(-1022) + 1022);
            for v in [v.next_down(), v, v.next_up()] {
                check(v);
            }
        }
        for e in -323..309 {
            let v: f64 = format!("1e{e}").parse().unwrap();
            for v in [v.next_down(), v, v.next_up(), v * 5.0, v * 9.5] {
                if v.is_finite() {
                    check(v);
                }
            }
        }
        check(0.0);
        check(f64::MAX);
    }

    #[test]
    fn ties() {
        for i in 0..4000 {
            for d in [1.0, 2.0, 4.0, 8.0, 64.0, 1024.0, 1e-3, 1e-22] {
                check(f64::from(i) / d);
            }
        }
        // 2.5e22 and its like are ties beyond the exact powers.
        for e in 1..=22 {
            for q in [15.0, 25.0, 35.0, 105.0, 1_234_565.0] {
                check(q * 10f64.powi(e));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn any_bits(bits: u64) {
            let v = f64::from_bits(bits);
            if v.is_finite() {
                check(v);
            }
        }

        #[test]
        fn usual_sizes(v in -1e6f64..1e6) {
            check(v);
            check((v * 1000.0).round() / 1000.0);
            check(f64::from(v as f32));
        }
    }
}
