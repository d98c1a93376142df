use crate::{assert_error, data, npy};
use arrshard::error::ErrorKind::{self, Corrupt, Exists, Incomplete, InvalidArgument, Io, Unsupported};
use arrshard::npy::{Descr, NpzReader, NpzWriter};
use arrshard::{DType, Result};
use proptest::prelude::*;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

type Archive = NpzReader<Cursor<Vec<u8>>>;

fn open(bytes: Vec<u8>) -> Result<Archive> {
    NpzReader::open(Cursor::new(bytes), false)
}

fn refused(bytes: Vec<u8>) -> arrshard::Error {
    open(bytes).err().expect("an error")
}

/// The data of each member, read in pieces of `step`.
fn read_all(archive: &mut Archive, step: usize) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for index in 0..archive.members().len() {
        let mut member = archive.data(index)?;
        let mut bytes = Vec::new();
        let mut piece = vec![0; step];
        loop {
            match member.read(&mut piece)? {
                0 => break,
                n => bytes.extend_from_slice(&piece[..n]),
            }
        }
        all.push(bytes);
    }
    Ok(all)
}

fn names(archive: &Archive) -> Vec<&str> {
    archive.members().iter().map(|m| m.name.as_str()).collect()
}

#[test]
fn savez_keeps_the_order_and_can_be_read_in_place() {
    let bytes = data("savez.npz");
    let mut archive = open(bytes.clone()).unwrap();
    assert_eq!(names(&archive), ["zeta", "alpha"]);
    assert_eq!(archive.members()[0].header.shape, [1, 2]);
    assert_eq!(archive.members()[1].header.descr, Descr::Plain { dtype: DType::Int64, big_endian: false });
    let expected = [
        [1.0, 2.0].iter().flat_map(|f: &f64| f.to_le_bytes()).collect::<Vec<_>>(),
        [7, 8].iter().flat_map(|i: &i64| i.to_le_bytes()).collect(),
    ];
    for step in [1, 7, 16, 100] {
        assert_eq!(read_all(&mut archive, step).unwrap(), expected);
    }
    for (member, expected) in archive.members().iter().zip(&expected) {
        let at = member.stored_at.unwrap() as usize;
        let found = &bytes[at..at + member.header.data_len as usize];
        assert_eq!(found, expected);
        let mut crc = crc32fast::Hasher::new();
        crc.update(found);
        member.check_crc(&crc).unwrap();
        crc.update(b"x");
        assert_error(&member.check_crc(&crc).unwrap_err(), Corrupt, &[&member.name, "CRC-32"]);
    }
}

#[test]
fn compressed_members_are_streamed() {
    let mut archive = open(data("compressed.npz")).unwrap();
    assert_eq!(names(&archive), ["x", "y"]);
    assert!(archive.members().iter().all(|m| m.stored_at.is_none()));
    assert!(archive.members()[1].header.fortran_order);
    let expected: Vec<u8> = (0..1000i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(read_all(&mut archive, 333).unwrap()[0], expected);
    let mut by_trait = Vec::new();
    archive.data(0).unwrap().read_to_end(&mut by_trait).unwrap();
    assert_eq!(by_trait, expected);
}

#[test]
fn bad_archives_are_refused() {
    let cases: [(&str, ErrorKind, &[&str]); 7] = [
        ("duplicate.npz", Corrupt, &["distinct", "twice"]),
        ("same-array.npz", Corrupt, &["\"a\" twice"]),
        ("not-npy.npz", Corrupt, &["member \"notes.txt\"", "hello"]),
        ("bzip2.npz", Unsupported, &["member \"a.npy\"", "bzip2"]),
        ("objects.npz", Unsupported, &["member \"o.npy\"", "pickled"]),
        ("short-member.npz", Corrupt, &["member \"b.npy\"", "8", "7"]),
        ("fortran.npy", Corrupt, &["zip archive", "\\x93NUM"]),
    ];
    for (name, kind, mentions) in cases {
        assert_error(&refused(data(name)), kind, mentions);
    }
    assert_error(&refused(vec![]), Corrupt, &["empty"]);
    assert_error(&open(data("savez.npz")).unwrap().data(2).err().unwrap(), InvalidArgument, &["2"]);
}

#[test]
fn empty_archives_and_folders_are_fine() {
    assert_eq!(open(data("empty.npz")).unwrap().members().len(), 0);
    assert_eq!(names(&open(data("folder.npz")).unwrap()), ["sub/a"]);
}

#[test]
fn a_member_may_have_a_tail_as_in_numpy_but_not_in_place() {
    let mut archive = open(data("longer-member.npz")).unwrap();
    assert_eq!(archive.members()[0].stored_at, None);
    assert_eq!(read_all(&mut archive, 8).unwrap(), [9.0f64.to_le_bytes()]);
}

#[test]
fn an_archive_cut_anywhere_is_refused() {
    for name in ["savez.npz", "compressed.npz"] {
        let whole = data(name);
        for len in 4..whole.len() {
            let error = refused(whole[..len].to_vec());
            assert_error(&error, Corrupt, &["complete zip archive", "truncated"]);
            assert!(!error.to_string().contains("::"), "a name of a library's own: {error}");
        }
    }
}

#[test]
fn an_encrypted_member_is_refused() {
    let mut bytes = data("compressed.npz");
    let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    bytes[6] |= 1;
    bytes[directory + 8] |= 1;
    assert_error(&refused(bytes), Unsupported, &["member \"x.npy\"", "encrypted"]);
}

/// Changes one byte of data, or a field of the directory, of the first member.
fn patched(name: &str, change: impl Fn(&mut Vec<u8>, usize)) -> Vec<u8> {
    let mut bytes = data(name);
    let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    change(&mut bytes, directory);
    bytes
}

#[test]
fn damage_comes_out_by_the_last_byte() {
    let at = open(data("savez.npz")).unwrap().members()[0].stored_at.unwrap() as usize;
    let bytes = patched("savez.npz", |bytes, _| bytes[at] ^= 1);
    let mut archive = open(bytes).unwrap();
    assert_error(&read_all(&mut archive, 16).unwrap_err(), Corrupt, &["member \"zeta\"", "CRC-32"]);
    // In the deflate stream, after the part that holds the header.
    let bytes = patched("compressed.npz", |bytes, directory| bytes[directory / 2] ^= 0x55);
    if let Ok(mut archive) = open(bytes) {
        assert_error(&read_all(&mut archive, 4096).unwrap_err(), Corrupt, &["member"]);
    }
}

#[test]
fn sizes_that_lie_are_errors() {
    let size = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    for (name, change) in [("compressed.npz", 1i64), ("compressed.npz", -1), ("compressed.npz", 1 << 30)] {
        let bytes = patched(name, |bytes, directory| {
            let at = directory + 24;
            let lie = (i64::from(size(bytes, at)) + change) as u32;
            bytes[at..at + 4].copy_from_slice(&lie.to_le_bytes());
        });
        let found = open(bytes).and_then(|mut archive| read_all(&mut archive, 1 << 16));
        assert_error(&found.unwrap_err(), Corrupt, &["member"]);
    }
    let bytes = patched("savez.npz", |bytes, directory| bytes[directory + 24] += 1);
    assert_error(&refused(bytes), Corrupt, &["stored member"]);
}

fn write_sample() -> Vec<u8> {
    let mut npz = NpzWriter::new(Cursor::new(Vec::new()));
    npz.member("data", DType::Float32, &[3, 4], |out| {
        (0..12).try_for_each(|i| out.write(&(i as f32).to_le_bytes()))
    })
    .unwrap();
    npz.member("price/unit", DType::Int64, &[2], |out| {
        out.write(&(-1i64).to_le_bytes())?;
        out.write(&2i64.to_le_bytes())
    })
    .unwrap();
    npz.member("größe", DType::Bool, &[2], |out| out.write(&[1, 0])).unwrap();
    npz.member("scalar", DType::Float64, &[], |out| out.write(&1.5f64.to_le_bytes())).unwrap();
    npz.member("none", DType::UInt16, &[0, 3], |_| Ok(())).unwrap();
    npz.member("half", DType::BFloat16, &[4], |out| out.write(&[0, 0, 0x80, 0x3f, 0, 0x40, 0x40, 0x40]))
        .unwrap();
    npz.finish().unwrap().into_inner()
}

#[test]
fn what_is_written_is_read_back_and_is_what_numpy_was_seen_to_read() {
    let bytes = write_sample();
    assert_eq!(bytes, write_sample());
    let mut archive = NpzReader::open(Cursor::new(bytes.clone()), true).unwrap();
    assert_eq!(names(&archive), ["data", "price/unit", "größe", "scalar", "none", "half"]);
    let all = read_all(&mut archive, 5).unwrap();
    assert_eq!(all[0].len(), 48);
    assert_eq!(all[2], [1, 0]);
    assert!(archive.members().iter().all(|m| m.stored_at.is_some()));

    // ARRSHARD_BLESS=1 writes the file anew; then run make_npy_cases.py --check.
    let path = format!("{}/tests/data/npy/written.npz", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ARRSHARD_BLESS").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(bytes == data("written.npz"), "the writer gives other bytes than those that NumPy has read");
}

#[test]
fn a_member_of_the_wrong_length_ends_the_archive() {
    for len in [7, 9] {
        let mut out = Cursor::new(Vec::new());
        let mut npz = NpzWriter::new(&mut out);
        npz.member("good", DType::UInt8, &[1], |out| out.write(&[1])).unwrap();
        let error = npz.member("bad", DType::UInt8, &[8], |out| out.write(&vec![0; len])).unwrap_err();
        assert_error(&error, InvalidArgument, &["member \"bad\"", "8"]);
        let error = npz.member("more", DType::UInt8, &[], |out| out.write(&[1])).unwrap_err();
        assert_error(&error, Incomplete, &["failed"]);
        assert_error(&npz.finish().err().unwrap(), Incomplete, &["failed"]);
        assert_error(&refused(out.into_inner()), Corrupt, &["truncated"]);
    }
}

#[test]
fn an_archive_that_was_not_finished_is_none() {
    let mut out = Cursor::new(Vec::new());
    let mut npz = NpzWriter::new(&mut out);
    npz.member("good", DType::UInt8, &[1], |out| out.write(&[1])).unwrap();
    drop(npz);
    assert_error(&refused(out.into_inner()), Corrupt, &["truncated"]);
}

#[test]
fn names_and_shapes_are_checked() {
    let mut npz = NpzWriter::new(Cursor::new(Vec::new()));
    npz.member("a", DType::UInt8, &[1], |out| out.write(&[1])).unwrap();
    assert_error(&npz.member("a", DType::UInt8, &[0], |_| Ok(())).unwrap_err(), Exists, &["\"a\""]);
    for shape in [&[u64::MAX, 2][..], &[1; 65]] {
        let mut npz = NpzWriter::new(Cursor::new(Vec::new()));
        assert_error(
            &npz.member("a", DType::UInt8, shape, |_| Ok(())).unwrap_err(),
            InvalidArgument,
            &["member"],
        );
    }
    let mut npz = NpzWriter::new(Cursor::new(Vec::new()));
    let long = "x".repeat(70_000);
    assert!(npz.member(&long, DType::UInt8, &[0], |_| Ok(())).is_err());
}

/// A disk with room for `left` bytes.
struct Full {
    inner: Cursor<Vec<u8>>,
    left: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes.len().min(self.left) {
            0 if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
            n => {
                self.left -= n;
                self.inner.write(&bytes[..n])
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn a_full_disk_is_one_error_at_any_byte() {
    let whole = {
        let mut npz = NpzWriter::new(Cursor::new(Vec::new()));
        npz.member("a", DType::UInt8, &[100], |out| out.write(&[1; 100])).unwrap();
        npz.finish().unwrap().into_inner()
    };
    // The checksum in the local header is written twice.
    for left in 0..whole.len() + 4 {
        let mut disk = Full { inner: Cursor::new(Vec::new()), left };
        let mut npz = NpzWriter::new(&mut disk);
        let written = npz.member("a", DType::UInt8, &[100], |out| out.write(&[1; 100]));
        let error = written.and_then(|()| npz.finish().map(|_| ())).unwrap_err();
        assert_error(&error, Io, &["could not write"]);
    }
}

#[test]
#[ignore = "writes 4 GiB; NumPy has read its result"]
fn a_member_over_4_gib() {
    let path = std::env::var_os("ARRSHARD_BIG_NPZ").expect("ARRSHARD_BIG_NPZ says where to write it");
    let file =
        std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let mut npz = NpzWriter::new(file);
    let chunk = vec![7; 1 << 20];
    npz.member("big", DType::UInt8, &[4097, 1 << 20], |out| (0..4097).try_for_each(|_| out.write(&chunk)))
        .unwrap();
    npz.member("small", DType::UInt8, &[3], |out| out.write(&[1, 2, 3])).unwrap();
    let mut archive = NpzReader::open(npz.finish().unwrap(), false).unwrap();
    assert_eq!(archive.members()[0].header.data_len, 4097 << 20);
    assert!(archive.members()[1].stored_at.unwrap() > 4097 << 20);
    let mut piece = vec![0; 1 << 20];
    let mut member = archive.data(0).unwrap();
    for _ in 0..4097 {
        assert_eq!(member.read(&mut piece).unwrap(), piece.len());
    }
    assert_eq!(member.read(&mut piece).unwrap(), 0);
}

proptest! {
    #[test]
    fn a_damaged_archive_is_no_panic(
        name in proptest::sample::select(vec!["savez.npz", "compressed.npz", "written.npz", "folder.npz"]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = data(name);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(mut archive) = open(bytes) {
            let _ = read_all(&mut archive, 1 << 12);
        }
    }

    /// Members that aren't plain: any bytes, and tiny headers at the edge of the first 12 bytes.
    #[test]
    fn any_member_is_no_panic(content in proptest::collection::vec(any::<u8>(), 0..20), text in 0usize..20, version in 1u8..4) {
        for content in [content.clone(), npy(version, &vec![b'{'; text], &content)] {
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            zip.start_file("a.npy", zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&content).unwrap();
            let _ = open(zip.finish().unwrap().into_inner());
        }
    }
}
