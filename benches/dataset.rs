//! The store: writing regions by thread count, opening by shard count, scanning, random rows, verifying.
#![allow(missing_docs)]
#![allow(unsafe_code)] // Mapping is the library's one unsafe call; nobody else knows these folders.

use arrshard::{Builder, DType, Dataset, Progress, Transfer, WriteOptions};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Ix2;
use std::hint::black_box;
use std::path::Path;

const COLUMNS: u64 = 128;

/// Writes `rows` rows of 512 bytes; every value tells its row.
fn write(path: &Path, rows: u64, options: WriteOptions) -> Dataset {
    let options = options.sync(false).replace(true);
    let builder = Builder::new(options).array("x", DType::Float32, &[rows, COLUMNS]);
    let writer = builder.create(path).expect("room for a dataset");
    writer
        .fill("x", |rows, bytes| {
            for (row, bytes) in rows.zip(bytes.chunks_exact_mut(512)) {
                let value = (row as f32).to_le_bytes();
                bytes.chunks_exact_mut(4).for_each(|out| out.copy_from_slice(&value));
            }
            Ok(())
        })
        .expect("room for rows");
    writer.seal().expect("all rows written")
}

fn regions(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = c.benchmark_group("write");
    let rows = 1 << 19;
    group.throughput(Throughput::Bytes(rows * 512)).sample_size(10);
    for transfer in [Transfer::Write, Transfer::Map] {
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let name = format!("{transfer:?}/threads-{threads}").to_lowercase();
            let path = folder.path().join("x");
            group.bench_function(name, |b| {
                b.iter(|| pool.install(|| write(&path, rows, WriteOptions::new().transfer(transfer))));
            });
        }
    }
    group.finish();
}

fn open(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = c.benchmark_group("open-and-first-value");
    for shards in [1u64, 10, 100, 1000] {
        let path = folder.path().join(format!("{shards}"));
        write(&path, shards * 8, WriteOptions::new().shard_bytes(4096));
        group.bench_function(format!("shards-{shards}"), |b| {
            b.iter(|| {
                let dataset = Dataset::open(&path).expect("a dataset");
                // SAFETY: nobody changes this benchmark's files.
                let mapped = unsafe { dataset.map() };
                mapped.view::<f32, Ix2>("x").expect("an array")[[3, 7]]
            });
        });
    }
    group.finish();
}

fn read(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = 1 << 19;
    let dataset = write(&folder.path().join("x"), rows, WriteOptions::new().shard_bytes(32 << 20));
    // SAFETY: nobody changes this benchmark's files.
    let mapped = unsafe { dataset.map() };
    let mut group = c.benchmark_group("read");
    group.sample_size(10).throughput(Throughput::Bytes(rows * 512));
    group.bench_function("scan", |b| {
        b.iter(|| mapped.view::<f32, Ix2>("x").expect("an array").as_slice().map(|x| x.iter().sum::<f32>()));
    });
    // The same rows as one npy file, mapped by itself: what np.memmap has.
    let whole = write(&folder.path().join("whole"), rows, WriteOptions::new());
    let file = std::fs::File::open(whole.path().join("x/00000.npy")).expect("a shard");
    // SAFETY: nobody changes this benchmark's files.
    let map = unsafe { memmap2::MmapOptions::new().offset(4096).map(&file) }.expect("a map");
    group.bench_function("scan-one-npy", |b| {
        b.iter(|| bytemuck::cast_slice::<u8, f32>(&map).iter().sum::<f32>());
    });
    group.bench_function("copy", |b| b.iter(|| dataset.read::<f32, Ix2>("x").expect("an array")));
    group.bench_function("verify", |b| b.iter(|| dataset.verify(&Progress::new()).expect("a report")));
    let picks: Vec<u64> = (0..20_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % rows).collect();
    group.throughput(Throughput::Elements(picks.len() as u64));
    group.bench_function("take-mapped", |b| {
        b.iter_batched(
            || picks.clone(),
            |picks| mapped.take::<f32>("x", black_box(&picks)),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("take-read", |b| {
        b.iter_batched(
            || picks.clone(),
            |picks| dataset.take::<f32>("x", black_box(&picks)),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, regions, open, read);
criterion_main!(benches);
