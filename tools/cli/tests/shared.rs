//! Several processes that write one dataset: plans, shares, kills, and how they are seen.

mod command;

use arrshard::{Builder, DType, Dataset, Shared, WriteOptions};
use command::{arrshard, files, names, run};
use ndarray::{Array2, Ix1, Ix2};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::tempdir;

fn table(at: &Path, rows: usize) {
    let mut text = String::new();
    for row in 0..rows {
        writeln!(text, "{row},{}.5,{}", row % 97, row * 3).unwrap();
    }
    fs::write(at.join("in.csv"), text).unwrap();
}

#[test]
fn a_plan_is_filled_by_a_program_and_sealed() {
    let tmp = tempdir().unwrap();
    let create = |shape: &str| {
        let array = format!("x=f4:{shape}");
        run(tmp.path(), ["create", "d", "--array", &array, "--array", "one=i8:1", "--shard-size", "64KiB"])
    };
    assert_eq!(create("40000x2").code, Some(0));
    assert_eq!(create("40000x2").code, Some(0), "to say the same again is to join");
    let other = create("40000x3");
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("shape") && other.err.contains("40000"), "{}", other.err);
    assert!(!tmp.path().join("d").exists());

    let status = run(tmp.path(), ["status", "d"]);
    assert_eq!(status.code, Some(1));
    assert!(status.out.contains("40000 (0..40000)"), "{}", status.out);
    let sealed = run(tmp.path(), ["seal", "d"]);
    assert_eq!(sealed.code, Some(1), "{sealed:?}");
    assert!(sealed.err.contains("0..40000"), "{}", sealed.err);

    let shared = Shared::join(tmp.path().join("d"), WriteOptions::new()).unwrap();
    let values = Array2::from_shape_fn((40_000, 2), |(row, column)| (row * 2 + column) as f32);
    shared.write_rows("x", 0, &values.view()).unwrap();
    assert_eq!(run(tmp.path(), ["abandon", "d"]).code, Some(2), "somebody is at work");
    let status = run(tmp.path(), ["status", "d", "--json"]);
    assert_eq!(status.code, Some(1));
    let json: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(json["arrays"][0]["done"], serde_json::json!([[0, 40000]]));
    assert_eq!(json["arrays"][1]["missing"], serde_json::json!([[0, 1]]));
    shared.write_rows("one", 0, &ndarray::arr1(&[7i64]).view()).unwrap();
    drop(shared);
    assert_eq!(run(tmp.path(), ["status", "d", "-q"]).code, Some(0));
    assert_eq!(run(tmp.path(), ["seal", "d"]).code, Some(0));
    assert_eq!(run(tmp.path(), ["seal", "d"]).code, Some(0), "it stays as it is");
    assert_eq!(run(tmp.path(), ["status", "d"]).out, "d: sealed\n");
    assert_eq!(run(tmp.path(), ["abandon", "d"]).code, Some(2), "sealed data is not touched");
    assert_eq!(Dataset::open(tmp.path().join("d")).unwrap().read::<f32, Ix2>("x").unwrap(), values);
    assert_eq!(names(tmp.path()), ["d"]);
}

#[test]
fn abandon_leaves_nothing() {
    let tmp = tempdir().unwrap();
    assert_eq!(run(tmp.path(), ["create", "d", "--array", "x=f8:1000"]).code, Some(0));
    assert_eq!(run(tmp.path(), ["abandon", "d"]).code, Some(0));
    assert_eq!(names(tmp.path()), Vec::<String>::new());
    for command in ["abandon", "status", "seal"] {
        let ended = run(tmp.path(), [command, "d"]);
        assert_eq!(ended.code, Some(2), "{command}");
        assert!(ended.err.contains("expected a dataset that is being written, found none"), "{}", ended.err);
    }
}

#[test]
fn shares_make_what_one_process_makes() {
    let tmp = tempdir().unwrap();
    table(tmp.path(), 60_000);
    let pack = ["pack", "in.csv", "-q", "--shard-size", "64KiB", "--no-sync", "-o"];
    assert_eq!(run(tmp.path(), pack.iter().chain(&["one"])).code, Some(0));
    let children: Vec<_> = (1..=3)
        .map(|i| {
            let part = format!("{i}/3");
            arrshard(tmp.path())
                .args(pack)
                .args(["d", "--part", &part])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(files(&tmp.path().join("d")).len(), files(&tmp.path().join("one")).len());
    let strip = |name: &str| -> Vec<_> {
        let root = tmp.path().join(name);
        files(&root)
            .into_iter()
            .map(|(path, bytes)| (path.strip_prefix(&root).unwrap().to_owned(), bytes))
            .collect()
    };
    assert!(strip("d") == strip("one"));
    assert_eq!(names(tmp.path()), ["d", "in.csv", "one"]);
    for part in ["0/3", "4/3", "1", "1/0", "a/b", "-1/3"] {
        let part = format!("--part={part}");
        assert_eq!(run(tmp.path(), ["pack", "in.csv", "-o", "e", &part]).code, Some(2), "{part}");
    }
}

#[test]
fn a_share_alone_waits_for_the_others() {
    let tmp = tempdir().unwrap();
    table(tmp.path(), 60_000);
    let pack = |part: &str| {
        run(tmp.path(), ["pack", "in.csv", "-o", "d", "--shard-size", "64KiB", "--no-sync", "--part", part])
    };
    let first = pack("2/2");
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.err.contains("this share is written, others are missing"), "{}", first.err);
    assert!(!tmp.path().join("d").exists());
    assert_eq!(run(tmp.path(), ["status", "d", "-q"]).code, Some(1));
    assert_eq!(pack("1/2").code, Some(0));
    let found = Dataset::open(tmp.path().join("d")).unwrap().read::<f64, Ix2>("data").unwrap();
    assert_eq!(found.row(59_999).to_vec(), [59_999.0, (59_999 % 97) as f64 + 0.5, 179_997.0]);
}

#[cfg(unix)]
#[test]
fn a_killed_pack_goes_on_where_it_was() {
    let tmp = tempdir().unwrap();
    table(tmp.path(), 400_000);
    let pack = ["pack", "in.csv", "-q", "--shard-size", "256KiB", "-j", "1", "--resume", "-o"];
    assert_eq!(run(tmp.path(), pack.iter().chain(&["one"])).code, Some(0));
    for wait in [2, 10, 25, 60] {
        let mut child = arrshard(tmp.path()).args(pack).arg("d").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        let _ = child.wait();
        let ended = run(tmp.path(), pack.iter().chain(&["d"]));
        if tmp.path().join("d").exists() && ended.code == Some(2) {
            // It was done before the kill.
            assert!(ended.err.contains("d: expected"), "{}", ended.err);
        } else {
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        let bytes = |name: &str| files(&tmp.path().join(name)).into_values().collect::<Vec<_>>();
        assert!(bytes("d") == bytes("one"));
        assert_eq!(names(tmp.path()), ["d", "in.csv", "one"]);
        fs::remove_dir_all(tmp.path().join("d")).unwrap();
    }
}

#[test]
fn what_the_library_plans_the_command_sees() {
    let tmp = tempdir().unwrap();
    let builder = Builder::new(WriteOptions::new()).array("y", DType::UInt8, &[5]);
    let shared = builder.create_shared(tmp.path().join("d")).unwrap();
    shared.write_rows("y", 0, &ndarray::arr1(&[1u8, 2, 3, 4, 5]).view()).unwrap();
    assert_eq!(run(tmp.path(), ["seal", "d", "-q"]).code, Some(0));
    let found = shared.seal().unwrap().read::<u8, Ix1>("y").unwrap();
    assert_eq!(found.to_vec(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_dataset_grows_line_after_line() {
    let tmp = tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(tmp.path().join(name), text).unwrap();
    write("a.csv", "x,word\n1,one\n2,two\n");
    write("b.csv", "x,word\n3,three\n");
    write("labels.csv", "1\n0\n1\n");
    write("short.csv", "1\n0\n");
    let fails = |args: &[&str], code: i32, says: &str| {
        let ended = run(tmp.path(), args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?}: {}", ended.err);
    };
    let done = |args: &[&str]| {
        let ended = run(tmp.path(), args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended
    };
    fails(&["pack", "b.csv", "-o", "d", "--append"], 2, "without --append");
    done(&["pack", "a.csv", "-o", "d"]);
    for more in [&["--force"][..], &["--part", "1/2"], &["--shard-size", "1MiB"], &["--name", "y"]] {
        fails(&[&["pack", "b.csv", "-o", "d", "--append"], more].concat(), 2, "--append");
    }
    let ended = done(&["pack", "b.csv", "-o", "d", "--append", "--no-sync"]);
    assert!(ended.err.contains("d: 3 rows"), "{}", ended.err);
    fails(&["add", "d", "short.csv", "--name", "label"], 2, "3 as in");
    done(&["add", "d", "labels.csv", "--name", "label"]);
    fails(&["add", "d", "labels.csv", "--name", "label"], 2, "--name");
    assert_eq!(done(&["unpack", "d", "--array", "label", "-o", "-", "--to", "csv"]).out, "1\n0\n1\n");
    assert!(done(&["info", "d"]).out.contains("generation  3"));

    let dry = done(&["gc", "d", "--dry-run", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&dry.out).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), 6);
    assert_eq!(json["removed"], false);
    let ended = done(&["gc", "d"]);
    assert!(ended.out.contains("\n6 files removed, 12.") && !ended.out.contains("g2"), "{}", ended.out);
    assert_eq!(done(&["gc", "d"]).out, "0 files removed, 0 B\n");
    done(&["verify", "d"]);
    assert_eq!(names(tmp.path()), ["a.csv", "b.csv", "d", "labels.csv", "short.csv"]);
}
