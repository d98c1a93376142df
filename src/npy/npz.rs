//! Reading `.npz`: a zip archive with one `.npy` file for each array.
//!
//! The central directory alone says which members there are: NumPy writes local headers with sizes of
//! 0xFFFFFFFF, and archives have been seen whose local headers survive the loss of the directory, so
//! walking those would give arrays from a file that is not whole.

use super::header::{Header, header_len, read_header};
use crate::error::{Error, ErrorKind, Result, quoted};
use crc32fast::Hasher;
use std::collections::HashSet;
use std::io::{self, Read, Seek};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

/// One array of an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name in the archive without `.npy`, which may hold anything: `/`, `..`, control characters.
    pub name: String,
    /// Its header. Offsets in it count from the start of the member.
    pub header: Header,
    /// Where its data stands in the archive, in bytes from the start, if it isn't compressed and is followed by
    /// nothing: then it can be read there, by several threads too, and [`Member::check_crc`] says if it is whole.
    pub stored_at: Option<u64>,
    crc: u32,
    header_crc: Hasher,
    /// Declared bytes of the whole member.
    size: u64,
    index: usize,
}

impl Member {
    /// Compares the checksum of the archive with that of all data bytes as they stand in the file. For
    /// members with [`stored_at`](Self::stored_at); [`NpzReader::data`] does the same by itself.
    ///
    /// # Errors
    /// Corrupt if they differ.
    pub fn check_crc(&self, data: &Hasher) -> Result<()> {
        let mut all = self.header_crc.clone();
        all.combine(data);
        match all.finalize() {
            found if found == self.crc => Ok(()),
            found => Err(in_member(&self.name, checksum_error(self.crc, found))),
        }
    }
}

fn checksum_error(expected: u32, found: u32) -> Error {
    corrupt(format!("expected CRC-32 {expected:08x}, found {found:08x}"))
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

/// `error` with the member in which it happened.
pub(super) fn in_member(name: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("member {}: {error}", quoted(name.as_bytes())))
}

/// An archive whose directory and headers have been read and checked.
pub struct NpzReader<R> {
    zip: ZipArchive<R>,
    members: Vec<Member>,
}

impl<R: Read + Seek> NpzReader<R> {
    /// Reads the directory and the header of each member. `as_bf16` as in [`read_header`].
    ///
    /// # Errors
    /// Corrupt if the archive isn't whole, members overlap or have the same name, or one of them isn't a well-formed
    /// `.npy` file; unsupported if a member is encrypted, compressed in another way than `deflate`, or has an
    /// element type that isn't a number.
    pub fn open(mut reader: R, as_bf16: bool) -> Result<Self> {
        let mut start = [0; 4];
        reader.rewind().map_err(|e| io_error("seek", &e))?;
        let read = fill(&mut reader, &mut start)?;
        if read == 0 {
            return Err(corrupt("expected a zip archive, found an empty file"));
        }
        let mut zip = ZipArchive::new(reader).map_err(|error| match error {
            ZipError::Io(e) if e.kind() != io::ErrorKind::UnexpectedEof => io_error("read", &e),
            ZipError::UnsupportedArchive(why) => unsupported_archive(why),
            _ if start == *b"PK\x03\x04" => {
                let why = zip_text(&error);
                corrupt(format!("expected a complete zip archive, found none: {why}"))
                    .hint("the file is truncated")
            }
            _ => corrupt(format!(
                "expected a zip archive, which .npz files are, found {}",
                quoted(&start[..read])
            )),
        })?;
        if zip.has_duplicate_names() {
            return Err(corrupt(
                "expected distinct member names, found the same name twice in the directory",
            ));
        }
        if zip.has_overlapping_entries().map_err(|error| zip_error(&error))? {
            return Err(corrupt(
                "expected members that stand apart, found some that share bytes of the archive",
            ));
        }
        let mut members = Vec::new();
        let mut names = HashSet::new();
        for index in 0..zip.len() {
            let Some(member) = read_member(&mut zip, index, as_bf16)? else { continue };
            if !names.insert(member.name.clone()) {
                let name = quoted(member.name.as_bytes());
                return Err(corrupt(format!("expected distinct array names, found {name} twice")));
            }
            members.push(member);
        }
        Ok(Self { zip, members })
    }

    /// The arrays in the order of the archive's directory, which is the order in which they were saved.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The data of `members()[index]`, decompressed if need be.
    ///
    /// # Errors
    /// Invalid argument if there is no such member; corrupt or I/O as in [`MemberData::read`].
    pub fn data(&mut self, index: usize) -> Result<MemberData<'_, R>> {
        let Some(member) = self.members.get(index) else {
            let what = format!("expected a member below {}, found {index}", self.members.len());
            return Err(Error::new(ErrorKind::InvalidArgument, what));
        };
        let mut file = self.zip.by_index(member.index).map_err(|e| in_member(&member.name, zip_error(&e)))?;
        let header = io::copy(&mut (&mut file).take(member.header.data_offset), &mut io::sink());
        let header = header.map_err(|e| in_member(&member.name, read_error(&e)))?;
        Ok(MemberData { file, member, left: member.header.data_len, read: header })
    }
}

/// The data of one member, from front to back.
pub struct MemberData<'a, R: Read> {
    file: ZipFile<'a, R>,
    member: &'a Member,
    /// Data bytes not yet given out.
    left: u64,
    /// Bytes of the member read so far.
    read: u64,
}

impl<R: Read> MemberData<'_, R> {
    /// Fills `out`, or as much of it as there is data left, and says how much that was. The call that gives
    /// the last byte reads on to the end of the member and compares length and checksum, so that data has been
    /// checked when all of it has been read.
    ///
    /// # Errors
    /// Corrupt if the member ends early, is longer or shorter than the directory says, can't be
    /// decompressed, or its checksum is another one.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let len = self.left.min(out.len() as u64) as usize;
        let read = self.fill(&mut out[..len])?;
        if read < len {
            let (data, left) = (self.member.header.data_len, self.left - read as u64);
            let error = corrupt(format!("expected {data} bytes of data, found {}", data - left));
            return Err(in_member(&self.member.name, error.hint("the archive is damaged")));
        }
        self.left -= read as u64;
        if self.left == 0 {
            self.finish()?;
        }
        Ok(read)
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = fill(&mut self.file, out).map_err(|error| in_member(&self.member.name, error))?;
        self.read += read as u64;
        Ok(read)
    }

    /// The end of the member is where the checksum is compared.
    fn finish(&mut self) -> Result<()> {
        let mut rest = [0; 4096];
        while self.fill(&mut rest)? > 0 {}
        if self.read == self.member.size {
            return Ok(());
        }
        let what =
            format!("expected the {} bytes that the directory says, found {}", self.member.size, self.read);
        Err(in_member(&self.member.name, corrupt(what)))
    }
}

impl<R: Read> Read for MemberData<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        MemberData::read(self, out).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// The member at `index` of the directory, or `None` for a folder.
fn read_member<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    index: usize,
    as_bf16: bool,
) -> Result<Option<Member>> {
    let entry = zip.by_index_data(index).map_err(|error| zip_error(&error))?;
    let full_name = String::from_utf8_lossy(entry.name_raw()).into_owned();
    let named = |error: Error| in_member(&full_name, error);
    let name = entry.name().map_err(|error| named(zip_error(&error)))?.into_owned();
    let (size, compressed, crc) = (entry.size(), entry.compressed_size(), entry.crc32());
    if name.ends_with('/') && size == 0 {
        return Ok(None);
    }
    if entry.encrypted() {
        let what = "expected a member without encryption, found an encrypted one";
        return Err(named(Error::new(ErrorKind::Unsupported, what)));
    }
    let stored = match entry.compression() {
        CompressionMethod::Stored => true,
        CompressionMethod::Deflated => false,
        other => {
            let what =
                format!("expected a stored or deflated member, found compression {other}").to_lowercase();
            return Err(named(Error::new(ErrorKind::Unsupported, what)));
        }
    };
    if stored && size != compressed {
        let what = format!(
            "expected the same length twice for a stored member, found {size} and {compressed} bytes"
        );
        return Err(named(corrupt(what)));
    }

    let mut file = zip.by_index(index).map_err(|error| named(zip_error(&error)))?;
    let mut prefix = vec![0; 12];
    let read = fill(&mut file, &mut prefix).map_err(named)?;
    prefix.truncate(read);
    let len = header_len(&prefix, Some(size)).map_err(named)?;
    // At most 64 KiB, and no more than the member says it has.
    let have = prefix.len();
    // At most 64 KiB, and no more than the member says it has.
    prefix.resize(have.max(len as usize), 0);
    let read = fill(&mut file, &mut prefix[have..]).map_err(named)?;
    prefix.truncate(have + read);
    let header = read_header(&prefix, Some(size), as_bf16).map_err(named)?;

    let whole = header.data_offset.checked_add(header.data_len) == Some(size);
    let stored_at = match file.data_start() {
        Some(start) if stored && whole => start.checked_add(header.data_offset),
        _ => None,
    };
    let mut header_crc = Hasher::new();
    header_crc.update(prefix.get(..header.data_offset as usize).unwrap_or(&prefix));
    drop(file);
    let name = name.strip_suffix(".npy").map(str::to_owned).unwrap_or(name);
    Ok(Some(Member { name, header, stored_at, crc, header_crc, size, index }))
}

/// Reads until `out` is full or the source ends.
fn fill(source: &mut impl Read, out: &mut [u8]) -> Result<usize> {
    let mut have = 0;
    while have < out.len() {
        match source.read(&mut out[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(&e)),
        }
    }
    Ok(have)
}

/// The zip crate gives its own findings (checksum, length, broken deflate stream) as I/O errors.
fn read_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            let text = error.to_string();
            let why = match text.as_str() {
                "Invalid checksum" => "data that its CRC-32 doesn't fit",
                text => text,
            };
            corrupt(format!("expected a whole member, found {}", lower(why))).hint("the archive is damaged")
        }
        _ => io_error("read", error),
    }
}

fn zip_error(error: &ZipError) -> Error {
    match error {
        ZipError::Io(e) => read_error(e),
        ZipError::UnsupportedArchive(why) => unsupported_archive(why),
        other => corrupt(format!("expected a complete zip archive, found none: {}", zip_text(other))),
    }
}

fn unsupported_archive(why: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("expected an archive of plain members, found another: {}", lower(why)),
    )
}

fn zip_text(error: &ZipError) -> String {
    let text = match error {
        ZipError::InvalidArchive(why) => lower(why),
        other => lower(&other.to_string()),
    };
    // The library names its own types in some of its messages, which tells a user nothing.
    if text.contains("::") { "its directory is damaged or missing".to_owned() } else { text }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

/// An error of the operating system at a place that only the caller knows.
pub(super) fn io_error(action: &str, error: &io::Error) -> Error {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    Error::new(ErrorKind::Io, format!("could not {action}: {}", lower(text)))
}
