//! Text in: finding records, and whole packs, against a plain count of newlines.
#![allow(missing_docs)]

use arrshard::text::count::count;
use arrshard::text::{Dialect, Fields, Records};
use arrshard::{DType, Input, PackOptions, Progress, WriteOptions, pack};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

/// Numbers that look random and are the same in every run.
fn noise(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed | 1), |x| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    })
    .skip(8)
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The four kinds of text that are measured: a name, a dtype, and a line's fields.
fn texts(bytes: usize) -> Vec<(&'static str, DType, String)> {
    let table = |columns: usize, field: &dyn Fn(&mut String, u64) -> std::fmt::Result| {
        let mut text = String::with_capacity(bytes + 4096);
        let mut noise = noise(7);
        while text.len() < bytes {
            for column in 0..columns {
                if column > 0 {
                    text.push('\t');
                }
                field(&mut text, noise.next().unwrap_or(1)).expect("a string takes all");
            }
            text.push('\n');
        }
        text
    };
    vec![
        // np.savetxt's default, as in "%.18e".
        (
            "seed",
            DType::Float64,
            table(10, &|text, bits| {
                let digits = format!("{:.17e}", unit(bits));
                let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(text, "{mantissa}0e{sign}{:02}", exponent.abs())
            }),
        ),
        ("short", DType::Float64, table(10, &|text, bits| write!(text, "{}", unit(bits)))),
        ("emb", DType::Float32, table(100, &|text, bits| write!(text, "{:.5}", unit(bits) * 2.0 - 1.0))),
        ("ints", DType::Int64, table(8, &|text, bits| write!(text, "{}", bits % 1_000_000_000))),
    ]
}

fn structure(c: &mut Criterion) {
    let mut group = c.benchmark_group("structure");
    let dialect = Dialect::tsv();
    for (name, _, text) in texts(8 << 20) {
        group.throughput(Throughput::Bytes(text.len() as u64));
        let text = text.as_bytes();
        group.bench_function(format!("newlines/{name}"), |b| {
            b.iter(|| memchr::memchr_iter(b'\n', black_box(text)).count());
        });
        group.bench_function(format!("count/{name}"), |b| b.iter(|| count(black_box(text), &dialect)));
        group.bench_function(format!("records/{name}"), |b| {
            b.iter(|| {
                let (mut fields, mut total) = (Fields::new(), 0);
                let mut records = Records::new(black_box(text), &dialect);
                while let Some(Ok(_)) = records.next(&mut fields) {
                    total += fields.len();
                }
                total
            });
        });
    }
    group.finish();
}

fn whole(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = c.benchmark_group("pack");
    group.sample_size(10);
    for (name, dtype, text) in texts(64 << 20) {
        let input = folder.path().join(format!("{name}.tsv"));
        std::fs::write(&input, &text).expect("room for an input");
        group.throughput(Throughput::Bytes(text.len() as u64));
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let out = folder.path().join("out");
            group.bench_function(format!("{name}/threads-{threads}"), |b| {
                b.iter(|| pool.install(|| pack_once(&input, &out, dtype)));
            });
        }
    }
    group.finish();
}

fn pack_once(input: &Path, out: &Path, dtype: DType) {
    let mut options = PackOptions { name: "data".into(), ..PackOptions::default() };
    options.text.dtype = Some(dtype);
    options.write = WriteOptions::new().sync(false).replace(true);
    pack(&[Input::from_arg(input)], out, &options, &Progress::new()).expect("a good input");
}

criterion_group!(benches, structure, whole);
criterion_main!(benches);
