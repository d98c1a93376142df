use super::*;
use proptest::prelude::*;
use std::str::FromStr;

const STRICT: NumberOptions = NumberOptions { allow_overflow: false };
const LOOSE: NumberOptions = NumberOptions { allow_overflow: true };

/// Both ways, which must agree to the bit.
fn both<T: Number>(field: &[u8], options: NumberOptions) -> Result<T, NumberError> {
    let fast = T::parse(field, options);
    let plain = T::parse_plainly(field, options);
    let bits = |r: &Result<T, NumberError>| r.map(|v| bytemuck::bytes_of(&v).to_vec());
    assert_eq!(bits(&fast), bits(&plain), "{:?} as {}", field.escape_ascii().to_string(), T::DTYPE);
    fast
}

fn parse<T: Number>(field: &str) -> Result<T, NumberError> {
    both(field.as_bytes(), STRICT)
}

/// Both ways give what the standard library does.
fn like_std(text: &str) {
    let want = f64::from_str(text).unwrap();
    assert_eq!(both::<f64>(text.as_bytes(), LOOSE).unwrap().to_bits(), want.to_bits(), "{text}");
    let want = f32::from_str(text).unwrap();
    assert_eq!(both::<f32>(text.as_bytes(), LOOSE).unwrap().to_bits(), want.to_bits(), "{text}");
}

/// The nearest half by comparison with all of them, in doubles (so `number` must be one exactly).
fn nearest_half(number: f64, value: impl Fn(u16) -> f64, infinity: u16) -> u16 {
    let above = (0..=infinity).collect::<Vec<_>>().partition_point(|&bits| value(bits) < number) as u16;
    if above == 0 || value(above) == number {
        return above;
    }
    let half_way = if above == infinity {
        value(above - 1) + (value(above - 1) - value(above - 2)) / 2.0
    } else {
        (value(above - 1) + value(above)) / 2.0
    };
    let up = number > half_way || number == half_way && above.is_multiple_of(2);
    if up { above } else { above - 1 }
}

#[test]
fn the_grammar_is_pythons() {
    for (text, want) in [
        ("1.", 1.0),
        (".5", 0.5),
        ("+5", 5.0),
        ("1e04", 1e4),
        (" 1e+04\t", 1e4),
        ("-.5E-1", -0.05),
        ("007", 7.0),
        ("0e-99999999999999999999", 0.0),
        ("0.0e9999999999", 0.0),
        ("1e-99999999999999999999", 0.0),
        ("INF", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("+inf", f64::INFINITY),
    ] {
        assert_eq!(parse::<f64>(text), Ok(want), "{text}");
        assert_eq!(parse::<f32>(text), Ok(want as f32), "{text}");
        assert_eq!(parse::<f16>(text), Ok(f16::from_f64(want)), "{text}");
        assert_eq!(parse::<bf16>(text), Ok(bf16::from_f64(want)), "{text}");
        assert_eq!(parse::<Complex<f64>>(text), Ok(Complex::new(want, 0.0)), "{text}");
    }
    for text in ["nan", "NaN", "-nan", "+NAN"] {
        assert!(parse::<f64>(text).unwrap().is_nan());
        assert_eq!(parse::<f64>(text).unwrap().is_sign_negative(), text.starts_with('-'));
        assert!(parse::<f16>(text).unwrap().is_nan());
        assert!(parse::<bf16>(text).unwrap().is_nan());
    }
    for text in [
        "-", "+", ".", "e5", "1e", "1e+", "1e5.", "1_000", "0x10", "1 2", "--1", "1.2.3", "infin", "in",
        "na", "nan(1)", "1,5", "\u{661}", "1e5e5", "1f", "..", ".e1", "+-1", "1\0", "\0",
    ] {
        assert_eq!(parse::<f64>(text), Err(NumberError::NotANumber), "{text}");
        assert_eq!(parse::<f32>(text), Err(NumberError::NotANumber), "{text}");
        assert_eq!(parse::<f16>(text), Err(NumberError::NotANumber), "{text}");
        assert_eq!(parse::<i32>(text), Err(NumberError::NotANumber), "{text}");
        assert_eq!(parse::<Complex<f32>>(text), Err(NumberError::NotANumber), "{text}");
    }
    for text in ["", " ", "\t \r\n"] {
        assert_eq!(parse::<f64>(text), Err(NumberError::Empty));
        assert_eq!(parse::<u8>(text), Err(NumberError::Empty));
        assert_eq!(parse::<bool>(text), Err(NumberError::Empty));
        assert_eq!(parse::<Complex<f64>>(text), Err(NumberError::Empty));
    }
    for text in ["1.5D+03", "1d5", "-.5d-1"] {
        assert_eq!(parse::<f64>(text), Err(NumberError::FortranExponent));
        assert_eq!(parse::<i64>(text), Err(NumberError::FortranExponent));
    }
    assert_eq!(parse::<f64>("1.5D"), Err(NumberError::NotANumber));
    assert_eq!(parse::<f64>("-0.0").unwrap().to_bits(), 1 << 63);
    assert_eq!(parse::<f32>("-0e5").unwrap().to_bits(), 1 << 31);
    assert_eq!(parse::<f16>("-1e-99").unwrap().to_bits(), 1 << 15);
    assert_eq!(parse::<bf16>("-0").unwrap().to_bits(), 1 << 15);
}

#[test]
fn hard_doubles_and_singles() {
    for text in [
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000000000000000001",
        "9007199254740992.99999999999999999999999999999999999999999",
        "9007199254740994",
        "9007199254740995",
        "900719925474099.3e1",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158913039621106870086438694594645527657207407820621743379988141063267329253552286881372149012981122451451889849057222307285255133155755015914397476397983411801999323962548289017107081850690630666655994938275772572015763062690663332647565300009245888316433037779791869612049497390377829704905051080609940730262937128958950003583799967207254304360284078895771796150945516748243471030702609144621572289880258182545180325707018860872113128079512233426288368622321503775666622503982534335974568884423900265498198385487948292206894721689831099698365846814022854243330660339850886445804001034933970427567186443383770486037861622771738545623065874679014086723327636718749999999999999999999999999999999999999e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272088284396434110686182e-324",
        "1e-323",
        "5e-324",
        "2e-324",
        "3e-324",
        "8.98846567431158e307",
        "3.4028235677973366e38",
        "3.4028235677973365e38",
        "3.4028235677973367e38",
        "3.4028234663852886e38",
        "3.4028235e38",
        "1.1754943508222875e-38",
        "1.1754942807573643e-38",
        "1.401298464324817e-45",
        "7.006492321624085e-46",
        "7.0064923216240853546186479164495806564013097093825788587853e-46",
        "7.0064923216240853546186479164495806564013097093825788587854e-46",
        "16777217",
        "16777217.0000000000000000000000001",
        "16777219",
        "33554435",
        "0.500000029802322387695312499999999999999999",
        "0.500000029802322387695312500000000000000000",
        "0.500000029802322387695312500000000000000001",
        "1.00000005960464477539062499999999",
        "1.00000005960464477539062500000001",
        "1.00000017881393432617187499",
        "1.00000017881393432617187500",
        "1.00000017881393432617187501",
        "8.5899345920000000000000000000000001e9",
        "6.631236846766476e-316",
        "3.237883913302901e-319",
        "7.2057594037927933e16",
        "0.000061035156250000001",
        "1e22",
        "1e23",
        "9.5e-5",
        "123456789012345678901234567890",
        "10000000000000000000",
        "18446744073709551615",
        "18446744073709551616",
        "1e19",
        "1e308",
        "1e309",
        "1e-400",
    ] {
        like_std(text);
        like_std(&format!("-{text}"));
        if !text.contains('e') && !text.contains('.') {
            like_std(&format!("{text}.0"));
            like_std(&format!("{text}e+0"));
        }
    }
}

#[test]
fn overflow_is_an_error_unless_allowed() {
    for text in ["1e309", "1.7976931348623159e308", "1e99999999999999999999", &"9".repeat(310)] {
        assert_eq!(parse::<f64>(text), Err(NumberError::OutOfRange));
        assert_eq!(both::<f64>(text.as_bytes(), LOOSE), Ok(f64::INFINITY));
        assert_eq!(both::<f32>(text.as_bytes(), STRICT), Err(NumberError::OutOfRange));
        assert_eq!(both::<bf16>(text.as_bytes(), STRICT), Err(NumberError::OutOfRange));
    }
    assert_eq!(parse::<f32>("3.4028235677973367e38"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<f32>("3.4028235677973366e38"), Ok(f32::MAX));
    assert_eq!(parse::<f16>("65519.99999999999999999999999"), Ok(f16::MAX));
    assert_eq!(parse::<f16>("65520"), Err(NumberError::OutOfRange));
    assert_eq!(both::<f16>(b"-65520", LOOSE), Ok(f16::NEG_INFINITY));
    assert_eq!(parse::<Complex<f64>>("1+1e309j"), Err(NumberError::OutOfRange));
}

#[test]
fn fields_may_be_very_long() {
    let long = |front: &str, middle: &str, n: usize, end: &str| format!("{front}{}{end}", middle.repeat(n));
    for text in [
        long("0.", "0", 150_000, "1e150000"),
        long("1", "0", 150_000, "e-150000"),
        long("0.", "3", 150_000, ""),
        long("1", "0", 150_000, ".5e-150000"),
        long("9007199254740993.", "0", 150_000, "1"),
        long("9007199254740993.", "0", 150_000, "0"),
    ] {
        like_std(&text);
    }
    assert_eq!(parse::<f64>(&long("0.", "0", 999_999, "1e1000000")), Ok(1.0));
    assert_eq!(parse::<f64>(&long("1", "0", 1_000_000, "e-999999")), Ok(10.0));
    assert_eq!(parse::<i64>(&long("5", "0", 150_000, "e-150000")), Ok(5));
    assert_eq!(parse::<i64>(&long("5.", "0", 150_000, "")), Ok(5));
    assert_eq!(parse::<i64>(&long("5.", "0", 150_000, "1")), Err(NumberError::Inexact));
    assert_eq!(parse::<u8>(&long("", "0", 150_000, "7")), Ok(7));
    let tie = "2.98023223876953125";
    assert_eq!(parse::<f16>(&format!("{}e-8", long(tie, "0", 150_000, "1"))).unwrap().to_bits(), 1);
    assert_eq!(parse::<f16>(&format!("{}e-8", long(tie, "0", 150_000, ""))).unwrap().to_bits(), 0);
}

#[test]
fn halves_are_rounded_once() {
    assert_eq!(parse::<f16>("2.98023223876953125e-8").unwrap().to_bits(), 0);
    assert_eq!(parse::<f16>("2.98023223876953126e-8").unwrap().to_bits(), 1);
    assert_eq!(parse::<f16>("2.98023223876953124e-8").unwrap().to_bits(), 0);
    // 1 + 2^-11 is half way between two; a trace more or less decides, however small.
    assert_eq!(parse::<f16>("1.00048828125").unwrap().to_bits(), 0x3C00);
    assert_eq!(parse::<f16>("1.000488281250000000000000000000000001").unwrap().to_bits(), 0x3C01);
    assert_eq!(parse::<f16>("1.001464843749999999999999999999999999").unwrap().to_bits(), 0x3C01);
    assert_eq!(parse::<f16>("1.00146484375").unwrap().to_bits(), 0x3C02);
    assert_eq!(parse::<bf16>("1.00390625").unwrap().to_bits(), 0x3F80);
    assert_eq!(parse::<bf16>("1.00390625000000000000000000000000001").unwrap().to_bits(), 0x3F81);
    // The least subnormal of a bf16 is 2^-133.
    let tie = format!("{:.140e}", f64::from_bits((1023 - 134) << 52));
    assert_eq!(parse::<bf16>(&tie).unwrap().to_bits(), 0);
    assert_eq!(parse::<bf16>(&tie.replace("0e-", "1e-")).unwrap().to_bits(), 1);

    for infinity in [0x7C00, 0x7F80] {
        let value = |bits| match infinity {
            0x7C00 => f16::from_bits(bits).to_f64(),
            _ => bf16::from_bits(bits).to_f64(),
        };
        for bits in (0..infinity - 1).step_by(97) {
            let half_way = (value(bits) + value(bits + 1)) / 2.0;
            for double in [value(bits), half_way, half_way.next_up(), half_way.next_down().max(0.0)] {
                let text = format!("{double:.200e}");
                let want = nearest_half(double, value, infinity);
                let got = match infinity {
                    0x7C00 => both::<f16>(text.as_bytes(), LOOSE).unwrap().to_bits(),
                    _ => both::<bf16>(text.as_bytes(), LOOSE).unwrap().to_bits(),
                };
                assert_eq!(got, want, "{text}");
            }
        }
    }
}

#[test]
fn integers_never_pass_through_a_double() {
    assert_eq!(parse::<i64>("8.000000000000000000e+00"), Ok(8));
    assert_eq!(parse::<i64>("1352171357E+8"), Ok(135_217_135_700_000_000));
    assert_eq!(parse::<i64>("9007199254740993.0"), Ok(9_007_199_254_740_993));
    assert_eq!(parse::<i64>("9.223372036854775807e18"), Ok(i64::MAX));
    assert_eq!(parse::<i64>("-9223372036854775808"), Ok(i64::MIN));
    assert_eq!(parse::<i64>("9223372036854775808"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<i64>("-9223372036854775809"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<u64>("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(parse::<u64>("18446744073709551616"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<u64>("99999999999999999999"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<u64>("-1"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<u64>("-0"), Ok(0));
    assert_eq!(parse::<i8>("-128"), Ok(-128));
    assert_eq!(parse::<i8>("128"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<u8>("255.0"), Ok(255));
    assert_eq!(parse::<u8>("256"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<i32>("8.5"), Err(NumberError::Inexact));
    assert_eq!(parse::<i32>("1e-1"), Err(NumberError::Inexact));
    assert_eq!(parse::<i32>("1e10"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<i32>("1e99999999999999999999"), Err(NumberError::OutOfRange));
    assert_eq!(parse::<i32>("0.0e99999999999999999999"), Ok(0));
    assert_eq!(parse::<i32>("12.50e1"), Ok(125));
    assert_eq!(parse::<i32>("nan"), Err(NumberError::Inexact));
}

#[test]
fn truth_values() {
    for (text, want) in [("0", false), ("1", true), ("True", true), ("FALSE", false), (" true ", true)] {
        assert_eq!(parse::<bool>(text), Ok(want));
    }
    for text in ["2", "yes", "t", "1.0", "-1"] {
        assert_eq!(parse::<bool>(text), Err(NumberError::NotANumber));
    }
}

#[test]
fn complex_numbers() {
    let c = Complex::new;
    for (text, want) in [
        ("1.5", c(1.5, 0.0)),
        ("1.5+2j", c(1.5, 2.0)),
        ("1.5-2J", c(1.5, -2.0)),
        ("2j", c(0.0, 2.0)),
        ("-2e-3j", c(0.0, -2e-3)),
        ("j", c(0.0, 1.0)),
        ("-j", c(0.0, -1.0)),
        ("1+j", c(1.0, 1.0)),
        ("1e-5-1e+5j", c(1e-5, -1e5)),
        ("(1.5e+00+-2.0e+00j)", c(1.5, -2.0)),
        (" ( 1.500e+00+2.000e+00j ) ", c(1.5, 2.0)),
        ("-infinity+.5j", c(f64::NEG_INFINITY, 0.5)),
    ] {
        assert_eq!(parse::<Complex<f64>>(text), Ok(want), "{text}");
        assert_eq!(parse::<Complex<f32>>(text), Ok(Complex::new(want.re as f32, want.im as f32)), "{text}");
    }
    let value = parse::<Complex<f64>>("nan+infj").unwrap();
    assert!(value.re.is_nan() && value.im == f64::INFINITY);
    assert!(parse::<Complex<f64>>("-nanj").unwrap().im.is_nan());
    for text in [
        "()", "(1", "1)", "1 + 2j", "1+ 2j", "1--2j", "1++2j", "1-+2j", "+-2j", "1j+2", "jj", "1+2jj",
        "((1))", "1.5+2i", "-1-inf j",
    ] {
        assert_eq!(parse::<Complex<f64>>(text), Err(NumberError::NotANumber), "{text}");
    }
}

#[test]
fn classes() {
    let int = |i64, u64, f64| Class::Int { i64, u64, f64 };
    for (text, want) in [
        ("", Class::Empty),
        (" ", Class::Empty),
        ("TRUE", Class::Bool),
        ("false", Class::Bool),
        ("0", int(true, true, true)),
        (" -0 ", int(true, true, true)),
        ("+12", int(true, true, true)),
        ("-1", int(true, false, true)),
        ("9007199254740992", int(true, true, true)),
        ("9007199254740993", int(true, true, false)),
        ("-9007199254740994", int(true, false, true)),
        ("9223372036854775807", int(true, true, false)),
        ("9223372036854775808", int(false, true, true)),
        ("18446744073709551615", int(false, true, false)),
        ("18446744073709551616", int(false, false, true)),
        ("18446744073709551617", int(false, false, false)),
        ("100000000000000000000000", int(false, false, false)),
        ("10000000000000000000000", int(false, false, true)),
        ("1267650600228229401496703205376", int(false, false, true)),
        ("000000000000000000000000000000000000000012", int(true, true, true)),
        ("1.", Class::Float),
        ("1e5", Class::Float),
        ("nan", Class::Float),
        ("-inf", Class::Float),
        ("1e999", Class::Float),
        ("1.5D+03", Class::Text),
        ("1+2j", Class::Text),
        ("-", Class::Text),
        ("abc", Class::Text),
        ("12a", Class::Text),
    ] {
        assert_eq!(classify(text.as_bytes()), want, "{text}");
    }
    assert_eq!(classify("1".repeat(400).as_bytes()), int(false, false, false));
    assert_eq!(classify("0".repeat(4000).as_bytes()), int(true, true, true));
}

#[test]
fn messages() {
    let text = |error: NumberError, dtype| error.expected(dtype).to_string();
    assert_eq!(text(NumberError::NotANumber, DType::Float32), "expected float32");
    assert_eq!(text(NumberError::OutOfRange, DType::Int8), "expected int8 (-128 to 127)");
    assert_eq!(text(NumberError::Inexact, DType::Int64), "expected int64 (a whole number)");
}

/// A few bits at a time, as fast as the test needs.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number of SplitMix64 (Steele, Lea and Flood, 2014).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[test]
fn a_million_doubles() {
    let mut random = Random(1);
    for i in 0..if cfg!(debug_assertions) { 100_000 } else { 1_000_000 } {
        let value = f64::from_bits(random.next());
        if !value.is_finite() {
            continue;
        }
        let text = match i % 4 {
            0 => format!("{value:e}"),
            1 => format!("{value:.18e}"),
            2 => format!("{value:.16e}"),
            _ => format!("{:.*e}", (random.next() % 30) as usize, value),
        };
        like_std(&text);
        let single = f32::from_bits(random.next() as u32);
        if single.is_finite() {
            like_std(&format!("{single:e}"));
        }
    }
}

proptest! {
    #[test]
    fn any_double_in_any_form(bits: u64, places in 0usize..30, extra in "[0-9]{0,40}") {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        for text in [format!("{value}"), format!("{value:e}"), format!("{value:.places$}"), format!("{value:.places$E}")] {
            like_std(&text);
        }
        let middle = format!("{value:.800e}");
        let (mantissa, exponent) = middle.split_once('e').unwrap();
        like_std(&format!("{}{extra}e{exponent}", mantissa.trim_end_matches('0')));
    }

    #[test]
    fn any_single_in_any_form(bits: u32, places in 0usize..30, extra in "[0-9]{0,40}") {
        let value = f32::from_bits(bits);
        prop_assume!(value.is_finite());
        for text in [format!("{value}"), format!("{value:e}"), format!("{value:.places$}"), format!("{value:.places$E}")] {
            like_std(&text);
        }
        // Half way to the next, a little more, a little less.
        let half_way = f64::midpoint(f64::from(value), f64::from(value.next_up()));
        if half_way.is_finite() {
            let middle = format!("{half_way:.200e}");
            let (mantissa, exponent) = middle.split_once('e').unwrap();
            like_std(&middle);
            like_std(&format!("{}{extra}e{exponent}", mantissa.trim_end_matches('0')));
        }
    }

    #[test]
    fn any_literal(text in "[+-]?[0-9]{0,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?") {
        let digits = text.bytes().take_while(|b| !b.eq_ignore_ascii_case(&b'e')).any(|b| b.is_ascii_digit());
        if digits { like_std(&text) }
        let _ = both::<f16>(text.as_bytes(), LOOSE);
        let _ = both::<bf16>(text.as_bytes(), LOOSE);
        let _ = both::<i64>(text.as_bytes(), LOOSE);
        let _ = both::<u64>(text.as_bytes(), LOOSE);
    }

    #[test]
    fn any_integer(value: i64, unsigned: u64, small: i16) {
        prop_assert_eq!(parse::<i64>(&value.to_string()), Ok(value));
        prop_assert_eq!(parse::<u64>(&unsigned.to_string()), Ok(unsigned));
        prop_assert_eq!(parse::<i16>(&small.to_string()), Ok(small));
        prop_assert_eq!(parse::<i8>(&small.to_string()).ok(), i8::try_from(small).ok());
        let float = unsigned.to_string();
        let (first, rest) = float.split_at(1);
        prop_assert_eq!(parse::<u64>(&format!("{first}.{rest}e{}", rest.len())), Ok(unsigned));
    }

    #[test]
    fn any_bytes(text in proptest::collection::vec(proptest::sample::select(b"0123456789+-.eEdjnaif() \t\r\0\xff".to_vec()), 0..30)) {
        let _ = both::<f64>(&text, STRICT).map(f64::to_bits);
        let _ = both::<f32>(&text, STRICT);
        let _ = both::<f16>(&text, STRICT);
        let _ = both::<bf16>(&text, STRICT);
        let _ = both::<i32>(&text, STRICT);
        let _ = both::<bool>(&text, STRICT);
        let _ = both::<Complex<f64>>(&text, STRICT);
        let _ = classify(&text);
    }
}
