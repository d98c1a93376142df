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

/// Weights of neighbouring digits.
const TENS: [u8; 64] = {
    let mut bytes = [1; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = 10;
        i += 2;
    }
    bytes
};

/// The byte `by` bytes before, within lanes of `lane` bytes. The first bytes of a lane stay.
const fn before(lane: usize, by: usize) -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = if i % lane < by { i } else { i - by } as u8;
        i += 1;
    }
    bytes
}

/// Parses the eight fields and gives a bit for each that it does not take. Their positions are counted
/// from `at`.
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
    // Each position on its own before all in one, so that they aren't taken out of the vector again.
    let offsets = ends.map(usize::from);
    let (first, last) = (load_positions(starts), load_positions(ends));
    let most = text.len().saturating_sub(at).min(u16::MAX.into()) as u16;
    let least = 32usize.saturating_sub(at) as u16;
    let outside = _mm_cmpgt_epu16_mask(last, _mm_set1_epi16(most as i16))
        | _mm_cmplt_epu16_mask(last, _mm_set1_epi16(least as i16));
    if outside != 0 || at > text.len() {
        return u8::MAX;
    }
    // SAFETY: each field ends within the text, and has 32 bytes of it before its end.
    let fields = unsafe { Fields::new(&text[at..], &offsets) };
    let lengths = _mm_sub_epi16(last, first);
    let float = matches!(T::KIND, Kind::Double | Kind::Single);
    let long = _mm_cmpgt_epu16_mask(lengths, _mm_set1_epi16(if float { 15 } else { 16 }));
    if long == 0 && shapes.skip_short == 0 {
        if float {
            let parts = short_parts::<T, true>(fields, lengths);
            if parts.refused == 0 {
                return finish_floats(parts, short_doubles(parts), group);
            }
        } else {
            let parts = short_parts::<T, false>(fields, lengths);
            if parts.refused == 0 {
                return finish_integers(parts, group);
            }
        }
        shapes.skip_short = 8;
    }
    shapes.skip_short = shapes.skip_short.saturating_sub(1);
    let pairs = [fields.pair(0), fields.pair(1), fields.pair(2), fields.pair(3)];
    if !float {
        let (parts, _) = long_parts::<T, false, 0>(pairs, lengths);
        return finish_integers(parts, group);
    }
    let (with, exponents) = exponents_of(pairs);
    let (mut parts, places) = match with {
        0 => long_parts::<T, true, 0>(pairs, lengths),
        u8::MAX => long_parts::<T, true, 4>(pairs, lengths),
        _ => {
            let (a, a_places) = long_parts::<Mixed, true, 0>(pairs, lengths);
            let (b, b_places) = long_parts::<Mixed, true, 4>(pairs, lengths);
            let parts = Parts {
                mantissas: _mm512_mask_mov_epi64(a.mantissas, with, b.mantissas),
                powers: a.powers,
                negative: a.negative & !with | b.negative & with,
                refused: a.refused & !with | b.refused & with,
            };
            (parts, _mm256_mask_mov_epi32(a_places, with, b_places))
        }
    };
    parts.powers = _mm512_cvtepi32_epi64(_mm256_sub_epi32(exponents, places));
    let doubles = long_doubles(&mut parts);
    finish_floats(parts, doubles, group)
}

/// Tells the copies of a function apart, so that the compiler has one for each place.
struct Mixed;

/// Eight ends of fields, each with 32 readable bytes before it.
#[derive(Clone, Copy)]
struct Fields<'a> {
    text: &'a [u8],
    ends: &'a [usize; LANES],
}

impl<'a> Fields<'a> {
    /// # Safety
    /// For each end, the 32 bytes before `text[end]` are part of the slice's allocation and readable, as
    /// if the slice had been cut off a longer one.
    unsafe fn new(text: &'a [u8], ends: &'a [usize; LANES]) -> Self {
        Fields { text, ends }
    }

    #[inline]
    #[target_feature(enable = "avx512vl")]
    fn last_16(self, field: usize) -> __m128i {
        // SAFETY: as `new` was promised; no alignment is asked for.
        unsafe { _mm_loadu_si128(self.text.as_ptr().offset(self.ends[field] as isize - 16).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512vl")]
    fn last_32(self, field: usize) -> __m256i {
        // SAFETY: as `new` was promised; no alignment is asked for.
        unsafe { _mm256_loadu_si256(self.text.as_ptr().offset(self.ends[field] as isize - 32).cast()) }
    }

    /// Fields 2i and 2i + 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn pair(self, i: usize) -> __m512i {
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(self.last_32(2 * i)), self.last_32(2 * i + 1))
    }

    /// Fields i, i + 2, i + 4 and i + 6.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn four(self, i: usize) -> __m512i {
        let bytes = _mm512_castsi128_si512(self.last_16(i));
        let bytes = _mm512_inserti32x4::<1>(bytes, self.last_16(i + 2));
        let bytes = _mm512_inserti32x4::<2>(bytes, self.last_16(i + 4));
        _mm512_inserti32x4::<3>(bytes, self.last_16(i + 6))
    }
}

/// Fields of up to 16 bytes (15 with a point), each in 16 bytes: the even ones in one vector, the odd
/// ones in the other, as packing interleaves them.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn short_parts<T, const FLOAT: bool>(fields: Fields<'_>, lengths: __m128i) -> Parts {
    // An empty field is read as one byte, which is no digit.
    let lengths = _mm_max_epu16(lengths, _mm_set1_epi16(1));
    let begins = _mm_sllv_epi16(_mm_set1_epi16(1), _mm_sub_epi16(_mm_set1_epi16(16), lengths));
    let begins =
        _mm_shuffle_epi8(begins, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    let even = digits::<FLOAT, 16, 0>(fields.four(0), _mm_cvtsi128_si64(begins) as u64);
    let odd = digits::<FLOAT, 16, 0>(fields.four(1), _mm_extract_epi64::<1>(begins) as u64);
    let mut refused = 0;
    if even.wrong | odd.wrong != 0 {
        let wrong = in_order(even.wrong, odd.wrong);
        refused = _mm_test_epi16_mask(wrong, wrong);
    }
    let signs = in_order(even.signs, odd.signs);
    let points = _mm_and_si128(signs, _mm_set1_epi16(i16::MAX));
    Parts {
        mantissas: sixteens(_mm512_packus_epi32(even.fours, odd.fours)),
        powers: _mm512_lzcnt_epi64(_mm512_cvtepu16_epi64(points)),
        negative: _mm_movepi16_mask(signs),
        refused,
    }
}

/// The digits of some fields.
struct Digits {
    /// Four digits in each 32 bits.
    fours: __m512i,
    /// Of each lane the highest bit if there is a minus sign, and below that the bit of the point.
    signs: u64,
    /// A bit for each byte that should not be there.
    wrong: u64,
}

/// Takes fields apart that end `TAIL` bytes before the end of their lanes. `begins` has a bit in each
/// lane for the field's first byte.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn digits<const FLOAT: bool, const LANE: usize, const TAIL: usize>(bytes: __m512i, begins: u64) -> Digits {
    const { assert!(LANE == 16 || LANE == 32) };
    // One bit in each lane: its lowest, its highest, the last digit's. And all below the highest.
    let low: u64 = if LANE == 16 { 0x0001_0001_0001_0001 } else { 0x0000_0001_0000_0001 };
    let high = low << (LANE - 1);
    let last = high >> TAIL;
    let below = !high;

    let inside = !begins.wrapping_sub(low) & (last | last.wrapping_sub(low));
    let minus = _mm512_mask_cmpeq_epi8_mask(inside, bytes, _mm512_set1_epi8(b'-' as i8));
    let mut digit = inside & !minus;
    let mut wrong = minus & (!begins | last);
    let mut signs = (minus.wrapping_add(below)) & high;
    let point = if FLOAT {
        _mm512_mask_cmpeq_epi8_mask(inside & !last, bytes, _mm512_set1_epi8(b'.' as i8))
    } else {
        0
    };
    digit &= !point;
    let mut values = _mm512_maskz_sub_epi8(digit, bytes, _mm512_set1_epi8(b'0' as i8));
    wrong |= _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(9));
    if FLOAT {
        // In each lane with a point: the bits up to it, by taking the lowest bit from twice the point's.
        let point = point << TAIL;
        let pointed = (point.wrapping_add(below) & high) >> (LANE - 1);
        wrong |= point & point.wrapping_sub(pointed);
        let up_to = (point << 1).wrapping_sub(pointed);
        signs |= point;
        // What is before the point moves on by one byte, and all by the tail.
        let one = load(const { &before(LANE, TAIL + 1) });
        values = if TAIL == 0 {
            _mm512_mask_permutexvar_epi8(values, up_to, one, values)
        } else {
            let all = load(const { &before(LANE, TAIL) });
            _mm512_permutexvar_epi8(_mm512_mask_mov_epi8(all, up_to, one), values)
        };
    }
    let twos = _mm512_maddubs_epi16(values, load(&TENS));
    let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(1 << 16 | 100));
    Digits { fours, signs: in_register(signs), wrong: in_register(wrong) }
}

/// The same number, in a general register: the optimiser would else gather the masks of all lanes into
/// vectors to calculate there, where it is crowded.
#[inline(always)]
fn in_register(mut number: u64) -> u64 {
    // SAFETY: this is no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags))
    };
    number
}

/// The same numbers, in a vector: the optimiser would else know the upper word of a product, take all
/// lanes out of their vectors, and multiply them one by one.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_vector(mut numbers: __m512i) -> __m512i {
    // SAFETY: this is no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(zmm_reg) numbers, options(pure, nomem, nostack, preserves_flags))
    };
    numbers
}

/// Numbers of sixteen digits from their fours (16 bits each), the first the most significant.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn sixteens(fours: __m512i) -> __m512i {
    let eights = _mm512_madd_epi16(fours, _mm512_set1_epi32(1 << 16 | 10_000));
    let upper = _mm512_mul_epu32(eights, _mm512_set1_epi64(100_000_000));
    _mm512_add_epi64(upper, _mm512_srli_epi64::<32>(eights))
}

/// Fields of up to 32 bytes, two to a vector, of which the last `TAIL` are for others to read. Gives the
/// digits after the point too. (`T` as for `Mixed`.)
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn long_parts<T, const FLOAT: bool, const TAIL: usize>(
    pairs: [__m512i; 4],
    lengths: __m128i,
) -> (Parts, __m256i) {
    // The moves within a lane leave its first bytes as they are, so no field may reach so far.
    let longest = (if FLOAT { 31 } else { 32 }) - TAIL as i16;
    let mut refused = _mm_cmpgt_epu16_mask(lengths, _mm_set1_epi16(longest));
    let lengths = _mm_max_epu16(lengths, _mm_set1_epi16(TAIL as i16 + 1));
    let lengths = _mm256_cvtepu16_epi32(_mm_min_epu16(lengths, _mm_set1_epi16(longest)));
    let begins = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_sub_epi32(_mm256_set1_epi32(32), lengths));
    let [a, b, c, d] = pairs;
    let a = digits::<FLOAT, 32, TAIL>(a, _mm256_extract_epi64::<0>(begins) as u64);
    let b = digits::<FLOAT, 32, TAIL>(b, _mm256_extract_epi64::<1>(begins) as u64);
    let c = digits::<FLOAT, 32, TAIL>(c, _mm256_extract_epi64::<2>(begins) as u64);
    let d = digits::<FLOAT, 32, TAIL>(d, _mm256_extract_epi64::<3>(begins) as u64);
    if a.wrong | b.wrong | c.wrong | d.wrong != 0 {
        let wrong = _mm256_set_epi64x(d.wrong as i64, c.wrong as i64, b.wrong as i64, a.wrong as i64);
        refused |= _mm256_test_epi32_mask(wrong, wrong);
    }
    let signs = _mm256_set1_epi64x(a.signs as i64);
    let signs = _mm256_mask_set1_epi64(signs, 2, b.signs as i64);
    let signs = _mm256_mask_set1_epi64(signs, 4, c.signs as i64);
    let signs = _mm256_mask_set1_epi64(signs, 8, d.signs as i64);
    let left = sixteens(_mm512_packus_epi32(a.fours, b.fours));
    let right = sixteens(_mm512_packus_epi32(c.fours, d.fours));
    // Packing leaves the upper sixteen digits of fields 0 and 2, the lower of both, then of 1 and 3.
    let uppers = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(0, 4, 1, 5, 8, 12, 9, 13), right);
    let lowers = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(2, 6, 3, 7, 10, 14, 11, 15), right);
    // 1844 * 10^16 and any sixteen digits more could be beyond 64 bits.
    refused |= _mm512_cmpge_epu64_mask(uppers, _mm512_set1_epi64(1844));
    let mantissas =
        _mm512_add_epi64(_mm512_mullo_epi64(uppers, _mm512_set1_epi64(10_000_000_000_000_000)), lowers);
    // Leading zeros of the point's bit, less one, are the digits after it; 32 of them are no point.
    let points = _mm256_and_si256(signs, _mm256_set1_epi32(i32::MAX));
    let places = _mm256_and_si256(_mm256_lzcnt_epi32(points), _mm256_set1_epi32(31));
    let negative = _mm256_movepi32_mask(signs);
    (Parts { mantissas, powers: _mm512_setzero_si512(), negative, refused }, places)
}

/// Which fields end in `e`, a sign and two digits, and their exponents; 0 for the others.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn exponents_of(pairs: [__m512i; 4]) -> (__mmask8, __m256i) {
    let [a, b, c, d] = pairs;
    let pick = _mm512_setr_epi32(7, 15, 23, 31, 7, 15, 23, 31, 0, 0, 0, 0, 0, 0, 0, 0);
    let front = _mm512_permutex2var_epi32(a, pick, b);
    let back = _mm512_permutex2var_epi32(c, pick, d);
    let bytes = _mm512_castsi512_si256(_mm512_mask_mov_epi32(front, 0xF0, back));
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
static HIGHS: [u64; 256] = {
    let mut highs = [0; 256];
    let mut i = 0;
    while i < 256 {
        highs[i] = POWERS[(LEAST_POWER + 342) as usize + i].0;
        i += 1;
    }
    highs
};

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
    let t = high_words(_mm512_sub_epi64(parts.powers, _mm512_set1_epi64(LEAST_POWER)));

    let low_word = _mm512_set1_epi64(0xFFFF_FFFF);
    let (w_high, t_high) = (_mm512_srli_epi64::<32>(w), _mm512_srli_epi64::<32>(t));
    let low = _mm512_mul_epu32(w, t);
    let cross = _mm512_add_epi64(_mm512_mul_epu32(w_high, t), _mm512_srli_epi64::<32>(low));
    let cross = in_vector(cross);
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

/// Bits of the even and of the odd fields, 16 each, as bits of all fields.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn in_order(even: u64, odd: u64) -> __m128i {
    _mm_unpacklo_epi16(_mm_cvtsi64_si128(even as i64), _mm_cvtsi64_si128(odd as i64))
}

/// The words of `HIGHS` with the eight numbers given, each below 256. They are mostly near each other,
/// so first comes a look into the sixteen around the first of them.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn high_words(numbers: __m512i) -> __m512i {
    let first = _mm_cvtsi128_si64(_mm512_castsi512_si128(numbers)) as usize;
    let base = first.saturating_sub(8).min(HIGHS.len() - 16);
    let near = _mm512_sub_epi64(numbers, _mm512_set1_epi64(base as i64));
    if let Some((low, rest)) = HIGHS[base..].split_first_chunk::<LANES>()
        && let Some(high) = rest.first_chunk::<LANES>()
        && _mm512_cmpge_epu64_mask(near, _mm512_set1_epi64(16)) == 0
    {
        return _mm512_permutex2var_epi64(load_words(low), near, load_words(high));
    }
    let mut words = [0; LANES];
    store_words(&mut words, numbers);
    words = words.map(|number| HIGHS[number as usize % HIGHS.len()]);
    load_words(&words)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_words(words: &[u64; LANES]) -> __m512i {
    // SAFETY: the 64 bytes behind the reference may be read, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_words(words: &mut [u64; LANES], values: __m512i) {
    // SAFETY: the 64 bytes behind the reference may be written, and no alignment is asked for.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), values) }
}

#[inline]
#[target_feature(enable = "avx512vl")]
fn load_positions(positions: &[u16; LANES]) -> __m128i {
    // SAFETY: the 16 bytes behind the reference may be read, and no alignment is asked for.
    unsafe { _mm_loadu_si128(positions.as_ptr().cast()) }
}
