//! word2vec and GloVe files, text and binary.

#![allow(unsafe_code)] // Mapping is the one unsafe call of the library; each test vouches for its files.

use arrshard::text::{Header, TextOptions};
use arrshard::{DType, Dataset, Format, Input, Mode, PackOptions, Progress, WriteOptions, pack};
use ndarray::{Array2, Ix2, arr2};
use std::fs;
use std::path::{Path, PathBuf};

struct Case(tempfile::TempDir);

impl Case {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn options(text: TextOptions) -> PackOptions {
        let write = WriteOptions::new().sync(false).replace(true);
        PackOptions { format: Format::Word2vec, text, write, ..PackOptions::default() }
    }

    fn run(&self, inputs: &[&Path], options: &PackOptions) -> arrshard::Result<Dataset> {
        let inputs: Vec<_> = inputs.iter().map(Input::from_arg).collect();
        pack(&inputs, &self.0.path().join("out"), options, &Progress::new())
            .map(|packed| packed.dataset.unwrap())
    }

    fn says(&self, bytes: impl AsRef<[u8]>, text: TextOptions, says: &str) {
        let path = self.file("bad", bytes);
        let error = self.run(&[&path], &Self::options(text)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(!self.0.path().join("out").exists() && !self.0.path().join(".out.building").exists());
    }
}

fn tokens(dataset: &Dataset) -> Vec<String> {
    // SAFETY: nobody changes these files.
    let mapped = unsafe { dataset.map() };
    let strings = mapped.strings("tokens").unwrap();
    strings.iter().map(|token| token.unwrap().to_owned()).collect()
}

fn binary(tokens: &[String], vectors: &Array2<f32>, newline: bool) -> Vec<u8> {
    let mut bytes = format!("{} {}\n", vectors.nrows(), vectors.ncols()).into_bytes();
    for (token, vector) in tokens.iter().zip(vectors.rows()) {
        bytes.extend(token.as_bytes());
        bytes.push(b' ');
        vector.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        bytes.extend(newline.then_some(b'\n'));
    }
    bytes
}

#[test]
fn text_and_binary_hold_the_same() {
    let case = Case::new();
    let names: Vec<String> =
        (0..3000).map(|i| format!("tok\u{a0}{i}{}", if i % 7 == 0 { "\u{2009}é" } else { "" })).collect();
    // Bits of all kinds, also such that look like blanks and ends of lines in the binary form.
    let vectors = Array2::from_shape_fn((3000, 5), |(i, j)| {
        let bits = ((i * 5 + j) as u32).wrapping_mul(2_654_435_761) & 0xbfff_ffff;
        f32::from_bits(if i % 11 == 5 { 0x0a20_0a20 } else { bits })
    });
    let text: String = names
        .iter()
        .zip(vectors.rows())
        .map(|(name, row)| {
            format!("{name} {}\n", row.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join(" "))
        })
        .collect();
    let forms = [
        case.file("glove", &text),
        case.file("text", format!("3000 5\n{text}")),
        case.file("blanks", text.replace('\n', " \r\n")),
        case.file("binary", binary(&names, &vectors, true)),
        case.file("packed", binary(&names, &vectors, false)),
    ];
    for path in &forms {
        for dtype in [None, Some(DType::Float64)] {
            let text = TextOptions { dtype, ..TextOptions::default() };
            let dataset = case.run(&[path], &Case::options(text)).unwrap();
            assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
            assert_eq!(tokens(&dataset), names, "{}", path.display());
            if dtype.is_none() {
                assert_eq!(dataset.read::<f32, Ix2>("vectors").unwrap(), vectors, "{}", path.display());
            } else {
                let found = dataset.read::<f64, Ix2>("vectors").unwrap();
                assert_eq!(found.mapv(|v| v as f32), vectors, "{}", path.display());
            }
        }
    }
    let all: Vec<&Path> = forms.iter().map(PathBuf::as_path).collect();
    let dataset = case.run(&all, &Case::options(TextOptions::default())).unwrap();
    assert_eq!(dataset.read::<f32, Ix2>("vectors").unwrap().nrows(), 15_000);
    let more = PackOptions { mode: Mode::Append, ..Case::options(TextOptions::default()) };
    let more = PackOptions { write: WriteOptions::new().sync(false), ..more };
    let dataset = case.run(&all[1..2], &more).unwrap();
    assert_eq!(tokens(&dataset).len(), 18_000);
    assert_eq!(tokens(&dataset)[15_000..], names);
}

#[test]
fn what_is_cut_off_or_odd_is_told() {
    let case = Case::new();
    let auto = TextOptions::default;
    case.says("3 2\na 1 2\nb 3 4\n", auto(), "expected 3 vectors, as the first line says, found 2");
    case.says("1 2\na 1 2\nb 3 4\n", auto(), "expected 1 vectors, as the first line says, found 2");
    case.says("a 1 2\nb 3\nc 5 6\n", auto(), "bad:2: byte 6: expected a token and 2 numbers, found 2 fields");
    case.says("a 1 2\nb 3 x\n", auto(), "bad:2: field 3 (byte 10): expected float32, found \"x\"");
    case.says("a 1 2\n\nb 3 4\n", auto(), "bad:2:");
    case.says(b"a 1 2\nb\xff 3 4\n", auto(), "bad:2: field 1");
    case.says("a\nb\n", auto(), "expected lines of a token and numbers");
    case.says("", auto(), "expected lines of a token and numbers");
    case.says("a 1 2\n", TextOptions { dim: Some(3), ..auto() }, "expected a token and 3 numbers");
    case.says("1 2\na 1 2\n", TextOptions { dim: Some(3), ..auto() }, "expected vectors of 3");
    let mut yes = auto();
    yes.given.header = Header::Yes;
    case.says("a 1 2\n", yes, "expected the numbers of vectors");
    let whole = binary(&["a".into(), "b".into()], &arr2(&[[1.0, -2.0], [3.5, 4.0]]), true);
    for cut in [8, 12, whole.len() - 2] {
        case.says(&whole[..cut], auto(), "expected 2 vectors of 2 float32 values, found the end");
    }
    case.says([&whole[..], b"x"].concat(), auto(), "found more");
    case.says(&whole, TextOptions { dtype: Some(DType::Int32), ..auto() }, "expected float32 or float64");
}

#[test]
fn a_token_may_be_a_number() {
    let case = Case::new();
    for (text, expected) in
        [("1 2\n3 4\n", &["1", "3"][..]), ("2 1\n3 4\n5 6\n", &["3", "5"]), ("7 8 9\n1 2 3\n", &["7", "1"])]
    {
        let path = case.file("in", text);
        let dataset = case.run(&[&path], &Case::options(TextOptions::default())).unwrap();
        assert_eq!(tokens(&dataset), expected, "{text}");
    }
}
