//! Processes that fill one array through regions, beside as many that write plain files by `pwrite`;
//! and what thousands of shards cost.
//!
//!     cargo bench --bench regions -- [FOLDER [MiB]]
//!
//! prints a line a measurement: the fastest of five, nothing synced, each child touching every byte
//! once before it is written, as a real writer does.
#![allow(missing_docs, clippy::print_stdout)]

use arrshard::{Builder, DType, Shared, Transfer, WriteOptions};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROW: u64 = 4096;
const MIB: u64 = 1 << 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.first().is_some_and(|arg| arg == "child") {
        return child(&args[1], Path::new(&args[2]), number(&args[3]), number(&args[4]), number(&args[5]));
    }
    let folder = args.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let bytes = args.get(1).map_or(1024, |mib| number(mib)) * MIB;
    let tmp = tempfile::tempdir_in(&folder).expect("a folder to write to");
    println!("{} MiB in {}, GB/s", bytes / MIB, folder.display());
    for count in [1, 2, 4, 8] {
        let mut best = [f64::MAX; 4];
        for _ in 0..5 {
            for (best, task) in best.iter_mut().zip(["plain", "map", "write", "raw"]) {
                *best = best.min(run(task, tmp.path(), count, bytes));
            }
        }
        let speed = best.map(|seconds| bytes as f64 / seconds / 1e9);
        println!(
            "{count} processes: plain pwrite {:.2}, regions mapped {:.2} (ratio {:.2}), written {:.2} (ratio {:.2}), pwrite to the same place without locks and checksums {:.2}",
            speed[0],
            speed[1],
            speed[1] / speed[0],
            speed[2],
            speed[2] / speed[0],
            speed[3],
        );
    }
    let mut data = vec![0u8; 64 * MIB as usize];
    pattern(&mut data, 1);
    let start = Instant::now();
    let sum = data.chunks(MIB as usize).fold(0, |sum, block| sum ^ arrshard::checksum::crc32(block));
    println!("checksum alone: {:.2} ({sum:08x})", data.len() as f64 / start.elapsed().as_secs_f64() / 1e9);
    for shards in [1000, 10_000] {
        many(tmp.path(), shards);
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// What a writer computes, at memory speed.
fn pattern(out: &mut [u8], seed: u64) {
    for (i, out) in out.chunks_exact_mut(8).enumerate() {
        out.copy_from_slice(&(seed + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    }
}

fn options() -> WriteOptions {
    WriteOptions::new().sync(false)
}

/// Seconds from the word to start until all have written.
fn run(task: &str, folder: &Path, count: u64, bytes: u64) -> f64 {
    let path = folder.join("x");
    let shared = (task != "plain").then(|| {
        let rows = bytes / ROW;
        Builder::new(options()).array("x", DType::UInt8, &[rows, ROW]).create_shared(&path).expect("a plan")
    });
    let mut children: Vec<_> = (0..count)
        .map(|index| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["child", task])
                .arg(&path)
                .args([index, count, bytes].map(|number| number.to_string()))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        })
        .collect();
    let mut lines: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().expect("a pipe")).lines())
        .collect();
    lines.iter_mut().for_each(|lines| drop(lines.next()));
    let start = Instant::now();
    children.iter_mut().for_each(|child| writeln!(child.stdin.as_mut().expect("a pipe")).expect("a reader"));
    lines.iter_mut().for_each(|lines| drop(lines.next()));
    let seconds = start.elapsed().as_secs_f64();
    children.iter_mut().for_each(|child| assert!(child.wait().expect("an end").success()));
    match shared {
        Some(shared) => shared.abandon().expect("nobody else"),
        None => (0..count).for_each(|index| fs::remove_file(plain(&path, index)).expect("a file")),
    }
    seconds
}

fn plain(path: &Path, index: u64) -> PathBuf {
    path.with_extension(index.to_string())
}

fn child(task: &str, path: &Path, index: u64, count: u64, bytes: u64) {
    let shared = (task != "plain").then(|| Shared::join(path, options()).expect("a plan"));
    let mut buffer = vec![1u8; MIB as usize];
    println!("ready");
    let _ = std::io::stdin().lines().next();
    if let Some(shared) = shared {
        for rows in shared.regions("x", count).expect("blocks")[index as usize].clone() {
            match task {
                "raw" => raw(&shared, rows, &mut buffer),
                _ => region(&shared, rows, task),
            }
        }
    } else {
        let file = File::create(plain(path, index)).expect("a file");
        for at in (0..bytes / count).step_by(MIB as usize) {
            pattern(&mut buffer, at);
            file.write_all_at(&buffer, at).expect("room");
        }
    }
    println!("done");
}

fn region(shared: &Shared, rows: Range<u64>, task: &str) {
    let transfer = if task == "map" { Transfer::Map } else { Transfer::Write };
    // A lock each, and a map if they are mapped.
    let mib = std::env::var("REGION_MIB").ok().map_or(if task == "map" { 4 } else { 1 }, |mib| number(&mib));
    let step = mib * MIB / ROW;
    for start in rows.clone().step_by(step as usize) {
        let rows = start..rows.end.min(start + step);
        let mut region = shared.region_by("x", rows, transfer).expect("free rows");
        for (block, bytes) in region.bytes_mut().chunks_mut(MIB as usize).enumerate() {
            pattern(bytes, start * ROW + block as u64 * MIB);
        }
        region.finish().expect("room");
    }
}

/// The same bytes to the same place by `pwrite`, without a lock, a table or a checksum.
fn raw(shared: &Shared, rows: Range<u64>, buffer: &mut [u8]) {
    let per_shard = shared.layout("x").expect("an array").by_row().rows_per_shard;
    let name = format!("x/{:05}.npy.partial", rows.start / per_shard);
    let file = File::options().write(true).open(shared.path().join(name)).expect("a shard");
    for row in rows.step_by((MIB / ROW) as usize) {
        pattern(buffer, row);
        file.write_all_at(buffer, 4096 + row % per_shard * ROW).expect("room");
    }
}

/// What a dataset of this many shards costs where it has almost no data.
fn many(folder: &Path, shards: u64) {
    let path = folder.join("many");
    let time = |what: &str, job: &mut dyn FnMut()| {
        let start = Instant::now();
        job();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{shards} shards: {what} {:.0} ms, {:.1} us a shard",
            seconds * 1e3,
            seconds * 1e6 / shards as f64
        );
    };
    let mut shared = None;
    time("create", &mut || {
        let options = options().shard_bytes(4096);
        let builder = Builder::new(options).array("x", DType::UInt8, &[shards, 4096]);
        shared = Some(builder.create_shared(&path).expect("a plan"));
    });
    let shared = shared.expect("made");
    time("status of nothing", &mut || assert!(!shared.status().expect("tables").is_done()));
    let values = ndarray::Array2::<u8>::ones((shards as usize, 4096));
    time("write", &mut || shared.write_rows("x", 0, &values.view()).expect("room"));
    time("status of all", &mut || assert!(shared.status().expect("tables").is_done()));
    drop(shared);
    let mut shared = None;
    time("resume", &mut || shared = Some(Shared::resume(&path, options()).expect("a plan")));
    let shared = shared.expect("there");
    assert_eq!(shared.kept(), shards * 4096);
    time("seal", &mut || drop(shared.seal().expect("all rows")));
    fs::remove_dir_all(&path).expect("a dataset");
}
