//! The golden vectors and the tables of the format's specification, against the library.

#![allow(unsafe_code)] // Mapping is the one unsafe call of the library; nobody changes the vectors.

use arrshard::checksum::{SIDECAR_HEADER_BYTES, SIDECAR_MAGIC, Sidecar, crc32};
use arrshard::layout::{self, ArrayLayout};
use arrshard::manifest::{self, folder_name, shard_stem};
use arrshard::{Builder, DType, Dataset, Element, MappedDataset, Progress, WriteOptions, Writer};
use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD, IxDyn};
use num_complex::Complex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn spec() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec")
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every golden dataset: its name, its folder, and what is expected of it.
fn golden() -> Vec<(String, PathBuf, Value)> {
    let mut found: Vec<_> = fs::read_dir(spec().join("vectors/golden"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let expected = json_of(&entry.path().join("expected.json"));
            (entry.file_name().into_string().unwrap(), entry.path().join("dataset"), expected)
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() >= 11, "{}", found.len());
    found
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// How `expected.json` shows a value, and the bits of a float.
trait Shown: Element {
    fn shown(&self) -> Value;
    fn bits(&self) -> Option<Value> {
        None
    }
}

fn float(value: f64) -> Value {
    match value {
        v if v.is_nan() => json!("nan"),
        v if v.is_infinite() => json!(if v > 0.0 { "inf" } else { "-inf" }),
        v => json!(v),
    }
}

macro_rules! shown {
    (plain $($t:ty)*) => { $( impl Shown for $t {
        fn shown(&self) -> Value { json!(self) }
    } )* };
    (float $($t:ty: $digits:literal)*) => { $( impl Shown for $t {
        fn shown(&self) -> Value { float(f64::from(*self)) }
        fn bits(&self) -> Option<Value> { Some(json!(format!(concat!("{:0", $digits, "x}"), self.to_bits()))) }
    } )* };
    (complex $($t:ty)*) => { $( impl Shown for Complex<$t> {
        fn shown(&self) -> Value { json!([self.re.shown(), self.im.shown()]) }
        fn bits(&self) -> Option<Value> { Some(json!([self.re.bits(), self.im.bits()])) }
    } )* };
}
shown!(plain bool i8 i16 i32 i64 u8 u16 u32 u64);
shown!(float f16: "4" bf16: "4" f32: "8" f64: "16");
shown!(complex f32 f64);

/// Runs `$body` with `$T` as the Rust type of the dtype.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!(@ $dtype, $T => $body, Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16,
            UInt32 u32, UInt64 u64, Float16 f16, BFloat16 bf16, Float32 f32, Float64 f64,
            Complex64 Complex<f32>, Complex128 Complex<f64>)
    };
    (@ $dtype:expr, $T:ident => $body:expr, $($name:ident $t:ty),*) => {
        match $dtype {
            $( DType::$name => { type $T = $t; $body } )*
            other => panic!("{other}"),
        }
    };
}

fn bytes_of<T: Element>(values: &ArrayViewD<'_, T>) -> Vec<u8> {
    values.iter().flat_map(bytemuck::bytes_of).copied().collect()
}

fn check_array<T: Shown>(mapped: &MappedDataset, about: &Value) {
    let name = text(&about["name"]);
    let view = mapped.view::<T, IxDyn>(name).unwrap();
    let shape: Vec<u64> = view.shape().iter().map(|&dim| dim as u64).collect();
    assert_eq!(json!(shape), about["shape"], "{name}");
    let bytes = bytes_of(&view);
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, text(&about["sha256"]), "{name}");
    // By bytes, since a NaN is not equal to itself.
    assert_eq!(bytes, bytes_of(&mapped.dataset().read::<T, IxDyn>(name).unwrap().view()), "{name}");
    let parts = mapped.shards::<T>(name).unwrap();
    assert_eq!(parts.len() as u64, number(&about["shards"]), "{name}");
    assert_eq!(parts.iter().flat_map(bytes_of).collect::<Vec<u8>>(), bytes, "{name}");
    let row_len: usize = view.shape().iter().skip(1).product();
    let shown = |values: &mut dyn Iterator<Item = &T>| values.map(T::shown).collect::<Vec<_>>();
    match (&about["values"], &about["rows"]) {
        (Value::Array(values), _) => {
            assert_eq!(&shown(&mut view.iter()), values, "{name}");
            let bits: Vec<Value> = view.iter().filter_map(T::bits).collect();
            assert_eq!(&bits, about["bits"].as_array().unwrap_or(&vec![]), "{name}");
        }
        (_, Value::Object(rows)) => {
            for (row, values) in rows {
                let start = row.parse::<usize>().unwrap() * row_len;
                assert_eq!(
                    &shown(&mut view.iter().skip(start).take(row_len)),
                    list(values),
                    "{name}: row {row}"
                );
            }
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_golden_dataset_is_what_is_expected() {
    for (case, path, expected) in golden() {
        let dataset = Dataset::open(&path).unwrap_or_else(|e| panic!("{case}: {e}"));
        let manifest = dataset.manifest();
        assert_eq!(json!(manifest.attributes), expected["attributes"], "{case}");
        assert_eq!(json!(manifest.generation), expected["generation"], "{case}");
        assert_eq!(json!(manifest.id().unwrap()), expected["id"], "{case}");
        // SAFETY: nobody changes the vectors.
        let mapped = unsafe { dataset.map() };
        assert_eq!(dataset.arrays().len(), list(&expected["arrays"]).len(), "{case}");
        for (array, about) in dataset.arrays().iter().zip(list(&expected["arrays"])) {
            let layout = &array.layout;
            let found = json!({
                "attributes": array.attributes, "dtype": layout.dtype().name(), "folder": array.folder().unwrap(),
                "name": array.name, "rows_per_shard": layout.by_row().rows_per_shard, "shape": layout.shape(),
                "shards": array.shards.len(),
            });
            for (member, value) in found.as_object().unwrap() {
                assert_eq!(value, &about[member], "{case}: {}: {member}", array.name);
            }
            with_type!(layout.dtype(), T => check_array::<T>(&mapped, about));
        }
        let names: Vec<&str> = list(&expected["strings"]).iter().map(|about| text(&about["name"])).collect();
        assert_eq!(manifest.strings, names, "{case}");
        for about in list(&expected["strings"]) {
            let strings = mapped.strings(text(&about["name"])).unwrap();
            let found: Vec<&str> = strings.iter().map(|string| string.unwrap()).collect();
            assert_eq!(json!(found), about["values"], "{case}");
        }
        let report = dataset.verify(&Progress::new()).unwrap();
        assert!(report.is_whole(), "{case}: {:?}", report.damage);
    }
}

/// The header page as the specification spells it, made without the library.
#[test]
fn every_shard_is_an_npy_file() {
    for (case, path, _) in golden() {
        let dataset = Dataset::open(&path).unwrap();
        for array in dataset.arrays() {
            for (shard, entry) in array.layout.shards().zip(&array.shards) {
                let mut dims: Vec<String> = array.layout.shape().iter().map(u64::to_string).collect();
                if let Some(first) = dims.first_mut() {
                    *first = shard.len().to_string();
                }
                let comma = if dims.len() == 1 { "," } else { "" };
                let dict = format!(
                    "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
                    array.layout.dtype().descr(),
                    dims.join(", ")
                );
                let page = [b"\x93NUMPY\x01\x00\xf6\x0f", format!("{dict:<4085}\n").as_bytes()].concat();
                let file = format!("{}/{}.npy", array.folder().unwrap(), entry.stem(shard.index));
                let found = fs::read(path.join(&file)).unwrap();
                assert!(found[..4096] == page, "{case}: {file}");
                assert_eq!(found.len() as u64, 4096 + shard.data_bytes, "{case}: {file}");
            }
        }
    }
}

/// Every file below a folder.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, at: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, out);
            } else {
                out.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(root, root, &mut out);
    out
}

fn copy<T: Element>(from: &Dataset, to: &Writer, name: &str) {
    let values: ArrayD<T> = from.read(name).unwrap();
    to.write(name, &values.view()).unwrap();
}

fn copy_growing<T: Element>(from: &Dataset, to: &Writer, name: &str) {
    let values: ArrayD<T> = from.read(name).unwrap();
    let mut appender = to.appender(name).unwrap();
    for row in values.outer_iter() {
        appender.append(&bytes_of(&row)).unwrap();
    }
    to.finish(appender).unwrap();
}

#[test]
fn the_library_writes_every_golden_dataset_to_the_byte() {
    let tmp = tempfile::tempdir().unwrap();
    for (case, path, expected) in golden() {
        let old = Dataset::open(&path).unwrap();
        let manifest = old.manifest();
        if manifest.generation != 1 {
            continue;
        }
        let halves: Vec<String> =
            manifest.strings.iter().flat_map(|s| [format!("{s}.offsets"), format!("{s}.bytes")]).collect();
        let options = WriteOptions::new().shard_bytes(number(&expected["shard_bytes"])).sync(false);
        let mut builder = Builder::new(options).attributes(manifest.attributes.clone());
        for array in &manifest.arrays {
            let string = array.name.strip_suffix(".offsets").filter(|_| halves.contains(&array.name));
            builder = match string {
                Some(string) => builder.strings(string),
                None if halves.contains(&array.name) => continue,
                None => builder
                    .array(&array.name, array.layout.dtype(), array.layout.shape())
                    .array_attributes(array.attributes.clone()),
            };
        }
        let new = tmp.path().join(&case);
        let writer = builder.create(&new).unwrap();
        for array in &manifest.arrays {
            with_type!(array.layout.dtype(), T => if halves.contains(&array.name) {
                copy_growing::<T>(&old, &writer, &array.name);
            } else {
                copy::<T>(&old, &writer, &array.name);
            });
        }
        let sealed = writer.seal().unwrap();
        assert_eq!(sealed.manifest(), manifest, "{case}");
        let (mut found, mut wanted) = (tree(&new), tree(&path));
        if ["later-minor", "other-spelling"].contains(&case.as_str()) {
            // Their manifests are spelled as no writer of 1.0 does.
            assert_ne!(found.remove(Path::new("arrshard.json")), wanted.remove(Path::new("arrshard.json")));
        }
        assert!(found.keys().eq(wanted.keys()), "{case}: {:?} {:?}", found.keys(), wanted.keys());
        for (file, bytes) in &found {
            assert!(bytes == &wanted[file], "{case}: {}", file.display());
        }
    }
}

#[test]
fn layouts_are_those_of_the_table() {
    let table = json_of(&spec().join("vectors/geometry.json"));
    for case in list(&table["cases"]) {
        let field = |name: &str| number(&case[name]);
        let shape = [field("rows"), field("row_bytes")];
        let layout = ArrayLayout::new(DType::UInt8, &shape, field("shard_bytes")).unwrap();
        let last = layout.shards().last().unwrap();
        let found = [layout.by_row().rows_per_shard, layout.shard_count(), last.len()];
        assert_eq!(found, [field("rows_per_shard"), field("shards"), field("last_rows")], "{case}");
        assert_eq!(layout.by_row().block_count(last.len()), field("last_blocks"), "{case}");
    }
    for case in list(&table["rules"]) {
        let shape = [1, number(&case["row_bytes"])];
        let kept = ArrayLayout::with_rows_per_shard(DType::UInt8, &shape, number(&case["rows_per_shard"]));
        assert_eq!(json!(kept.is_ok()), case["good"], "{case}");
    }
}

#[test]
fn sidecars_are_those_of_the_table() {
    let table = json_of(&spec().join("vectors/sidecars.json"));
    for case in list(&table["cases"]) {
        let (row_bytes, rows) = (number(&case["row_bytes"]), number(&case["rows"]));
        let layout = ArrayLayout::new(DType::UInt8, &[rows, row_bytes], layout::DEFAULT_SHARD_BYTES).unwrap();
        let by_row = layout.by_row();
        let data: Vec<u8> = (0..rows * row_bytes).map(|i| (i % 251) as u8).collect();
        let blocks: Vec<u32> = (0..by_row.block_count(rows))
            .map(|block| by_row.block_bytes(block, rows))
            .map(|bytes| crc32(&data[bytes.start as usize..bytes.end as usize]))
            .collect();
        assert_eq!(blocks.len() as u64, number(&case["blocks"]), "{case}");
        let sidecar = Sidecar { row_bytes, rows, blocks };
        assert_eq!(format!("{:08x}", sidecar.shard_crc(by_row)), text(&case["crc32"]), "{case}");
        let bytes = sidecar.to_bytes();
        assert_eq!(format!("{:08x}", crc32(&bytes)), text(&case["sidecar_crc32"]), "{case}");
        assert_eq!(Sidecar::from_bytes(&bytes, by_row, rows).unwrap(), sidecar, "{case}");
    }
}

/// Cells of the first table of the specification that begins with this line.
fn table(head: &str) -> Vec<Vec<String>> {
    let readme = fs::read_to_string(spec().join("README.md")).unwrap();
    let (_, rest) = readme.split_once(&format!("\n{head}\n")).unwrap_or_else(|| panic!("no table {head}"));
    let rows = rest.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|")).collect()
    })
    .collect()
}

#[test]
fn the_specs_constants_are_the_codes() {
    let magic: String = SIDECAR_MAGIC.iter().map(|byte| format!("{byte:02x}")).collect();
    let code = [
        ("MAGIC_SIDECAR", magic),
        ("HEADER_BYTES", layout::HEADER_BYTES.to_string()),
        ("PAGE_BYTES", layout::PAGE_BYTES.to_string()),
        ("BLOCK_BYTES", layout::BLOCK_BYTES.to_string()),
        ("DEFAULT_SHARD_BYTES", layout::DEFAULT_SHARD_BYTES.to_string()),
        ("MANIFEST_NAME", manifest::MANIFEST_NAME.to_owned()),
        ("MANIFEST_MAX_BYTES", manifest::MANIFEST_MAX_BYTES.to_string()),
        ("MANIFEST_MAX_DEPTH", manifest::MANIFEST_MAX_DEPTH.to_string()),
        ("MANIFEST_PREFIX_BYTES", manifest::MANIFEST_PREFIX_BYTES.to_string()),
        ("NAME_MAX_BYTES", manifest::NAME_MAX_BYTES.to_string()),
        ("FOLDER_MAX_BYTES", manifest::FOLDER_MAX_BYTES.to_string()),
        ("MAX_DIMENSIONS", layout::MAX_DIMENSIONS.to_string()),
        ("VERSION_MAJOR", manifest::VERSION_MAJOR.to_string()),
        ("VERSION_MINOR", manifest::VERSION_MINOR.to_string()),
        ("SIDECAR_HEADER_BYTES", SIDECAR_HEADER_BYTES.to_string()),
    ];
    let code: Vec<Vec<String>> = code.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    assert_eq!(table("| constant | value |"), code);
}

#[test]
fn the_specs_tables_are_the_codes() {
    let mut dtypes = 0;
    for row in table("| dtype | descr | bytes | | dtype | descr | bytes | |") {
        for cells in [&row[..3], &row[4..7]] {
            if cells[0].is_empty() {
                continue;
            }
            let dtype = DType::from_name(&cells[0]).unwrap();
            assert_eq!((dtype.descr(), dtype.size().to_string()), (cells[1].as_str(), cells[2].clone()));
            dtypes += 1;
        }
    }
    assert_eq!(dtypes, DType::all().count());
    for row in table("| name | folder | | name | folder |") {
        for cells in [&row[..2], &row[3..5]] {
            assert_eq!(folder_name(&cells[0]).unwrap(), cells[1]);
        }
    }
    let head = "| row_bytes | shard_bytes | rows_per_block | page_rows | unit | rows_per_shard | data of a full shard | blocks in it |";
    for row in table(head) {
        let cell = |i: usize| row[i].split(' ').next().unwrap().parse::<u64>().unwrap();
        if row[2] == "–" {
            continue;
        }
        let shard_bytes = if row[1] == "1 GiB" { 1 << 30 } else { cell(1) };
        let layout = ArrayLayout::new(DType::UInt8, &[1, cell(0)], shard_bytes).unwrap();
        let by_row = layout.by_row();
        let full = by_row.rows_per_shard;
        assert_eq!([full, full * by_row.row_bytes, by_row.block_count(full)], [cell(5), cell(6), cell(7)]);
        assert_eq!(by_row.rows_per_block, cell(2).min(full));
        assert_eq!(full % cell(4), 0);
    }
    assert_eq!((shard_stem(123_456, 12), shard_stem(0, 1)), ("123456.g12".to_owned(), "00000".to_owned()));
}
