//! The manifest, `arrshard.json`: what arrays there are and which shards hold them.
//!
//! This module knows bytes, not files. The members and their rules are in
//! `format-spec/README.md`, "Manifest".

use crate::checksum::crc32;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::json::{self, Members, within};
use crate::layout::ArrayLayout;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// File name of the manifest.
pub const MANIFEST_NAME: &str = "arrshard.json";
/// A longer manifest is refused before it is read.
pub const MANIFEST_MAX_BYTES: u64 = 64 << 20;
/// Deeper JSON is refused.
pub const MANIFEST_MAX_DEPTH: usize = 16;
/// Bytes before the part that the manifest's own checksum covers.
pub const MANIFEST_PREFIX_BYTES: usize = 26;
/// The format's major version: a reader refuses any other.
pub const VERSION_MAJOR: u64 = 1;
/// The format's minor version.
pub const VERSION_MINOR: u64 = 0;
/// Longest name of an array, in bytes of UTF-8.
pub const NAME_MAX_BYTES: usize = 255;
/// Longest folder name of an array, in bytes.
pub const FOLDER_MAX_BYTES: usize = 240;

const FORMAT: &str = "arrshard";
const CRC_START: &[u8] = b"{\n  \"_crc32\": \"";
const CRC_END: &[u8] = b"\",\n";

/// Free JSON of the user's, at the dataset and at each array.
pub type Attributes = Map<String, Value>;

/// What a sealed dataset consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The arrays, in the order in which they were created.
    pub arrays: Vec<ArrayEntry>,
    /// Free JSON of the dataset.
    pub attributes: Attributes,
    /// 1 for a new dataset, one more with each append.
    pub generation: u64,
    /// Names of the string arrays, each kept as `NAME.offsets` and `NAME.bytes`.
    pub strings: Vec<String>,
}

/// One array of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayEntry {
    /// Its name; the name of its folder follows from it.
    pub name: String,
    /// Its dtype, shape, and how its rows fall into shards.
    pub layout: ArrayLayout,
    /// Free JSON of the array.
    pub attributes: Attributes,
    /// One entry a shard, in order.
    pub shards: Vec<ShardEntry>,
}

/// One shard of an array; its rows follow from the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardEntry {
    /// CRC-32 of its row data.
    pub crc32: u32,
    /// CRC-32 of its sidecar file.
    pub sidecar_crc32: u32,
    /// The generation that wrote it.
    pub generation: u64,
}

impl ShardEntry {
    /// File name of the shard with this index, without its ending.
    pub fn stem(&self, index: u64) -> String {
        shard_stem(index, self.generation)
    }
}

/// File name of a shard, without `.npy` or `.crc`.
pub fn shard_stem(index: u64, generation: u64) -> String {
    if generation == 1 { format!("{index:05}") } else { format!("{index:05}.g{generation}") }
}

/// What the shards of an array are called that one writer writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Naming {
    /// Index of the first of them in the array.
    pub(crate) first: u64,
    pub(crate) generation: u64,
}

impl Naming {
    /// All shards of a new dataset.
    pub(crate) const NEW: Self = Self { first: 0, generation: 1 };

    /// As [`shard_stem`], for shard `index` of those.
    pub(crate) fn stem(self, index: u64) -> String {
        shard_stem(self.first + index, self.generation)
    }
}

/// The members as they stand in the file.
#[derive(Serialize)]
struct ManifestJson {
    arrays: Vec<ArrayJson>,
    attributes: Attributes,
    format: String,
    generation: u64,
    id: String,
    must_understand: Vec<String>,
    strings: Vec<String>,
    version: VersionJson,
}

#[derive(Serialize)]
struct ArrayJson {
    attributes: Attributes,
    dtype: String,
    name: String,
    rows_per_shard: u64,
    shape: Vec<u64>,
    shards: Vec<ShardJson>,
}

#[derive(Serialize)]
struct ShardJson {
    bytes: u64,
    crc32: String,
    generation: u64,
    rows: u64,
    sidecar_crc32: String,
}

#[derive(Serialize)]
struct VersionJson {
    major: u64,
    minor: u64,
}

impl ArrayJson {
    /// With `later`, members that a later version may have added are passed over.
    fn read(value: Value, later: bool) -> Result<Self> {
        let mut members = Members::of(value)?;
        let array = Self {
            attributes: members.object("attributes")?,
            dtype: members.text("dtype")?,
            name: members.text("name")?,
            rows_per_shard: members.integer("rows_per_shard")?,
            shape: members.list("shape", |value| json::integer(&value))?,
            shards: members.list("shards", |value| ShardJson::read(value, later))?,
        };
        members.end(later)?;
        Ok(array)
    }
}

impl ShardJson {
    fn read(value: Value, later: bool) -> Result<Self> {
        let mut members = Members::of(value)?;
        let shard = Self {
            bytes: members.integer("bytes")?,
            crc32: members.text("crc32")?,
            generation: members.integer("generation")?,
            rows: members.integer("rows")?,
            sidecar_crc32: members.text("sidecar_crc32")?,
        };
        members.end(later)?;
        Ok(shard)
    }
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

/// The folder of the array called `name`: ASCII letters, digits, `_`, `-` and inner dots as they
/// are, every other byte as `%XX`, so that no name can leave the dataset or hide in it.
pub fn folder_name(name: &str) -> Result<String> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidArgument, what);
    if name.is_empty() || name.len() > NAME_MAX_BYTES {
        return Err(invalid(format!(
            "expected an array name of 1 to {NAME_MAX_BYTES} bytes, found {} bytes",
            name.len()
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(invalid(format!(
            "expected an array name without control characters, found {}",
            quoted(name.as_bytes())
        )));
    }
    let mut folder = String::with_capacity(name.len());
    for (i, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte == b'.' && i > 0;
        if plain && name != MANIFEST_NAME || byte.is_ascii_alphanumeric() {
            folder.push(char::from(byte));
        } else {
            let _ = write!(folder, "%{byte:02X}");
        }
    }
    if folder.len() > FOLDER_MAX_BYTES {
        return Err(invalid(format!(
            "expected an array name whose folder name has at most {FOLDER_MAX_BYTES} bytes, found {} bytes",
            folder.len()
        )));
    }
    Ok(folder)
}

/// The name of the array whose folder is called `folder`, if any has that folder.
pub(crate) fn name_of_folder(folder: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(folder.len());
    let mut rest = folder.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let (hex, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (folder_name(&name).ok()? == folder).then_some(name)
}

/// Index, generation and ending of a shard's file.
pub(crate) fn shard_of_file(file: &str) -> Option<(u64, u64, &str)> {
    let (stem, ending) = file.rsplit_once('.')?;
    let (index, generation) = stem.split_once(".g").unwrap_or((stem, "1"));
    let (index, generation) = (index.parse().ok()?, generation.parse().ok()?);
    (stem == shard_stem(index, generation)).then_some((index, generation, ending))
}

fn crc_hex(text: &str) -> Option<u32> {
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (text.len() == 8 && text.bytes().all(lower)).then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

impl ArrayEntry {
    /// The folder that holds its shards, inside the dataset's.
    pub fn folder(&self) -> Result<String> {
        folder_name(&self.name)
    }

    fn to_json(&self) -> ArrayJson {
        let shards = self.layout.shards().zip(&self.shards);
        ArrayJson {
            attributes: self.attributes.clone(),
            dtype: self.layout.dtype().name().to_owned(),
            name: self.name.clone(),
            rows_per_shard: self.layout.by_row().rows_per_shard,
            shape: self.layout.shape().to_vec(),
            shards: shards
                .map(|(layout, shard)| ShardJson {
                    bytes: layout.data_bytes,
                    crc32: format!("{:08x}", shard.crc32),
                    generation: shard.generation,
                    rows: layout.len(),
                    sidecar_crc32: format!("{:08x}", shard.sidecar_crc32),
                })
                .collect(),
        }
    }

    fn from_json(json: ArrayJson, generation: u64) -> Result<Self> {
        let dtype = DType::from_name(&json.dtype).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("expected a known dtype, found {}", quoted(json.dtype.as_bytes())),
            )
        })?;
        let layout = ArrayLayout::with_rows_per_shard(dtype, &json.shape, json.rows_per_shard)
            .map_err(|e| corrupt(e.to_string()))?;
        if json.shards.len() as u64 != layout.shard_count() {
            return Err(corrupt(format!(
                "expected {} shards, found {}",
                layout.shard_count(),
                json.shards.len()
            )));
        }
        let mut shards = Vec::with_capacity(json.shards.len());
        for (shard, found) in layout.shards().zip(&json.shards) {
            let place = |what: String| corrupt(format!("shard {}: {what}", shard.index));
            if (found.rows, found.bytes) != (shard.len(), shard.data_bytes) {
                return Err(place(format!(
                    "expected {} rows in {} bytes, found {} rows in {} bytes",
                    shard.len(),
                    shard.data_bytes,
                    found.rows,
                    found.bytes
                )));
            }
            if found.generation == 0 || found.generation > generation {
                return Err(place(format!(
                    "expected a generation of 1 to {generation}, found {}",
                    found.generation
                )));
            }
            let crc = |member: &str, text: &str| {
                crc_hex(text).ok_or_else(|| {
                    place(format!(
                        "{member}: expected 8 lower-case hex digits, found {}",
                        quoted(text.as_bytes())
                    ))
                })
            };
            shards.push(ShardEntry {
                crc32: crc("crc32", &found.crc32)?,
                sidecar_crc32: crc("sidecar_crc32", &found.sidecar_crc32)?,
                generation: found.generation,
            });
        }
        Ok(Self { name: json.name, layout, attributes: json.attributes, shards })
    }
}

impl Manifest {
    /// A digest of layout and checksums: equal data in equal shards has an equal id.
    pub fn id(&self) -> Result<String> {
        let mut text = String::new();
        for array in &self.arrays {
            let shape: Vec<_> = array.layout.shape().iter().map(u64::to_string).collect();
            let _ = writeln!(
                text,
                "array {} {} {} {}",
                array.folder()?,
                array.layout.dtype(),
                array.layout.by_row().rows_per_shard,
                shape.join(",")
            );
            for (layout, shard) in array.layout.shards().zip(&array.shards) {
                let _ =
                    writeln!(text, "shard {} {:08x} {:08x}", layout.len(), shard.crc32, shard.sidecar_crc32);
            }
        }
        let digest = Sha256::digest(text.as_bytes());
        Ok(digest.iter().take(16).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }))
    }

    /// Whether a later minor version has written these bytes: what it has added would be lost.
    pub(crate) fn is_later(bytes: &[u8]) -> bool {
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        value.and_then(|value| value["version"]["minor"].as_u64()).is_none_or(|minor| minor > VERSION_MINOR)
    }

    /// The entry of the array called `name`.
    pub fn array(&self, name: &str) -> Option<&ArrayEntry> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check_names()?;
        self.check_strings()?;
        let json = ManifestJson {
            arrays: self.arrays.iter().map(ArrayEntry::to_json).collect(),
            attributes: self.attributes.clone(),
            format: FORMAT.to_owned(),
            generation: self.generation,
            id: self.id()?,
            must_understand: Vec::new(),
            strings: self.strings.clone(),
            version: VersionJson { major: VERSION_MAJOR, minor: VERSION_MINOR },
        };
        // Through Value, so that the members' order is the format's and not this file's.
        let value = json::sorted(serde_json::to_value(&json).map_err(|e| corrupt(e.to_string()))?);
        let text = serde_json::to_string_pretty(&value).map_err(|e| corrupt(e.to_string()))?;
        let covered = text.strip_prefix("{\n").unwrap_or(&text);
        let mut crc = crc32fast::Hasher::new();
        crc.update(covered.as_bytes());
        crc.update(b"\n");
        let mut out = Vec::with_capacity(text.len() + MANIFEST_PREFIX_BYTES);
        out.extend_from_slice(CRC_START);
        out.extend_from_slice(format!("{:08x}", crc.finalize()).as_bytes());
        out.extend_from_slice(CRC_END);
        out.extend_from_slice(covered.as_bytes());
        out.push(b'\n');
        if out.len() as u64 > MANIFEST_MAX_BYTES {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected a manifest of at most {MANIFEST_MAX_BYTES} bytes, found {}", out.len()),
            )
            .hint("use larger shards or fewer attributes"));
        }
        self.check_depth(&value)?;
        Ok(out)
    }

    /// What a reader would refuse must not be written.
    fn check_depth(&self, value: &Value) -> Result<()> {
        fn depth(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
                Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
                _ => 0,
            }
        }
        match depth(value) {
            deep if deep > MANIFEST_MAX_DEPTH => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected attributes that nest less than {MANIFEST_MAX_DEPTH} deep, found {deep}"),
            )),
            _ => Ok(()),
        }
    }

    /// Reads the file's bytes and checks every rule that needs no other file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() as u64 > MANIFEST_MAX_BYTES {
            return Err(corrupt(format!(
                "expected at most {MANIFEST_MAX_BYTES} bytes, found {}",
                bytes.len()
            )));
        }
        let stored = checksum_of(bytes)?;
        let found = crc32(&bytes[MANIFEST_PREFIX_BYTES..]);
        if stored != found {
            return Err(corrupt(format!("expected checksum {stored:08x}, found {found:08x}"))
                .hint("the manifest was changed after it was sealed"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|e| corrupt("expected UTF-8, found other bytes").offset(e.valid_up_to() as u64))?;
        let json_error =
            |e: serde_json::Error| corrupt(format!("expected a manifest, found {}", json_fault(&e)));
        let value = json::parse(text, MANIFEST_MAX_DEPTH).map_err(json_error)?;
        let mut members = Members::of(value)?;
        let later = check_version(&mut members)?;
        let arrays = members.list("arrays", |value| ArrayJson::read(value, later))?;
        let attributes = members.object("attributes")?;
        let generation = members.integer("generation")?;
        let expected_id = members.text("id")?;
        let strings = members.list("strings", json::text)?;
        members.text("_crc32")?;
        members.end(later)?;
        if generation == 0 {
            return Err(corrupt("expected a generation of 1 or more, found 0"));
        }
        let invalid = |e: Error| corrupt(e.to_string());
        check_names(arrays.iter().map(|array| &array.name)).map_err(invalid)?;
        let arrays = arrays
            .into_iter()
            .map(|array| {
                let place = format!("array {}", quoted(array.name.as_bytes()));
                ArrayEntry::from_json(array, generation).map_err(|e| within(&place, &e))
            })
            .collect::<Result<Vec<_>>>()?;
        let manifest = Self { arrays, attributes, generation, strings };
        manifest.check_names().map_err(invalid)?;
        manifest.check_strings().map_err(invalid)?;
        let id = manifest.id()?;
        if id != expected_id {
            return Err(corrupt(format!("expected id {id}, found {}", quoted(expected_id.as_bytes()))));
        }
        Ok(manifest)
    }

    fn check_names(&self) -> Result<()> {
        check_names(self.arrays.iter().map(|array| &array.name).chain(&self.strings))
    }

    /// Each string array has its two halves.
    fn check_strings(&self) -> Result<()> {
        let invalid = |what: String| Error::new(ErrorKind::InvalidArgument, what);
        let arrays: HashMap<&str, &ArrayLayout> =
            self.arrays.iter().map(|array| (array.name.as_str(), &array.layout)).collect();
        for name in &self.strings {
            for (half, dtype) in [("offsets", DType::UInt64), ("bytes", DType::UInt8)] {
                let half = format!("{name}.{half}");
                let layout = arrays.get(half.as_str()).ok_or_else(|| {
                    invalid(format!(
                        "string array {}: expected array {}, found none",
                        quoted(name.as_bytes()),
                        quoted(half.as_bytes())
                    ))
                })?;
                let least = u64::from(dtype == DType::UInt64);
                if layout.dtype() != dtype || layout.shape().len() != 1 || layout.rows() < least {
                    return Err(invalid(format!(
                        "array {}: expected {dtype} of one dimension with at least {least} rows, found {} of shape {:?}",
                        quoted(half.as_bytes()),
                        layout.dtype(),
                        layout.shape()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Names are valid and distinct.
fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        folder_name(name)?;
        if !seen.insert(name) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected distinct array names, found {} twice", quoted(name.as_bytes())),
            ));
        }
    }
    Ok(())
}

/// The checksum that stands in the first 26 bytes.
fn checksum_of(bytes: &[u8]) -> Result<u32> {
    let hex = bytes
        .strip_prefix(CRC_START)
        .and_then(|rest| rest.split_at_checked(8))
        .filter(|(_, rest)| rest.starts_with(CRC_END))
        .and_then(|(hex, _)| std::str::from_utf8(hex).ok())
        .and_then(crc_hex);
    hex.ok_or_else(|| {
        corrupt(format!(
            "expected the text of a manifest, found {}",
            quoted(&bytes[..bytes.len().min(MANIFEST_PREFIX_BYTES)])
        ))
    })
}

/// Format, version and required features come before the members they give a meaning to. Tells
/// whether a later minor version has written the manifest, so that it may have other members.
fn check_version(members: &mut Members) -> Result<bool> {
    let unsupported =
        |what: String| Error::new(ErrorKind::Unsupported, what).hint("a newer arrshard may read it");
    let format = members.text("format")?;
    if format != FORMAT {
        return Err(corrupt(format!("expected format \"{FORMAT}\", found {}", quoted(format.as_bytes()))));
    }
    let mut version = Members::of(Value::Object(members.object("version")?))?;
    let (major, minor) = (version.integer("major")?, version.integer("minor")?);
    if major != VERSION_MAJOR {
        return Err(unsupported(format!("expected format version {VERSION_MAJOR}, found {major}")));
    }
    if let Some(feature) = members.list("must_understand", json::text)?.first() {
        return Err(unsupported(format!(
            "must_understand: expected no features, found {}",
            quoted(feature.as_bytes())
        )));
    }
    let later = minor > VERSION_MINOR;
    version.end(later).map_err(|e| within("version", &e))?;
    Ok(later)
}

/// serde_json's message may quote foreign text.
fn json_fault(error: &serde_json::Error) -> String {
    crate::error::escape(error.to_string().as_bytes(), 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let layout = ArrayLayout::new(DType::Float32, &[3, 2], 1 << 30).unwrap();
        let shards = vec![ShardEntry { crc32: 1, sidecar_crc32: 0xabcdef01, generation: 1 }];
        Manifest {
            arrays: vec![ArrayEntry { name: "a/b".into(), layout, attributes: Map::new(), shards }],
            attributes: serde_json::from_str(r#"{"x": {"y": [1, 2.5, "ü"]}}"#).unwrap(),
            generation: 1,
            strings: vec![],
        }
    }

    #[test]
    fn what_is_written_is_read_and_every_flip_is_seen() {
        let manifest = sample();
        let bytes = manifest.to_bytes().unwrap();
        assert_eq!(Manifest::from_bytes(&bytes).unwrap(), manifest);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(Manifest::from_bytes(&bad).is_err(), "bit {bit} of byte {at}");
            }
            assert!(Manifest::from_bytes(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn folders_cannot_leave_the_dataset() {
        let folder = |name| folder_name(name).unwrap();
        assert_eq!(folder("data"), "data");
        assert_eq!(folder("tokens.bytes"), "tokens.bytes");
        assert_eq!(folder("price/unit"), "price%2Funit");
        assert_eq!(folder(".."), "%2E.");
        assert_eq!(folder(".building"), "%2Ebuilding");
        assert_eq!(folder("arrshard.json"), "arrshard%2Ejson");
        assert_eq!(folder("ü"), "%C3%BC");
        for bad in ["", "a\nb", "a\0", "\u{9b}31m", &"x".repeat(256), &"ü".repeat(100)] {
            assert!(folder_name(bad).is_err());
        }
    }

    #[test]
    fn names_come_back_from_files() {
        for name in ["data", "a/b", "..", ".building", "arrshard.json", "ü", "100%", "%41"] {
            assert_eq!(name_of_folder(&folder_name(name).unwrap()).as_deref(), Some(name));
        }
        for folder in ["", ".hidden", "%", "%4", "%41", "%2f", "a b", "%FF", "ü", "%+1"] {
            assert_eq!(name_of_folder(folder), None, "{folder}");
        }
        assert_eq!(shard_of_file("00007.npy"), Some((7, 1, "npy")));
        assert_eq!(shard_of_file("123456.g12.crc"), Some((123_456, 12, "crc")));
        for file in ["7.npy", "00007.g1.npy", "00007.g02.npy", "00007", "+0007.npy", "000007.npy", "a.npy"] {
            assert_eq!(shard_of_file(file), None, "{file}");
        }
        assert_eq!(shard_of_file("00007.npy.partial"), None);
    }

    #[test]
    fn deep_attributes_are_refused_when_written() {
        let mut manifest = sample();
        let deep = (0..20).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        manifest.attributes.insert("deep".into(), deep);
        assert!(manifest.to_bytes().is_err());
    }
}
