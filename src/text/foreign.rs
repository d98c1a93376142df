//! Inputs that are no text table at all, told by their first bytes.

use crate::error::{Error, ErrorKind, Result, quoted};

/// What an input is instead of a text table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Foreign {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Zip,
    Npy,
    Hdf5,
    Parquet,
    Arrow,
    Matlab,
    Pickle,
    Sqlite,
    Excel,
    Pdf,
    Png,
    Jpeg,
    Elf,
    Html,
    Xml,
    LfsPointer,
    Utf16,
    Utf32,
}

use Foreign::*;

/// First bytes, what they mean, what a person calls it.
const MAGIC: [(&[u8], Foreign, &str); 25] = [
    (b"\x1f\x8b", Gzip, "gzip data"),
    (b"\x28\xb5\x2f\xfd", Zstd, "Zstandard data"),
    (b"BZh", Bzip2, "bzip2 data"),
    (b"\xfd7zXZ\0", Xz, "xz data"),
    (b"PK\x03\x04", Zip, "a zip archive (npz and xlsx files are such)"),
    (b"PK\x05\x06", Zip, "an empty zip archive"),
    (b"\x93NUMPY", Npy, "a npy file"),
    (b"\x89HDF\r\n\x1a\n", Hdf5, "an HDF5 file"),
    (b"PAR1", Parquet, "a Parquet file"),
    (b"ARROW1", Arrow, "an Arrow file"),
    (b"FEA1", Arrow, "a Feather file"),
    (b"MATLAB 5.0 MAT-file", Matlab, "a MATLAB file"),
    (b"SQLite format 3\0", Sqlite, "an SQLite database"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Excel, "an old Office document"),
    (b"%PDF-", Pdf, "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", Png, "a PNG image"),
    (b"\xff\xd8\xff", Jpeg, "a JPEG image"),
    (b"\x7fELF", Elf, "a program"),
    (b"version https://git-lfs", LfsPointer, "a Git LFS pointer"),
    (b"\xff\xfe\0\0", Utf32, "UTF-32 text"),
    (b"\0\0\xfe\xff", Utf32, "UTF-32 text"),
    (b"\xff\xfe", Utf16, "UTF-16 text"),
    (b"\xfe\xff", Utf16, "UTF-16 text"),
    (b"\x80\x04\x95", Pickle, "a Python pickle"),
    (b"\x80\x05\x95", Pickle, "a Python pickle"),
];

/// Bytes of the byte-order mark of UTF-8 that a text may start with.
pub(super) fn mark_len(text: &[u8]) -> usize {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if text.starts_with(MARK) { MARK.len() } else { 0 }
}

/// What `text`, the first bytes of an input, is instead of a text table, and what a person calls it.
pub fn foreign(text: &[u8]) -> Option<(Foreign, &'static str)> {
    if let Some(&(_, kind, name)) = MAGIC.iter().find(|(magic, ..)| text.starts_with(magic)) {
        return Some((kind, name));
    }
    // a skippable Zstandard frame, as parallel compressors put first
    if matches!(text, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
        return Some((Zstd, "Zstandard data"));
    }
    let text = text[mark_len(text)..].trim_ascii_start();
    let starts =
        |tag: &str| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    if starts("<!DOCTYPE") || starts("<html") || starts("<head") {
        return Some((Html, "an HTML page"));
    }
    starts("<?xml").then_some((Xml, "an XML document"))
}

/// Refuses an input that is no text table.
///
/// # Errors
/// `Unsupported`, saying what was found and what to do about it.
pub(super) fn refuse_foreign(text: &[u8]) -> Result<()> {
    let Some((kind, name)) = foreign(text) else { return Ok(()) };
    let start = text[mark_len(text)..].trim_ascii_start();
    let error = match kind {
        Html | Xml | LfsPointer => {
            let line = text[..text.len() - start.len()].iter().filter(|&&byte| byte == b'\n').count();
            let seen = start.split(|byte| byte.is_ascii_control()).next().unwrap_or_default();
            Error::new(ErrorKind::Unsupported, format!("expected text, found {name}: {}", quoted(seen)))
                .line(line as u64 + 1)
        }
        _ => Error::new(ErrorKind::Unsupported, format!("expected text, found {name}")),
    };
    Err(match kind {
        Html => error.hint("the download gave a web page in place of the file"),
        LfsPointer => error.hint("git lfs pull fetches the file itself"),
        Utf16 => error.hint("--encoding utf-16 reads it"),
        Utf32 => error.hint("iconv -f UTF-32 -t UTF-8 converts it"),
        Gzip | Zstd | Bzip2 | Xz => error.hint("compressed twice, or damaged"),
        _ => error,
    })
}

/// Refuses bytes that are no text, or UTF-16 without its mark. Few NUL bytes among text are left
/// to whoever reads the field they are in, who can say where.
///
/// # Errors
/// `Unsupported`.
pub(super) fn refuse_binary(sample: &[u8]) -> Result<()> {
    let nuls = memchr::memchr_iter(0, sample).count();
    if nuls == 0 {
        return Ok(());
    }
    let even = sample.iter().step_by(2).filter(|&&byte| byte == 0).count();
    let lopsided = even == 0 || even == nuls;
    if lopsided && nuls >= sample.len() / 4 && nuls > 1 {
        return Err(Error::new(ErrorKind::Unsupported, "expected text, found UTF-16 text without a mark")
            .hint("--encoding utf-16le or utf-16be reads it"));
    }
    let control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if sample.iter().filter(control).count() > sample.len() / 10 && nuls > 4 {
        let first = memchr::memchr(0, sample).unwrap_or_default();
        return Err(Error::new(ErrorKind::Unsupported, "expected text, found binary data with NUL bytes")
            .offset(first as u64));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_is_instead() {
        let said = |text: &[u8]| refuse_foreign(text).map_or_else(|e| e.to_string(), |()| String::new());
        assert_eq!(
            said(b"<!DOCTYPE html>\n<html><body>404</body></html>\n"),
            "line 1: expected text, found an HTML page: \"<!DOCTYPE html>\"; \
             the download gave a web page in place of the file"
        );
        assert!(said(b"\n\n<HTML lang=en>").starts_with("line 3: expected text, found an HTML page"));
        assert!(said(b"version https://git-lfs.github.com/spec/v1\noid").contains("git lfs pull"));
        assert!(said(b"\xff\xfe1\0,\0").contains("UTF-16"));
        assert!(said(b"\x1f\x8b\x08").contains("gzip"));
        assert_eq!(foreign(b"\x50\x2a\x4d\x18\0").map(|f| f.0), Some(Zstd));
        assert_eq!(foreign(b"\x89HDF\r\n\x1a\n").map(|f| f.0), Some(Hdf5));
        for text in [&b""[..], b"1,2\n", b"<1,2\n", b"\xef\xbb\xbf1", b"Bz,1", b"PK,1\n"] {
            assert_eq!(foreign(text), None);
        }
    }

    #[test]
    fn a_stray_nul_is_not_binary() {
        refuse_binary(b"1,2\n1\0xyz,3\n").unwrap();
        assert!(refuse_binary(b"1\0,\x002\0\n\0").unwrap_err().to_string().contains("UTF-16"));
        assert!(refuse_binary(&[1, 0, 0, 200, 0, 0, 0, 7, 9, 0]).unwrap_err().to_string().contains("binary"));
    }
}
