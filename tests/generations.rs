//! Rows and arrays that come later: each is a generation, and readers of the one before go on.

#![allow(unsafe_code)]

mod common;

use arrshard::{
    Builder, DType, Dataset, ErrorKind, Input, Mode, PackOptions, Progress, Shared, WriteOptions, add,
    append, gc, pack,
};
use common::files;
use ndarray::{Array2, Ix1, Ix2, arr1};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn options() -> WriteOptions {
    // Shards of one page at least.
    WriteOptions::new().shard_bytes(8192).sync(false)
}

fn value(row: usize, column: usize) -> u32 {
    (row * 3 + column) as u32 ^ 0xA11
}

/// Rows `rows` of the array `x` of three columns, and of `y` of one dimension.
fn part(path: &Path, rows: std::ops::Range<usize>, options: WriteOptions) -> Dataset {
    let len = rows.len() as u64;
    let writer = Builder::new(options)
        .array("x", DType::UInt32, &[len, 3])
        .array("y", DType::Int16, &[len])
        .create(path)
        .unwrap();
    let x = Array2::from_shape_fn((rows.len(), 3), |(i, j)| value(rows.start + i, j));
    writer.write("x", &x.view()).unwrap();
    let y: Vec<i16> = rows.map(|row| row as i16).collect();
    writer.write("y", &arr1(&y).view()).unwrap();
    writer.seal().unwrap()
}

/// The path of every file of a folder.
fn names(folder: &Path) -> BTreeSet<PathBuf> {
    files(folder).into_keys().collect()
}

fn assert_whole(dataset: &Dataset) {
    let report = dataset.verify(&Progress::new()).unwrap();
    assert!(report.is_whole(), "{report:?}");
}

#[test]
fn however_rows_come_the_data_is_the_same() {
    let tmp = tempfile::tempdir().unwrap();
    // A shard of `x` holds 1024 rows, so that pieces end within, at and beyond the ends of shards.
    for (round, pieces) in [
        &[3000, 1][..],
        &[1, 1, 1, 3000],
        &[1024, 1024, 7],
        &[1000, 24, 1024],
        &[0, 5, 0, 2043],
        &[4096, 4096],
    ]
    .into_iter()
    .enumerate()
    {
        let path = tmp.path().join(format!("grown{round}"));
        let total: usize = pieces.iter().sum();
        let mut at = 0;
        let mut readers = Vec::new();
        for (number, &rows) in pieces.iter().enumerate() {
            let piece = tmp.path().join(format!("piece{round}.{number}"));
            let rows = at..at + rows;
            at = rows.end;
            if number == 0 {
                part(&path, rows, options());
            } else {
                append(&path, &part(&piece, rows, options()), &options()).unwrap();
            }
            let dataset = Dataset::open(&path).unwrap();
            // SAFETY: nobody changes these files.
            let mapped = unsafe { dataset.map() };
            readers.push((dataset, mapped, at));
        }
        let whole = part(&tmp.path().join(format!("whole{round}")), 0..total, options());
        let grown = Dataset::open(&path).unwrap();
        assert_whole(&grown);
        assert_eq!(grown.manifest().id().unwrap(), whole.manifest().id().unwrap(), "{pieces:?}");
        // Also those that were opened long before.
        for (dataset, mapped, rows) in &readers {
            let x = Array2::from_shape_fn((*rows, 3), |(i, j)| value(i, j));
            assert_eq!(dataset.read::<u32, Ix2>("x").unwrap(), x);
            assert_eq!(mapped.view::<u32, Ix2>("x").unwrap(), x);
            assert_eq!(dataset.read::<i16, Ix1>("y").unwrap().len(), *rows);
            assert_whole(dataset);
        }
        let left: Vec<_> = fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("building")), "{left:?}");
        let garbage = gc(&path, false, &options()).unwrap();
        assert_eq!(gc(&path, true, &options()).unwrap().files, Vec::<PathBuf>::new());
        assert_whole(&grown);
        assert_eq!(names(&path).len(), names(whole.path()).len(), "{garbage:?}");
        // What is mapped stays.
        for (_, mapped, rows) in &readers {
            let x = Array2::from_shape_fn((*rows, 3), |(i, j)| value(i, j));
            assert_eq!(mapped.view::<u32, Ix2>("x").unwrap(), x);
        }
    }
}

#[test]
fn shards_that_are_full_are_not_touched() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..1500, options());
    let before = names(&path);
    let rows = part(&tmp.path().join("more"), 1500..3000, options());
    append(&path, &rows, &options()).unwrap();
    let after = names(&path);
    assert!(before.is_subset(&after));
    let new: Vec<_> = after.difference(&before).map(|path| path.to_string_lossy().into_owned()).collect();
    let expected = [
        "x/00001.g2.crc",
        "x/00001.g2.npy",
        "x/00002.g2.crc",
        "x/00002.g2.npy",
        "y/00000.g2.crc",
        "y/00000.g2.npy",
    ];
    assert_eq!(new, expected);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.manifest().generation, 2);
    let generations: Vec<_> = dataset.array("x").unwrap().shards.iter().map(|s| s.generation).collect();
    assert_eq!(generations, [1, 2, 2]);
    let garbage = gc(&path, true, &options()).unwrap();
    let files = ["x/00001.crc", "x/00001.npy", "y/00000.crc", "y/00000.npy"].map(|file| path.join(file));
    assert_eq!(garbage.files, files);
    assert_eq!(garbage.bytes, files.iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>());
    assert_eq!(names(&path), after, "a dry run removes nothing");
}

#[test]
fn strings_grow() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let (mut text, mut expected) = (String::from("n,word\n"), Vec::new());
    let csv = |name: &str, text: &str| {
        let file = tmp.path().join(name);
        fs::write(&file, text).unwrap();
        [Input::Path(file)]
    };
    let run = |inputs: &[Input], mode| {
        let options = PackOptions { mode, write: options(), ..PackOptions::default() };
        pack(inputs, &path, &options, &Progress::new()).map(|packed| packed.dataset.unwrap())
    };
    for round in 0..4 {
        for row in 0..[3, 700, 0, 1500][round] {
            // Some are empty, some long.
            let word = "wörd".repeat(row % 7 * (round + 1));
            text += &format!("{row},{word}\n");
            expected.push(word);
        }
        let mode = if round == 0 { Mode::Create } else { Mode::Append };
        let dataset = run(&csv(&format!("{round}.csv"), &text), mode).unwrap();
        text = String::from("n,word\n");
        assert_whole(&dataset);
        // SAFETY: nobody changes these files.
        let mapped = unsafe { dataset.map() };
        let strings = mapped.strings("word").unwrap();
        let found: Vec<_> = strings.iter().map(|word| word.unwrap().to_owned()).collect();
        assert_eq!(found, expected);
        assert_eq!(dataset.array("n").unwrap().layout.rows() as usize, expected.len());
    }
    assert_eq!(Dataset::open(&path).unwrap().manifest().generation, 3, "no rows, no generation");

    let refused = |name: &str, text: &str, kind: ErrorKind, says: &str| {
        let error = run(&csv(name, text), Mode::Append).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(Dataset::open(&path).unwrap().manifest().generation, 3);
        assert!(!tmp.path().join(".x.building").exists());
    };
    let before = names(&path);
    refused("a.csv", "n,word\n1,a\nb,c\n", ErrorKind::Parse, "a.csv:3: field 1");
    refused("b.csv", "n,other\n1,a\n", ErrorKind::Parse, "expected the header \"n,word\"");
    refused("c.csv", "n\n1\n", ErrorKind::Parse, "expected 2 columns");
    refused("d.csv", "n,word\n1.5,a\n", ErrorKind::Parse, "d.csv:2: field 1");
    assert_eq!(names(&path), before);
}

#[test]
fn a_table_of_words_tells_its_header_by_the_names() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let run = |name: &str, text: &str, mode| {
        let file = tmp.path().join(name);
        fs::write(&file, text).unwrap();
        let options = PackOptions { mode, write: options(), ..PackOptions::default() };
        pack(&[Input::Path(file)], &path, &options, &Progress::new()).unwrap().dataset.unwrap()
    };
    let first = run("1.csv", "a,b\nu,v\n", Mode::Create);
    let names: Vec<_> = first.manifest().strings.clone();
    let rows = first.array(&format!("{}.offsets", names[0])).unwrap().layout.rows();
    let more = run("2.csv", "a,b\nw,x\n", Mode::Append);
    assert_eq!(more.manifest().strings, names);
    // The header counts as often as it did in the first file.
    assert_eq!(more.array(&format!("{}.offsets", names[0])).unwrap().layout.rows(), 2 * rows - 1);
}

#[test]
fn a_matrix_takes_text_of_its_columns_and_dtype() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let file = tmp.path().join("in.tsv");
    let run = |text: &str, options: PackOptions| {
        fs::write(&file, text).unwrap();
        pack(&[Input::from_arg(&file)], &path, &options, &Progress::new())
            .map(|packed| packed.dataset.unwrap())
    };
    let base = PackOptions { name: "m".into(), write: options(), ..PackOptions::default() };
    let more = PackOptions { mode: Mode::Append, ..base.clone() };
    run("1.5\t2\n3\t4\n", base).unwrap();
    // Whole numbers become what the matrix holds, and its name is kept whatever `name` is.
    let dataset = run("5\t6\n", PackOptions { name: "other".into(), ..more.clone() }).unwrap();
    let expected = ndarray::arr2(&[[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    assert_eq!(dataset.read::<f64, Ix2>("m").unwrap(), expected);
    for (text, says) in [
        ("1\t2\t3\n", "expected 2 columns"),
        ("1\tx\n", "in.tsv:1: field 2"),
        // Not an ulp is lost unasked.
        ("1\t1\n9007199254740993\t1\n", "in.tsv:2: field 1"),
        ("a\tb\n1\t2\n", "expected no header"),
    ] {
        let error = run(text, more.clone()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    let large = run("1e300\t9007199254740992\n", more.clone()).unwrap();
    assert_eq!(large.array("m").unwrap().layout.rows(), 4);
    let mut asked = more.clone();
    asked.text.dtype = Some(DType::Float32);
    let error = run("1\t2\n", asked.clone()).unwrap_err();
    assert!(error.to_string().contains("expected float64"), "{error}");
    asked.text.dtype = Some(DType::Float64);
    assert_eq!(run("9007199254740993\t1\n", asked).unwrap().array("m").unwrap().layout.rows(), 5);
    for (part, resume) in [(Some((0, 2)), false), (None, true)] {
        let result = run("1\t2\n", PackOptions { part, resume, ..more.clone() });
        assert_eq!(result.is_ok(), resume, "several can't append together");
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let mut number = 0;
    let mut make = |arrays: &[(&str, DType, &[u64])]| {
        number += 1;
        let builder = Builder::new(options());
        let builder =
            arrays.iter().fold(builder, |builder, (name, dtype, shape)| builder.array(name, *dtype, shape));
        let writer = builder.create(tmp.path().join(format!("part{number}"))).unwrap();
        for (name, ..) in arrays {
            writer
                .fill(name, |_, bytes| {
                    bytes.fill(1);
                    Ok(())
                })
                .unwrap();
        }
        writer.seal().unwrap()
    };
    const U8: DType = DType::UInt8;
    let base = make(&[("a", U8, &[4, 2]), ("b", U8, &[4]), ("c", U8, &[9])]);
    fs::rename(base.path(), &path).unwrap();
    let before = names(&path);
    let mut refused = |arrays: &[(&str, DType, &[u64])], kind: ErrorKind, says: &str| {
        let error = append(&path, &make(arrays), &options()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(names(&path), before);
        assert!(!tmp.path().join(".x.building").exists());
    };
    let (shape, types) = (ErrorKind::InvalidArgument, ErrorKind::TypeMismatch);
    refused(&[("a", U8, &[1, 2]), ("b", U8, &[1])], shape, "found \"a\", \"b\"");
    refused(&[("a", U8, &[1, 2]), ("b", U8, &[1]), ("d", U8, &[1])], shape, "\"d\"");
    refused(
        &[("a", U8, &[1, 3]), ("b", U8, &[1]), ("c", U8, &[1])],
        types,
        "\"a\": expected rows of uint8 [2]",
    );
    refused(&[("a", U8, &[1, 2]), ("b", DType::Int8, &[1]), ("c", U8, &[1])], types, "\"b\"");
    refused(&[("a", U8, &[]), ("b", U8, &[1]), ("c", U8, &[1])], types, "found a single value");
    refused(&[("a", U8, &[2, 2]), ("b", U8, &[1]), ("c", U8, &[1])], shape, "expected 2 rows as for \"a\"");
    let fits = make(&[("a", U8, &[1, 2]), ("b", U8, &[1]), ("c", U8, &[0])]);
    let grown = append(&path, &fits, &options()).unwrap();
    assert_eq!(grown.array("c").unwrap().shards[0].generation, 1, "no rows, no new shard");
    assert_eq!(grown.array("a").unwrap().layout.shape(), [5, 2]);

    let alone = make(&[("s", U8, &[])]);
    let error = append(alone.path(), &make(&[("s", U8, &[])]), &options()).unwrap_err();
    assert!(error.to_string().contains("found a single value"), "{error}");
    let error = append(tmp.path().join("none"), &fits, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!tmp.path().join(".none.building").exists());
}

#[test]
fn rows_without_bytes_grow_too() {
    let tmp = tempfile::tempdir().unwrap();
    let make = |name: &str, rows: u64| {
        let writer = Builder::new(options())
            .array("e", DType::Float32, &[rows, 0])
            .create(tmp.path().join(name))
            .unwrap();
        writer.seal().unwrap()
    };
    let base = make("x", 3);
    append(base.path(), &make("y", 4), &options()).unwrap();
    let grown = append(base.path(), &make("z", 5), &options()).unwrap();
    assert_whole(&grown);
    assert_eq!(grown.array("e").unwrap().layout.shape(), [12, 0]);
    assert_eq!(grown.array("e").unwrap().shards[0].generation, 3);
}

#[test]
fn arrays_are_added_beside() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let base = part(&path, 0..1500, options());
    let file = tmp.path().join("w.csv");
    let text: String = (0..1500).map(|row| format!("{row},w{row}\n")).collect();
    fs::write(&file, format!("id,word\n{text}")).unwrap();
    let run = |name: &str, mode| {
        let options = PackOptions { mode, name: name.into(), write: options(), ..PackOptions::default() };
        pack(&[Input::from_arg(&file)], &path, &options, &Progress::new())
    };
    let more = run("unused", Mode::Add).unwrap().dataset.unwrap();
    assert_whole(&more);
    assert_eq!(more.manifest().generation, 2);
    let arrays: Vec<_> = more.arrays().iter().map(|array| &*array.name).collect();
    assert_eq!(arrays, ["x", "y", "id", "word.offsets", "word.bytes"]);
    assert_eq!(more.read::<i64, Ix1>("id").unwrap()[1499], 1499);
    // SAFETY: nobody changes these files.
    let mapped = unsafe { more.map() };
    assert_eq!(mapped.strings("word").unwrap().get(7).unwrap(), "w7");
    // The old one does not know them.
    assert!(base.array("id").is_err());
    let error = run("unused", Mode::Add).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    fs::write(&file, "1\n2\n").unwrap();
    let error = run("z", Mode::Add).unwrap_err();
    assert!(error.to_string().contains("1500 as in \"id\", found 2"), "{error}");
    let error = add(&path, &base, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    // All of them grow from then on.
    let error = append(&path, &part(&tmp.path().join("p"), 0..3, options()), &options()).unwrap_err();
    assert!(error.to_string().contains("\"word\""), "{error}");
}

#[test]
fn damage_is_not_made_right() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..1500, options());
    let rows = part(&tmp.path().join("more"), 0..10, options());
    let flip = |file: &str| {
        let file = path.join(file);
        let mut bytes = fs::read(&file).unwrap();
        bytes[5000] ^= 1;
        fs::write(&file, bytes).unwrap();
    };
    // The short last shard would be written anew, with a checksum of the damage.
    flip("x/00001.npy");
    let error = append(&path, &rows, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("found rows 1024..1500 damaged"), "{error}");
    flip("x/00001.npy");
    flip("x/00000.npy");
    let grown = append(&path, &rows, &options()).unwrap();
    let report = grown.verify(&Progress::new()).unwrap();
    assert_eq!(report.damage.len(), 1, "and it is still reported");
    assert_eq!(report.damage[0].rows, 0..1024);
}

#[test]
fn a_later_version_is_not_written_to() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let rows = part(&path, 0..10, options());
    let file = path.join("arrshard.json");
    let text = fs::read_to_string(&file).unwrap();
    let body = text[26..].replace("\"minor\": 0", "\"minor\": 1");
    assert_ne!(body, text[26..]);
    let crc = arrshard::checksum::crc32(body.as_bytes());
    fs::write(&file, format!("{{\n  \"_crc32\": \"{crc:08x}\",\n{body}")).unwrap();
    assert!(Dataset::open(&path).is_ok(), "it can be read");
    let error = append(&path, &rows, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(!tmp.path().join(".x.building").exists());
}

#[test]
fn gc_leaves_what_is_not_its_own() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..1500, options());
    append(&path, &part(&tmp.path().join("more"), 0..10, options()), &options()).unwrap();
    let mine = ["notes.txt", "x/notes.txt", "x/00000.npy.bak", "x/1.npy", "mine/00000.npy", "x/00000.g2.txt"];
    let killed = ["x/00007.g3.npy.partial", "x/00007.g3.blocks", "arrshard.json.partial", "new/00000.g3.npy"];
    for folder in ["mine", "new"] {
        fs::create_dir(path.join(folder)).unwrap();
    }
    for file in mine.iter().chain(&killed) {
        fs::write(path.join(file), "1").unwrap();
    }
    let garbage = gc(&path, false, &options()).unwrap();
    let gone = |file: &str| garbage.files.contains(&path.join(file)) && !path.join(file).exists();
    assert!(killed.iter().all(|file| gone(file)), "{garbage:?}");
    assert!(mine.iter().all(|file| path.join(file).exists()));
    assert!(!path.join("new").exists(), "an array that never came to be");
    assert_whole(&Dataset::open(&path).unwrap());
}

#[test]
fn one_at_a_time() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..100, options());
    let more = part(&tmp.path().join("more"), 100..110, options());
    // Each of them is refused, or all its rows are there.
    let done: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| match append(&path, &more, &options()) {
                    Ok(_) => 1,
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Locked, "{e}");
                        0
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let dataset = Dataset::open(&path).unwrap();
    assert!(done > 0);
    assert_eq!(dataset.array("x").unwrap().layout.rows(), 100 + 10 * done as u64);
    assert_eq!(dataset.manifest().generation, 1 + done as u64);
    assert_whole(&dataset);
    let error = gc(tmp.path().join("none"), false, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn what_was_begun_can_be_abandoned() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..100, options());
    let before = names(&path);
    let building = tmp.path().join(".x.building");
    fs::create_dir_all(building.join("added/x")).unwrap();
    fs::write(building.join("task"), "of another\nfile\n").unwrap();
    fs::write(path.join("x/00000.g2.npy"), "half").unwrap();
    Shared::discard(&path).unwrap();
    assert!(!building.exists());
    assert_eq!(names(&path), before);
}

#[test]
fn gc_leaves_what_a_repair_could_not_tell() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    part(&path, 0..1500, options());
    append(&path, &part(&tmp.path().join("more"), 1500..3000, options()), &options()).unwrap();
    gc(&path, false, &options()).unwrap();
    let lost = path.join("x/00000.npy");
    fs::remove_file(&lost).unwrap();
    fs::remove_file(path.join("x/00000.crc")).unwrap();
    // A folder that is called like a shard is none.
    fs::create_dir(path.join("y/00060.npy")).unwrap();
    for file in ["x/00001.g2.crc", "x/00002.g2.crc", "x/00001.g2.npy", "x/00002.g2.npy"] {
        let file = path.join(file);
        let len = fs::metadata(&file).unwrap().len();
        fs::File::options().write(true).open(&file).unwrap().set_len(len - 1).unwrap();
    }
    fs::remove_file(path.join("arrshard.json")).unwrap();
    let before = names(&path);
    let repaired = arrshard::repair(&path, false, &options(), &Progress::new()).unwrap();
    assert!(!repaired.report.is_whole());
    assert_eq!(repaired.dataset.manifest().generation, 2);
    assert_eq!(repaired.dataset.read::<i16, Ix1>("y").unwrap().len(), 3000);
    let garbage = gc(&path, false, &options()).unwrap();
    assert_eq!(garbage.files, Vec::<PathBuf>::new());
    assert!(before.is_subset(&names(&path)));
}

#[test]
fn a_manifest_lost_while_rows_come_is_rebuilt_without_them() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let base = part(&path, 0..1500, options());
    let id = base.manifest().id().unwrap();
    let before = names(&path);
    append(&path, &part(&tmp.path().join("more"), 1500..3000, options()), &options()).unwrap();
    // As a writer leaves it that was killed before the manifest.
    let building = tmp.path().join(".x.building");
    fs::create_dir(&building).unwrap();
    fs::write(building.join("task"), format!("{id} of generation 1\nappend\n")).unwrap();
    fs::remove_file(path.join("arrshard.json")).unwrap();
    let repaired = arrshard::repair(&path, false, &options(), &Progress::new()).unwrap();
    assert!(repaired.report.is_whole(), "{:?}", repaired.report);
    assert_eq!(repaired.dataset.array("x").unwrap().layout.rows(), 1500);
    assert_eq!(repaired.dataset.manifest().generation, 1);
    assert!(
        repaired.notes.iter().any(|note| note.contains("6 files of a generation")),
        "{:?}",
        repaired.notes
    );
    Shared::discard(&path).unwrap();
    assert!(!building.exists());
    assert_eq!(names(&path), before);
    // Killed before it could say anything.
    fs::create_dir(&building).unwrap();
    fs::write(building.join("task.partial"), "").unwrap();
    Shared::discard(&path).unwrap();
    assert!(!building.exists());
    assert!(Shared::discard(&path).is_err(), "nothing is left to give up");
}
