//! Eight fields at once.
//!
//! Each field is loaded so that its last byte is the last of its part of a vector: 16 bytes a field
//! where all eight are short, 32 bytes otherwise. So the weight of each digit is known without a look at
//! the field, but for the point, which is taken out by moving what is before it one byte up.

use super::index::load;
use crate::text::number::POWERS;
use std::arch::x86_64::*;

/// Fields in a group.
pub(super) const LANES: usize = 8;

/// What a type does with the eight values of a group.
pub(in crate::text) trait Lanes: Copy {
    const KIND: Kind;
    fn from_integers(values: &[i64; LANES], group: &mut [Self; LANES]);
    fn from_doubles(values: &[f64; LANES], group: &mut [Self; LANES]);
}

#[derive(Clone, Copy, PartialEq)]
pub(in crate::text) enum Kind {
    /// Integers within these limits.
    Integer(i64, i64),
    /// Integers from zero to the end of 64 bits.
    Unsigned64,
    Double,
    Single,
}

macro_rules! lanes {
    ($($t:ident $kind:expr;)*) => { $(
        impl Lanes for $t {
            const KIND: Kind = $kind;
            #[inline(always)]
            fn from_integers(values: &[i64; LANES], group: &mut [Self; LANES]) {
                *group = values.map(|value| value as $t);
            }
            #[inline(always)]
            fn from_doubles(values: &[f64; LANES], group: &mut [Self; LANES]) {
                *group = values.map(|value| value as $t);
            }
        }
    )* };
}

lanes! {
    i8 Kind::Integer(i8::MIN as i64, i8::MAX as i64);
    i16 Kind::Integer(i16::MIN as i64, i16::MAX as i64);
    i32 Kind::Integer(i32::MIN as i64, i32::MAX as i64);
    i64 Kind::Integer(i64::MIN, i64::MAX);
    u8 Kind::Integer(0, u8::MAX as i64);
    u16 Kind::Integer(0, u16::MAX as i64);
    u32 Kind::Integer(0, u32::MAX as i64);
    u64 Kind::Unsigned64;
    f64 Kind::Double;
    f32 Kind::Single;
}

/// What the fields before were like.
#[derive(Default)]
pub(super) struct Shapes {
    /// For how many groups the kernel of short fields is not worth a try.
    skip_short: u32,
}

/// Eight numbers taken apart: value = mantissa * 10^power.
#[derive(Clone, Copy)]
struct Parts {
    mantissas: __m512i,
    /// For short fields the number of leading zeros of the point's bit, else the power of ten.
    powers: __m512i,
    negative: __mmask8,
    refused: __mmask8,
}

const fn bytes_by(lane: usize, f: fn_of::Weight) -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = fn_of::apply(f, lane, i);
        i += 1;
    }
    bytes
}

/// Constant vectors, one byte after the other.
mod fn_of {
    #[derive(Clone, Copy)]
    pub(super) enum Weight {
        /// The least length of a field that reaches to this byte; the last byte is always read, so that
        /// an empty field shows what is before it, which is no digit.
        Reach,
        /// The length of a field that begins with this byte; none begins a number with the last.
        Begin,
        /// Ten and one, for neighbouring digits.
        Tens,
        /// The byte before, within the lane.
        Before,
        /// Where the length of this byte's field is among eight 16-bit lengths.
        Length([u8; 4]),
    }

    pub(super) const fn apply(weight: Weight, lane: usize, i: usize) -> u8 {
        let j = i % lane;
        match weight {
            Weight::Reach if j == lane - 1 => 0,
            Weight::Begin if j == lane - 1 => 255,
            Weight::Reach | Weight::Begin => (lane - j) as u8,
            Weight::Tens => [10, 1][i % 2],
            Weight::Before => {
                if j == 0 {
                    i as u8
                } else {
                    i as u8 - 1
                }
            }
            Weight::Length(fields) => 2 * fields[i / lane],
        }
    }
}

use fn_of::Weight;

/// Parses the eight fields and gives a bit for each that it does not take. Each field ends at least 40
/// bytes after the start of the text.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn group<T: Lanes>(
    text: &[u8],
    at: usize,
    starts: &[u16; LANES],
    ends: &[u16; LANES],
    group: &mut [T; LANES],
    shapes: &mut Shapes,
) -> u8 {
    let (first, last) = (load_positions(starts), load_positions(ends));
    let lengths = _mm_sub_epi16(last, first);
    let float = matches!(T::KIND, Kind::Double | Kind::Single);
    let short = if float { 15 } else { 16 };
    let long = _mm_cmpgt_epu16_mask(lengths, _mm_set1_epi16(short));
    if long == 0 && shapes.skip_short == 0 {
        if float {
            let parts = short_parts::<true>(text, at, ends, lengths);
            if parts.refused == 0 {
                return finish_floats(parts, short_doubles(parts), group);
            }
        } else {
            let parts = short_parts::<false>(text, at, ends, lengths);
            if parts.refused == 0 {
                return finish_integers(parts, group);
            }
        }
        shapes.skip_short = 8;
    }
    shapes.skip_short = shapes.skip_short.saturating_sub(1);
    if float {
        let mut parts = long_parts::<true>(text, at, ends, lengths, last);
        let doubles = long_doubles(&mut parts);
        finish_floats(parts, doubles, group)
    } else {
        let parts = long_parts::<false>(text, at, ends, lengths, last);
        finish_integers(parts, group)
    }
}

/// Fields of up to 16 bytes (15 with a point), each in 16 bytes: the even ones in one vector, the odd
/// ones in the other, as packing interleaves them.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn short_parts<const FLOAT: bool>(text: &[u8], at: usize, ends: &[u16; LANES], lengths: __m128i) -> Parts {
    const EVEN: [u8; 64] = bytes_by(16, Weight::Length([0, 2, 4, 6]));
    const ODD: [u8; 64] = bytes_by(16, Weight::Length([1, 3, 5, 7]));
    let even = short_digits::<FLOAT>(text, at, [ends[0], ends[2], ends[4], ends[6]], spread(lengths, &EVEN));
    let odd = short_digits::<FLOAT>(text, at, [ends[1], ends[3], ends[5], ends[7]], spread(lengths, &ODD));
    let fours = _mm512_packus_epi32(even.fours, odd.fours);
    let negative = in_order(even.negative, odd.negative);
    let mut refused = 0;
    if even.wrong | odd.wrong != 0 {
        let wrong = in_order(even.wrong, odd.wrong);
        refused = _mm_test_epi16_mask(wrong, wrong);
    }
    Parts {
        mantissas: sixteens(fours),
        powers: _mm512_lzcnt_epi64(_mm512_cvtepu16_epi64(in_order(even.points, odd.points))),
        negative: _mm_test_epi16_mask(negative, negative),
        refused,
    }
}

/// The digits of some fields, four in each 32 bits; and a bit for each byte that is a minus sign, a
/// point, or wrong.
struct Digits {
    fours: __m512i,
    negative: u64,
    points: u64,
    wrong: u64,
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn short_digits<const FLOAT: bool>(text: &[u8], at: usize, ends: [u16; 4], lengths: __m512i) -> Digits {
    let field = |end: u16| load_16(text, at + usize::from(end));
    let bytes = _mm512_castsi128_si512(field(ends[0]));
    let bytes = _mm512_inserti32x4::<1>(bytes, field(ends[1]));
    let bytes = _mm512_inserti32x4::<2>(bytes, field(ends[2]));
    let bytes = _mm512_inserti32x4::<3>(bytes, field(ends[3]));
    digits::<FLOAT, 16>(bytes, lengths)
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn digits<const FLOAT: bool, const LANE: usize>(bytes: __m512i, lengths: __m512i) -> Digits {
    const { assert!(LANE == 16 || LANE == 32) };
    let reach = const { bytes_by(LANE, Weight::Reach) };
    let begin = const { bytes_by(LANE, Weight::Begin) };
    let tens = const { bytes_by(LANE, Weight::Tens) };
    let before = const { bytes_by(LANE, Weight::Before) };
    // One bit in each lane: its lowest, and all but its highest.
    let low: u64 = if LANE == 16 { 0x0001_0001_0001_0001 } else { 0x0000_0001_0000_0001 };
    let below = !(low << (LANE - 1));

    let inside = _mm512_cmpge_epu8_mask(lengths, load(&reach));
    let begins = _mm512_cmpeq_epi8_mask(lengths, load(&begin));
    let negative = _mm512_mask_cmpeq_epi8_mask(begins, bytes, _mm512_set1_epi8(b'-' as i8));
    let mut digit = inside & !negative;
    let mut points = 0;
    if FLOAT {
        points = _mm512_mask_cmpeq_epi8_mask(inside & below, bytes, _mm512_set1_epi8(b'.' as i8));
        digit &= !points;
    }
    let values = _mm512_maskz_sub_epi8(digit, bytes, _mm512_set1_epi8(b'0' as i8));
    let mut wrong = _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(9));
    let mut values = values;
    if FLOAT {
        // In each lane with a point: the bits up to it, by taking the lowest bit from twice the point's.
        let pointed = ((points + below) >> (LANE - 1)) & low;
        wrong |= points & points.wrapping_sub(pointed);
        let up_to = (points << 1).wrapping_sub(pointed);
        values = _mm512_mask_permutexvar_epi8(values, up_to, load(&before), values);
    }
    let twos = _mm512_maddubs_epi16(values, load(&tens));
    let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(1 << 16 | 100));
    Digits { fours, negative, points, wrong }
}

/// Numbers of sixteen digits from their fours (16 bits each), the first the most significant.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn sixteens(fours: __m512i) -> __m512i {
    let eights = _mm512_madd_epi16(fours, _mm512_set1_epi32(1 << 16 | 10_000));
    let upper = _mm512_mul_epu32(eights, _mm512_set1_epi64(100_000_000));
    _mm512_add_epi64(upper, _mm512_srli_epi64::<32>(eights))
}

/// Fields of up to 32 bytes, two to a vector, with or without an exponent of two digits.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn long_parts<const FLOAT: bool>(
    text: &[u8],
    at: usize,
    ends: &[u16; LANES],
    lengths: __m128i,
    last: __m128i,
) -> Parts {
    const LENGTHS: [[u8; 64]; 4] = [
        bytes_by(32, Weight::Length([0, 1, 0, 0])),
        bytes_by(32, Weight::Length([2, 3, 0, 0])),
        bytes_by(32, Weight::Length([4, 5, 0, 0])),
        bytes_by(32, Weight::Length([6, 7, 0, 0])),
    ];
    let mut ends = *ends;
    let mut lengths = lengths;
    let mut exponents = _mm256_setzero_si256();
    if FLOAT {
        let (with, values) = exponents_of(text, at, &ends);
        exponents = values;
        let four = _mm_maskz_set1_epi16(with, 4);
        lengths = _mm_sub_epi16(lengths, four);
        store_positions(&mut ends, _mm_sub_epi16(last, four));
    }
    let mut refused = _mm_cmpgt_epu16_mask(lengths, _mm_set1_epi16(32));
    let part = |i: usize| {
        let field = |end: u16| load_32(text, at + usize::from(end));
        let bytes = _mm512_castsi256_si512(field(ends[2 * i]));
        let bytes = _mm512_inserti64x4::<1>(bytes, field(ends[2 * i + 1]));
        digits::<FLOAT, 32>(bytes, spread(lengths, &LENGTHS[i]))
    };
    let (a, b, c, d) = (part(0), part(1), part(2), part(3));
    let bits =
        |f: fn(&Digits) -> u64| _mm256_set_epi64x(f(&d) as i64, f(&c) as i64, f(&b) as i64, f(&a) as i64);
    if a.wrong | b.wrong | c.wrong | d.wrong != 0 {
        let wrong = bits(|digits| digits.wrong);
        refused |= _mm256_test_epi32_mask(wrong, wrong);
    }
    let negative = bits(|digits| digits.negative);
    let left = sixteens(_mm512_packus_epi32(a.fours, b.fours));
    let right = sixteens(_mm512_packus_epi32(c.fours, d.fours));
    // Packing leaves the upper sixteen digits of fields 0 and 2, the lower of both, then of 1 and 3.
    let uppers = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(0, 4, 1, 5, 8, 12, 9, 13), right);
    let lowers = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(2, 6, 3, 7, 10, 14, 11, 15), right);
    // 1844 * 10^16 and any sixteen digits more could be beyond 64 bits.
    refused |= _mm512_cmpge_epu64_mask(uppers, _mm512_set1_epi64(1844));
    let mantissas =
        _mm512_add_epi64(_mm512_mullo_epi64(uppers, _mm512_set1_epi64(10_000_000_000_000_000)), lowers);
    let mut powers = _mm512_setzero_si512();
    if FLOAT {
        // Leading zeros of the point's bit are the digits after it; 32 of them are no point.
        let points = _mm256_lzcnt_epi32(bits(|digits| digits.points));
        let places = _mm256_and_si256(points, _mm256_set1_epi32(31));
        powers = _mm512_cvtepi32_epi64(_mm256_sub_epi32(exponents, places));
    }
    Parts { mantissas, powers, negative: _mm256_test_epi32_mask(negative, negative), refused }
}

/// Which fields end in `e`, a sign and two digits, and their exponents; 0 for the others.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn exponents_of(text: &[u8], at: usize, ends: &[u16; LANES]) -> (__mmask8, __m256i) {
    let four = |end: u16| {
        let end = at + usize::from(end);
        text[..end].last_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as i32
    };
    let [a, b, c, d, e, f, g, h] = *ends;
    let bytes = _mm256_setr_epi32(four(a), four(b), four(c), four(d), four(e), four(f), four(g), four(h));
    let lower = _mm256_or_si256(bytes, _mm256_set1_epi32(0x20));
    let values = _mm256_sub_epi8(lower, _mm256_set1_epi32(i32::from_le_bytes(*b"e+00")));
    // Nothing may be left of the `e`, 0 or 2 of the sign (a comma would leave 1), 9 of the digits.
    let most = _mm256_min_epu8(values, _mm256_set1_epi32(i32::from_le_bytes([0, 2, 9, 9])));
    let shaped = _mm256_cmpeq_epi32_mask(values, most);
    let with = _mm256_mask_testn_epi32_mask(shaped, values, _mm256_set1_epi32(1 << 8));
    let sum = _mm256_maddubs_epi16(values, _mm256_set1_epi32(i32::from_le_bytes([0, 0, 10, 1])));
    let size = _mm256_maskz_srli_epi32::<16>(with, sum);
    let minus = _mm256_mask_test_epi32_mask(with, values, _mm256_set1_epi32(2 << 8));
    (with, _mm256_mask_sub_epi32(size, minus, _mm256_setzero_si256(), size))
}

/// The nearest doubles of short parts. Fifteen digits and 10^14 are doubles exactly, so that the
/// quotient is rounded once (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990).
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn short_doubles(parts: Parts) -> __m512d {
    let small = _mm512_setr_pd(1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7);
    let large = _mm512_setr_pd(1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15);
    // The point's bit is one of 16 in 64, so 48 zeros come on top; the choice is by the last four bits.
    let divisors = _mm512_permutex2var_pd(small, parts.powers, large);
    _mm512_div_pd(_mm512_cvtepu64_pd(parts.mantissas), divisors)
}

/// The powers of ten that long parts can have: a two-digit exponent less up to 31 digits after the point.
const LEAST_POWER: i64 = -130;
const HIGHS: [u64; 256] = {
    let mut highs = [0; 256];
    let mut i = 0;
    while i < 256 {
        highs[i] = POWERS[(LEAST_POWER + 342) as usize + i].0;
        i += 1;
    }
    highs
};
static HIGH_WORDS: [u64; 256] = HIGHS;

/// The nearest doubles of long parts, by the method of `number::lemire` with one multiplication; what
/// that leaves open is refused.
///
/// Let t be the upper word of the power of five and w the normalised mantissa. The true product is
/// w * (t + d), 0 <= d < 1, and w < 2^64; so in units of the upper word, it is at least `high` and less
/// than `high` + 2. What is between half way and the double below or above is then on a known side
/// unless the bits to be cut off are half, or half less one. (Or one more at either side, as the lowest
/// bit is dropped before this is looked at where the product has its highest bit set.)
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn long_doubles(parts: &mut Parts) -> __m512d {
    let mantissas = parts.mantissas;
    let zeros = _mm512_lzcnt_epi64(mantissas);
    let w = _mm512_sllv_epi64(mantissas, zeros);
    let t = gather(_mm512_sub_epi64(parts.powers, _mm512_set1_epi64(LEAST_POWER)));

    let low_word = _mm512_set1_epi64(0xFFFF_FFFF);
    let (w_high, t_high) = (_mm512_srli_epi64::<32>(w), _mm512_srli_epi64::<32>(t));
    let low = _mm512_mul_epu32(w, t);
    let cross = _mm512_add_epi64(_mm512_mul_epu32(w_high, t), _mm512_srli_epi64::<32>(low));
    let other = _mm512_add_epi64(_mm512_mul_epu32(w, t_high), _mm512_and_si512(cross, low_word));
    let high = _mm512_add_epi64(_mm512_mul_epu32(w_high, t_high), _mm512_srli_epi64::<32>(cross));
    let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(other));

    let upper = _mm512_srli_epi64::<63>(high);
    let scaled = _mm512_srlv_epi64(high, upper);
    // Open if the last ten bits are 511 or 512.
    let moved = _mm512_add_epi64(scaled, _mm512_set1_epi64(513));
    let nonzero = _mm512_test_epi64_mask(mantissas, mantissas);
    parts.refused |= _mm512_mask_testn_epi64_mask(nonzero, moved, _mm512_set1_epi64(0x3FE));
    let half_up = _mm512_add_epi64(_mm512_srli_epi64::<9>(scaled), _mm512_set1_epi64(1));
    let significand = _mm512_srli_epi64::<1>(half_up);
    // floor(log2(10^power)) + 63 + upper - zeros is the exponent; the leading bit adds one to its place.
    let log = _mm512_srai_epi64::<16>(_mm512_mul_epi32(parts.powers, _mm512_set1_epi64(152_170 + 65_536)));
    let bias = _mm512_sub_epi64(_mm512_add_epi64(upper, _mm512_set1_epi64(63 + 1022)), zeros);
    let exponent = _mm512_slli_epi64::<52>(_mm512_add_epi64(log, bias));
    _mm512_castsi512_pd(_mm512_maskz_add_epi64(nonzero, significand, exponent))
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn finish_floats<T: Lanes>(parts: Parts, doubles: __m512d, group: &mut [T; LANES]) -> u8 {
    let mut refused = parts.refused;
    let bits = _mm512_castpd_si512(doubles);
    if T::KIND == Kind::Single {
        // The nearest double is on the same side of each point half way between two singles as the
        // number, as such points are doubles: unless it is one. Among subnormals they are elsewhere.
        let cut_off = _mm512_and_si512(bits, _mm512_set1_epi64(0x1FFF_FFFF));
        refused |= _mm512_cmpeq_epi64_mask(cut_off, _mm512_set1_epi64(0x1000_0000));
        refused |= _mm512_cmp_pd_mask::<_CMP_GT_OQ>(doubles, _mm512_set1_pd(f64::from(f32::MAX)));
        let nonzero = _mm512_test_epi64_mask(bits, bits);
        let normal = _mm512_set1_pd(f64::from(f32::MIN_POSITIVE));
        refused |= _mm512_mask_cmp_pd_mask::<_CMP_LT_OQ>(nonzero, doubles, normal);
    }
    let signed = _mm512_mask_or_epi64(bits, parts.negative, bits, _mm512_set1_epi64(i64::MIN));
    let mut values = [0.0; LANES];
    // SAFETY: the array may be written, and no alignment is asked for.
    unsafe { _mm512_storeu_pd(values.as_mut_ptr(), _mm512_castsi512_pd(signed)) };
    T::from_doubles(&values, group);
    refused
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn finish_integers<T: Lanes>(parts: Parts, group: &mut [T; LANES]) -> u8 {
    let Parts { mantissas, negative, mut refused, .. } = parts;
    let signed = _mm512_mask_sub_epi64(mantissas, negative, _mm512_setzero_si512(), mantissas);
    match T::KIND {
        Kind::Integer(least, greatest) => {
            // Beyond 63 bits the sign bit of a magnitude is set (and -2^63 is left to slower code).
            refused |= _mm512_movepi64_mask(mantissas);
            if least > i64::MIN {
                refused |= _mm512_cmplt_epi64_mask(signed, _mm512_set1_epi64(least));
                refused |= _mm512_cmpgt_epi64_mask(signed, _mm512_set1_epi64(greatest));
            }
        }
        _ => refused |= _mm512_mask_test_epi64_mask(negative, mantissas, mantissas),
    }
    let mut values = [0; LANES];
    // SAFETY: the array may be written, and no alignment is asked for.
    unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), signed) };
    T::from_integers(&values, group);
    refused
}

/// The length of each byte's field.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn spread(lengths: __m128i, places: &[u8; 64]) -> __m512i {
    _mm512_permutexvar_epi8(load(places), _mm512_castsi128_si512(lengths))
}

/// Bits of the even and of the odd fields, 16 each, as bits of all fields.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn in_order(even: u64, odd: u64) -> __m128i {
    _mm_unpacklo_epi16(_mm_cvtsi64_si128(even as i64), _mm_cvtsi64_si128(odd as i64))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn gather(indices: __m512i) -> __m512i {
    let indices = _mm512_and_si512(indices, _mm512_set1_epi64(255));
    // SAFETY: the indices are below 256, so each word read is one of the table.
    unsafe { _mm512_i64gather_epi64::<8>(indices, HIGH_WORDS.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512vl")]
fn load_16(text: &[u8], end: usize) -> __m128i {
    match text[..end].last_chunk::<16>() {
        // SAFETY: the 16 bytes behind the reference may be read, and no alignment is asked for.
        Some(bytes) => unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) },
        None => _mm_setzero_si128(),
    }
}

#[inline]
#[target_feature(enable = "avx512vl")]
fn load_32(text: &[u8], end: usize) -> __m256i {
    match text[..end].last_chunk::<32>() {
        // SAFETY: the 32 bytes behind the reference may be read, and no alignment is asked for.
        Some(bytes) => unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) },
        None => _mm256_setzero_si256(),
    }
}

#[inline]
#[target_feature(enable = "avx512vl")]
fn load_positions(positions: &[u16; LANES]) -> __m128i {
    // SAFETY: the 16 bytes behind the reference may be read, and no alignment is asked for.
    unsafe { _mm_loadu_si128(positions.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512vl")]
fn store_positions(positions: &mut [u16; LANES], values: __m128i) {
    // SAFETY: the 16 bytes behind the reference may be written, and no alignment is asked for.
    unsafe { _mm_storeu_si128(positions.as_mut_ptr().cast(), values) }
}
