use crate::{assert_error, data, npy, rows};
use arrshard::error::ErrorKind::{Corrupt, Unsupported};
use arrshard::npy::{Descr, Field, Header, header_len, npy_header, read_header, shard_header};
use arrshard::{DType, Result};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn read(file: &[u8]) -> Result<Header> {
    read_header(file, Some(file.len() as u64), false)
}

fn text(descr: &str, order: &str, shape: &str) -> Vec<u8> {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}").into_bytes()
}

/// `dtype` as NumPy spells it with its byte order.
fn spell(dtype: DType, big_endian: bool) -> String {
    let descr = dtype.descr();
    if big_endian { descr.replace('<', ">") } else { descr.to_owned() }
}

/// A header as the reference data has it.
fn as_json(header: &Header) -> Value {
    let descr = match &header.descr {
        Descr::Plain { dtype, big_endian } => json!(spell(*dtype, *big_endian)),
        Descr::Record { fields, itemsize } => {
            let fields: Vec<_> = fields
                .iter()
                .map(|f| json!([f.name, f.title, spell(f.dtype, f.big_endian), f.offset, f.subshape]))
                .collect();
            json!({"fields": fields, "itemsize": itemsize})
        }
    };
    json!({"shape": header.shape, "fortran_order": header.fortran_order, "descr": descr})
}

fn is_numeric(descr: &Value) -> bool {
    let known = |s: &str| DType::all().any(|d| d != DType::BFloat16 && s[1..] == d.descr()[1..]);
    match descr {
        Value::String(s) => known(s),
        _ => descr["fields"].as_array().unwrap().iter().all(|f| known(f[2].as_str().unwrap())),
    }
}

/// What NumPy reads and this library refuses: no writer is known to write it, or it is ambiguous.
const STRICTER: [&str; 9] =
    ["(-0,)", "(0x2,)", "(1_0,)", "(+2,)", "'<f4,<f4'", "'shape': (3,)}", "'(2,)<f4'", "'2f4'", "'ubyte'"];

#[test]
fn headers_are_read_and_refused_as_numpy_does() {
    let rows = rows("headers.json");
    let (mut read_ones, mut refused) = (0, 0);
    for row in &rows {
        let text = row["text"].as_str().unwrap();
        let version = row["version"].as_u64().unwrap() as u8;
        let bytes = match version {
            3 => text.as_bytes().to_vec(),
            _ => text.chars().map(|c| c as u8).collect(),
        };
        let file = npy(version, &bytes, &vec![0; 1 << 20]);
        let found = read(&file);
        let numpy = &row["numpy"];
        match (&found, numpy.as_str()) {
            (Ok(header), None) => {
                assert_eq!(as_json(header), *numpy, "{text}");
                assert_eq!(header.data_offset, (file.len() - (1 << 20)) as u64);
                read_ones += 1;
            }
            (Ok(header), Some(_)) => panic!("NumPy refuses {text}, found {header:?}"),
            (Err(error), Some("objects")) => assert_error(error, Unsupported, &["pickled Python objects"]),
            (Err(_), Some(_)) => refused += 1,
            (Err(error), None) if !is_numeric(&numpy["descr"]) => {
                assert_error(error, Unsupported, &["found"])
            }
            (Err(error), None) => {
                assert!(STRICTER.iter().any(|s| text.contains(s)), "NumPy reads {text}, found {error}");
            }
        }
    }
    assert!(read_ones > 300 && refused > 80, "{read_ones} {refused}");
}

#[test]
fn npy_header_is_what_np_save_writes() {
    for row in rows("saved.json") {
        let dtype = DType::from_name(row["dtype"].as_str().unwrap()).unwrap();
        let shape: Vec<u64> = serde_json::from_value(row["shape"].clone()).unwrap();
        let header = npy_header(dtype, &shape);
        assert_eq!(header.len() as u64, row["len"], "{row}");
        assert_eq!(std::str::from_utf8(&header[10..]).unwrap(), row["header"], "{row}");
        assert_eq!(
            header[..10],
            [&b"\x93NUMPY\x01\0"[..], &((header.len() - 10) as u16).to_le_bytes()].concat()
        );
    }
}

#[test]
fn shard_header_is_one_page() {
    let page = shard_header(DType::Float32, &[3, 4]);
    assert!(page.starts_with(
        b"\x93NUMPY\x01\0\xf6\x0f{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   "
    ));
    assert!(page.ends_with(b"   \n"));
    assert_eq!(page.iter().filter(|b| **b == b'\n').count(), 1);
    let longest = shard_header(DType::Complex128, &[u64::MAX; 64]);
    assert!(longest.ends_with(b" \n"));
}

#[test]
fn malformed_headers_say_what_is_wrong() {
    for (text, mentions) in [
        (text("'<f8'", "False", "(1*1,)"), &["byte 62", "\"*1,), }\""][..]),
        (b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1, }".to_vec(), &["\"x\""]),
        (text("'<f8'", "1", "(1,)"), &["fortran_order", "\"1\""]),
        (b"{'descr': '<f8', 'shape': (1,), }".to_vec(), &["\"fortran_order\""]),
        (text("'<f8'", "False", "(-1,)"), &["\"-1\""]),
        (text("'<f8'", "False", "[1]"), &["tuple", "a list of 1"]),
        (text("'<f8'", "False", "(4294967296, 4294967296, 16)"), &["4294967296", "overflows"]),
        (text("'<f8'", "False", "(9223372036854775807,)"), &["9223372036854775807", "overflows"]),
        (text("'<f8'", "False", &format!("({},)", "9".repeat(30))), &["\"999999999999999999999999999999\""]),
        (text("'<f8'", "False", &format!("({})", "1,".repeat(65))), &["64 dimensions", "65"]),
        (text(&format!("{}'<f8'{}", "[".repeat(40), "]".repeat(40)), "False", "(1,)"), &["16 brackets"]),
        (text("[('a', '<f8'), ('a', '<f4')]", "False", "(1,)"), &["\"a\" twice"]),
        (text("'<f8'", "False", "(1,), 'shape': (2,)"), &["\"shape\" twice"]),
        (b"{'descr': \x1b]0;evil".to_vec(), &["\\x1b"]),
    ] {
        let error = read(&npy(1, &text, &[0; 8])).unwrap_err();
        assert_error(&error, Corrupt, mentions);
    }
}

#[test]
fn types_that_are_no_numbers_are_named() {
    for (descr, mentions) in [
        ("'|S2'", &["\"|S2\"", "text"][..]),
        ("'<U3'", &["\"<U3\"", "text"]),
        ("'<M8[ns]'", &["\"<M8[ns]\"", "int64"]),
        ("'<m8'", &["\"<m8\"", "int64"]),
        ("'<f16'", &["\"<f16\"", "float64"]),
        ("'<f1'", &["\"<f1\"", "8-bit"]),
        ("'<V2'", &["\"<V2\"", "--as bf16"]),
        ("'|V1'", &["\"|V1\""]),
        ("'|O'", &["\"|O\"", "object arrays hold pickled Python objects"]),
        ("'<ubyte'", &["\"<ubyte\""]),
        ("[('a', '<f8'), ('pos', [('x', '<f4')])]", &["field \"pos\"", "record in a record"]),
        ("[('a', '<f8'), ('id', '|S8')]", &["field \"id\"", "\"|S8\""]),
    ] {
        let error = read(&npy(1, &text(descr, "False", "(1,)"), &[0; 16])).unwrap_err();
        assert_error(&error, Unsupported, mentions);
    }
}

#[test]
fn void_of_two_bytes_is_bfloat16_when_told() {
    for descr in ["'<V2'", "'|V2'"] {
        let file = npy(1, &text(descr, "False", "(4,)"), &[0; 8]);
        let header = read_header(&file, None, true).unwrap();
        assert_eq!(header.descr, Descr::Plain { dtype: DType::BFloat16, big_endian: false });
    }
    let file = npy(1, &text("[('', '|V2'), ('b', '<V2')]", "False", "()"), &[0; 4]);
    let header = read_header(&file, None, true).unwrap();
    let Descr::Record { fields, itemsize: 4 } = header.descr else { panic!() };
    let b = Field {
        name: "b".into(),
        title: None,
        dtype: DType::BFloat16,
        big_endian: false,
        offset: 2,
        subshape: vec![],
    };
    assert_eq!(fields, [b]);
}

#[test]
fn the_length_of_a_file_is_compared() {
    // A 12-byte file that announces 4 GiB of header.
    let error = read(b"\x93NUMPY\x02\0\xff\xff\xff\xff").unwrap_err();
    assert_error(&error, Corrupt, &["header length 4294967295", "12 bytes of the file"]);
    let error = header_len(b"\x93NUMPY\x02\0\xff\xff\xff\xff", None).unwrap_err();
    assert_error(&error, Corrupt, &["65536", "4294967295"]);

    let error = read(&npy(1, &text("'<f8'", "False", "(4, 2)"), &[0; 40])).unwrap_err();
    assert_error(&error, Corrupt, &["64", "40", "truncated"]);
    // NumPy lets more data than needed be: np.save into an open file a second time gives such files.
    let header = read(&npy(1, &text("'<f8'", "False", "(4, 2)"), &[0; 80])).unwrap();
    assert_eq!((header.data_len, header.rows(), header.row_bytes()), (64, 4, 16));

    let file = npy(1, &text("'<f8'", "False", "()"), &[0; 8]);
    for len in 0..file.len() {
        assert_error(&read(&file[..len]).unwrap_err(), Corrupt, &["found"]);
        assert!(len >= file.len() - 8 || read_header(&file[..len], None, false).is_err());
    }
}

#[test]
fn magic_and_version_come_first() {
    for (start, mentions) in [
        (&b""[..], &[".npy"][..]),
        (b"\x92NUMPY\x01\0", &["\\x92"]),
        (b"\x93numpy\x01\0", &["numpy"]),
        (b"\x93MATLB\x01\0", &["MATLB"]),
        (b"PK\x03\x04....", &["PK"]),
        (b"\x93NUMPY\x01", &["truncated"]),
        (b"\x93NUMPY\x01\0\x76", &["truncated"]),
        (b"\x93NUMPY\x02\0\x76\0\0", &["truncated"]),
    ] {
        assert_error(&header_len(start, None).unwrap_err(), Corrupt, mentions);
    }
    for version in [[0, 0], [0, 1], [1, 1], [2, 2], [3, 1], [4, 0], [255, 255]] {
        let mut file = npy(2, &text("'<f8'", "False", "()"), &[0; 8]);
        file[6..8].copy_from_slice(&version);
        let name = format!("{}.{}", version[0], version[1]);
        assert_error(&read(&file).unwrap_err(), Unsupported, &[&name]);
    }
}

#[test]
fn encodings_follow_the_version() {
    let name = |file: &[u8]| match read(file).unwrap().descr {
        Descr::Record { fields, .. } => fields[0].name.clone(),
        Descr::Plain { .. } => panic!(),
    };
    let head =
        |name: &[u8]| [b"{'descr': [('", name, b"', '<f4')], 'fortran_order': False, 'shape': ()}"].concat();
    assert_eq!(name(&npy(1, &head(b"\xb0C"), &[0; 4])), "°C");
    assert_eq!(name(&npy(2, &head(b"\xc2\xb0C"), &[0; 4])), "Â°C");
    assert_eq!(name(&npy(3, &head(b"\xc2\xb0C"), &[0; 4])), "°C");
    let error = read(&npy(3, &head(b"\xb0C"), &[0; 4])).unwrap_err();
    assert_error(&error, Corrupt, &["byte 25", "UTF-8", "\\xb0"]);
    // Places count bytes of the file, whatever the encoding.
    let error = read(&npy(1, b"{'\xb0': *", &[])).unwrap_err();
    assert_error(&error, Corrupt, &["byte 16", "\"*\""]);
}

#[test]
fn data_may_start_anywhere() {
    for padding in [0, 1, 10, 75] {
        let mut text = text("'<f8'", "False", "(2, 3)");
        text.extend(std::iter::repeat_n(b' ', padding));
        let header = read(&npy(1, &text, &[0; 48])).unwrap();
        assert_eq!(header.data_offset, 10 + text.len() as u64);
    }
}

#[test]
fn fortran_order_matters_only_where_it_shows() {
    for (order, shape, needs) in [
        ("True", "(2, 3)", true),
        ("False", "(2, 3)", false),
        ("True", "(6,)", false),
        ("True", "(1, 6, 1)", false),
        ("True", "(2, 0, 3)", false),
        ("True", "()", false),
    ] {
        let header = read(&npy(1, &text("'<f8'", order, shape), &[0; 48])).unwrap();
        assert_eq!(header.needs_transpose(), needs, "{shape}");
    }
}

#[test]
fn empty_arrays_have_no_data() {
    for (shape, rows, row_bytes) in [("(3, 0)", 3, 0), ("(0, 3)", 0, 24), ("(0,)", 0, 8)] {
        let header = read(&npy(1, &text("'<f8'", "False", shape), &[])).unwrap();
        assert_eq!((header.data_len, header.rows(), header.row_bytes()), (0, rows, row_bytes));
    }
    // NumPy refuses these too, though they hold nothing: the product of the rest overflows.
    let shape = "(4611686018427387904, 4611686018427387904, 0)";
    assert_error(
        &read(&npy(1, &text("'<f8'", "False", shape), &[])).unwrap_err(),
        Corrupt,
        &["4611686018427387904"],
    );
}

#[test]
fn a_real_structured_file() {
    let file = data("padded.npy");
    let header = read(&file).unwrap();
    let Descr::Record { fields, itemsize: 32 } = &header.descr else { panic!("{header:?}") };
    let found: Vec<_> = fields
        .iter()
        .map(|f| (f.name.as_str(), f.dtype, f.big_endian, f.offset, f.nbytes(), f.subshape.as_slice()))
        .collect();
    assert_eq!(
        found,
        [
            ("flag", DType::Bool, false, 0, 1, &[][..]),
            ("wide", DType::Int64, true, 8, 8, &[]),
            ("pair", DType::Float32, false, 16, 8, &[2]),
            ("z", DType::Complex64, true, 24, 8, &[]),
        ]
    );
}

fn dtypes() -> impl Strategy<Value = DType> {
    proptest::sample::select(DType::all().collect::<Vec<_>>())
}

fn shapes() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(prop_oneof![0u64..5, 0u64..300], 0..7)
}

/// Pieces that headers are made of, so that junk gets past the first checks.
fn junk() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ",",
            ":",
            "'",
            "\"",
            "'descr'",
            "'shape'",
            "'fortran_order'",
            "'<f8'",
            "True",
            "False",
            "None",
            "2L",
            "-",
            "99999999999999999999",
            "\\",
            "\\u12",
            " ",
            "'a'",
            "(2,)",
            "u'",
            "\n",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Of three tries, since a loaded machine may stop any of them.
fn fastest_read(file: &[u8]) -> Duration {
    let time = |_| {
        let start = Instant::now();
        let _ = read(file);
        start.elapsed()
    };
    (0..3).map(time).min().unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read(dtype in dtypes(), shape in shapes()) {
        for header in [shard_header(dtype, &shape).to_vec(), npy_header(dtype, &shape)] {
            let found = read_header(&header, None, true).unwrap();
            prop_assert_eq!(&found.shape, &shape);
            prop_assert_eq!(&found.descr, &Descr::Plain { dtype, big_endian: false });
            prop_assert_eq!(found.data_offset, header.len() as u64);
            prop_assert_eq!(found.data_len, shape.iter().product::<u64>() * dtype.size());
            prop_assert_eq!(header_len(&header[..12], None).unwrap(), header.len() as u64);
        }
    }

    /// npyz has its own idea of many odd headers, but on the ordinary ones two readers must agree.
    #[test]
    fn npyz_agrees(dtype in dtypes(), shape in shapes(), big in any::<bool>(), order in any::<bool>(), version in 1u8..4) {
        let dtype = if dtype == DType::BFloat16 { DType::Float16 } else { dtype };
        let big = big && dtype.swap_unit() > 1;
        let order = if order { "True" } else { "False" };
        let dims: String = shape.iter().map(|d| format!("{d}, ")).collect();
        let text = text(&format!("'{}'", spell(dtype, big)), order, &format!("({dims})"));
        let file = npy(version, &text, &[]);
        let ours = read_header(&file, None, false).unwrap();
        let theirs = npyz::NpyHeader::from_reader(&file[..]).unwrap();
        prop_assert_eq!(theirs.shape(), &ours.shape[..]);
        prop_assert_eq!(theirs.order() == npyz::Order::Fortran, ours.fortran_order);
        prop_assert_eq!(theirs.dtype().descr(), format!("'{}'", spell(dtype, big)));
    }

    #[test]
    fn junk_is_refused_at_once(text in junk(), version in 0u8..5, real in any::<bool>()) {
        let file = if real { npy(version, &text, &[0; 16]) } else { text };
        prop_assert!(fastest_read(&file) < Duration::from_millis(10));
        let _ = read_header(&file, None, true);
    }

    #[test]
    fn a_damaged_header_is_no_panic(at in 0usize..128, byte in any::<u8>(), cut in 0usize..352) {
        let mut file = data("padded.npy");
        file[at] = byte;
        let _ = read(&file);
        let _ = read(&file[..cut]);
        let _ = read_header(&file[..cut], Some(352), false);
    }
}

#[test]
fn the_longest_headers_take_no_time() {
    let limit = 64 * 1024;
    for piece in
        ["(", "[", "[(", "((((1),),),)", "(1,", "'", "'\\", "-", "1", "{'a':", "[],", "('', '|V1'), "]
    {
        for (open, close) in [
            ("", ""),
            ("{'descr': ", ", 'fortran_order': False, 'shape': ()}"),
            ("{'descr': [", "], 'fortran_order': False, 'shape': ()}"),
        ] {
            let text = [open, &piece.repeat((limit - 100) / piece.len()), close].concat();
            let file = npy(2, text.as_bytes(), &[]);
            let time = fastest_read(&file);
            assert!(time < Duration::from_millis(100), "{piece}: {time:?}");
        }
    }
}
