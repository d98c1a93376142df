//! What is damaged or forged is refused, at its stage, in one clean line, and never panics or hangs.

#![allow(unsafe_code)] // Mapping is the one unsafe call of the library; a test changes its files only between maps.

use arrshard::checksum::crc32;
use arrshard::manifest::{MANIFEST_MAX_BYTES, MANIFEST_PREFIX_BYTES, Manifest};
use arrshard::{Builder, DType, Dataset, Element, ErrorKind, MappedDataset, Progress, Result, WriteOptions};
use half::{bf16, f16};
use ndarray::IxDyn;
use num_complex::Complex;
use proptest::prelude::*;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The stage at which a dataset is refused, with the error's kind and text.
type Refusal = (&'static str, ErrorKind, String);

/// Runs `$body` with `$T` as the Rust type of the dtype.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!(@ $dtype, $T => $body, Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16,
            UInt32 u32, UInt64 u64, Float16 f16, BFloat16 bf16, Float32 f32, Float64 f64,
            Complex64 Complex<f32>, Complex128 Complex<f64>)
    };
    (@ $dtype:expr, $T:ident => $body:expr, $($name:ident $t:ty),*) => {
        match $dtype {
            $( DType::$name => { type $T = $t; $body } )*
            other => panic!("{other}"),
        }
    };
}

/// Maps an array; what can't be mapped can't be read either, for the same reason.
fn map_array<T: Element>(mapped: &MappedDataset, name: &str) -> Result<()> {
    let view = mapped.view::<T, IxDyn>(name).map(drop);
    if let Err(view) = &view {
        let read = mapped.dataset().read::<T, IxDyn>(name).unwrap_err();
        assert_eq!((read.kind(), read.path()), (view.kind(), view.path()), "{name}");
    }
    view
}

/// Maps every array, and every string array as strings.
fn map_all(dataset: &Dataset) -> Result<()> {
    // SAFETY: nobody changes the files before the end of this function.
    let mapped = unsafe { dataset.map() };
    for array in dataset.arrays() {
        with_type!(array.layout.dtype(), T => map_array::<T>(&mapped, &array.name))?;
    }
    dataset.manifest().strings.iter().try_for_each(|name| mapped.strings(name).map(drop))
}

fn refusal(path: &Path) -> Option<Refusal> {
    let dataset = match Dataset::open(path) {
        Ok(dataset) => dataset,
        Err(e) => return Some(("open", e.kind(), e.to_string())),
    };
    if let Err(e) = map_all(&dataset) {
        return Some(("map", e.kind(), e.to_string()));
    }
    let report = dataset.verify(&Progress::new()).unwrap();
    report.damage.into_iter().next().map(|damage| ("verify", damage.kind, damage.reason))
}

/// Every bad dataset of the vectors: the path to open, and what is expected.
fn bad() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/vectors/bad");
    let cases: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let folder = entry.unwrap().path();
            let expected: Value =
                serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
            (folder.join(expected["path"].as_str().unwrap()), expected)
        })
        // A checkout on a system without symbolic links has files in their place.
        .filter(|(path, _)| cfg!(unix) || !path.parent().unwrap().to_string_lossy().ends_with("-is-a-link"))
        .collect();
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

#[test]
fn every_bad_dataset_is_refused_at_its_stage() {
    let mut wrong = Vec::new();
    for (path, expected) in bad() {
        let case = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let Some((stage, kind, text)) = refusal(&path) else {
            wrong.push(format!("{case}: not refused"));
            continue;
        };
        let place = [stage, &format!("{kind:?}")].map(str::to_owned);
        if place != [&expected["stage"], &expected["kind"]].map(|v| v.as_str().unwrap().to_owned()) {
            wrong.push(format!(
                "{case}: {place:?} instead of {} {}: {text}",
                expected["stage"], expected["kind"]
            ));
        }
        let mentions = expected["must_mention"].as_array().unwrap();
        if !mentions.iter().all(|part| text.contains(part.as_str().unwrap())) {
            wrong.push(format!("{case}: no mention of {mentions:?}: {text}"));
        }
        if text.chars().any(char::is_control) {
            wrong.push(format!("{case}: control characters: {text:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What spoils a string is found when that string is got, at the latest.
#[test]
fn a_bad_string_is_refused_when_it_is_got() {
    for (path, expected) in bad() {
        let name = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        if expected["stage"] != "verify" || !(name.starts_with("offsets-") || name.starts_with("strings-")) {
            continue;
        }
        let dataset = Dataset::open(&path).unwrap();
        // SAFETY: nobody changes the vectors.
        let mapped = unsafe { dataset.map() };
        let error = mapped.strings("t").unwrap().iter().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
    }
}

/// A dataset with all kinds of files: several shards, strings, no rows, attributes.
fn sample(path: &Path) -> Dataset {
    let attributes: arrshard::Attributes = serde_json::from_str(r#"{"k": [1.5, "ü"]}"#).unwrap();
    let writer = Builder::new(WriteOptions::new().shard_bytes(1).sync(false))
        .array("a", DType::Int16, &[1026, 2])
        .array("none", DType::Float32, &[0, 3])
        .strings("t")
        .attributes(attributes)
        .create(path)
        .unwrap();
    let values = ndarray::Array2::from_shape_fn((1026, 2), |(i, j)| (i * 2 + j) as i16);
    writer.write("a", &values.view()).unwrap();
    writer.write("none", &ndarray::Array2::<f32>::zeros((0, 3)).view()).unwrap();
    for (name, bytes) in
        [("t.offsets", [0u64, 2, 2, 3].map(u64::to_le_bytes).concat()), ("t.bytes", "éx".into())]
    {
        let mut appender = writer.appender(name).unwrap();
        appender.append(&bytes).unwrap();
        writer.finish(appender).unwrap();
    }
    writer.seal().unwrap()
}

fn files_of(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_of(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The stages that may find damage in the file at `path`, at byte `at`.
fn stages(path: &Path, at: usize) -> &'static [&'static str] {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => &["open"],
        Some("npy") if at < 4096 => &["map"],
        // A flipped bit can make a first or last offset that is not.
        Some("npy") => &["map", "verify"],
        _ => &["verify"],
    }
}

fn refused(root: &Path, path: &Path, what: &str, stages: &[&str]) {
    let (stage, kind, text) =
        refusal(root).unwrap_or_else(|| panic!("{what} of {} was not found", path.display()));
    assert!(stages.contains(&stage), "{what} of {}: {stage}: {text}", path.display());
    assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported), "{what}: {kind:?}: {text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// Bytes worth a try: all, but of the blanks in a header page, and of more than 20 bytes of data, samples.
fn places(path: &Path, len: usize) -> impl Iterator<Item = usize> {
    let page = path.extension().is_some_and(|ending| ending == "npy");
    (0..len).filter(move |&at| !page || at < 90 || (4090..4116).contains(&at) || at % 197 == 0)
}

#[test]
fn every_flipped_bit_is_found() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("d");
    sample(&root);
    for path in files_of(&root) {
        let whole = fs::read(&path).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        let mut put = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        for at in places(&path, whole.len()) {
            for bit in 0..8 {
                put(at, whole[at] ^ 1 << bit);
                refused(&root, &path, &format!("bit {bit} of byte {at}"), stages(&path, at));
            }
            put(at, whole[at]);
        }
        assert_eq!(refusal(&root), None, "{}", path.display());
    }
}

#[test]
fn every_other_length_is_found() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("d");
    sample(&root);
    for path in files_of(&root) {
        let whole = fs::read(&path).unwrap();
        // From the longest to the shortest by cutting: quick, and no byte is written anew.
        let mut lengths: Vec<_> =
            places(&path, whole.len()).chain([whole.len() + 1, whole.len() + 4096]).collect();
        lengths.sort_unstable();
        let file = File::options().write(true).open(&path).unwrap();
        for &len in lengths.iter().rev() {
            file.set_len(len as u64).unwrap();
            refused(&root, &path, &format!("length {len}"), stages(&path, 0));
        }
        fs::remove_file(&path).unwrap();
        let (stage, kind, text) = refusal(&root).unwrap();
        assert_eq!((stage, kind), (stages(&path, 0)[0], ErrorKind::NotFound), "{text}");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(refusal(&root), None);
}

/// Fails instead of hanging.
fn within_a_second<T>(what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let found = what();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    found
}

#[cfg(unix)]
#[test]
fn fifos_sockets_and_devices_are_no_files_of_a_dataset() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("d");
    sample(&root);
    for (name, stage) in
        [("arrshard.json", "open"), ("a/00000.npy", "map"), ("a/00000.crc", "verify"), ("a", "map")]
    {
        let path = root.join(name);
        let aside = tmp.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        let check = |what: &str| {
            let (found, kind, text) = within_a_second(|| refusal(&root)).unwrap();
            assert_eq!((found, kind), (stage, ErrorKind::Corrupt), "{what}: {text}");
            fs::remove_file(&path).unwrap();
        };
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        check("a FIFO");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        check("a socket");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        check("a link to a device");
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        check("a link to what was there");
        fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(refusal(&root), None);
    let fifo = tmp.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(within_a_second(|| Dataset::open(&fifo)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_manifest_above_the_cap_is_refused_unread() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("d");
    sample(&root);
    let manifest = root.join("arrshard.json");
    for len in [MANIFEST_MAX_BYTES + 1, 1 << 40] {
        File::options().write(true).open(&manifest).unwrap().set_len(len).unwrap();
        let (stage, kind, text) = within_a_second(|| refusal(&root)).unwrap();
        assert_eq!((stage, kind), ("open", ErrorKind::Corrupt));
        assert!(
            text.ends_with(&format!("arrshard.json: expected 26 to 67108864 bytes, found {len}")),
            "{text}"
        );
    }
}

#[test]
fn a_dataset_that_is_being_built_is_not_there_yet() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("d");
    assert_eq!(Dataset::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
    let writer =
        Builder::new(WriteOptions::new().sync(false)).array("a", DType::UInt8, &[3]).create(&path).unwrap();
    for path in [path.clone(), tmp.path().join(".d.building"), path.join("")] {
        let error = Dataset::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    }
    assert_eq!(Dataset::open(tmp.path()).unwrap_err().kind(), ErrorKind::NotFound);
    drop(writer);
    assert_eq!(Dataset::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
    // The old dataset stays readable while its successor is being built.
    sample(&path);
    let options = WriteOptions::new().sync(false).replace(true);
    let _writer = Builder::new(options).array("a", DType::UInt8, &[3]).create(&path).unwrap();
    assert_eq!(refusal(&path), None);
}

/// The manifest with a checksum that is right again, so that the rules behind it are met.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some((prefix, rest)) = bytes.split_at_mut_checked(MANIFEST_PREFIX_BYTES) {
        prefix[15..23].copy_from_slice(format!("{:08x}", crc32(rest)).as_bytes());
    }
    bytes
}

#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Remove(usize, usize),
    Insert(usize, &'static str),
    Repeat(usize, usize),
    /// A number of the text becomes another.
    Number(usize, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "\\",
        "\0",
        "null",
        "[[[[[[[[",
        "{\"a\": 1}",
        "\"\\ud800\"",
        "\u{1b}",
        "\u{9b}",
        "/",
        "..",
        "-",
    ]);
    let numbers = prop::sample::select(vec![
        "0",
        "1",
        "2",
        "7",
        "4096",
        "-1",
        "1.5",
        "1e999",
        "-0",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "4294967296",
        "true",
        "\"1\"",
        "[]",
    ]);
    let at = any::<prop::sample::Index>().prop_map(|i| i.index(1 << 20));
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (at.clone(), 1usize..40).prop_map(|(at, len)| Change::Remove(at, len)),
        (at.clone(), pieces).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (at.clone(), 1usize..200).prop_map(|(at, len)| Change::Repeat(at, len)),
        (at, numbers).prop_map(|(at, number)| Change::Number(at, number)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    // Mostly behind the prefix, which has one form.
    let place = |at: usize| (MANIFEST_PREFIX_BYTES + at % bytes.len()).min(bytes.len() - 1);
    match *change {
        Change::Set(at, byte) => {
            let at = place(at);
            bytes[at] = byte;
        }
        Change::Remove(at, len) => {
            let at = place(at);
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Change::Insert(at, piece) => {
            let at = place(at);
            bytes.splice(at..at, piece.bytes());
        }
        Change::Repeat(at, len) => {
            let at = place(at);
            let piece = bytes[at..(at + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        Change::Number(at, number) => {
            let digit = |&i: &usize| bytes[i].is_ascii_digit();
            let Some(start) = (place(at)..bytes.len()).find(digit) else { return };
            let end = (start..bytes.len()).find(|i| !digit(i)).unwrap_or(bytes.len());
            bytes.splice(start..end, number.bytes());
        }
    }
}

fn manifests() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/vectors/golden");
    ["attributes", "generation-2", "later-minor", "names", "shapes", "strings"]
        .iter()
        .map(|name| {
            let mut bytes = Vec::new();
            File::open(root.join(name).join("dataset/arrshard.json"))
                .unwrap()
                .read_to_end(&mut bytes)
                .unwrap();
            bytes
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_manifest_never_panics(
        original in prop::sample::select(manifests()),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let mut bytes = original;
        for change in &changes {
            apply(&mut bytes, change);
        }
        match Manifest::from_bytes(&resealed(bytes)) {
            // What is taken can be written, and means the same.
            Ok(manifest) => prop_assert_eq!(Manifest::from_bytes(&manifest.to_bytes().unwrap()).unwrap(), manifest),
            Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control), "{:?}", error),
        }
    }
}
