//! `.npy` and `.npz` against NumPy: what it writes, what it reads and refuses, kernels against plain twins.

#[path = "../common/mod.rs"]
mod common;
mod convert;
mod header;
mod join;
mod npz;

use arrshard::error::{Error, ErrorKind};

/// A file under tests/data/npy, made by tools/reference/make_npy_cases.py.
fn data(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/npy/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn rows(name: &str) -> Vec<serde_json::Value> {
    serde_json::from_slice(&data(name)).unwrap()
}

/// A `.npy` file from the text of its header.
fn npy(version: u8, text: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([version, 0]);
    match version {
        1 => out.extend((text.len() as u16).to_le_bytes()),
        _ => out.extend((text.len() as u32).to_le_bytes()),
    }
    out.extend(text);
    out.extend(data);
    out
}

#[track_caller]
fn assert_error(error: &Error, kind: ErrorKind, mentions: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for word in mentions {
        assert!(text.contains(word), "{word:?} not in {text:?}");
    }
    assert!(!text.contains('\n') && !text.ends_with('.'), "{text:?}");
}
