//! A dataset that lost its manifest: what its files tell comes back, and what they don't is reported.

use arrshard::{Builder, DType, Dataset, ErrorKind, Progress, Repaired, WriteOptions, repair};
use std::fs;
use std::path::Path;

fn options() -> WriteOptions {
    WriteOptions::new().shard_bytes(8192).sync(false)
}

/// Three shards, one shard, one value, rows without bytes, bfloat16, and strings.
fn dataset(path: &Path) -> Dataset {
    let builder = Builder::new(options())
        .array("a/b", DType::UInt16, &[2500, 4])
        .array("one", DType::BFloat16, &[10])
        .array("scalar", DType::Float64, &[])
        .array("none", DType::UInt8, &[3, 0])
        .array("big", DType::UInt8, &[3, 3 << 20])
        .strings("tokens");
    let writer = builder.create(path).unwrap();
    for name in ["a/b", "one", "scalar", "none", "big"] {
        let fill = |rows: std::ops::Range<u64>, bytes: &mut [u8]| {
            bytes.iter_mut().zip(rows.start..).for_each(|(byte, i)| *byte = (i * 7) as u8);
            Ok(())
        };
        writer.fill(name, fill).unwrap();
    }
    for (name, bytes) in [
        ("tokens.offsets", [0u64, 1, 3].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>()),
        ("tokens.bytes", "aü".as_bytes().to_vec()),
    ] {
        let mut appender = writer.appender(name).unwrap();
        appender.append(&bytes).unwrap();
        writer.finish(appender).unwrap();
    }
    writer.seal().unwrap()
}

fn run(path: &Path) -> Repaired {
    repair(path, false, &options(), &Progress::new()).unwrap()
}

/// The rows that are reported, by array.
fn damaged(repaired: &Repaired) -> Vec<(&str, u64, u64)> {
    let damage = repaired.report.damage.iter();
    damage.map(|d| (d.array.as_str(), d.rows.start, d.rows.end)).collect()
}

#[test]
fn a_lost_manifest_comes_back() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let before = dataset(&path).manifest().clone();
    assert!(!run(&path).was_lost, "a whole manifest stays");
    fs::remove_file(path.join("arrshard.json")).unwrap();
    let dry = repair(&path, true, &options(), &Progress::new()).unwrap();
    assert!(dry.was_lost && dry.report.is_whole());
    assert!(!path.join("arrshard.json").exists(), "a dry run writes nothing");
    let repaired = run(&path);
    assert!(repaired.report.is_whole(), "{:?}", repaired.report.damage);
    let after = Dataset::open(&path).unwrap();
    assert!(after.verify(&Progress::new()).unwrap().is_whole());
    assert_eq!(after.manifest().strings, before.strings);
    assert_eq!(after.arrays().len(), before.arrays.len());
    for array in &before.arrays {
        let found = after.array(&array.name).unwrap();
        assert_eq!(
            (found.layout.dtype(), found.layout.shape()),
            (array.layout.dtype(), array.layout.shape())
        );
        assert_eq!(found.shards, array.shards, "{}", array.name);
        if array.shards.len() > 1 {
            assert_eq!(found.layout, array.layout);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

#[test]
fn every_golden_vector_comes_back() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/vectors/golden");
    let mut generations = 0;
    for entry in fs::read_dir(vectors).unwrap() {
        let from = entry.unwrap().path().join("dataset");
        let before = Dataset::open(&from).unwrap();
        if before.arrays().is_empty() {
            continue;
        }
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x");
        copy(&from, &path);
        fs::remove_file(path.join("arrshard.json")).unwrap();
        let repaired = run(&path);
        assert!(repaired.report.is_whole(), "{from:?}: {:?}", repaired.report.damage);
        let after = Dataset::open(&path).unwrap();
        for array in before.arrays() {
            let found = after.array(&array.name).unwrap();
            assert_eq!(found.layout.shape(), array.layout.shape(), "{from:?}");
            assert_eq!(found.layout.dtype(), array.layout.dtype(), "{from:?}");
            assert_eq!(found.shards, array.shards, "{from:?}");
        }
        let strings = |dataset: &Dataset| {
            let mut strings = dataset.manifest().strings.clone();
            strings.sort_unstable();
            strings
        };
        assert_eq!(strings(&after), strings(&before), "{from:?}");
        assert_eq!(after.manifest().generation, before.manifest().generation, "{from:?}");
        generations = generations.max(after.manifest().generation);
    }
    assert!(generations > 1, "one vector has been appended to");
}

#[test]
fn a_damaged_manifest_is_kept_aside() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    dataset(&path);
    let mut bytes = fs::read(path.join("arrshard.json")).unwrap();
    bytes[100] ^= 1;
    fs::write(path.join("arrshard.json"), &bytes).unwrap();
    assert_eq!(Dataset::open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(run(&path).report.is_whole());
    assert_eq!(fs::read(path.join("arrshard.json.damaged")).unwrap(), bytes);
    assert!(Dataset::open(&path).unwrap().verify(&Progress::new()).unwrap().is_whole());
    // It is arrshard's own, so it does not keep the dataset from being replaced.
    let builder = Builder::new(options().replace(true)).array("a", DType::UInt8, &[0]);
    builder.create(&path).unwrap().seal().unwrap();
    assert!(!path.join("arrshard.json.damaged").exists());
}

/// What is done, how to the folder of `a/b`, and which of its rows that costs.
type Harm<'a> = (&'a str, &'a dyn Fn(&Path), (u64, u64));

#[test]
fn damaged_rows_are_reported_now_and_later() {
    let damage: [Harm<'_>; 8] = [
        ("a shard is gone", &|a| fs::remove_file(a.join("00001.npy")).unwrap(), (1024, 2048)),
        ("a sidecar is gone", &|a| fs::remove_file(a.join("00001.crc")).unwrap(), (1024, 2048)),
        ("the last sidecar is gone", &|a| fs::remove_file(a.join("00002.crc")).unwrap(), (2048, 2500)),
        ("the last shard is gone", &|a| fs::remove_file(a.join("00002.npy")).unwrap(), (2048, 2500)),
        ("a byte of data", &|a| flip(&a.join("00000.npy"), 5000), (0, 1024)),
        ("a byte of a header", &|a| flip(&a.join("00000.npy"), 20), (0, 1024)),
        ("the last header", &|a| flip(&a.join("00002.npy"), 20), (2048, 2500)),
        ("a byte of a checksum", &|a| flip(&a.join("00001.crc"), 33), (1024, 2048)),
    ];
    for (what, harm, rows) in damage {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x");
        dataset(&path);
        fs::remove_file(path.join("arrshard.json")).unwrap();
        harm(&path.join("a%2Fb"));
        let repaired = run(&path);
        assert_eq!(damaged(&repaired), [("a/b", rows.0, rows.1)], "{what}");
        let later = Dataset::open(&path).unwrap().verify(&Progress::new()).unwrap();
        assert_eq!(later.damage, repaired.report.damage, "{what}");
    }
}

#[test]
fn what_cannot_be_told_is_said() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    dataset(&path);
    fs::remove_file(path.join("arrshard.json")).unwrap();
    flip(&path.join("one/00000.npy"), 8);
    let repaired = run(&path);
    assert_eq!(damaged(&repaired), [("one", 0, 10)]);
    assert!(repaired.dataset.array("one").is_err());
    // Both files of the last shard: nothing is left that could tell of it.
    let path = tmp.path().join("y");
    dataset(&path);
    for file in ["arrshard.json", "a%2Fb/00002.npy", "a%2Fb/00002.crc"] {
        fs::remove_file(path.join(file)).unwrap();
    }
    let repaired = run(&path);
    assert_eq!(repaired.dataset.array("a/b").unwrap().layout.rows(), 2048);
    assert!(repaired.notes.iter().any(|note| note.contains("no file tells")), "{:?}", repaired.notes);
}

#[test]
fn odd_folders_are_refused_or_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let refused = |path: &Path| repair(path, false, &options(), &Progress::new()).unwrap_err().kind();
    assert_eq!(refused(&tmp.path().join("nothing")), ErrorKind::NotFound);
    let path = tmp.path().join("x");
    fs::create_dir_all(path.join("notes")).unwrap();
    fs::write(path.join("notes/a.npy"), "x").unwrap();
    assert_eq!(refused(&path), ErrorKind::NotFound);
    assert!(!path.join("arrshard.json").exists());
    // Numbers that would make a manifest endless.
    fs::write(path.join("notes/99999999999.npy"), "x").unwrap();
    assert_eq!(refused(&path), ErrorKind::NotFound);
    let shared = Builder::new(options()).array("a", DType::UInt8, &[5]).create_shared(tmp.path().join("w"));
    let path = shared.unwrap().path().to_owned();
    assert_eq!(refused(&path), ErrorKind::Incomplete);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}
