//! What must not be lost: digits, rows, and files that were there before.

mod command;

use arrshard::Dataset;
use command::{gz, names, run, run_piped};
use ndarray::{Ix1, Ix2};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use tempfile::tempdir;

/// Long enough that the last line is in no sample.
fn late(line: &str, rows: usize, last: &str) -> String {
    let mut text = format!("{line}\n").repeat(rows);
    writeln!(text, "{last}").unwrap();
    text
}

#[test]
fn a_late_whole_number_is_never_rounded_to_a_float() {
    let rows = 400_000;
    for (line, last, extra) in [
        ("0.5", "9007199254740993", &[][..]),
        ("x,1.5", "y,9007199254740993", &[]),
        ("0.5,1", "9007199254740993,1", &["--layout", "columns"]),
    ] {
        let tmp = tempdir().unwrap();
        let text = late(line, rows, last);
        for stdin in [false, true] {
            fs::write(tmp.path().join("in.csv"), &text).unwrap();
            let input = if stdin { "-" } else { "in.csv" };
            let mut args = vec!["pack", input, "-o", "out", "--force", "--no-sync", "-q"];
            args.extend(extra);
            let ended = run_piped(tmp.path(), args, text.as_bytes());
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let args = ["unpack", "out", "-o", "-", "--to", "csv", "--rows", "400000:"];
            let back = run(tmp.path(), args);
            assert_eq!(back.out.trim_end(), last, "{line:?} from {input}");
        }
    }
}

#[test]
fn large_floats_beside_whole_numbers_are_floats() {
    let tmp = tempdir().unwrap();
    for (text, want) in
        [("1,0.5\n2,1e16\n", [1.0, 0.5, 2.0, 1e16]), ("1e16,1\n-2.5,3\n", [1e16, 1.0, -2.5, 3.0])]
    {
        fs::write(tmp.path().join("in.csv"), text).unwrap();
        let ended = run(tmp.path(), ["pack", "in.csv", "-o", "out", "--force", "-q"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found = Dataset::open(tmp.path().join("out")).unwrap().read::<f64, Ix2>("data").unwrap();
        assert_eq!(found.as_slice().unwrap(), want);
    }
}

#[test]
fn a_row_of_truth_values_is_no_header() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("in.csv"), "True,False\nFalse,True\n").unwrap();
    let ended = run(tmp.path(), ["pack", "in.csv", "-o", "out", "-q"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = Dataset::open(tmp.path().join("out")).unwrap().read::<bool, Ix2>("data").unwrap();
    assert_eq!(found.as_slice().unwrap(), [true, false, false, true]);
}

#[test]
fn force_replaces_datasets_and_nothing_else() {
    let tmp = tempdir().unwrap();
    let at = |name: &str| tmp.path().join(name);
    fs::write(at("in.csv"), "1,2\n").unwrap();
    let pack = |out: &str| run(tmp.path(), ["pack", "in.csv", "-o", out, "--force", "-q"]);
    assert_eq!(pack("out").code, Some(0));
    assert_eq!(pack("out").code, Some(0));
    fs::write(at("out/mine.txt"), "x").unwrap();
    let ended = pack("out");
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("found a folder with \"mine.txt\" in it"), "{}", ended.err);
    assert!(at("out/mine.txt").exists());
    let ended = pack("in.csv");
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("expected a dataset to replace, found a file"), "{}", ended.err);
    assert_eq!(fs::read(at("in.csv")).unwrap(), b"1,2\n");
    fs::remove_file(at("out/mine.txt")).unwrap();
    for inside in ["out/data/00000.npy", "out/arrshard.json", "out/new.npy"] {
        let ended = run(tmp.path(), ["unpack", "out", "-o", inside, "--to", "npy", "--force"]);
        assert_eq!(ended.code, Some(2), "{inside}");
        assert!(ended.err.contains("outside of the dataset"), "{}", ended.err);
    }
    assert_eq!(run(tmp.path(), ["verify", "out", "-q"]).code, Some(0));
}

/// A shell starts background jobs with the interrupt ignored.
#[cfg(unix)]
#[test]
fn an_ignored_interrupt_stays_ignored() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("in.csv"), "1,2\n3,4\n").unwrap();
    let script = format!("trap '' INT; '{}' pack in.csv -o out -q", env!("CARGO_BIN_EXE_arrshard"));
    let ended = Command::new("sh").args(["-c", &script]).current_dir(tmp.path()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn thousands_of_columns_are_appended_in_order() {
    let tmp = tempdir().unwrap();
    let mut text = String::new();
    for row in 0..3000 {
        for column in 0..40 {
            write!(text, "{},", row * 40 + column).unwrap();
        }
        writeln!(text, "t{row}").unwrap();
    }
    fs::write(tmp.path().join("in.csv"), &text).unwrap();
    for shard in ["4KiB", "1GiB"] {
        let args = [
            "pack",
            "in.csv",
            "-o",
            "out",
            "-q",
            "--force",
            "--no-sync",
            "--header",
            "no",
            "--shard-size",
            shard,
        ];
        let ended = run(tmp.path(), args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let dataset = Dataset::open(tmp.path().join("out")).unwrap();
        let found = dataset.read::<i64, Ix1>("f39").unwrap();
        assert!(found.iter().enumerate().all(|(row, &value)| value == row as i64 * 40 + 39));
        assert!(dataset.verify(&arrshard::Progress::new()).unwrap().is_whole());
    }
}

#[test]
fn a_header_only_in_a_later_input_is_no_data() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("a.csv"), "1,2\n3,4\n").unwrap();
    fs::write(tmp.path().join("b.csv"), "\nx,y\n5,6\n").unwrap();
    fs::write(tmp.path().join("c.csv"), "# x,y\n5,6\n").unwrap();
    let ended = run(tmp.path(), ["pack", "a.csv", "b.csv", "-o", "out", "-q"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("b.csv:2: field 1: expected a number, since a.csv has no header, found \"x\""),
        "{}",
        ended.err
    );
    assert!(!tmp.path().join("out").exists());
    let args = ["pack", "a.csv", "c.csv", "-o", "out", "-q", "--comment", "#"];
    let ended = run(tmp.path(), args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = Dataset::open(tmp.path().join("out")).unwrap().read::<i64, Ix2>("data").unwrap();
    assert_eq!(found.as_slice().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_late_word_in_a_matrix_has_a_line_and_a_field() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("in.csv"), late("1.5,2", 400_000, "3,word")).unwrap();
    let ended = run(tmp.path(), ["pack", "in.csv", "-o", "out", "-q", "--layout", "matrix"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("in.csv:400001: field 2 "), "{}", ended.err);
    assert!(!tmp.path().join("out").exists());
}

#[test]
fn parts_of_another_run_are_never_taken_for_parts_of_this_one() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("in.csv"), "1,2\n3,4\n5,6\n").unwrap();
    assert_eq!(run(tmp.path(), ["pack", "in.csv", "-o", "d", "-q"]).code, Some(0));
    let unpack =
        |parts: &str| run(tmp.path(), ["unpack", "d", "-o", "t.csv", "--force", "-q", "--parts", parts]);
    assert_eq!(unpack("3").code, Some(0));
    let ended = unpack("2");
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("t.csv.2: expected no part after the 2 to write"), "{}", ended.err);
    assert_eq!(unpack("3").code, Some(0));
}

#[test]
fn what_would_read_back_as_something_else_is_not_written() {
    let tmp = tempdir().unwrap();
    fs::write(tmp.path().join("in.csv"), "1,2\n3,4\n").unwrap();
    let ended = run(tmp.path(), ["pack", "in.csv", "-o", "-", "-q"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("expected a folder to write to"), "{}", ended.err);
    assert_eq!(run(tmp.path(), ["pack", "in.csv", "-o", "d", "-q"]).code, Some(0));
    for delimiter in [".", "0", "-", "e", "00", ""] {
        let ended = run(tmp.path(), ["unpack", "d", "-o", "t.csv", "-q", "--delimiter", delimiter]);
        assert_eq!(ended.code, Some(2), "{delimiter:?}");
        assert!(!tmp.path().join("t.csv").exists());
    }
    let ended = run(tmp.path(), ["unpack", "d", "-o", "-", "--to", "csv", "-q", "--delimiter", " - "]);
    assert_eq!(ended.out, "1 - 2\n3 - 4\n");
}

#[test]
fn an_archive_without_arrays_is_named() {
    let tmp = tempdir().unwrap();
    // The end of a directory of nothing, which is a whole zip file.
    fs::write(tmp.path().join("e.npz"), [&b"PK\x05\x06"[..], &[0; 18]].concat()).unwrap();
    let ended = run(tmp.path(), ["pack", "e.npz", "-o", "d"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.err, "arrshard: e.npz: expected at least one array, found none\n");
}

#[test]
fn a_quote_that_is_never_closed_is_named_in_the_first_line_too() {
    let tmp = tempdir().unwrap();
    for (text, place) in
        [("\"a,b\n1,2\n", "1: field 1"), ("\n1,\"2\n3,4\n", "2: field 2"), ("1,2\n\"3,4\n", "2: field 1")]
    {
        fs::write(tmp.path().join("in.csv"), text).unwrap();
        let ended = run(tmp.path(), ["pack", "in.csv", "-o", "d", "-q"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(&format!("in.csv:{place} (byte ")), "{}", ended.err);
        assert!(ended.err.contains("expected a closing quote"), "{}", ended.err);
    }
}

#[test]
fn a_lost_manifest_is_rebuilt_and_lost_rows_are_told() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::write(at.join("in.tsv"), "1\t2\n".repeat(20_000)).unwrap();
    let ended = run(at, ["pack", "in.tsv", "-o", "x", "--shard-size", "64KiB", "-q"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = run(at, ["repair", "x"]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "x: its manifest is whole; verify checks the rest\n"));
    fs::remove_file(at.join("x/arrshard.json")).unwrap();
    let ended = run(at, ["repair", "x", "--dry-run"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("would be rebuilt, of 1 array\ndata: int64 (20000, 2)"), "{ended:?}");
    assert!(!at.join("x/arrshard.json").exists());
    fs::remove_file(at.join("x/data/00001.npy")).unwrap();
    let ended = run(at, ["repair", "x", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["damage"][0]["rows"], serde_json::json!([4096, 8192]), "{json}");
    assert_eq!(run(at, ["verify", "x"]).code, Some(1));
    let ended = run(at, ["unpack", "x", "-o", "-", "--to", "tsv", "--rows", "8192:8193"]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "1\t2\n"), "{ended:?}");
    let ended = run(at, ["repair", "nothing"]);
    assert_eq!(ended.code, Some(2));
}

#[test]
fn advice_is_about_the_command() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::write(at.join("in.csv"), "a,b\n1,\n2,3\n").unwrap();
    let says = |args: &[&str], text: &str| {
        let ended = run(at, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains(text), "{args:?}: {}", ended.err);
        ended.err
    };
    // It is no value, so that nothing would be what was asked for.
    says(&["pack", "in.csv", "-o", "x", "--missing", "abc"], "found \"abc\"");
    assert_eq!(run(at, ["pack", "in.csv", "-o", "x", "--missing", "-1"]).code, Some(0));
    says(&["pack", "in.csv", "-o", "x", "--missing", "0"], "--force");
    let error = says(&["abandon", "x"], "found it sealed");
    assert!(!error.contains("--force"), "{error}");
    // Names of arrays come from the header.
    fs::write(at.join("names.csv"), "x,x.bytes\nword,1\n").unwrap();
    says(&["pack", "names.csv", "-o", "y"], "names.csv: expected distinct array names");
    fs::write(at.join("long.csv"), "a,b\n1,2\n1,2,3\n").unwrap();
    let error = says(&["pack", "long.csv", "-o", "y", "--ragged", "pad"], "--ragged skip");
    assert!(!error.contains("pads"), "{error}");
    // No disk is filled up to find out that it is too small.
    says(&["create", "z", "--array", "x=f8:1000000000000000"], "8000030517579776 bytes");
    assert_eq!(names(at), ["in.csv", "long.csv", "names.csv", "x"]);
}

#[test]
fn what_is_guessed_comes_with_its_reason() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let pack = |text: &str, more: &[&str]| {
        fs::write(at.join("in.csv"), text).unwrap();
        let ended = run(at, [&["pack", "in.csv", "-o", "x", "--force"], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.err
    };
    let note = pack("a,b\n0.5,1\n9007199254740993,2\n", &[]);
    assert!(note.contains("column a: strings, since") && note.contains("--dtype f8"), "{note}");
    assert!(note.contains("otherwise by --delimiter, --header"), "{note}");
    let note = pack("a,b\n0.5,1\n", &["--delimiter", ",", "--header", "yes", "--comment", "none"]);
    assert!(!note.contains("otherwise") && !note.contains("since"), "{note}");
    // Rows that are not taken have no say in the types.
    for more in ["x", "0.5", "1e999"] {
        let note = pack(&format!("a,b\n1,2\n3,4\n5,{more}\n"), &["--max-rows", "2"]);
        assert!(note.contains("one int64 matrix"), "{note}");
    }
}

#[test]
fn a_second_start_finds_every_stream_again() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let both = |name: &str, text: &str| {
        fs::write(at.join(format!("{name}.gz")), gz(text.as_bytes())).unwrap();
        fs::write(at.join(name), text).unwrap();
    };
    // More than is looked at for a sample, so that the last line comes as a surprise.
    let long: String = (0..200_000).map(|row| format!("{row},1\n")).collect();
    for (name, text) in [
        ("whole.csv", "1,2\n3,4\n".to_owned()),
        ("wide.csv", format!("{long}0.5,7\n")),
        ("word.csv", format!("{long}word,7\n")),
        ("large.csv", format!("0.5,1\n{long}9007199254740993,7\n")),
    ] {
        both(name, &text);
    }
    let rows = |args: &[&str], stdin: &str| {
        let input = fs::read(at.join(stdin)).unwrap();
        let ended =
            run_piped(at, [&["pack", "-o", "x", "--force", "--from", "csv", "-q"], args].concat(), &input);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let out = run(at, ["unpack", "x", "-o", "-", "--to", "csv"]).out;
        assert!(out.lines().any(|line| line == "3,4" || line == "3.0,4.0" || line == "3,4.0"), "{args:?}");
        out.lines().count()
    };
    for odd in ["wide.csv", "word.csv", "large.csv"] {
        let expected = 2 + fs::read_to_string(at.join(odd)).unwrap().lines().count();
        let packed = format!("{odd}.gz");
        for order in [
            ["whole.csv.gz", odd],
            ["whole.csv.gz", &packed],
            [odd, "whole.csv.gz"],
            [&packed, "whole.csv.gz"],
            ["whole.csv", &packed],
        ] {
            assert_eq!(rows(&order, "whole.csv"), expected, "{order:?}");
        }
        assert_eq!(rows(&["-", odd], "whole.csv"), expected);
        assert_eq!(rows(&[odd, "-"], "whole.csv"), expected);
    }
    both("one.svm", "1 1:0.5 3:2\n");
    both("zero.svm", "1 0:7\n");
    for order in [
        ["one.svm.gz", "zero.svm"],
        ["one.svm", "zero.svm.gz"],
        ["zero.svm", "one.svm.gz"],
        ["one.svm.gz", "zero.svm.gz"],
    ] {
        let ended =
            run(at, [&["pack", "-q", "-o", "s", "--force", "--from", "svmlight"], &order[..]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(
            run(at, ["unpack", "s", "--array", "data", "-o", "-", "--to", "csv"]).out.lines().count(),
            3,
            "{order:?}"
        );
    }
}

#[test]
fn options_without_a_meaning_are_refused() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::write(at.join("in.csv"), "1,2\n3,4\n").unwrap();
    fs::write(at.join("v.txt"), "a 1 2\nb 3 4\n").unwrap();
    fs::write(at.join("s.svm"), "1 1:2\n").unwrap();
    assert_eq!(run(at, ["pack", "in.csv", "-q", "-o", "x"]).code, Some(0));
    for (input, options) in [
        ("x/data/00000.npy", &["--columns", "0"][..]),
        ("x/data/00000.npy", &["--max-rows", "1"]),
        ("x/data/00000.npy", &["--encoding", "latin-1"]),
        ("v.txt", &["--from", "word2vec", "--skip-rows", "1"]),
        ("v.txt", &["--from", "word2vec", "--features", "1"]),
        ("s.svm", &["--from", "svmlight", "--decimal", ","]),
        ("s.svm", &["--from", "svmlight", "--na", "x"]),
        ("in.csv", &["--dim", "2"]),
        ("in.csv", &["--multilabel"]),
    ] {
        let ended = run(at, [&["pack", input, "-q", "-o", "y"], options].concat());
        assert_eq!(ended.code, Some(2), "{options:?}");
        let option = options.iter().rfind(|option| option.starts_with("--")).unwrap();
        assert!(ended.err.contains("expected options that") && ended.err.contains(option), "{}", ended.err);
    }
}
