use super::*;
use crate::text::number::tests::Random;
use proptest::prelude::*;

/// All rows the slow way: the text in lines, each in fields, each field by the plain parser. Gives the
/// values of the rows before the first line that is not plain, and where that begins.
fn twin<T: Number>(text: &[u8], delim: Delim, columns: usize, out: &mut Vec<T>) -> usize {
    let mut at = 0;
    while let Some(length) = text[at..].iter().position(|&b| b == b'\n') {
        let line = &text[at..at + length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let fields: Vec<&[u8]> = match delim {
            Delim::Byte(byte) => line.split(|&b| b == byte).collect(),
            Delim::Blanks => {
                line.split(|&b| b == b' ' || b == b'\t').filter(|field| !field.is_empty()).collect()
            }
        };
        let values: Option<Vec<T>> = fields
            .iter()
            .map(|field| {
                let odd = field.iter().any(|&b| b < b' ' && b != b'\t');
                (!odd).then(|| T::parse_plainly(field, NumberOptions::default()).ok()).flatten()
            })
            .collect();
        match values {
            Some(values) if values.len() == columns => out.extend(values),
            _ => break,
        }
        at += length + 1;
    }
    at
}

fn bytes<T: Number>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Everything that both engines do with a text must be what the twin does: all that they take, and
/// nothing that it refuses; where they stop, the twin takes over for one line.
fn check<T: FastNumber>(text: &[u8], delim: Delim, columns: usize) {
    type Engine<T> = fn(&[u8], Delim, usize, &mut [T]) -> Parsed;
    for (name, engine) in [("fast", parse_rows as Engine<T>), ("portable", portable as Engine<T>)] {
        let zero = T::parse(b"0", NumberOptions::default()).unwrap();
        for room in [1, 2, 1000] {
            let mut at = 0;
            let mut rest = text;
            for _ in 0..text.len() + 2 {
                let mut want = Vec::new();
                let taken = twin::<T>(rest, delim, columns, &mut want);
                let mut out = vec![zero; room * columns];
                let parsed = engine(rest, delim, columns, &mut out);
                let context = || format!("{name} {} {columns} {delim:?} {}", T::DTYPE, rest.escape_ascii());
                let got = &out[..parsed.rows * columns];
                assert!(parsed.rows * columns <= want.len(), "{}", context());
                assert_eq!(bytes(got), bytes(&want[..got.len()]), "{}", context());
                let mut lines = rest.split_inclusive(|&b| b == b'\n');
                let length: usize = lines.by_ref().take(parsed.rows).map(<[u8]>::len).sum();
                assert_eq!(parsed.consumed, length, "{}", context());
                match parsed.stop {
                    Stop::Full => assert_eq!(parsed.rows, room),
                    Stop::End => assert!(!rest[length..].contains(&b'\n') && parsed.rows < room),
                    Stop::Line => {
                        assert!(rest[length..].contains(&b'\n') && parsed.rows < room);
                        // Mixed ends of line and a few rare forms may stop the fast engine early.
                        let mixed = rest.contains(&b'\r');
                        assert!(mixed || taken == length, "{}", context());
                    }
                }
                let next = if parsed.stop == Stop::Line { lines.next().map_or(0, <[u8]>::len) } else { 0 };
                at += length + next;
                rest = &text[at..];
                if length + next == 0 {
                    break;
                }
            }
            if text.len() > 1000 {
                break;
            }
        }
    }
}

fn check_all(text: &[u8], delim: Delim, columns: usize) {
    check::<f64>(text, delim, columns);
    check::<f32>(text, delim, columns);
    check::<i64>(text, delim, columns);
    check::<u64>(text, delim, columns);
    check::<i32>(text, delim, columns);
    check::<u8>(text, delim, columns);
}

#[test]
fn stops() {
    let mut out = [0.0f64; 6];
    let mut parse = |text: &str, delim, columns, rows: usize| {
        parse_rows(text.as_bytes(), delim, columns, &mut out[..columns * rows])
    };
    let tab = Delim::Byte(b'\t');
    let parsed = |rows, consumed, stop| Parsed { rows, consumed, stop };
    assert_eq!(parse("1\t2\n3\t4\n", tab, 2, 2), parsed(2, 8, Stop::Full));
    assert_eq!(parse("1\t2\n3\t4\n", tab, 2, 3), parsed(2, 8, Stop::End));
    assert_eq!(parse("1\t2\n3\t4", tab, 2, 3), parsed(1, 4, Stop::End));
    assert_eq!(parse("1\t2\n3\n", tab, 2, 3), parsed(1, 4, Stop::Line));
    assert_eq!(parse("1\t2\n3\t4\t5\n", tab, 2, 3), parsed(1, 4, Stop::Line));
    assert_eq!(parse("1\t2\n\n3\t4\n", tab, 2, 3), parsed(1, 4, Stop::Line));
    assert_eq!(parse("1\t2\n#\n3\t4\n", tab, 2, 3), parsed(1, 4, Stop::Line));
    assert_eq!(parse("1\t2\r\n3\t4\r\n", tab, 2, 3), parsed(2, 10, Stop::End));
    assert_eq!(parse("1,2\n3,4x\n", Delim::Byte(b','), 2, 3), parsed(1, 4, Stop::Line));
    assert_eq!(parse(" 1  2 \n\t3 4\n5", Delim::Blanks, 2, 3), parsed(2, 12, Stop::End));
    assert_eq!(parse("", tab, 2, 3), parsed(0, 0, Stop::End));
    assert_eq!(parse("1\t2\n", tab, 2, 0), parsed(0, 0, Stop::Full));
    assert_eq!(parse("1\t2\n", tab, 0, 0), parsed(0, 0, Stop::Line));
    assert_eq!(parse("1\n2\n", Delim::Byte(b'\n'), 2, 3), parsed(0, 0, Stop::Line));
}

#[test]
fn other_types() {
    let mut out = [false; 2];
    assert_eq!(parse_rows(b"true,0\n", Delim::Byte(b','), 2, &mut out).rows, 1);
    assert_eq!(out, [true, false]);
    let mut out = [Complex::<f32>::default(); 2];
    assert_eq!(parse_rows(b" (1.5+-2j) 2\r\n", Delim::Blanks, 2, &mut out).rows, 1);
    assert_eq!(out, [Complex::new(1.5, -2.0), Complex::new(2.0, 0.0)]);
    let mut out = [f16::ZERO; 2];
    assert_eq!(parse_rows(b"1.5\t1e9\n", Delim::Byte(b'\t'), 2, &mut out).stop, Stop::Line);
}

/// A delimiter that could be part of a number, or of none.
#[test]
fn odd_delimiters() {
    for byte in [b'5', b'e', b'.', b'-', b'+', 0, 0xFF, b'"', b' '] {
        let numbers = ["1", "22", "0", "-3.25", "1e7", "", "4", "+1"];
        let mut text = Vec::new();
        for i in 0..400 {
            text.extend_from_slice(numbers[i * 7 % 8].as_bytes());
            text.push(if i % 4 == 3 { b'\n' } else { byte });
        }
        check_all(&text, Delim::Byte(byte), 4);
    }
}

/// One number in one of many forms.
fn number(random: &mut Random) -> String {
    let bits = random.next();
    let small = (bits >> 11) as f64 / (1u64 << 53) as f64;
    let places = (random.next() % 22) as usize;
    match random.next() % 24 {
        0 => format!("{:e}", f64::from_bits(bits)),
        1 | 2 => format!("{small}"),
        3 => format!("{small:.18e}").replace("e-", "e-0"),
        4 => format!("{:.18e}", small * 9.0 + 1.0).replace('e', "e+0"),
        5 => format!("{small:.places$}"),
        6 => format!("-{small:.5}"),
        7 => format!("{:.places$}", small * 1e6),
        8 => format!("{}", bits as i64),
        9 => format!("{bits}"),
        10 => format!("{}", bits as u8),
        11 => format!("{}", bits as i16 % 300),
        12 => format!("-{}", bits % 1_000_000_000),
        13 => format!("{}", f32::from_bits(bits as u32)),
        14 => format!("{:e}", small as f32),
        15 => format!("{:.places$}e{:+03}", small, bits as i8 % 100),
        16 => "0".repeat(1 + places) + &format!("{}", bits % 100),
        17 => format!("{}", bits % 10),
        // Half way between two floats, and next to it.
        18 => format!("{}", f64::midpoint(f64::from(small as f32), f64::from((small as f32).next_up()))),
        19 => format!("{}", (bits >> 10 | 1 << 53) * 2 + 1),
        20 => format!("{}.{}", bits % 10000, bits >> 32),
        21 => format!("+{}", bits % 100),
        22 => format!("{}e{:02}", bits % 100_000, bits >> 60),
        _ => format!("{}", bits % 1_000_000),
    }
}

/// Something that is no number, or one that takes the complete parser.
fn junk(random: &mut Random) -> String {
    let forms = [
        "",
        "-",
        "+",
        ".",
        "-.",
        "e5",
        "1e",
        "1e+",
        "nan",
        "-inf",
        "1..2",
        "1.2.3",
        "--1",
        "1-",
        "-1-",
        "1 2",
        "5.",
        ".5",
        "-.5",
        "1_0",
        "0x1",
        " 7",
        "7 ",
        " 7 ",
        "1,5",
        "\"1\"",
        "#",
        "1e5e05",
        "1.5D+03",
        "e+05",
        "-e+05",
        ".e+05",
        "1e,05",
        "1e-5",
        "1E+05",
        "1e999",
        "99999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "9223372036854775808",
        "256",
        "-1",
        "-0",
        "8.0",
        "8.5",
        "\x0b5",
        "5\x0b",
        "\0",
        "\u{e9}",
        "1234567890123456789012345678901234567890",
        "0.1234567890123456789012345678",
        "00000000000000000000000000000001",
        "-00000000000000000000000000000001",
        "12345678901234567",
        "1\r",
        "\r",
    ];
    let form = forms[random.next() as usize % forms.len()];
    match random.next() % 4 {
        0 => {
            let mut bytes = number(random).into_bytes();
            let place = random.next() as usize % bytes.len();
            bytes[place] = b"0123456789+-.eE \t,x"[random.next() as usize % 19];
            String::from_utf8(bytes).unwrap_or_default()
        }
        _ => form.to_owned(),
    }
}

fn random_text(random: &mut Random, delim: Delim, columns: usize, rows: usize, junk_in: u64) -> Vec<u8> {
    let mut text = String::new();
    let line_end = if random.next() % 4 == 0 { "\r\n" } else { "\n" };
    let form = random.next();
    for _ in 0..rows {
        let blank = |random: &mut Random| [" ", "\t", "  ", " \t ", ""][random.next() as usize % 5];
        if delim == Delim::Blanks && form % 3 == 0 {
            text += blank(random);
        }
        for column in 0..columns {
            if column > 0 {
                match delim {
                    Delim::Byte(byte) => text.push(char::from(byte)),
                    Delim::Blanks => text = text + " " + if form % 2 == 0 { blank(random) } else { "" },
                }
            }
            // All of one form, as files mostly are, or all mixed.
            let mut one = Random(form % 64);
            let source = if form % 5 < 3 { &mut one } else { &mut *random };
            match source.next() % junk_in.max(1) {
                0 if junk_in > 0 => text += &junk(random),
                _ => text += &number(random),
            }
        }
        if delim == Delim::Blanks && form % 3 == 0 {
            text += blank(random);
        }
        match random.next() % (junk_in * 8).max(1) {
            1 => text += "\n",
            2 => {}
            3 => text += "\n\n",
            4 => text += "\r",
            _ => text += line_end,
        }
    }
    text.into_bytes()
}

#[test]
fn random_texts() {
    let mut random = Random(7);
    for round in 0..if cfg!(debug_assertions) { 150 } else { 1500 } {
        let delim = [Delim::Byte(b'\t'), Delim::Byte(b','), Delim::Blanks, Delim::Byte(b' ')][round % 4];
        let columns = [1, 2, 3, 5, 8, 10, 17, 40][random.next() as usize % 8];
        let junk_in = [0, 0, 30, 200][random.next() as usize % 4];
        let rows = 1 + random.next() as usize % (400 / columns + 3);
        let text = random_text(&mut random, delim, columns, rows, junk_in);
        check_all(&text, delim, columns);
    }
}

/// Texts over several chunks, with rows longer than a chunk too, and one bad place anywhere.
#[test]
fn long_texts() {
    let mut random = Random(9);
    for round in 0..if cfg!(debug_assertions) { 6 } else { 60 } {
        let delim = [Delim::Byte(b'\t'), Delim::Blanks][round % 2];
        let columns = [1, 3, 10, 100, 5000][random.next() as usize % 5];
        let rows = 1 + 12_000 / columns;
        let mut text = random_text(&mut random, delim, columns, rows, 0);
        check::<f64>(&text, delim, columns);
        check::<f32>(&text, delim, columns);
        let place = random.next() as usize % text.len();
        text[place] = b"\n\t\r#.-e5"[random.next() as usize % 8];
        check::<f64>(&text, delim, columns);
        check::<i64>(&text, delim, columns);
    }
}

/// A million doubles in the forms that the kernels are for.
#[test]
fn many_doubles() {
    let mut random = Random(3);
    let columns = 10;
    for form in 0..5 {
        let mut text = String::new();
        let mut values = Vec::new();
        for i in 0..if cfg!(debug_assertions) { 20_000 } else { 200_000 } {
            let small = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
            let value = if form == 4 { small * 10f64.powi((random.next() % 60) as i32 - 30) } else { small };
            let field = match form {
                0 => format!("{value}"),
                1 => format!("{value:.16e}").replace("e-", "e-0"),
                2 => format!("{value:.18e}").replace("e-", "e-0"),
                3 => format!("{value:.17}"),
                _ => format!("{value:.17e}")
                    .replace("e-", "e-0")
                    .replace("e-0", if i % 3 == 0 { "e-0" } else { "e+0" }),
            };
            values.push(field.parse::<f64>().unwrap());
            text += &field;
            text.push(if i % columns == columns - 1 { '\n' } else { '\t' });
        }
        let mut out = vec![0.0f64; values.len()];
        let mut single = vec![0.0f32; values.len()];
        let parsed = parse_rows(text.as_bytes(), Delim::Byte(b'\t'), columns, &mut out);
        assert_eq!((parsed.consumed, parsed.stop), (text.len(), Stop::Full));
        assert_eq!(bytes(&out), bytes(&values));
        parse_rows(text.as_bytes(), Delim::Byte(b'\t'), columns, &mut single);
        let want: Vec<f32> = text.split_ascii_whitespace().map(|field| field.parse().unwrap()).collect();
        assert_eq!(bytes(&single), bytes(&want));
    }
}

proptest! {
    #[test]
    fn any_text(
        text in proptest::collection::vec(
            proptest::sample::select(b"0123456789012345678901234567890123456789....---+eE,,,,\n\n\n \t\r#".to_vec()), 0..300),
        columns in 1usize..4,
    ) {
        check_all(&text, Delim::Byte(b','), columns);
        check_all(&text, Delim::Blanks, columns);
    }

    #[test]
    fn any_fields(seed: u64, columns in 1usize..12) {
        let mut random = Random(seed);
        let text = random_text(&mut random, Delim::Byte(b';'), columns, 20, 40);
        check_all(&text, Delim::Byte(b';'), columns);
    }
}
