//! What is unpacked is what was packed, and an output is there whole or not at all.

#![allow(clippy::print_stderr)] // Says why a test is skipped.

use arrshard::npy::npy_header;
use arrshard::text::Header;
use arrshard::{
    Builder, DType, Dataset, Element, ErrorKind, Input, Output, PackOptions, Progress, Result, Target,
    UnpackOptions, WriteOptions, pack, unpack,
};
use half::{bf16, f16};
use ndarray::{Array, Array1, Array2, ArrayD, IxDyn};
use num_complex::Complex;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn write_options() -> WriteOptions {
    WriteOptions::new().shard_bytes(8192).sync(false)
}

fn dataset<T: Element>(folder: &Path, values: &ArrayD<T>) -> Dataset {
    let shape: Vec<u64> = values.shape().iter().map(|&d| d as u64).collect();
    let writer = Builder::new(write_options())
        .array("x", T::DTYPE, &shape)
        .create(folder.join(format!("{}.arrshard", T::DTYPE)))
        .unwrap();
    writer.write("x", &values.view()).unwrap();
    writer.seal().unwrap()
}

fn columns(folder: &Path, keys: &[&str], numbers: &[f64]) -> Dataset {
    let writer = Builder::new(write_options())
        .strings("key")
        .growing("x", DType::Float64, &[])
        .create(folder.join("columns.arrshard"))
        .unwrap();
    let (mut offsets, mut bytes) = (vec![0u64], Vec::new());
    for key in keys {
        bytes.extend_from_slice(key.as_bytes());
        offsets.push(bytes.len() as u64);
    }
    let offsets: Vec<u8> = offsets.iter().flat_map(|v| v.to_le_bytes()).collect();
    let numbers: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
    for (name, values) in [("key.offsets", &offsets), ("key.bytes", &bytes), ("x", &numbers)] {
        let mut appender = writer.appender(name).unwrap();
        appender.append(values).unwrap();
        writer.finish(appender).unwrap();
    }
    writer.seal().unwrap()
}

fn to(dataset: &Dataset, out: &Path, change: impl FnOnce(&mut UnpackOptions)) -> Result<Vec<u8>> {
    let mut options = UnpackOptions::default();
    change(&mut options);
    unpack(dataset, &Output::Path(out.to_owned()), &options, &Progress::new())?;
    Ok(fs::read(out).unwrap_or_default())
}

fn text(dataset: &Dataset, target: Target, change: impl FnOnce(&mut UnpackOptions)) -> Result<String> {
    let tmp = tempfile::tempdir().unwrap();
    let bytes = to(dataset, &tmp.path().join("out"), |options| {
        options.to = Some(target);
        change(options);
    })?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn packed(file: &Path, dtype: Option<DType>) -> (TempDir, Dataset) {
    packed_with(file, dtype, Header::Auto)
}

fn packed_with(file: &Path, dtype: Option<DType>, header: Header) -> (TempDir, Dataset) {
    let tmp = tempfile::tempdir().unwrap();
    let mut options = PackOptions { name: "x".to_owned(), write: write_options(), ..PackOptions::default() };
    options.as_bf16 = true;
    options.text.dtype = dtype;
    options.text.given.header = header;
    let packed = pack(&[Input::from_arg(file)], &tmp.path().join("again"), &options, &Progress::new());
    (tmp, packed.unwrap().dataset.unwrap())
}

fn comes_back<T: Element>(values: Array2<T>, is_default: bool) {
    let tmp = tempfile::tempdir().unwrap();
    let values = values.into_dyn();
    let dataset = dataset(tmp.path(), &values);
    let npy = tmp.path().join("x.npy");
    let bytes = to(&dataset, &npy, |_| {}).unwrap();
    let header = npy_header(T::DTYPE, &[values.shape()[0] as u64, values.shape()[1] as u64]);
    assert_eq!(bytes[..header.len()], header);
    assert_eq!(bytes.len() as u64, header.len() as u64 + dataset.array("x").unwrap().layout.nbytes());
    assert_eq!(packed(&npy, None).1.read::<T, IxDyn>("x").unwrap(), values);
    for name in ["x.tsv", "x.csv"] {
        let file = tmp.path().join(name);
        to(&dataset, &file, |_| {}).unwrap();
        let dtype = (!is_default).then_some(T::DTYPE);
        let (_tmp, again) = packed(&file, dtype);
        if T::DTYPE == DType::Bool && dtype.is_none() {
            // Truth values are no numbers: each column is an array.
            assert!(again.arrays().iter().all(|array| array.layout.dtype() == DType::Bool));
            continue;
        }
        assert_eq!(again.read::<T, IxDyn>("x").unwrap(), values, "{name}");
    }
    let names: Vec<_> = fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn every_dtype_comes_back() {
    macro_rules! check {
        ($t:ty, $default:expr, $f:expr) => {
            comes_back::<$t>(Array::from_shape_fn((3000, 3), $f), $default);
        };
    }
    let n = |(i, j): (usize, usize)| i * 3 + j;
    check!(bool, true, |(i, j)| (i + j) % 3 == 0);
    check!(bool, false, |(i, j)| (i + j) % 3 == 0);
    check!(i8, false, |ij| n(ij) as i8);
    check!(i16, false, |ij| -(n(ij) as i16));
    check!(i32, false, |ij| i32::MIN + n(ij) as i32);
    check!(i64, true, |ij| i64::MIN + n(ij) as i64);
    check!(u8, false, |ij| n(ij) as u8);
    check!(u16, false, |ij| n(ij) as u16);
    check!(u32, false, |ij| u32::MAX - n(ij) as u32);
    check!(u64, true, |ij| u64::MAX - n(ij) as u64);
    check!(f16, false, |ij| f16::from_bits(n(ij) as u16));
    check!(bf16, false, |ij| bf16::from_bits(n(ij) as u16));
    check!(f32, false, |ij| f32::from_bits(n(ij) as u32 * 65_521));
    check!(f64, true, |ij| f64::from_bits(n(ij) as u64 * 281_474_976_710_597));
    check!(Complex<f32>, false, |(i, j)| Complex::new(i as f32 / 7.0, -(j as f32)));
    check!(Complex<f64>, true, |(i, j)| Complex::new(-(i as f64) / 7.0, j as f64));
}

#[test]
fn lines_are_as_documented() {
    let tmp = tempfile::tempdir().unwrap();
    let matrix = dataset(tmp.path(), &ndarray::arr2(&[[0.5, f64::NAN], [-0.0, 1e-5]]).into_dyn());
    assert_eq!(text(&matrix, Target::Csv, |_| {}).unwrap(), "0.5,nan\n-0.0,1e-05\n");
    assert_eq!(
        text(&matrix, Target::Tsv, |o| (o.header, o.fmt) = (true, Some("%.1f".into()))).unwrap(),
        "f0\tf1\n0.5\tnan\n-0.0\t0.0\n"
    );
    assert_eq!(
        text(&matrix, Target::Csv, |o| o.delimiter = Some("; ".into())).unwrap(),
        "0.5; nan\n-0.0; 1e-05\n"
    );
    let one = dataset(tmp.path(), &ndarray::arr1(&[true, false]).into_dyn());
    assert_eq!(text(&one, Target::Csv, |o| o.header = true).unwrap(), "x\ntrue\nfalse\n");
    let single = dataset(tmp.path(), &ndarray::arr0(7i32).into_dyn());
    assert_eq!(text(&single, Target::Csv, |_| {}).unwrap(), "7\n");
    let none = dataset(tmp.path(), &Array2::<u8>::zeros((0, 2)).into_dyn());
    assert_eq!(text(&none, Target::Csv, |o| o.header = true).unwrap(), "f0,f1\n");
    let complex = dataset(tmp.path(), &ndarray::arr1(&[Complex::new(1.5, -2.0)]).into_dyn());
    assert_eq!(text(&complex, Target::Csv, |_| {}).unwrap(), "(1.5-2j)\n");

    let cube = dataset(tmp.path(), &Array::<i16, _>::zeros((1, 1, 1)).into_dyn());
    let error = text(&cube, Target::Csv, |_| {}).unwrap_err();
    assert!(error.to_string().contains("expected 1 or 2 dimensions for text, found 3"), "{error}");
    let error = text(&matrix, Target::Csv, |o| (o.header, o.fmt) = (true, Some("%d".into()))).unwrap_err();
    assert_eq!((error.line_number(), error.field_number()), (Some(2), Some(2)), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn columns_lie_side_by_side() {
    let tmp = tempfile::tempdir().unwrap();
    let keys =
        ["a,b", "say \"hi\"", "l1\nl2", "l1\rl2", " lead", "tab\there", "", "# no comment", "plain", "é"];
    let numbers: Vec<f64> = (0..keys.len()).map(|i| i as f64 / 4.0).collect();
    let dataset = columns(tmp.path(), &keys, &numbers);
    let csv = text(&dataset, Target::Csv, |o| o.header = true).unwrap();
    assert!(
        csv.starts_with("key,x\n\"a,b\",0.0\n\"say \"\"hi\"\"\",0.25\n\"l1\nl2\",0.5\n\"l1\rl2\",0.75\n")
    );
    for name in ["t.csv", "t.tsv"] {
        for (array, header) in [(None, true), (Some("key"), true), (Some("key"), false)] {
            let file = tmp.path().join(name);
            to(&dataset, &file, |o| {
                (o.header, o.array, o.replace) = (header, array.map(str::to_owned), true);
            })
            .unwrap();
            let (_tmp, again) = packed_with(&file, None, if header { Header::Yes } else { Header::No });
            let string = &again.manifest().strings[0];
            let offsets = again.read::<u64, IxDyn>(&format!("{string}.offsets")).unwrap();
            let bytes =
                again.read::<u8, IxDyn>(&format!("{string}.bytes")).unwrap().into_raw_vec_and_offset().0;
            let found: Vec<_> = (0..keys.len())
                .map(|i| std::str::from_utf8(&bytes[offsets[i] as usize..offsets[i + 1] as usize]).unwrap())
                .collect();
            assert_eq!(found, keys, "{name} {array:?} {header}");
            if array.is_none() {
                assert_eq!(again.read::<f64, IxDyn>("x").unwrap().as_slice().unwrap(), numbers);
            }
        }
    }
    assert_eq!(text(&dataset, Target::Csv, |o| o.rows = Some(8..10)).unwrap(), "plain,2.0\né,2.25\n");

    let npz = tmp.path().join("t.npz");
    to(&dataset, &npz, |o| o.rows = Some(1..3)).unwrap();
    let (_tmp, again) = packed(&npz, None);
    assert_eq!(again.read::<u64, IxDyn>("key.offsets").unwrap().as_slice().unwrap(), [0, 8, 13]);
    assert_eq!(again.read::<u8, IxDyn>("key.bytes").unwrap().as_slice().unwrap(), b"say \"hi\"l1\nl2");
    assert_eq!(again.read::<f64, IxDyn>("x").unwrap().as_slice().unwrap(), [0.25, 0.5]);
    let error = to(&dataset, &tmp.path().join("t.npy"), |_| {}).unwrap_err();
    assert!(error.to_string().ends_with("found 2: \"key\", \"x\"; --array NAME chooses one"), "{error}");
}

#[test]
fn arrays_that_do_not_fit_are_named() {
    let tmp = tempfile::tempdir().unwrap();
    let writer = Builder::new(write_options())
        .array("a", DType::Int8, &[3])
        .array("b", DType::Int8, &[4])
        .create(tmp.path().join("ab"))
        .unwrap();
    writer.write("a", &Array1::<i8>::zeros(3).view()).unwrap();
    writer.write("b", &Array1::<i8>::zeros(4).view()).unwrap();
    let dataset = writer.seal().unwrap();
    let error = text(&dataset, Target::Csv, |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("found \"a\", \"b\"; --array NAME"), "{error}");
    assert_eq!(text(&dataset, Target::Csv, |o| o.array = Some("a".into())).unwrap(), "0\n0\n0\n");
    let npz = tmp.path().join("ab.npz");
    assert!(to(&dataset, &npz, |o| o.rows = Some(0..1)).is_err());
    to(&dataset, &npz, |_| {}).unwrap();
    assert_eq!(packed(&npz, None).1.array("b").unwrap().layout.shape(), [4]);
    for rows in [Range { start: 2, end: 1 }, 0..4] {
        assert!(text(&dataset, Target::Csv, |o| (o.array, o.rows) = (Some("a".into()), Some(rows))).is_err());
    }
}

#[test]
fn the_same_bytes_with_any_number_of_threads() {
    let tmp = tempfile::tempdir().unwrap();
    let matrix =
        dataset(tmp.path(), &Array::from_shape_fn((40_000, 7), |(i, j)| (i * j) as f64 / 3.0).into_dyn());
    let keys: Vec<String> = (0..5000).map(|i| "k\"".repeat(i % 700)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let numbers: Vec<f64> = (0..5000).map(f64::from).collect();
    let columns = columns(tmp.path(), &keys, &numbers);
    let mut all = Vec::new();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        all.push(pool.install(|| {
            let out = |dataset: &Dataset, name: &str| {
                to(dataset, &tmp.path().join(name), |o| o.replace = true).unwrap()
            };
            (out(&matrix, "m.npy"), out(&matrix, "m.tsv"), out(&columns, "c.csv"), out(&columns, "c.npz"))
        }));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn long_rows_go_in_pieces() {
    let tmp = tempfile::tempdir().unwrap();
    let values = Array::from_shape_fn((3, 200_001), |(i, j)| (i * 7 + j) as f32 / 8.0);
    let wide = dataset(tmp.path(), &values.clone().into_dyn());
    let expected: Vec<String> = values
        .outer_iter()
        .map(|row| row.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", "))
        .collect();
    let found = text(&wide, Target::Csv, |o| o.delimiter = Some(", ".into())).unwrap();
    assert!(found == expected.join("\n") + "\n");
    let header = text(&wide, Target::Csv, |o| (o.header, o.rows) = (true, Some(0..0))).unwrap();
    assert!(header.starts_with("f0,f1,") && header.ends_with(",f200000\n"));

    let long = "say \"hi\"\n".repeat(1 << 20);
    let keys = ["short", &long, &long[..1 << 20], "", "end"];
    let columns = columns(tmp.path(), &keys, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let expected =
        format!("short,1.0\n{},2.0\n{},3.0\n\"\",4.0\nend,5.0\n", quoted(&long), quoted(&long[..1 << 20]));
    assert!(text(&columns, Target::Csv, |_| {}).unwrap() == expected);
    let two = expected.replace(".0\n", ".00\n");
    assert!(text(&columns, Target::Csv, |o| o.fmt = Some("%.2f".into())).unwrap() == two);
    let error = text(&columns, Target::Csv, |o| o.fmt = Some("%9s;%.2f".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn parts_are_the_whole() {
    let tmp = tempfile::tempdir().unwrap();
    let values = Array::from_shape_fn((10_001, 3), |(i, j)| (i * 3 + j) as i64).into_dyn();
    let dataset = dataset(tmp.path(), &values);
    let whole = text(&dataset, Target::Tsv, |_| {}).unwrap();
    for parts in [1, 3, 64] {
        let out = tmp.path().join(format!("{parts}.tsv"));
        to(&dataset, &out, |o| o.parts = Some(parts)).unwrap();
        let part = |i: u64| PathBuf::from(format!("{}.{i}", out.display()));
        let all: String = (0..parts).map(|i| fs::read_to_string(part(i)).unwrap()).collect();
        assert_eq!(all, whole);
        assert!(!out.exists() && !part(parts).exists());
        let lines = |i| fs::read_to_string(part(i)).unwrap().lines().count() as u64;
        assert!((0..parts).all(|i| lines(i).abs_diff(10_001 / parts) <= 1));
    }
    let out = tmp.path().join("p.npy");
    to(&dataset, &out, |o| (o.parts, o.rows) = (Some(2), Some(1..10_000))).unwrap();
    let half = tmp.path().join("half.npy");
    fs::rename(tmp.path().join("p.npy.1"), &half).unwrap();
    let again = packed(&half, None).1.read::<i64, IxDyn>("x").unwrap();
    assert_eq!(again, values.slice(ndarray::s![5000..10_000, ..]).into_dyn());

    // One that is there already is found before anything is written.
    fs::write(tmp.path().join("q.tsv.2"), "mine").unwrap();
    let error = to(&dataset, &tmp.path().join("q.tsv"), |o| o.parts = Some(3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(!tmp.path().join("q.tsv.0").exists());
    assert_eq!(fs::read_to_string(tmp.path().join("q.tsv.2")).unwrap(), "mine");
    assert!(to(&dataset, &out, |o| o.parts = Some(0)).is_err());
}

#[test]
fn an_output_is_there_whole_or_not_at_all() {
    let tmp = tempfile::tempdir().unwrap();
    let dataset = dataset(tmp.path(), &Array2::<f64>::from_elem((1000, 3), 0.5).into_dyn());
    let out = tmp.path().join("x.csv");
    fs::write(&out, "mine").unwrap();
    let error = to(&dataset, &out, |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    // Neither does an error replace it.
    assert!(to(&dataset, &out, |o| (o.replace, o.fmt) = (true, Some("%.1f %.1f".into()))).is_err());
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    assert!(
        to(&dataset, &out, |o| (o.replace, o.sync) = (true, true)).unwrap().starts_with(b"0.5,0.5,0.5\n")
    );

    let folder = tmp.path().join("folder.csv");
    fs::create_dir(&folder).unwrap();
    let error = to(&dataset, &folder, |o| o.replace = true).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: expected a file to replace, found a folder", folder.display())
    );
    let error = to(&dataset, &tmp.path().join("none/x.csv"), |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("none/x.csv: could not create"), "{error}");
    let error = to(&dataset, &tmp.path().join("x.xls"), |_| {}).unwrap_err();
    assert!(error.to_string().contains("found \"xls\"; --to"), "{error}");

    // What a killed writer has left is no obstacle, a living one is.
    let partial = tmp.path().join(".y.csv.partial");
    fs::write(&partial, "half").unwrap();
    to(&dataset, &tmp.path().join("y.csv"), |_| {}).unwrap();
    fs::write(&partial, "half").unwrap();
    let held = fs::File::open(&partial).unwrap();
    held.lock().unwrap();
    let error = to(&dataset, &tmp.path().join("y.csv"), |o| o.replace = true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    drop(held);
    fs::remove_file(&partial).unwrap();

    let progress = Progress::new();
    progress.stop();
    let stopped =
        unpack(&dataset, &Output::Path(tmp.path().join("z.npy")), &UnpackOptions::default(), &progress);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Stopped);
    let hidden: Vec<_> = fs::read_dir(tmp.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') || name.starts_with('z'))
        .collect();
    assert_eq!(hidden, [""; 0]);
}

#[test]
fn a_damaged_dataset_leaves_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let dataset = dataset(tmp.path(), &Array2::<f64>::from_elem((5000, 3), 0.5).into_dyn());
    let shard = tmp.path().join("float64.arrshard/x/00003.npy");
    let file = fs::File::options().write(true).open(&shard).unwrap();
    file.set_len(5000).unwrap();
    for name in ["x.npy", "x.npz", "x.csv"] {
        let error = to(&dataset, &tmp.path().join(name), |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(error.path(), Some(&*shard), "{error}");
    }
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_written_straight() {
    let tmp = tempfile::tempdir().unwrap();
    let values = Array::from_shape_fn((5000, 3), |(i, j)| (i * j) as f64).into_dyn();
    let dataset = dataset(tmp.path(), &values);
    let npy = to(&dataset, &tmp.path().join("x.npy"), |_| {}).unwrap();
    let device = |path: &str, target| {
        let options = |o: &mut UnpackOptions| o.to = Some(target);
        let mut all = UnpackOptions::default();
        options(&mut all);
        unpack(&dataset, &Output::Path(path.into()), &all, &Progress::new())
    };
    device("/dev/null", Target::Csv).unwrap();
    let full = device("/dev/full", Target::Csv).unwrap_err();
    assert_eq!(full.to_string(), "/dev/full: could not write: no space left on device");
    let error = device("/dev/null", Target::Npz).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);

    let fifo = tmp.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mkfifo is not there");
        return;
    }
    let path = fifo.to_str().unwrap();
    let found = std::thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read(&fifo).unwrap());
        device(path, Target::Npy).unwrap();
        reader.join().unwrap()
    });
    assert!(found == npy);
    let broken = std::thread::scope(|scope| {
        scope.spawn(|| drop(fs::File::open(&fifo).unwrap()));
        device(path, Target::Npy).unwrap_err()
    });
    let source = std::error::Error::source(&broken).unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::BrokenPipe, "{broken}");
}

/// A small file system of its own, gone in the end.
#[cfg(target_os = "linux")]
struct SmallDisk(TempDir);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(folder.path());
        mount.stderr(std::process::Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: mounting a small file system takes more rights");
        return;
    };
    let tmp = tempfile::tempdir().unwrap();
    let dataset = dataset(tmp.path(), &Array2::<f64>::from_elem((50_000, 3), 0.5).into_dyn());
    for (name, action) in [("x.npy", "allocate 1200128 bytes"), ("x.npz", "write"), ("x.csv", "write")] {
        let out = disk.0.path().join(name);
        fs::write(&out, "mine").unwrap();
        let error = to(&dataset, &out, |o| (o.replace, o.sync) = (true, true)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{}: could not {action}: no space left on device", out.display())
        );
        assert_eq!(fs::read(&out).unwrap(), b"mine");
        fs::remove_file(&out).unwrap();
        let parts = to(&dataset, &out, |o| (o.to, o.parts) = (Some(Target::Csv), Some(20)));
        assert!(parts.is_err());
        assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 0);
    }
}
