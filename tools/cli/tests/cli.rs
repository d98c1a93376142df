//! What the binary promises: exit codes, help, output to the letter, and nothing left behind.

mod command;

use arrshard::{Builder, DType, WriteOptions};
use command::{Ended, arrshard, files, gz, names, root, run, run_piped};
use ndarray::{Array, arr0, arr1};
use num_complex::Complex;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

fn demo() -> String {
    root().join("tools/demo/elnino.csv").to_str().unwrap().to_owned()
}

/// A folder with the demo packed as `e.arrshard`.
fn packed() -> TempDir {
    let tmp = tempdir().unwrap();
    done(&run(tmp.path(), ["pack", &demo(), "-o", "e.arrshard", "--no-sync", "-q"]));
    tmp
}

#[track_caller]
fn done(ended: &Ended) {
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}

/// One line on standard error and nothing on standard output.
#[track_caller]
fn refused(ended: &Ended, message: &str) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!((ended.err.as_str(), ended.out.as_str()), (format!("arrshard: {message}\n").as_str(), ""));
}

#[test]
fn help_is_short_and_a_result() {
    let tmp = tempdir().unwrap();
    let version = run(tmp.path(), ["--version"]);
    done(&version);
    assert_eq!(version.out, format!("arrshard {}\n", env!("CARGO_PKG_VERSION")));
    for args in [
        &["--help"][..],
        &["pack", "--help"],
        &["unpack", "-h"],
        &["info", "-h"],
        &["head", "-h"],
        &["verify", "-h"],
        &["repair", "-h"],
        &["add", "-h"],
        &["gc", "-h"],
        &["create", "-h"],
        &["status", "-h"],
        &["seal", "-h"],
        &["abandon", "-h"],
    ] {
        let help = run(tmp.path(), args);
        done(&help);
        assert!(help.out.contains("\nExamples:\n  arrshard "), "{}", help.out);
        let long = help.out.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_can_not_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = command::arrshard(std::path::Path::new(".")).arg("--help").stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
}

#[test]
fn arguments_without_sense_are_refused() {
    let tmp = packed();
    for args in [
        &[][..],
        &["fetch"],
        &["pack"],
        &["info"],
        &["info", "e.arrshard", "--pretty"],
        &["head", "e.arrshard", "-n", "-1"],
        &["verify", "e.arrshard", "-j", "0"],
        &["pack", "x", "-o", "y", "--delimiter", "ab"],
        &["pack", "x", "-o", "y", "--dtype", "f3"],
        &["pack", "x", "-o", "y", "--shard-size", "1K"],
        &["pack", "x", "-o", "y", "--name", ""],
        &["pack", "x", "-o", "y", "--name", "a\nb"],
        &["pack", "x", "-o", "y", "--header", "maybe"],
        &["unpack", "e.arrshard", "-o", "y.npy", "--rows", "7"],
    ] {
        let ended = run(tmp.path(), args);
        assert_eq!(ended.code, Some(2), "{args:?} {ended:?}");
        assert!(!ended.err.is_empty() && ended.out.is_empty(), "{args:?} {ended:?}");
    }
    let ended = run(tmp.path(), ["info", "e.arrshard", "\u{1b}[31m"]);
    assert!(!ended.err.contains('\u{1b}'), "{ended:?}");
    assert_eq!(names(tmp.path()), ["e.arrshard"]);
}

#[test]
fn an_output_is_proposed() {
    let tmp = packed();
    let ended = run(tmp.path(), ["pack", "some/emb.tsv"]);
    refused(&ended, "expected -o OUT, found none; for example -o emb.arrshard");
    let ended = run(tmp.path(), ["unpack", "e.arrshard"]);
    refused(&ended, "expected -o OUT, found none; for example -o e.npy, or - for standard output");
    let ended = run(tmp.path(), ["pack", "-", "-", "-o", "x"]);
    refused(&ended, "expected standard input once, found it 2 times");
}

#[test]
fn a_pack_says_what_it_has_made() {
    let tmp = tempdir().unwrap();
    let ended = run(tmp.path(), ["pack", &demo(), "-o", "e.arrshard"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
    let last = ended.err.lines().last().unwrap();
    assert!(last.starts_with("e.arrshard: 61 rows, data float64 (61, 13), 6.20 KiB in "), "{last}");
    assert!(ended.err.contains("delimiter ','"), "{}", ended.err);
    assert_eq!(names(tmp.path()), ["e.arrshard"]);
}

#[test]
fn info_to_the_letter() {
    let tmp = packed();
    let ended = run(tmp.path(), ["info", "e.arrshard"]);
    done(&ended);
    let id = ended.out.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(id.len(), 32);
    let expected = format!(
        "\
dataset     e.arrshard
id          {id}
generation  1
size        6.20 KiB (6344 bytes)

array  dtype    shape         size  shards  rows a shard
data   float64  (61, 13)  6.20 KiB       1      10321920

attributes of data
columns  [\"YEAR\",\"JAN\",\"FEB\",\"MAR\",\"APR\",\"MAY\",\"JUN\",\"JUL\",\"AUG\",\"SEP\",\"OCT\",\"NOV\",\"DEC\"]
"
    );
    assert_eq!(ended.out, expected);
    let ended = run(tmp.path(), ["info", "e.arrshard", "--json"]);
    done(&ended);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["path"], "e.arrshard");
    assert_eq!(json["id"], id.as_str());
    assert_eq!(json["generation"], 1);
    assert_eq!(json["arrays"][0]["name"], "data");
    assert_eq!(json["arrays"][0]["dtype"], "float64");
    assert_eq!(json["arrays"][0]["shape"], serde_json::json!([61, 13]));
    assert_eq!(json["arrays"][0]["nbytes"], 6344);
    assert_eq!(json["arrays"][0]["shards"], 1);
    assert_eq!(json["arrays"][0]["attributes"]["columns"][12], "DEC");
    assert_eq!(ended.out, run(tmp.path(), ["info", "e.arrshard", "--json"]).out);
}

#[test]
fn head_to_the_letter() {
    let tmp = packed();
    let ended = run(tmp.path(), ["head", "e.arrshard", "-n", "2"]);
    done(&ended);
    let expected = [
        "  YEAR    JAN    FEB    MAR    APR    MAY    JUN    JUL    AUG    SEP    OCT    NOV    DEC",
        "1950.0  23.11   24.2  25.37  23.86  23.03  21.57  20.63  20.15  19.67  20.03  20.02   21.8",
        "1951.0  24.19  25.28   25.6  25.37  24.79  24.69  23.86  22.32  21.44  21.77  22.33  22.89",
    ];
    assert_eq!(ended.out.lines().collect::<Vec<_>>(), expected);
    assert_eq!(run(tmp.path(), ["head", "e.arrshard"]).out.lines().count(), 11);
    assert_eq!(run(tmp.path(), ["head", "e.arrshard", "-n", "99999999999"]).out.lines().count(), 62);
    assert_eq!(run(tmp.path(), ["head", "e.arrshard", "-n", "0"]).out.lines().count(), 1);
    let ended = run(tmp.path(), ["head", "e.arrshard", "--array", "x"]);
    refused(&ended, "e.arrshard: expected an array of the dataset, found \"x\"; it has \"data\"");
}

#[test]
fn columns_stand_side_by_side() {
    let tmp = tempdir().unwrap();
    let text = "n,k,t\n1,café,0.5\n-20,\"a\nb\",1e300\n300,数,-0.0\n";
    done(&run_piped(tmp.path(), ["pack", "-q", "-", "--from", "csv", "-o", "x"], text.as_bytes()));
    let ended = run(tmp.path(), ["head", "x"]);
    done(&ended);
    assert_eq!(ended.out, "  n  k          t\n  1  café     0.5\n-20  a\\nb  1e+300\n300  数      -0.0\n");
    let ended = run(tmp.path(), ["head", "x", "--array", "t", "--array", "k", "-n", "1"]);
    assert_eq!(ended.out, "  t  k\n0.5  café\n");
    let json: Value = serde_json::from_str(&run(tmp.path(), ["info", "x", "--json"]).out).unwrap();
    assert_eq!(json["arrays"][1]["name"], "k");
    assert_eq!(json["arrays"][1]["dtype"], "string");
    assert_eq!(json["arrays"][1]["shape"], serde_json::json!([3]));
    assert_eq!(json["arrays"].as_array().unwrap().len(), 3);
}

#[test]
fn wide_rows_are_cut_in_the_middle() {
    let tmp = tempdir().unwrap();
    let row = |start: usize| (start..start + 5000).map(|i| i.to_string()).collect::<Vec<_>>().join("\t");
    let text = format!("{}\n{}\n", row(0), row(5000));
    done(&run_piped(
        tmp.path(),
        ["pack", "-q", "-", "--from", "tsv", "--header", "no", "-o", "x"],
        text.as_bytes(),
    ));
    let ended = run(tmp.path(), ["head", "x"]);
    done(&ended);
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.chars().count() <= 100 && line.contains('…')), "{}", ended.out);
    assert!(lines[0].trim_start().starts_with("0  ") && lines[0].ends_with("4999"), "{}", ended.out);
    assert!(lines[2].starts_with("5000  ") && lines[2].ends_with("9999"), "{}", ended.out);
}

#[test]
fn arrays_of_other_shapes_stand_below_each_other() {
    let tmp = tempdir().unwrap();
    let cube = Array::from_shape_fn((2, 2, 2), |(i, j, k)| (i * 4 + j * 2 + k) as i16);
    let writer = Builder::new(WriteOptions::new().sync(false))
        .array("cube", DType::Int16, &[2, 2, 2])
        .array("one", DType::Float32, &[])
        .array("a", DType::Bool, &[2])
        .array("z", DType::Complex64, &[2])
        .array("none", DType::Float64, &[3, 0])
        .create(tmp.path().join("x"))
        .unwrap();
    writer.write("cube", &cube.view()).unwrap();
    writer.write("one", &arr0(0.1f32).view()).unwrap();
    writer.write("a", &arr1(&[true, false]).view()).unwrap();
    writer.write("z", &arr1(&[Complex::new(1f32, -2.5), Complex::new(0.0, 1e-9)]).view()).unwrap();
    writer.seal().unwrap();
    let ended = run(tmp.path(), ["head", "x"]);
    done(&ended);
    let expected = "\
cube: int16 (2, 2, 2)
0,0  0,1  1,0  1,1
  0    1    2    3
  4    5    6    7

one: float32 ()
one
0.1

2 arrays (2,)
    a           z
 true    (1-2.5j)
false  (0+1e-09j)

none: float64 (3, 0)
no columns
";
    assert_eq!(ended.out, expected);
}

#[test]
fn inputs_that_can_not_be_are_refused() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::create_dir(at.join("folder")).unwrap();
    fs::write(at.join("empty.csv"), "").unwrap();
    fs::write(at.join("junk.csv"), "a,b\n1,2\n3,x\n").unwrap();
    fs::write(at.join("cut.npy"), b"\x93NUMPY\x01\x00\x76\x00{'descr'").unwrap();
    let before = files(at);
    let pack = |input: &str| run(at, ["pack", input, "-o", "x", "--dtype", "f8"]);
    refused(&pack("folder"), "folder: expected a file or a pipe, found a folder");
    refused(&pack("/dev/zero"), "/dev/zero: expected a file or a pipe, found a device");
    refused(&pack("none.csv"), "none.csv: could not open: no such file or directory");
    for (input, mention) in [("empty.csv", "empty.csv: "), ("junk.csv", "junk.csv:3: field 2 ")] {
        let ended = pack(input);
        assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{ended:?}");
        assert!(ended.err.contains(mention) && ended.out.is_empty(), "{ended:?}");
    }
    let ended = run(at, ["pack", "cut.npy", "-o", "x"]);
    assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{ended:?}");
    let ended = run_piped(at, ["pack", "-", "-o", "x"], b"");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.starts_with("arrshard: standard input: "), "{ended:?}");
    let ended = run(at, ["pack", "junk.csv", "-o", "no/such/folder/x"]);
    assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{ended:?}");
    for command in ["info", "head", "verify"] {
        for (dataset, mention) in [
            ("none", "none: "),
            ("folder", "folder: expected a dataset, found no arrshard.json in it"),
            ("junk.csv", "junk.csv: "),
        ] {
            let ended = run(at, [command, dataset]);
            assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{ended:?}");
            assert!(ended.err.contains(mention), "{ended:?}");
        }
    }
    assert_eq!(files(at), before);
    assert_eq!(names(at), ["cut.npy", "empty.csv", "folder", "junk.csv"]);
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempdir().unwrap();
    let file = tmp.path().join("a.csv");
    fs::write(&file, "1,2\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read(&file).is_ok() {
        return; // The superuser reads everything.
    }
    refused(&run(tmp.path(), ["pack", "a.csv", "-o", "x"]), "a.csv: could not open: permission denied");
    assert_eq!(names(tmp.path()), ["a.csv"]);
}

#[test]
fn an_output_is_replaced_only_by_force() {
    let tmp = packed();
    let at = tmp.path();
    let before = files(at);
    let again =
        ["pack", &demo(), "-q", "--no-sync", "--max-rows", "3", "-o", "e.arrshard"].map(str::to_owned);
    refused(&run(at, &again), "e.arrshard: already exists; pass --force to replace it");
    // Refused before any work: also when the input is not there.
    let ended = run(at, ["pack", "none.csv", "-o", "e.arrshard"]);
    refused(&ended, "e.arrshard: already exists; pass --force to replace it");
    fs::write(at.join("bad.csv"), "1,2\nx\n").unwrap();
    let ended = run(at, ["pack", "bad.csv", "--dtype", "f8", "--force", "-o", "e.arrshard"]);
    assert_eq!(ended.code, Some(2));
    fs::remove_file(at.join("bad.csv")).unwrap();
    assert_eq!(files(at), before, "a failure leaves the old dataset");
    done(&run(at, again.iter().map(String::as_str).chain(["--force"])));
    assert_eq!(run(at, ["head", "e.arrshard", "-n", "9"]).out.lines().count(), 4);
    assert_eq!(names(at), ["e.arrshard"]);
    fs::create_dir(at.join("mine")).unwrap();
    fs::write(at.join("mine/letter"), "dear").unwrap();
    let ended = run(at, ["pack", &demo(), "--force", "-o", "mine"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(fs::read(at.join("mine/letter")).unwrap(), b"dear");
}

#[test]
fn damage_is_an_answer() {
    let tmp = packed();
    let at = tmp.path();
    let ended = run(at, ["verify", "e.arrshard"]);
    done(&ended);
    assert_eq!(ended.out, "e.arrshard: whole; 1 shard, 6.20 KiB\n");
    let shard = at.join("e.arrshard/data/00000.npy");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[5000] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let ended = run(at, ["verify", "e.arrshard"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""));
    assert!(
        ended.out.starts_with(
            "data: rows 0..61 are damaged: e.arrshard/data/00000.npy: byte 4096: expected checksum "
        ),
        "{}",
        ended.out
    );
    let ended = run(at, ["verify", "e.arrshard", "--json"]);
    assert_eq!(ended.code, Some(1));
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["whole"], false);
    assert_eq!(json["damage"][0]["array"], "data");
    assert_eq!(json["damage"][0]["rows"], serde_json::json!([0, 61]));
}

#[test]
fn any_number_of_jobs_gives_the_same_bytes() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let mut numbers = String::new();
    let mut mixed = String::from("id,name,x\n");
    for i in 0..40_000u64 {
        let x = (i * 2_654_435_761 % 1_000_003) as f64 / 977.0;
        numbers.push_str(&format!("{x}\t{i}\t{}\n", -x * 1e-9));
        mixed.push_str(&format!("{i},\"n\"\"{}\",{x}\n", i * 7919 % 1000));
    }
    fs::write(at.join("numbers.tsv"), &numbers).unwrap();
    fs::write(at.join("mixed.csv"), &mixed).unwrap();
    for (input, text) in [("numbers.tsv", &numbers), ("mixed.csv", &mixed)] {
        let mut first = None;
        for jobs in ["1", "2", "8"] {
            let args = ["-q", "--no-sync", "--shard-size", "64KiB", "-o", "x", "-j", jobs];
            done(&run(at, ["pack", input].into_iter().chain(args)));
            let from = if input.ends_with("tsv") { "tsv" } else { "csv" };
            let found = files(&at.join("x"));
            assert!(found.len() > 10, "{}", found.len());
            fs::remove_dir_all(at.join("x")).unwrap();
            done(&run_piped(at, ["pack", "-", "--from", from].into_iter().chain(args), text.as_bytes()));
            assert!(files(&at.join("x")) == found, "{input} through a pipe, -j {jobs}");
            fs::remove_dir_all(at.join("x")).unwrap();
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "{input} -j {jobs}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let text: String = (0..200_000).map(|i| format!("{i}\n")).collect();
    done(&run_piped(at, ["pack", "-q", "--no-sync", "-", "-o", "x"], text.as_bytes()));
    for args in [&["head", "x", "-n", "200000"][..], &["unpack", "x", "--to", "csv", "-o", "-"]] {
        let mut child =
            arrshard(at).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{args:?}");
    }
    if Path::new("/dev/full").exists() {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ended: Ended = arrshard(at).args(["info", "x"]).stdout(full).output().unwrap().into();
        refused(&ended, "standard output: could not write: no space left on device");
    }
}

/// Interrupted while its input is silent: ends soon, and leaves nothing.
#[cfg(unix)]
#[test]
fn an_interrupt_cleans_up() {
    let tmp = tempdir().unwrap();
    let mut child = arrshard(tmp.path())
        .args(["pack", "-", "--from", "tsv", "--dtype", "f8", "-o", "x"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all("1\t2\n".repeat(1_000_000).as_bytes()).unwrap();
    let start = Instant::now();
    while names(tmp.path()).is_empty() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(names(tmp.path()), [".x.building"]);
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!((ended.code, ended.err.as_str()), (Some(130), ""));
    assert!(names(tmp.path()).is_empty());
    drop(stdin);
}

#[test]
fn what_goes_in_comes_out() {
    let tmp = packed();
    let at = tmp.path();
    let csv = run(at, ["unpack", "e.arrshard", "-o", "-", "--to", "csv", "--header", "--rows", ":2"]);
    done(&csv);
    let expected = [
        "YEAR,JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC",
        "1950.0,23.11,24.2,25.37,23.86,23.03,21.57,20.63,20.15,19.67,20.03,20.02,21.8",
        "1951.0,24.19,25.28,25.6,25.37,24.79,24.69,23.86,22.32,21.44,21.77,22.33,22.89",
    ];
    assert_eq!(csv.out.lines().collect::<Vec<_>>(), expected);
    let tsv = run(at, ["unpack", "e.arrshard", "-o", "-", "--to", "tsv", "--rows", "60:", "--fmt", "%.1f"]);
    done(&tsv);
    assert!(tsv.out.starts_with("2010.0\t") && tsv.out.lines().count() == 1, "{tsv:?}");
    let shard = fs::read(at.join("e.arrshard/data/00000.npy")).unwrap();
    for out in ["e.npy", "e.npz", "e.csv"] {
        done(&run(
            at,
            ["unpack", "e.arrshard", "--header", "-o", out]
                .iter()
                .filter(|a| **a != "--header" || out == "e.csv"),
        ));
        done(&run(at, ["pack", out, "-q", "-o", "again"]));
        assert!(fs::read(at.join("again/data/00000.npy")).unwrap() == shard, "{out}");
        fs::remove_dir_all(at.join("again")).unwrap();
    }
    refused(
        &run(at, ["unpack", "e.arrshard", "-o", "x.npy", "--rows", "5:62"]),
        "e.arrshard: expected --rows within 0:61, found \"5:62\"",
    );
    let ended = run(at, ["unpack", "e.arrshard", "-o", "e.npy"]);
    assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{ended:?}");
    assert_eq!(names(at), ["e.arrshard", "e.csv", "e.npy", "e.npz"]);
}

#[test]
fn options_reach_the_library() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let info = |args: &[&str], text: &str| -> Value {
        let fixed = ["pack", "-q", "--no-sync", "--force", "-", "-o", "x"];
        done(&run_piped(at, fixed.iter().chain(args), text.as_bytes()));
        serde_json::from_str(&run(at, ["info", "x", "--json"]).out).unwrap()
    };
    let shape = |args: &[&str], text: &str| info(args, text)["arrays"][0]["shape"].clone();
    for (name, c) in [
        ("tab", "\t"),
        ("\\t", "\t"),
        ("comma", ","),
        ("semicolon", ";"),
        ("pipe", "|"),
        ("space", " "),
        (":", ":"),
    ] {
        let text = format!("1{c}2{c}3\n4{c}5{c}6\n");
        assert_eq!(shape(&["--delimiter", name], &text), serde_json::json!([2, 3]), "{name}");
    }
    assert_eq!(shape(&["--delimiter", "blanks"], " 1   2\t3\n"), serde_json::json!([1, 3]));
    assert_eq!(shape(&["--from", "csv", "--skip-lines", "2"], "x\ny\n1,2\n"), serde_json::json!([1, 2]));
    assert_eq!(shape(&["--from", "csv", "--max-rows", "1"], "1,2\n3,4\n"), serde_json::json!([1, 2]));
    assert_eq!(shape(&["--from", "csv", "--comment", "%"], "1,2\n%\n4,5\n"), serde_json::json!([2, 2]));
    assert_eq!(shape(&["--line-end", "any", "--from", "csv"], "1,2\r3,4\r"), serde_json::json!([2, 2]));
    assert_eq!(info(&["--from", "csv", "--layout", "columns"], "1,2\n")["arrays"][1]["name"], "f1");
    assert_eq!(info(&["--dtype", "bf16", "--name", "w/x"], "1 2\n")["arrays"][0]["dtype"], "bfloat16");
    assert_eq!(info(&["--dtype", "f4", "--name", "w/x"], "1 2\n")["arrays"][0]["name"], "w/x");
    assert_eq!(
        info(&["--dtype", "f8", "--missing", "-1", "--from", "csv"], "1,\n")["arrays"][0]["dtype"],
        "float64"
    );
    assert_eq!(run(at, ["head", "x"]).out, "  0     1\n1.0  -1.0\n");
}

#[test]
fn compressed_inputs_are_what_is_in_them() {
    let tmp = tempfile::tempdir().unwrap();
    let text: String = (0..30_000).map(|i| format!("{i},{}.5\n", i * 7)).collect();
    fs::write(tmp.path().join("in.csv"), &text).unwrap();
    done(&run(tmp.path(), ["pack", "-q", "in.csv", "-o", "plain"]));
    // Bytes in the order of their names.
    let bytes_of = |folder: &str| command::files(&tmp.path().join(folder)).into_values().collect::<Vec<_>>();
    let expected = bytes_of("plain");
    let packed = gz(text.as_bytes());
    // The name does not matter to what it is, but names the format of what is in it.
    for name in ["in.csv.gz", "in.csv", "in"] {
        fs::write(tmp.path().join(name), &packed).unwrap();
        done(&run(tmp.path(), ["pack", "-q", name, "--from", "csv", "-o", "out", "--force"]));
        assert!(bytes_of("out") == expected);
    }
    done(&run_piped(tmp.path(), ["pack", "-q", "-", "--from", "csv", "-o", "out", "--force"], &packed));
    assert!(bytes_of("out") == expected);
    let npy = fs::read(tmp.path().join("plain/data/00000.npy")).unwrap();
    fs::write(tmp.path().join("x.npy.gz"), gz(&npy)).unwrap();
    done(&run(tmp.path(), ["pack", "-q", "x.npy.gz", "-o", "out", "--force"]));
    assert!(bytes_of("out/data") == bytes_of("plain/data"));
    // A text cut off is no shorter text.
    fs::write(tmp.path().join("cut.csv.gz"), &packed[..packed.len() / 2]).unwrap();
    let ended = run(tmp.path(), ["pack", "-q", "cut.csv.gz", "-o", "cut"]);
    refused(
        &ended,
        "cut.csv.gz: expected whole gzip data, found its end too early; the file is damaged or was cut off",
    );
    assert!(!tmp.path().join("cut").exists());
}

#[test]
fn columns_are_chosen() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::write(at.join("in.csv"), b"id,name,x,y\n1,fra\xe7ois,1.5,2\n2,b,2.5,oops\n").unwrap();
    let out = |columns: &str, more: &[&str]| {
        let args = ["pack", "in.csv", "-q", "-o", "x", "--force", "--columns", columns];
        done(&run(at, [&args, more].concat()));
        run(at, ["unpack", "x", "-o", "-", "--to", "csv", "--header"]).out
    };
    assert_eq!(out("x,id", &[]), "x,id\n1.5,1.0\n2.5,2.0\n");
    assert_eq!(out("2", &["--dtype", "f4"]), "x\n1.5\n2.5\n");
    assert_eq!(out("2:,id", &[]), "x,y,id\n1.5,2,1\n2.5,oops,2\n");
    assert_eq!(out("id", &["--layout", "columns"]), "id\n1\n2\n");
    let fails = |columns: &str, more: &[&str], says: &str| {
        let args = ["pack", "in.csv", "-q", "-o", "no", "--columns", columns];
        let ended = run(at, [&args, more].concat());
        assert_eq!(ended.code, Some(2), "{columns}");
        assert!(ended.err.contains(says), "{}", ended.err);
    };
    fails(
        "z",
        &[],
        "in.csv: expected one of 4 columns, found \"z\"; by name, or by number from 0 to 3: id, name, x, y",
    );
    for columns in ["4", "1:1", "2:9", "-1", "", "id,"] {
        fails(columns, &[], "expected one of 4 columns");
    }
    // What is wrong in a column that is wanted is told by its place in the file.
    fails("y", &["--dtype", "f8"], "in.csv:3: field 4");
    fails("name", &[], "in.csv:2: field 2");
    // More rows of the same choice.
    done(&run(at, ["pack", "in.csv", "-q", "-o", "x", "--force", "--columns", "x,id"]));
    done(&run(at, ["pack", "in.csv", "-q", "-o", "x", "--append", "--columns", "x,id"]));
    assert!(run(at, ["info", "x"]).out.contains("(4, 2)"));
}

#[test]
fn text_of_other_encodings_is_read() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    let text = "größe,name\n1.5,é\n2,𝄞\n";
    let utf16 = |mark: bool| -> Vec<u8> {
        mark.then_some(0xfeff).into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let latin: Vec<u8> =
        text.replace('𝄞', "ÿ").chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let expected = "größe,name\n1.5,é\n2.0,𝄞\n";
    for (bytes, name, expected) in [
        (utf16(true), None, expected.to_owned()),
        (utf16(false), Some("utf-16le"), expected.to_owned()),
        (utf16(false), Some("utf-16"), expected.to_owned()),
        (
            utf16(true).chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect(),
            Some("utf-16"),
            expected.to_owned(),
        ),
        (latin, Some("latin-1"), expected.replace('𝄞', "ÿ")),
        (text.as_bytes().to_vec(), Some("utf-8"), expected.to_owned()),
    ] {
        fs::write(at.join("in.csv"), &bytes).unwrap();
        let args = ["pack", "in.csv", "-o", "x", "--force"].map(str::to_owned).into_iter();
        let named = name.into_iter().flat_map(|name: &str| ["--encoding".to_owned(), name.to_owned()]);
        let ended = run(at, args.chain(named));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.err.contains("otherwise by --encoding"), name != Some("utf-8"), "{}", ended.err);
        assert_eq!(run(at, ["unpack", "x", "-o", "-", "--to", "csv", "--header"]).out, expected);
    }
    fs::write(at.join("in.csv"), utf16(false)).unwrap();
    let ended = run(at, ["pack", "in.csv", "-o", "y"]);
    assert!(ended.code == Some(2) && ended.err.contains("--encoding utf-16le"), "{ended:?}");
    let ended = run(at, ["pack", "in.csv", "-o", "y", "--encoding", "morse"]);
    assert!(ended.code == Some(2) && ended.err.contains("expected an encoding"), "{ended:?}");
    fs::write(at.join("in.csv"), &utf16(true)[..11]).unwrap();
    let ended = run(at, ["pack", "in.csv", "-o", "y"]);
    assert!(ended.code == Some(2) && ended.err.contains("in.csv: byte 10: expected UTF-16LE"), "{ended:?}");
}

#[test]
fn words_for_missing_values_are_named() {
    let tmp = tempdir().unwrap();
    let at = tmp.path();
    fs::write(at.join("in.csv"), "a,b,c\n1,NA,x\n-999,2.5,NA\n3, null ,y\n").unwrap();
    let csv = |more: &[&str]| {
        let ended = run(at, [&["pack", "in.csv", "-q", "-o", "x", "--force"], more].concat());
        done(&ended);
        run(at, ["unpack", "x", "-o", "-", "--to", "csv"]).out
    };
    // Strings if nobody says more, and in a column of strings in any case.
    assert_eq!(csv(&[]), "1,NA,x\n-999,2.5,NA\n3,\" null \",y\n");
    assert_eq!(csv(&["--na", "NA,null", "--missing", "nan"]), "1,nan,x\n-999,2.5,NA\n3,nan,y\n");
    assert_eq!(csv(&["--na", "NA,null,-999", "--missing", "nan"]), "1.0,nan,x\nnan,2.5,NA\n3.0,nan,y\n");
    let numbers = ["--columns", "a,b", "--dtype", "f8", "--na", "NA,null,-999"];
    assert_eq!(csv(&[&numbers[..], &["--missing", "0"]].concat()), "1.0,0.0\n0.0,2.5\n3.0,0.0\n");
    let ended = run(at, [&["pack", "in.csv", "-q", "-o", "y"], &numbers[..]].concat());
    refused(
        &ended,
        "in.csv:2: field 2 (byte 8): expected float64, found a missing value; --missing nan or --missing VALUE says what missing values become",
    );
    let ended = run(at, ["pack", "in.csv", "-q", "-o", "y", "--columns", "b", "--dtype", "f8"]);
    assert!(ended.err.contains("--na names it"), "{}", ended.err);
}
