//! Several inputs, one array: however each of them is written, its rows are its rows.

use super::common::gz;
use super::npy;
use arrshard::{Dataset, ErrorKind, Input, PackOptions, Progress, WriteOptions, pack};
use ndarray::{Array2, Ix1, Ix2};
use std::fs;
use std::path::{Path, PathBuf};

fn run(tmp: &Path, inputs: &[PathBuf]) -> arrshard::Result<Dataset> {
    let out = tmp.join("out");
    let _ = fs::remove_dir_all(&out);
    let inputs: Vec<_> = inputs.iter().map(|path| Input::Path(path.clone())).collect();
    let write = WriteOptions::new().sync(false).replace(true);
    let options = PackOptions { name: "x".into(), write, ..PackOptions::default() };
    pack(&inputs, &out, &options, &Progress::new()).map(|packed| packed.dataset.unwrap())
}

/// Three rows of two, from `start` on, in each order of bytes and of values, as a file and as a stream.
fn encodings(start: i32) -> Vec<Vec<u8>> {
    let values: Vec<i32> = (start..start + 6).collect();
    let mut all = Vec::new();
    for fortran in [false, true] {
        let order: Vec<i32> =
            if fortran { [0, 2, 4, 1, 3, 5].map(|i| values[i]).to_vec() } else { values.clone() };
        for descr in ["<i4", ">i4"] {
            let bytes: Vec<u8> = order
                .iter()
                .flat_map(|v| if descr == "<i4" { v.to_le_bytes() } else { v.to_be_bytes() })
                .collect();
            let order = if fortran { "True" } else { "False" };
            let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (3, 2), }}\n");
            let file = npy(1, text.as_bytes(), &bytes);
            all.push(gz(&file));
            all.push(file);
        }
    }
    all
}

#[test]
fn each_input_has_its_own_order() {
    let tmp = tempfile::tempdir().unwrap();
    let expected = Array2::from_shape_vec((9, 2), (0..18).collect::<Vec<i32>>()).unwrap();
    let paths = ["a.npy", "b.npy", "c.npy"].map(|name| tmp.path().join(name));
    for (a, first) in encodings(0).iter().enumerate() {
        for (b, second) in encodings(6).iter().enumerate() {
            for (c, third) in encodings(12).iter().enumerate() {
                for (path, bytes) in paths.iter().zip([first, second, third]) {
                    fs::write(path, bytes).unwrap();
                }
                let found = run(tmp.path(), &paths).unwrap().read::<i32, Ix2>("x").unwrap();
                assert_eq!(found, expected, "encodings {a}, {b}, {c}");
            }
        }
    }
}

/// Two records of `x` and `y` from `start` on, in several layouts.
fn records(start: u8) -> Vec<Vec<u8>> {
    let rows = [start, start + 1];
    let little: Vec<u8> = rows
        .iter()
        .flat_map(|&r| [&u32::from(r).to_le_bytes()[..], &f64::from(r).to_le_bytes()].concat())
        .collect();
    let turned: Vec<u8> = rows
        .iter()
        .flat_map(|&r| [&f64::from(r).to_le_bytes()[..], &u32::from(r).to_be_bytes()].concat())
        .collect();
    // A gap before `x` and one behind it, as C lays out a struct.
    let padded: Vec<u8> = rows
        .iter()
        .flat_map(|&r| {
            [&[9u8; 4][..], &u32::from(r).to_le_bytes(), &f64::from(r).to_be_bytes(), &[9; 8]].concat()
        })
        .collect();
    [
        ("[('x', '<u4'), ('y', '<f8')]", little),
        ("[('y', '<f8'), ('x', '>u4')]", turned),
        ("[('', '|V4'), ('x', '<u4'), ('y', '>f8'), ('', '|V8')]", padded),
    ]
    .into_iter()
    .flat_map(|(descr, bytes)| {
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}\n");
        let file = npy(1, text.as_bytes(), &bytes);
        [gz(&file), file]
    })
    .collect()
}

#[test]
fn each_record_has_its_own_layout() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = ["a.npy", "b.npy"].map(|name| tmp.path().join(name));
    for (a, first) in records(1).iter().enumerate() {
        for (b, second) in records(3).iter().enumerate() {
            for (path, bytes) in paths.iter().zip([first, second]) {
                fs::write(path, bytes).unwrap();
            }
            let dataset = run(tmp.path(), &paths).unwrap();
            assert_eq!(dataset.read::<u32, Ix1>("x").unwrap().to_vec(), [1, 2, 3, 4], "{a}, {b}");
            assert_eq!(dataset.read::<f64, Ix1>("y").unwrap().to_vec(), [1.0, 2.0, 3.0, 4.0], "{a}, {b}");
        }
    }
}

#[test]
fn one_padded_field_of_a_stream() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("a.npy");
    let text = "{'descr': [('', '|V4'), ('x', '<u4')], 'fortran_order': False, 'shape': (2,), }\n";
    fs::write(&path, gz(&npy(1, text.as_bytes(), &[9, 9, 9, 9, 1, 0, 0, 0, 9, 9, 9, 9, 2, 0, 0, 0])))
        .unwrap();
    let dataset = run(tmp.path(), &[path]).unwrap();
    assert_eq!(dataset.read::<u32, Ix1>("x").unwrap().to_vec(), [1, 2]);
}

#[test]
fn rows_of_one_input_stay_beside_each_other() {
    let tmp = tempfile::tempdir().unwrap();
    let record = |descr: &str, bytes: &[u8]| {
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}\n");
        npy(1, text.as_bytes(), bytes)
    };
    let both = record("[('x', '|u1'), ('y', '|u1')]", &[1, 2]);
    let one = record("[('x', '|u1')]", &[3]);
    let paths = ["a.npy", "b.npy"].map(|name| tmp.path().join(name));
    for (first, second, lacks) in [(&both, &one, "b.npy"), (&one, &both, "a.npy")] {
        fs::write(&paths[0], first).unwrap();
        fs::write(&paths[1], second).unwrap();
        let error = run(tmp.path(), &paths).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("expected rows for array \"y\""), "{error}");
        assert!(error.to_string().contains(lacks), "{error}");
    }
    // Inputs that share no array are not joined at all.
    fs::write(&paths[0], record("[('y', '|u1')]", &[3])).unwrap();
    fs::write(&paths[1], &one).unwrap();
    assert_eq!(run(tmp.path(), &paths).unwrap().arrays().len(), 2);
}
