use crate::{assert_error, data};
use arrshard::error::ErrorKind::Corrupt;
use arrshard::npy::convert::{check_bools, copy_swapped, gather_field, swap_in_place, transpose_rows};
use arrshard::npy::read_header;
use proptest::prelude::*;

fn swapped(bytes: &[u8], unit: usize) -> Vec<u8> {
    bytes.chunks(unit).flat_map(|item| item.iter().rev().copied()).collect()
}

/// Item by item, straight from the definition of both orders.
fn transposed(src: &[u8], shape: &[u64], itemsize: usize, rows: std::ops::Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let row_items: u64 = shape[1..].iter().product();
    for row in rows {
        for item in 0..row_items {
            // The indices of the item, from its place in C order.
            let mut rest = row * row_items + item;
            let mut index = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                index[d] = rest % shape[d];
                rest /= shape[d];
            }
            let (mut at, mut stride) = (0, 1);
            for (i, dim) in index.iter().zip(shape) {
                at += i * stride;
                stride *= dim;
            }
            let at = at as usize * itemsize;
            out.extend_from_slice(&src[at..at + itemsize]);
        }
    }
    out
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

proptest! {
    #[test]
    fn swaps_as_the_twin_does(items in proptest::collection::vec(any::<u64>(), 0..200), shift in 0u32..4) {
        let unit = 1usize << shift;
        let bytes: Vec<u8> = items.iter().flat_map(|i| i.to_le_bytes()).collect();
        let bytes = &bytes[..bytes.len() / 8 * unit];
        let expected = swapped(bytes, unit);
        let mut out = vec![0; bytes.len()];
        copy_swapped(bytes, &mut out, unit);
        prop_assert_eq!(&out, &expected);
        let mut out = bytes.to_vec();
        swap_in_place(&mut out, unit);
        prop_assert_eq!(&out, &expected);
    }

    #[test]
    fn gathers_as_the_twin_does(records in 0usize..50, before in 0usize..20, size in 0usize..35, after in 0usize..20) {
        let itemsize = before + size + after;
        let src = numbered(records * itemsize);
        let mut out = vec![0; records * size];
        gather_field(&src, itemsize, before, size, &mut out);
        let expected: Vec<u8> = (0..records).flat_map(|r| src[r * itemsize + before..][..size].to_vec()).collect();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn transposes_as_the_twin_does(
        shape in proptest::collection::vec(0u64..7, 1..6),
        itemsize in proptest::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16, 24]),
        cut in (0.0f64..=1.0, 0.0f64..=1.0),
    ) {
        check_transpose(&shape, itemsize, cut);
    }

    #[test]
    fn transposes_over_tile_edges(
        height in 1u64..100,
        width in 1u64..100,
        depth in 1u64..4,
        itemsize in proptest::sample::select(vec![1usize, 4, 8, 5]),
        cut in (0.0f64..=1.0, 0.0f64..=1.0),
    ) {
        check_transpose(&[height, width], itemsize, cut);
        check_transpose(&[height, width, depth], itemsize, cut);
        check_transpose(&[height, depth, width], itemsize, cut);
    }
}

fn check_transpose(shape: &[u64], itemsize: usize, cut: (f64, f64)) {
    let src = numbered(shape.iter().product::<u64>() as usize * itemsize);
    let edge = |part: f64| (shape[0] as f64 * part) as u64;
    let rows = edge(cut.0).min(edge(cut.1))..edge(cut.0).max(edge(cut.1));
    let expected = transposed(&src, shape, itemsize, rows.clone());
    let mut out = vec![0; expected.len()];
    transpose_rows(&src, shape, itemsize, rows, &mut out);
    assert_eq!(out, expected, "{shape:?}");
}

#[test]
fn a_fortran_file_of_numpy() {
    let file = data("fortran.npy");
    let header = read_header(&file, Some(file.len() as u64), false).unwrap();
    assert!(header.needs_transpose());
    let src = &file[header.data_offset as usize..];
    let mut out = vec![0; src.len()];
    transpose_rows(src, &header.shape, 4, 0..2, &mut out);
    swap_in_place(&mut out, 4);
    let expected: Vec<u8> = (0..24).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(out, expected);
}

#[test]
fn the_fields_of_a_structured_file_of_numpy() {
    let file = data("padded.npy");
    let header = read_header(&file, Some(file.len() as u64), false).unwrap();
    let records = &file[header.data_offset as usize..];
    let mut wide = [0; 40];
    gather_field(records, 32, 8, 8, &mut wide);
    swap_in_place(&mut wide, 8);
    assert_eq!(wide[..], (-2i64..3).flat_map(i64::to_le_bytes).collect::<Vec<_>>());
    let mut pairs = [0; 40];
    gather_field(records, 32, 16, 8, &mut pairs);
    assert_eq!(pairs[..], (0..10).flat_map(|i| (i as f32 / 2.0).to_le_bytes()).collect::<Vec<_>>());
    // Each half of a complex number is swapped by itself.
    let mut z = [0; 40];
    gather_field(records, 32, 24, 8, &mut z);
    swap_in_place(&mut z, 4);
    assert_eq!(
        z[..],
        (0..5).flat_map(|i| [i as f32, 0.0 - 2.0 * i as f32]).flat_map(f32::to_le_bytes).collect::<Vec<_>>()
    );
}

#[test]
fn bools_are_0_or_1() {
    let mut bytes = vec![1; 10_000];
    bytes[3] = 0;
    assert!(check_bools(&bytes, 0).is_ok());
    assert!(check_bools(&[], 0).is_ok());
    bytes[9_000] = 255;
    bytes[9_001] = 2;
    assert_error(&check_bools(&bytes, 1 << 40).unwrap_err(), Corrupt, &["element 1099511636776", "255"]);
}
