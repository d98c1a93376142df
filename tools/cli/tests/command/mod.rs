//! Runs the binary, and looks at what it leaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("all output is UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The binary, in the folder `at`.
pub(crate) fn arrshard(at: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arrshard"));
    command.current_dir(at).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(at: &Path, args: impl IntoIterator<Item = S>) -> Ended {
    arrshard(at).args(args).output().unwrap().into()
}

/// Runs it with `input` coming through a pipe.
#[allow(dead_code, reason = "each test binary takes what it needs")]
pub(crate) fn run_piped<S: AsRef<std::ffi::OsStr>>(
    at: &Path,
    args: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Ended {
    let mut child = arrshard(at)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // It may end before it has read everything.
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap().into()
    })
}

/// Names in a folder, sorted.
#[allow(dead_code, reason = "each test binary takes what it needs")]
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every file under a folder, with its bytes.
#[allow(dead_code, reason = "each test binary takes what it needs")]
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The root of the project.
#[allow(dead_code, reason = "not every test binary needs it")]
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// These bytes as a gzip file.
#[allow(dead_code, reason = "each test binary takes what it needs")]
pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
