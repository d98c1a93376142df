//! Writing `.npz`, as `np.savez` does: members stored without compression, so that they can be mapped or
//! read in parallel.
//!
//! The archive is written here and not through the zip crate: its writer finishes the archive in its
//! destructor, after errors too, where it may print or (with debug assertions, after a failed write) panic.
//! An archive of stored members of known length is little more than the structures below; their layout is
//! that of PKWARE's APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16 and 4.5.3.

use super::descr::array_bytes;
use super::header::{MAX_DIMS, npy_header};
use super::npz::{in_member, io_error};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crc32fast::Hasher;
use std::collections::HashSet;
use std::io::{Seek, SeekFrom, Write};

/// A field of 32 bits that holds this, or of 16 bits that holds 0xFFFF, refers to a zip64 structure.
const IN_ZIP64: u64 = 0xFFFF_FFFF;
/// 1980-01-01 00:00, the first date that zip knows, so that the bytes don't depend on the day.
const TIME_AND_DATE: u32 = 0x0021_0000;
/// A regular file of Unix that all may read, for `unzip`.
const ATTRIBUTES: u32 = 0o100_644 << 16;
const MADE_BY_UNIX: u16 = 3 << 8;
/// Where a local header holds the checksum.
const CRC_AT: u64 = 14;

/// Writes an archive that `np.load` reads. The same calls give the same bytes: all members carry the date
/// 1980-01-01. An archive that wasn't finished, or in which a member failed, has no directory and is
/// no archive for any reader.
pub struct NpzWriter<W> {
    out: W,
    position: u64,
    written: Vec<Entry>,
    names: HashSet<String>,
    failed: bool,
}

/// What the directory says about a member.
struct Entry {
    file_name: String,
    start: u64,
    len: u64,
    crc: u32,
}

impl Entry {
    fn version_needed(&self) -> u16 {
        if self.len >= IN_ZIP64 || self.start >= IN_ZIP64 { 45 } else { 20 }
    }

    /// Bit 11: the name is UTF-8, else it would be code page 437.
    fn flags(&self) -> u16 {
        if self.file_name.is_ascii() { 0 } else { 1 << 11 }
    }

    fn local_header(&self) -> Vec<u8> {
        let mut out = Bytes::default();
        let large = self.len >= IN_ZIP64;
        out.u32(0x0403_4b50).u16(self.version_needed()).u16(self.flags()).u16(0).u32(TIME_AND_DATE);
        out.u32(self.crc).u32_or_zip64(self.len).u32_or_zip64(self.len);
        out.u16(self.file_name.len() as u16).u16(if large { 20 } else { 0 });
        out.0.extend_from_slice(self.file_name.as_bytes());
        if large {
            out.u16(1).u16(16).u64(self.len).u64(self.len);
        }
        out.0
    }

    fn directory_header(&self) -> Vec<u8> {
        let mut zip64 = Bytes::default();
        if self.len >= IN_ZIP64 {
            zip64.u64(self.len).u64(self.len);
        }
        if self.start >= IN_ZIP64 {
            zip64.u64(self.start);
        }
        let zip64 = zip64.0;
        let version = self.version_needed();
        let mut out = Bytes::default();
        out.u32(0x0201_4b50)
            .u16(MADE_BY_UNIX | version)
            .u16(version)
            .u16(self.flags())
            .u16(0)
            .u32(TIME_AND_DATE);
        out.u32(self.crc).u32_or_zip64(self.len).u32_or_zip64(self.len);
        out.u16(self.file_name.len() as u16).u16(if zip64.is_empty() { 0 } else { 4 + zip64.len() as u16 });
        out.u16(0).u16(0).u16(0).u32(ATTRIBUTES).u32_or_zip64(self.start);
        out.0.extend_from_slice(self.file_name.as_bytes());
        if !zip64.is_empty() {
            out.u16(1).u16(zip64.len() as u16);
            out.0.extend_from_slice(&zip64);
        }
        out.0
    }
}

/// The records after `entries` headers of members that fill `start..end`.
fn end_of_directory(entries: u64, start: u64, end: u64) -> Vec<u8> {
    let mut out = Bytes::default();
    let len = end - start;
    if entries >= 0xFFFF || start >= IN_ZIP64 || len >= IN_ZIP64 {
        out.u32(0x0606_4b50).u64(44).u16(MADE_BY_UNIX | 45).u16(45).u32(0).u32(0);
        out.u64(entries).u64(entries).u64(len).u64(start);
        out.u32(0x0706_4b50).u32(0).u64(end).u32(1);
    }
    let short = entries.min(0xFFFF) as u16;
    out.u32(0x0605_4b50).u16(0).u16(0).u16(short).u16(short).u32_or_zip64(len).u32_or_zip64(start).u16(0);
    out.0
}

impl<W: Write + Seek> NpzWriter<W> {
    /// An archive at the start of `out`, which must be empty. Data is handed on in the pieces in which it
    /// comes, so small ones want a buffer.
    pub fn new(out: W) -> Self {
        Self { out, position: 0, written: Vec::new(), names: HashSet::new(), failed: false }
    }

    /// Writes the array `name` of `shape` in C order; `data` hands over its bytes, little-endian, in as many
    /// pieces as it likes.
    ///
    /// # Errors
    /// Exists if there is such an array; invalid argument if the name has more than 65531 bytes, `shape` more than
    /// 64 dimensions or 2^63 bytes, or if `data` gave more or fewer bytes than `shape` asks for; I/O; what `data`
    /// returned. After an error the archive can't be finished any more.
    pub fn member(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        data: impl FnOnce(&mut MemberWriter<'_, W>) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        self.failed = true;
        self.write_member(name, dtype, shape, data)?;
        self.failed = false;
        Ok(())
    }

    /// Writes the directory and gives back what was written to. It isn't flushed or synced.
    ///
    /// # Errors
    /// I/O; incomplete if a member failed.
    pub fn finish(mut self) -> Result<W> {
        self.check()?;
        let start = self.position;
        let mut directory: Vec<u8> = self.written.iter().flat_map(Entry::directory_header).collect();
        let end = start + directory.len() as u64;
        directory.extend(end_of_directory(self.written.len() as u64, start, end));
        self.write(&directory)?;
        Ok(self.out)
    }

    fn check(&self) -> Result<()> {
        match self.failed {
            false => Ok(()),
            true => {
                let what = "expected an archive without errors, found one in which a member failed";
                Err(Error::new(ErrorKind::Incomplete, what))
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| io_error("write", &error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn write_member(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        data: impl FnOnce(&mut MemberWriter<'_, W>) -> Result<()>,
    ) -> Result<()> {
        let invalid = |what| in_member(name, Error::new(ErrorKind::InvalidArgument, what));
        if !self.names.insert(name.to_owned()) {
            let what = format!("expected a new array name, found {} again", quoted(name.as_bytes()));
            return Err(Error::new(ErrorKind::Exists, what));
        }
        let file_name = format!("{name}.npy");
        if file_name.len() > usize::from(u16::MAX) {
            return Err(invalid(format!("expected a name of at most 65531 bytes, found {}", name.len())));
        }
        if shape.len() > MAX_DIMS {
            return Err(invalid(format!("expected at most {MAX_DIMS} dimensions, found {}", shape.len())));
        }
        let data_len = array_bytes(shape, dtype.size()).map_err(|dim| {
            invalid(format!("expected an array of less than 2^63 bytes, found dimension {dim}"))
        })?;
        let header = npy_header(dtype, shape);

        let start = self.position;
        let mut entry = Entry { file_name, start, len: data_len + header.len() as u64, crc: 0 };
        self.write(&entry.local_header())?;
        let mut crc = Hasher::new();
        crc.update(&header);
        self.write(&header)?;
        let mut writer = MemberWriter { npz: self, name, left: data_len, crc };
        data(&mut writer)?;
        let MemberWriter { left, crc, .. } = writer;
        if left > 0 {
            return Err(invalid(format!("expected {data_len} bytes of data, found {}", data_len - left)));
        }
        entry.crc = crc.finalize();
        self.out.seek(SeekFrom::Start(start + CRC_AT)).map_err(|error| io_error("seek", &error))?;
        self.out.write_all(&entry.crc.to_le_bytes()).map_err(|error| io_error("write", &error))?;
        self.out.seek(SeekFrom::Start(self.position)).map_err(|error| io_error("seek", &error))?;
        self.written.push(entry);
        Ok(())
    }
}

/// Takes the data of one member.
pub struct MemberWriter<'a, W> {
    npz: &'a mut NpzWriter<W>,
    name: &'a str,
    left: u64,
    crc: Hasher,
}

impl<W: Write + Seek> MemberWriter<'_, W> {
    /// Appends bytes.
    ///
    /// # Errors
    /// Invalid argument if they are more than the array's shape asks for; I/O.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let what = format!("expected {} more bytes of data, found {}", self.left, bytes.len());
            in_member(self.name, Error::new(ErrorKind::InvalidArgument, what))
        })?;
        self.crc.update(bytes);
        self.npz.write(bytes)
    }
}

/// Little-endian fields, one after the other.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u32_or_zip64(&mut self, value: u64) -> &mut Self {
        self.u32(value.min(IN_ZIP64) as u32)
    }
}
