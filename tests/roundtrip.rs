//! What is written is what is read, for every dtype, dimension and number of shards.

#![allow(unsafe_code)] // Mapping is the one unsafe call of the library; each test vouches for its files.

use arrshard::layout::HEADER_BYTES;
use arrshard::{Builder, DType, Dataset, Element, ErrorKind, Progress, Transfer, WriteOptions};
use half::{bf16, f16};
use ndarray::{Array, Array1, Array2, ArrayD, Ix1, Ix2, Ix3, IxDyn, s};
use num_complex::Complex;
use std::fs;
use std::path::Path;

fn small_shards(bytes: u64) -> WriteOptions {
    WriteOptions::new().shard_bytes(bytes).sync(false)
}

fn pack<T: Element>(path: &Path, values: &ArrayD<T>, options: WriteOptions) -> Dataset {
    let shape: Vec<u64> = values.shape().iter().map(|&d| d as u64).collect();
    let writer = Builder::new(options).array("x", T::DTYPE, &shape).create(path).unwrap();
    writer.write("x", &values.view()).unwrap();
    writer.seal().unwrap()
}

fn same<T: Element>(values: &ArrayD<T>, options: WriteOptions) {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x.arrshard");
    let dataset = pack(&path, values, options);
    assert_eq!(&dataset.read::<T, IxDyn>("x").unwrap(), values);
    // SAFETY: nobody changes the files of this test.
    let mapped = unsafe { dataset.map() };
    assert_eq!(mapped.view::<T, IxDyn>("x").unwrap(), values.view());
    assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
    assert_eq!(Dataset::open(&path).unwrap().manifest(), dataset.manifest());
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1, "nothing is left beside the dataset");
}

#[test]
fn every_dtype_comes_back() {
    macro_rules! check {
        ($t:ty, $f:expr) => {
            let values: Array<$t, _> = Array::from_shape_fn((3000, 3), $f).into_dyn();
            same(&values, small_shards(4096));
            same(&values, WriteOptions::new());
        };
    }
    check!(bool, |(i, j)| (i + j) % 3 == 0);
    check!(i8, |(i, j)| (i * 3 + j) as i8);
    check!(i16, |(i, j)| -((i * 3 + j) as i16));
    check!(i32, |(i, j)| -((i * 3 + j) as i32));
    check!(i64, |(i, j)| i64::MIN + (i * 3 + j) as i64);
    check!(u8, |(i, j)| (i * 3 + j) as u8);
    check!(u16, |(i, j)| (i * 3 + j) as u16);
    check!(u32, |(i, j)| u32::MAX - (i * 3 + j) as u32);
    check!(u64, |(i, j)| u64::MAX - (i * 3 + j) as u64);
    check!(f16, |(i, j)| f16::from_f32((i * 3 + j) as f32));
    check!(bf16, |(i, j)| bf16::from_f32((i * 3 + j) as f32));
    check!(f32, |(i, j)| (i * 3 + j) as f32 / 7.0);
    check!(f64, |(i, j)| (i * 3 + j) as f64 / 7.0);
    check!(Complex<f32>, |(i, j)| Complex::new(i as f32, -(j as f32)));
    check!(Complex<f64>, |(i, j)| Complex::new(i as f64, -(j as f64)));
}

#[test]
fn every_number_of_dimensions_comes_back() {
    same(&Array::from_elem(IxDyn(&[]), 2.5f64), WriteOptions::new());
    same(&Array::from_shape_fn(IxDyn(&[5000]), |i| i[0] as i32), small_shards(4096));
    same(
        &Array::from_shape_fn(IxDyn(&[50, 4, 5, 3]), |i| (i[0] * 60 + i[1] * 15 + i[3]) as u16),
        small_shards(1),
    );
    for shape in [&[0][..], &[0, 3], &[3, 0], &[2, 0, 4]] {
        same(&Array::from_elem(IxDyn(shape), 1f32), WriteOptions::new());
    }
    // Rows longer than a block are cut into blocks of their own.
    same(&Array::from_shape_fn(IxDyn(&[3, 300_000]), |i| (i[0] + i[1]) as f64), small_shards(1));
}

#[test]
fn arrays_with_strides_are_written_row_by_row() {
    let values = Array2::from_shape_fn((400, 30), |(i, j)| (i * 30 + j) as f64);
    same(&values.t().to_owned().into_dyn(), small_shards(4096));
    let tmp = tempfile::tempdir().unwrap();
    let view = values.slice(s![..;2, 1..;3]);
    let writer = Builder::new(WriteOptions::new())
        .array("x", DType::Float64, &[200, 10])
        .create(tmp.path().join("d"))
        .unwrap();
    writer.write("x", &view).unwrap();
    assert_eq!(writer.seal().unwrap().read::<f64, Ix2>("x").unwrap(), view);
}

/// The view over any number of shards is one piece of memory, at the distances of one array.
#[test]
fn many_shards_are_one_view() {
    for shards in [1usize, 2, 7, 1000] {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x.arrshard");
        // A row of 16 bytes: 256 rows a page.
        let rows = shards * 256 - 3;
        let values = Array2::from_shape_fn((rows, 4), |(i, j)| (i * 4 + j) as f32);
        let dataset = pack(&path, &values.clone().into_dyn(), small_shards(4096));
        assert_eq!(dataset.array("x").unwrap().shards.len(), shards);
        // SAFETY: nobody changes the files of this test.
        let mapped = unsafe { dataset.map() };
        let view = mapped.view::<f32, Ix2>("x").unwrap();
        assert_eq!(view.strides(), [4, 1]);
        let base = view.as_ptr() as usize;
        for row in (0..rows).step_by(97).chain([rows - 1]) {
            assert_eq!(std::ptr::from_ref(&view[[row, 2]]) as usize, base + row * 16 + 8);
        }
        assert_eq!(view, values);
        let parts = mapped.shards::<f32>("x").unwrap();
        assert_eq!(parts.len(), shards);
        assert_eq!(parts.iter().map(|part| part.shape()[0]).sum::<usize>(), rows);
        assert_eq!(parts[shards - 1].as_ptr() as usize, base + (shards - 1) * 4096);
        let last = path.join("x").join(format!("{:05}.npy", shards - 1));
        assert_eq!(fs::metadata(last).unwrap().len(), HEADER_BYTES + 253 * 16);
        assert!(std::ptr::eq(mapped.clone().view::<f32, Ix2>("x").unwrap().as_ptr(), view.as_ptr()));
    }
}

#[test]
fn rows_are_taken_in_any_order() {
    let tmp = tempfile::tempdir().unwrap();
    let values = Array2::from_shape_fn((5000, 3), |(i, j)| (i * 3 + j) as i64);
    let dataset = pack(&tmp.path().join("x"), &values.clone().into_dyn(), small_shards(4096));
    let rows = [4999, 0, 17, 17, 2048];
    let expected = Array2::from_shape_fn((5, 3), |(i, j)| values[[rows[i] as usize, j]]).into_dyn();
    assert_eq!(dataset.take::<i64>("x", &rows).unwrap(), expected);
    // SAFETY: nobody changes the files of this test.
    let mapped = unsafe { dataset.map() };
    assert_eq!(mapped.take::<i64>("x", &rows).unwrap(), expected);
    assert_eq!(mapped.take::<i64>("x", &[]).unwrap().shape(), [0, 3]);
    for error in
        [dataset.take::<i64>("x", &[5000]).unwrap_err(), mapped.take::<i64>("x", &[1, 5000]).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("5000"), "{error}");
    }
    assert_eq!(
        dataset.read_rows::<i64>("x", 4000..4003).unwrap(),
        values.slice(s![4000..4003, ..]).into_dyn()
    );
}

#[test]
fn asking_for_the_wrong_thing_says_what_is_there() {
    let tmp = tempfile::tempdir().unwrap();
    let dataset = pack(&tmp.path().join("x"), &Array::from_elem(IxDyn(&[3, 2]), 1f32), WriteOptions::new());
    // SAFETY: nobody changes the files of this test.
    let mapped = unsafe { dataset.map() };
    let error = mapped.view::<f64, Ix2>("x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    assert!(error.to_string().contains("expected float64, found float32"), "{error}");
    let error = mapped.view::<f32, Ix3>("x").unwrap_err();
    assert!(error.to_string().contains("expected 3 dimensions, found shape [3, 2]"), "{error}");
    let error = dataset.read::<f32, Ix1>("y").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"x\""), "{error}");
    assert!(dataset.read_rows::<f32>("x", 2..9).is_err());
}

#[test]
fn strings_and_growing_arrays() {
    let tmp = tempfile::tempdir().unwrap();
    let builder = Builder::new(small_shards(4096)).strings("tokens").growing("v", DType::Float32, &[2]);
    let writer = builder.create(tmp.path().join("d")).unwrap();
    let words: Vec<String> =
        (0..3000).map(|i| if i % 5 == 0 { String::new() } else { format!("wörd{i}") }).collect();
    let mut offsets = writer.appender("tokens.offsets").unwrap();
    let mut bytes = writer.appender("tokens.bytes").unwrap();
    let mut v = writer.appender("v").unwrap();
    assert!(writer.appender("v").is_err(), "one appender at a time");
    offsets.append(&0u64.to_le_bytes()).unwrap();
    let mut end = 0u64;
    for (i, word) in words.iter().enumerate() {
        end += word.len() as u64;
        offsets.append(&end.to_le_bytes()).unwrap();
        bytes.append(word.as_bytes()).unwrap();
        v.append(bytemuck::cast_slice(&[i as f32, -1.0])).unwrap();
    }
    assert!(v.append(&[0; 5]).is_err(), "half a row");
    for appender in [offsets, bytes, v] {
        writer.finish(appender).unwrap();
    }
    let dataset = writer.seal().unwrap();
    assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
    assert!(dataset.array("v").unwrap().shards.len() > 5);
    // SAFETY: nobody changes the files of this test.
    let mapped = unsafe { dataset.map() };
    let strings = mapped.strings("tokens").unwrap();
    assert_eq!(strings.len(), words.len());
    assert!(strings.iter().zip(&words).all(|(a, b)| a.unwrap() == b));
    assert!(strings.get(words.len()).is_err());
    let v = mapped.view::<f32, Ix2>("v").unwrap();
    assert_eq!(v.column(0), Array1::from_iter((0..3000).map(|i| i as f32)));
}

#[test]
fn an_owned_handle_goes_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<arrshard::MappedDataset>();
    check::<Dataset>();
    check::<arrshard::Writer>();
    check::<arrshard::Region>();
}

#[test]
fn attributes_come_back() {
    let tmp = tempfile::tempdir().unwrap();
    let json = r#"{"a": [1, 2.5, null], "b": {"c": "ü\u0007"}}"#;
    let attributes: arrshard::Attributes = serde_json::from_str(json).unwrap();
    let builder =
        Builder::new(WriteOptions::new()).array("x", DType::UInt8, &[1]).array_attributes(attributes.clone());
    let writer = builder.attributes(attributes.clone()).create(tmp.path().join("d")).unwrap();
    writer.write("x", &ndarray::arr1(&[7u8]).view()).unwrap();
    let dataset = writer.seal().unwrap();
    assert_eq!(dataset.attributes(), &attributes);
    assert_eq!(dataset.array("x").unwrap().attributes, attributes);
}

#[test]
fn regions_are_disjoint_and_complete_before_the_seal() {
    let tmp = tempfile::tempdir().unwrap();
    for transfer in [Transfer::Write, Transfer::Map] {
        let path = tmp.path().join(format!("{transfer:?}"));
        let options = small_shards(2 << 20).transfer(transfer);
        // 8 bytes a row, 131072 rows a block, two blocks a shard.
        let writer = Builder::new(options).array("x", DType::UInt64, &[600_000]).create(&path).unwrap();
        let layout = writer.layout("x").unwrap().clone();
        assert_eq!((layout.by_row().rows_per_block, layout.shard_count()), (131_072, 3));
        let claimed = writer.region("x", 0..131_072).unwrap();
        let error = writer.region("x", 0..262_144).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("0..131072"), "{error}");
        drop(claimed);
        for bad in [5..131_072, 0..100, 131_072..400_000, 600_000..700_000] {
            let error = writer.region("x", bad.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{bad:?}");
        }
        std::thread::scope(|scope| {
            for rows in layout.regions(1 << 20) {
                let writer = &writer;
                scope.spawn(move || {
                    let mut region = writer.region("x", rows.clone()).unwrap();
                    let mut view = region.view_mut::<u64, Ix1>().unwrap();
                    view.iter_mut().zip(rows).for_each(|(value, row)| *value = row * row);
                    region.finish().unwrap();
                });
            }
        });
        assert!(writer.region("x", 0..131_072).unwrap_err().to_string().contains("written already"));
        let dataset = writer.seal().unwrap();
        assert_eq!(dataset.read::<u64, Ix1>("x").unwrap(), Array1::from_iter((0..600_000u64).map(|i| i * i)));
        assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
    }
    let a = fs::read(tmp.path().join("Write/arrshard.json")).unwrap();
    assert_eq!(a, fs::read(tmp.path().join("Map/arrshard.json")).unwrap());
}

#[test]
fn an_unfinished_dataset_is_not_there() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("d");
    let create = || Builder::new(small_shards(2 << 20)).array("x", DType::UInt64, &[600_000]).create(&path);
    let writer = create().unwrap();
    writer.region("x", 131_072..262_144).unwrap().finish().unwrap();
    assert_eq!(create().unwrap_err().kind(), ErrorKind::Locked, "somebody is building it");
    let error = writer.seal().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert!(error.to_string().contains("rows 0..131072, 262144..600000 missing"), "{error}");
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    drop(create().unwrap());
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_output_is_replaced_only_when_asked_and_only_a_dataset() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("d");
    let one = Array::from_elem(IxDyn(&[3]), 1u8);
    let two = Array::from_elem(IxDyn(&[4]), 2u8);
    pack(&path, &one, WriteOptions::new());
    let error = Builder::new(WriteOptions::new()).array("x", DType::UInt8, &[3]).create(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().ends_with("d: already exists"), "{error}");
    let old = Dataset::open(&path).unwrap();
    pack(&path, &two, WriteOptions::new().replace(true));
    assert_eq!(Dataset::open(&path).unwrap().read::<u8, IxDyn>("x").unwrap(), two);
    assert_eq!(old.read::<u8, IxDyn>("x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1);
    let folder = tmp.path().join("precious");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("thesis.tex"), "x").unwrap();
    let options = WriteOptions::new().replace(true);
    let error = Builder::new(options).array("x", DType::UInt8, &[3]).create(&folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(folder.join("thesis.tex").exists());
}
