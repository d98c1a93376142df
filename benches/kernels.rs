//! The number kernels alone, on one thread: `cargo bench --bench kernels`.
//!
//! Four kinds of text, as other programs write them: `seed` is `%.18e` of doubles, `short` their shortest
//! digits, `emb` is `%.5f` of singles in 100 columns, `ints` are whole numbers up to 10^9 in 8 columns.

use arrshard::text::matrix::{Delim, FastNumber, Stop, parse_rows};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Large enough to be in no first-level cache.
const BYTES: usize = 1 << 20;

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From zero to below one.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn table(columns: usize, mut field: impl FnMut(&mut Random) -> String) -> String {
    let mut random = Random(1);
    let mut text = String::new();
    while text.len() < BYTES {
        let row: Vec<String> = (0..columns).map(|_| field(&mut random)).collect();
        text += &row.join("\t");
        text.push('\n');
    }
    text
}

fn kind<T: FastNumber + Default>(c: &mut Criterion, name: &str, columns: usize, text: &str) {
    let mut out = vec![T::default(); text.lines().count() * columns];
    let mut group = c.benchmark_group("parse_rows");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function(name, |b| {
        b.iter(|| {
            let parsed = parse_rows(black_box(text.as_bytes()), Delim::Byte(b'\t'), columns, &mut out);
            assert_eq!(parsed.stop, Stop::Full);
        });
    });
    group.finish();
}

fn kernels(c: &mut Criterion) {
    let seed = table(10, |random| {
        let text = format!("{:.18e}", random.unit());
        let (mantissa, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
        format!("{mantissa}e-{exponent:0>2}")
    });
    kind::<f64>(c, "seed", 10, &seed);
    kind::<f64>(c, "short", 10, &table(10, |random| random.unit().to_string()));
    kind::<f32>(c, "emb", 100, &table(100, |random| format!("{:.5}", random.unit() * 2.0 - 1.0)));
    kind::<i64>(c, "ints", 8, &table(8, |random| (random.next() % 1_000_000_000).to_string()));
}

criterion_group!(benches, kernels);
criterion_main!(benches);
