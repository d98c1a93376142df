//! The two 16-bit floats: rounding a double to one of them exactly.

use half::{bf16, f16};
use std::cmp::Ordering;

/// The bits of a 16-bit float.
pub(super) trait Half: Copy {
    /// Stored bits of the significand.
    const MANTISSA: u32;
    /// The exponent of the least normal number.
    const MIN_EXPONENT: i64;
    const INFINITY: u16;
    const NAN: u16;
    fn from_bits(bits: u16) -> Self;
}

impl Half for f16 {
    const MANTISSA: u32 = 10;
    const MIN_EXPONENT: i64 = -14;
    const INFINITY: u16 = 0x7C00;
    const NAN: u16 = 0x7E00;
    fn from_bits(bits: u16) -> Self {
        f16::from_bits(bits)
    }
}

impl Half for bf16 {
    const MANTISSA: u32 = 7;
    const MIN_EXPONENT: i64 = -126;
    const INFINITY: u16 = 0x7F80;
    const NAN: u16 = 0x7FC0;
    fn from_bits(bits: u16) -> Self {
        bf16::from_bits(bits)
    }
}

/// The half nearest to a number whose nearest double is `double` (neither negative nor a NaN).
///
/// Points half way between two halves are doubles, and rounding never carries a number across a
/// double; so the double tells the side, except where it is itself such a point. There `side`
/// says how the number compares with it. (`half`'s own conversion from a double looks at the upper
/// 32 bits only, and so takes neighbours of such points for ties.)
pub(super) fn narrow<H: Half>(double: f64, side: impl FnOnce() -> Ordering) -> u16 {
    let bits = double.to_bits();
    if bits == f64::INFINITY.to_bits() {
        return H::INFINITY;
    }
    let exponent = (bits >> 52) as i64 - 1023;
    let subnormal = (H::MIN_EXPONENT - exponent).max(0);
    let shift = 52 - i64::from(H::MANTISSA) + subnormal;
    if shift > 53 {
        // Below half of the least subnormal. (A double's own subnormals are here too.)
        return 0;
    }
    let significand = 1 << 52 | bits & ((1 << 52) - 1);
    let whole = significand >> shift;
    let rest = significand & ((1 << shift) - 1);
    let order = match rest.cmp(&(1 << (shift - 1))) {
        Ordering::Equal => side(),
        clear => clear,
    };
    let up = match order {
        Ordering::Less => 0,
        Ordering::Equal => whole & 1,
        Ordering::Greater => 1,
    };
    let scale = if subnormal > 0 { 0 } else { (exponent - H::MIN_EXPONENT) as u64 };
    // A carry out of the significand goes on into the exponent, as it should.
    ((scale << H::MANTISSA) + whole + up).min(u64::from(H::INFINITY)) as u16
}
