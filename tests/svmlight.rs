//! svmlight and libsvm files as sparse matrices.

mod common;

use arrshard::text::{IndexBase, SparseOptions, TextOptions};
use arrshard::{Dataset, Element, ErrorKind, Format, Input, Mode, PackOptions, Progress, WriteOptions, pack};
use common::gz;
use ndarray::Ix1;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn options(text: TextOptions) -> PackOptions {
    let write = WriteOptions::new().sync(false).replace(true);
    PackOptions { format: Format::Svmlight, text, write, ..PackOptions::default() }
}

fn run(at: &Path, bytes: &[u8], options: &PackOptions) -> arrshard::Result<Dataset> {
    let path = at.join("in.svm");
    fs::write(&path, bytes).unwrap();
    pack(&[Input::Path(path)], &at.join("out"), options, &Progress::new())
        .map(|packed| packed.dataset.unwrap())
}

fn values<T: Element>(dataset: &Dataset, name: &str) -> Vec<T> {
    dataset.read::<T, Ix1>(name).unwrap().to_vec()
}

#[test]
fn rows_of_any_length_come_back() {
    let tmp = tempfile::tempdir().unwrap();
    for base in [0, 1] {
        let (mut text, mut data, mut indices, mut indptr) = (String::new(), vec![], vec![], vec![0i64]);
        let mut labels = Vec::new();
        let mut state = 7u64;
        let mut roll = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        // Enough for several pieces, so that ends are shifted.
        for row in 0..60_000 {
            let label = roll(3) as f64 - 1.0;
            write!(text, "{label:+}").unwrap();
            let mut index = 0;
            for _ in 0..roll(6) {
                index += 1 + roll(50);
                let value = roll(1 << 30) as f64 / 1024.0 - 1000.0;
                write!(text, "{}{}:{value:e}", [" ", "\t", "  "][roll(3) as usize], index - 1 + base)
                    .unwrap();
                data.push(value);
                indices.push(index as i64 - 1);
            }
            // Only the last row tells that indices count from 0.
            if row == 59_999 && base == 0 {
                let row_start = text.rfind('\n').unwrap_or(0) + 1;
                let kept = *indptr.last().unwrap() as usize;
                text.truncate(row_start);
                data.truncate(kept);
                indices.truncate(kept);
                write!(text, "{label:+} 0:5").unwrap();
                data.push(5.0);
                indices.push(0);
            }
            text += ["\n", " \r\n", " # 1:2\n"][roll(3) as usize];
            indptr.push(indices.len() as i64);
            labels.push(label);
        }
        let features = indices.iter().max().unwrap() + 1;
        for bytes in [text.clone().into_bytes(), gz(text.as_bytes())] {
            let dataset = run(tmp.path(), &bytes, &options(TextOptions::default())).unwrap();
            assert_eq!(values::<i64>(&dataset, "indptr"), indptr);
            assert_eq!(values::<f64>(&dataset, "data"), data);
            assert_eq!(values::<i64>(&dataset, "indices"), indices);
            assert_eq!(values::<f64>(&dataset, "labels"), labels);
            assert_eq!(dataset.attributes()["csr"]["shape"], serde_json::json!([60_000, features]));
            assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
        }
    }
}

#[test]
fn faults_have_a_line_and_a_field() {
    let tmp = tempfile::tempdir().unwrap();
    let one = SparseOptions { base: IndexBase::One, ..SparseOptions::default() };
    let few = SparseOptions { features: Some(3), ..SparseOptions::default() };
    let many = SparseOptions { multilabel: true, ..SparseOptions::default() };
    let auto = SparseOptions::default();
    for (text, sparse, says) in [
        (
            "1 1:2\n1 2\n",
            auto,
            "in.svm:2: field 2 (byte 8): expected an index, a colon and a value, found \"2\"",
        ),
        ("1 1:2\nx 2:1\n", auto, "in.svm:2: field 1 (byte 6): expected a number as label, found \"x\""),
        ("1 1:2\n1 1:x\n", auto, "in.svm:2: field 2"),
        (
            "1 1:2\n1 1:2 3:4 2:1\n",
            auto,
            "in.svm:2: field 4 (byte 16): expected an index above 3, found \"2\"",
        ),
        ("1 1:2\n1 -1:2\n", auto, "expected an index, found \"-1\""),
        ("1 1:2\n1 99999999999999999999:2\n", auto, "expected an index, found \"999"),
        ("1 0:2\n", one, "in.svm:1: field 2 (byte 2): expected an index from 1"),
        ("1 1:2\n1 4:1\n", few, "in.svm:2: field 2 (byte 8): expected an index of 3 features, found \"4\""),
        ("1 qid:1 1:2\n1 1:1\n", auto, "in.svm:2: field 2"),
        ("1 1:2\n1 qid:1 1:1\n", auto, "in.svm:2: field 2"),
        ("1 qid:x 1:2\n", auto, "in.svm:1: field 2"),
        ("1,x 1:2\n", many, "in.svm:1: field 1"),
        // The guess is made once; then a fault is a fault.
        ("1 0:2\n1 5\n", auto, "in.svm:2: field 2"),
    ] {
        let text_options = TextOptions { sparse, ..TextOptions::default() };
        let error = run(tmp.path(), text.as_bytes(), &options(text_options)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parse, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!tmp.path().join("out").exists() && !tmp.path().join(".out.building").exists());
    }
}

#[test]
fn a_sparse_matrix_does_not_grow() {
    let tmp = tempfile::tempdir().unwrap();
    let mut pack = options(TextOptions::default());
    pack.text.given.max_rows = Some(2);
    let dataset = run(tmp.path(), b"\xef\xbb\xbf1 1:2\n\n2 2:3\nx\n", &pack).unwrap();
    assert_eq!(values::<f64>(&dataset, "labels"), [1.0, 2.0]);
    let more = PackOptions { mode: Mode::Append, write: WriteOptions::new().sync(false), ..pack };
    let error = run(tmp.path(), b"1 1:2\n", &more).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(Dataset::open(tmp.path().join("out")).unwrap().manifest().generation, 1);
}
