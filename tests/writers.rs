//! Many writers of one dataset: threads, and processes, which are this binary run again as [`child`].

mod common;

use arrshard::layout::HEADER_BYTES;
use arrshard::{
    Builder, DType, Dataset, ErrorKind, Input, PackOptions, Progress, Shared, Status, Transfer, WriteOptions,
    pack,
};
use common::{files, gz};
use ndarray::{Array2, Ix2, s};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;

/// Rows of a block of the array `x`: 12 bytes each, so 768 KiB.
const BLOCK: u64 = 1 << 16;
const ROWS: u64 = 8 * BLOCK - 1000;

fn options() -> WriteOptions {
    WriteOptions::new().shard_bytes(2 << 20).sync(false)
}

/// Four shards of two blocks, and an array of one block.
fn plan(options: WriteOptions) -> Builder {
    Builder::new(options).array("x", DType::UInt32, &[ROWS, 3]).array("y", DType::UInt8, &[7])
}

fn value(row: u64, column: u64) -> u32 {
    (row * 3 + column) as u32 ^ 0x5EED
}

fn fill(shared: &Shared, rows: Range<u64>, transfer: Transfer) -> arrshard::Result<()> {
    let mut region = shared.region_by("x", rows.clone(), transfer)?;
    let mut view = region.view_mut::<u32, Ix2>()?;
    view.indexed_iter_mut().for_each(|((i, j), v)| *v = value(rows.start + i as u64, j as u64));
    region.finish()
}

fn fill_y(shared: &Shared) -> arrshard::Result<()> {
    shared.write_rows("y", 0, &ndarray::arr1(&[1u8, 2, 3, 4, 5, 6, 7]).view())
}

/// The folder of an undisturbed writer.
fn alone(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let writer = plan(options()).create(path).unwrap();
    let x = Array2::from_shape_fn((ROWS as usize, 3), |(i, j)| value(i as u64, j as u64));
    writer.write("x", &x.view()).unwrap();
    writer.write("y", &ndarray::arr1(&[1u8, 2, 3, 4, 5, 6, 7]).view()).unwrap();
    writer.seal().unwrap();
    files(path)
}

fn same(path: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>) {
    let found = files(path);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in expected {
        assert!(found[name] == *bytes, "{}", name.display());
    }
}

/// [`child`] in a process of its own.
struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn start(task: &str, path: &Path) -> Other {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("WRITERS_TASK", task)
        .env("WRITERS_PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Other { child, lines }
}

impl Other {
    /// What it says next.
    fn hear(&mut self) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let said = lines.find_map(|line| line.split_once("says: ").map(|(_, said)| said.to_owned()));
        said.expect("a process that ends by saying something")
    }

    /// Lets it go on.
    fn go(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.lines.by_ref().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
#[ignore = "what other tests run as a process"]
fn child() {
    let (Ok(task), Some(path)) = (std::env::var("WRITERS_TASK"), std::env::var_os("WRITERS_PATH")) else {
        return;
    };
    let path = PathBuf::from(path);
    let mut words = task.split(' ');
    let task = words.next().unwrap();
    let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
    let say = |text: String| writeln!(std::io::stdout(), "\nsays: {text}").unwrap();
    match task {
        "share" => {
            let shared = plan(options()).create_shared(&path).unwrap();
            let transfer = if numbers[0].is_multiple_of(2) { Transfer::Map } else { Transfer::Write };
            for rows in &shared.regions("x", 8).unwrap()[numbers[0] as usize] {
                fill(&shared, rows.clone(), transfer).unwrap();
            }
            say(shared.written().to_string());
        }
        "ask" => {
            let shared = Shared::join(&path, options()).unwrap();
            let refused = (0..numbers[2]).filter(|_| {
                let error = shared.region("x", numbers[0]..numbers[1]).err();
                error.is_some_and(|e| {
                    e.kind() == ErrorKind::Locked && e.to_string().contains("0..65536 are being")
                })
            });
            say(refused.count().to_string());
        }
        "hold" => {
            let shared = Shared::join(&path, options()).unwrap();
            let mut region = shared.region("x", numbers[0]..numbers[1]).unwrap();
            region.bytes_mut().fill(1);
            say("held".to_owned());
            std::thread::park();
        }
        "race" => {
            let shared = Shared::join(&path, options()).unwrap();
            say("ready".to_owned());
            let mut turns = std::io::stdin().lines();
            while turns.next().is_some() {
                let region = shared.region("x", numbers[0]..numbers[1]);
                say(if region.is_ok() { "got" } else { "refused" }.to_owned());
                // Kept until the other has its answer.
                let _ = turns.next();
                drop(region);
                say("free".to_owned());
            }
        }
        "seal" => {
            let shared = Shared::join(&path, options()).unwrap();
            say("ready".to_owned());
            let _ = std::io::stdin().lines().next();
            say(shared.seal().map_or_else(|e| e.to_string(), |dataset| dataset.manifest().id().unwrap()));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn of_two_threads_one_gets_a_region() {
    let tmp = tempfile::tempdir().unwrap();
    let shared = plan(options()).create_shared(tmp.path().join("x")).unwrap();
    let barrier = Barrier::new(2);
    let run = |rows: Range<u64>| {
        let mut got = Vec::new();
        for _ in 0..100 {
            barrier.wait();
            let region = shared.region("x", rows.clone());
            barrier.wait();
            if let Err(e) = &region {
                assert_eq!(e.kind(), ErrorKind::Locked);
                assert!(e.to_string().contains("are being written"), "{e}");
            }
            got.push(region.is_ok());
        }
        got
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run(0..2 * BLOCK));
        (run(BLOCK..2 * BLOCK), one.join().unwrap())
    });
    assert!(one.iter().zip(&two).all(|(one, two)| one != two), "exactly one in each of 100 tries");
}

#[test]
fn of_two_processes_one_gets_a_region() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let shared = plan(options()).create_shared(&path).unwrap();
    let region = shared.region("x", 0..BLOCK).unwrap();
    let mut asks = start(&format!("ask 0 {} 100", 2 * BLOCK), &path);
    assert_eq!(asks.hear(), "100");
    asks.end();
    drop(region);

    let mut pair = [
        start(&format!("race 0 {}", 2 * BLOCK), &path),
        start(&format!("race {BLOCK} {}", 2 * BLOCK), &path),
    ];
    pair.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
    for _ in 0..100 {
        pair.iter_mut().for_each(Other::go);
        let mut answers = pair.each_mut().map(Other::hear);
        answers.sort();
        assert_eq!(answers, ["got", "refused"]);
        pair.iter_mut().for_each(Other::go);
        pair.iter_mut().for_each(|child| assert_eq!(child.hear(), "free"));
    }
    pair.into_iter().for_each(Other::end);
}

#[test]
fn a_killed_holder_holds_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let shared = plan(options()).create_shared(&path).unwrap();
    let mut holder = start(&format!("hold 0 {BLOCK}"), &path);
    assert_eq!(holder.hear(), "held");
    assert_eq!(shared.region("x", 0..BLOCK).unwrap_err().kind(), ErrorKind::Locked);
    let status = Status::of(&path).unwrap();
    assert_eq!(status.arrays[0].writing, vec![0..BLOCK]);
    assert_eq!(status.arrays[0].missing, vec![BLOCK..ROWS]);
    let error = shared.seal().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert!(
        error.to_string().contains("rows 65536..523288 missing and rows 0..65536 being written"),
        "{error}"
    );
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    assert!(shared.status().unwrap().arrays[0].writing.is_empty());
    assert!(shared.region("x", 0..BLOCK).is_ok());
}

#[test]
fn eight_processes_fill_what_one_would() {
    let tmp = tempfile::tempdir().unwrap();
    let expected = alone(&tmp.path().join("alone"));
    let path = tmp.path().join("x");
    let mut children: Vec<_> = (0..8).map(|k| start(&format!("share {k}"), &path)).collect();
    let written: u64 = children.iter_mut().map(|child| child.hear().parse::<u64>().unwrap()).sum();
    children.into_iter().for_each(Other::end);
    assert_eq!(written, ROWS * 12);
    assert_eq!(Dataset::open(&path).unwrap_err().kind(), ErrorKind::Incomplete);
    let shared = Shared::join(&path, options()).unwrap();
    assert!(shared.seal().unwrap_err().to_string().contains("array \"y\": expected all rows"));
    fill_y(&shared).unwrap();
    let status = shared.status().unwrap();
    assert!(status.is_done());
    assert_eq!(status.arrays[0].done, vec![0..ROWS]);
    shared.seal().unwrap();
    same(&path, &expected);
    assert_eq!(shared.seal().unwrap().path(), path, "a second time too");
    assert!(shared.status().is_ok());
    assert_eq!(Shared::join(&path, options()).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(plan(options()).create_shared(&path).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 2);
}

#[test]
fn two_sealers_both_get_the_dataset() {
    let tmp = tempfile::tempdir().unwrap();
    let expected = alone(&tmp.path().join("alone"));
    for round in 0..5 {
        let path = tmp.path().join(format!("x{round}"));
        let shared = plan(options()).create_shared(&path).unwrap();
        for rows in shared.missing("x", 1 << 20).unwrap() {
            fill(&shared, rows, Transfer::Auto).unwrap();
        }
        fill_y(&shared).unwrap();
        let mut sealers = [start("seal", &path), start("seal", &path)];
        sealers.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
        sealers.iter_mut().for_each(Other::go);
        let threads = std::thread::scope(|scope| {
            let threads = [scope.spawn(|| shared.seal()), scope.spawn(|| shared.seal())];
            threads.map(|thread| thread.join().unwrap().unwrap().manifest().id().unwrap())
        });
        let processes = sealers.each_mut().map(Other::hear);
        assert_eq!(threads, processes);
        sealers.into_iter().for_each(Other::end);
        same(&path, &expected);
    }
}

#[test]
fn a_reader_sees_nothing_before_the_seal() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let nothing = || {
        let kind = Dataset::open(&path).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Incomplete | ErrorKind::NotFound), "{kind:?}");
    };
    let shared = plan(options()).create_shared(&path).unwrap();
    for rows in shared.missing("x", 1 << 20).unwrap() {
        nothing();
        fill(&shared, rows, Transfer::Auto).unwrap();
    }
    nothing();
    fill_y(&shared).unwrap();
    nothing();
    let dataset = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            loop {
                if let Ok(dataset) = Dataset::open(&path) {
                    assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
                    return dataset;
                }
            }
        });
        shared.seal().unwrap();
        reader.join().unwrap()
    });
    assert_eq!(dataset.read::<u32, Ix2>("x").unwrap()[[1000, 2]], value(1000, 2));
}

#[test]
fn another_plan_is_refused_and_says_why() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let shared = plan(options()).create_shared(&path).unwrap();
    let refused = |builder: Builder, text: &str| {
        let error = builder.create_shared(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(text), "{error}");
    };
    let x = |dtype, shape: &[u64]| {
        Builder::new(options()).array("x", dtype, shape).array("y", DType::UInt8, &[7])
    };
    refused(x(DType::Int32, &[ROWS, 3]), "array \"x\": dtype: expected uint32 as in the plan, found int32");
    refused(
        x(DType::UInt32, &[ROWS, 4]),
        "array \"x\": shape: expected [523288, 3] as in the plan, found [523288, 4]",
    );
    refused(
        plan(options().shard_bytes(1 << 20)),
        "array \"x\": rows_per_shard: expected 131072 as in the plan",
    );
    refused(plan(options()).array("z", DType::UInt8, &[1]), "arrays: expected \"x\", \"y\" as in the plan");
    refused(plan(options()).inputs(vec!["a".into()]), "inputs");
    refused(Builder::new(options()).growing("x", DType::UInt8, &[]), "expected a known shape");
    assert!(plan(options()).create_shared(&path).is_ok());
    assert_eq!(plan(options()).create(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(shared);
    let alone = plan(options()).create(&path).unwrap();
    assert_eq!(plan(options()).create_shared(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(alone);
    assert_eq!(Shared::join(&path, options()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Status::of(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn what_is_abandoned_is_gone() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x");
    let one = plan(options()).create_shared(&path).unwrap();
    let two = Shared::join(&path, options()).unwrap();
    assert_eq!(one.abandon().unwrap_err().kind(), ErrorKind::Locked);
    two.abandon().unwrap();
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    drop(plan(options()).create_shared(&path).unwrap());
    Shared::discard(&path).unwrap();
    assert_eq!(Shared::discard(&path).unwrap_err().kind(), ErrorKind::NotFound);
    let three = plan(options()).create_shared(&path).unwrap();
    fs::remove_dir_all(three.path()).unwrap();
    assert_eq!(three.seal().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn rows_must_be_whole_blocks_and_free() {
    let tmp = tempfile::tempdir().unwrap();
    let shared = plan(options()).create_shared(tmp.path().join("x")).unwrap();
    let refused = |rows: Range<u64>, kind, text: &str| {
        let error = shared.region("x", rows).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(1..BLOCK, ErrorKind::InvalidArgument, "found 1..65536; rows 0..65536 are whole blocks");
    refused(0..3 * BLOCK, ErrorKind::InvalidArgument, "rows within 0..131072 of one shard, found 0..196608");
    refused(BLOCK..ROWS + 1, ErrorKind::InvalidArgument, "rows within");
    refused(u64::MAX - 5..u64::MAX, ErrorKind::InvalidArgument, "rows within");
    assert_eq!(shared.region("z", 0..1).unwrap_err().kind(), ErrorKind::NotFound);

    let x = Array2::from_shape_fn((ROWS as usize, 3), |(i, j)| value(i as u64, j as u64));
    let part = |rows: Range<u64>| x.slice(s![rows.start as usize..rows.end as usize, ..]);
    let write = |start, rows| shared.write_rows("x", start, &part(rows));
    assert_eq!(write(1, 1..BLOCK).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(write(BLOCK, 0..ROWS).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(shared.write_rows("x", 0, &x.mapv(f64::from).view()).is_err());
    assert_eq!(shared.written(), 0);
    write(BLOCK, BLOCK..5 * BLOCK).unwrap();
    refused(0..2 * BLOCK, ErrorKind::Locked, "found that 65536..131072 are written already");
    assert_eq!(shared.missing("x", 2 << 20).unwrap(), [0..BLOCK, 5 * BLOCK..6 * BLOCK, 6 * BLOCK..ROWS]);
    assert_eq!(shared.part("x", 1, 2).unwrap(), 4 * BLOCK..ROWS);
    assert!(shared.part("x", 2, 2).is_err());
    // Rows that are not filled are zero, in either way.
    for (rows, transfer) in [(0..BLOCK, Transfer::Map), (5 * BLOCK..6 * BLOCK, Transfer::Write)] {
        let mut region = shared.region_by("x", rows, transfer).unwrap();
        assert!(region.bytes_mut().iter().all(|&byte| byte == 0));
        region.finish().unwrap();
    }
    fill(&shared, 6 * BLOCK..ROWS, Transfer::Auto).unwrap();
    fill_y(&shared).unwrap();
    let dataset = shared.seal().unwrap();
    assert!(dataset.verify(&Progress::new()).unwrap().is_whole());
    let found = dataset.read::<u32, Ix2>("x").unwrap();
    assert!(found.slice(s![..BLOCK as usize, ..]).iter().all(|&v| v == 0));
    assert_eq!(found.slice(s![6 * BLOCK as usize.., ..]), part(6 * BLOCK..ROWS));
    assert_eq!(shared.region("x", 0..BLOCK).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn resume_keeps_what_is_whole_and_nothing_else() {
    let tmp = tempfile::tempdir().unwrap();
    let expected = alone(&tmp.path().join("alone"));
    let path = tmp.path().join("x");
    let shared = plan(options()).create_shared(&path).unwrap();
    let building = shared.path().to_owned();
    for block in [0, 1, 2, 3, 5] {
        fill(&shared, block * BLOCK..(block + 1) * BLOCK, Transfer::Auto).unwrap();
    }
    drop(shared);
    let open = |name: &str| fs::File::options().read(true).write(true).open(building.join(name)).unwrap();
    // One byte of block 1; a table without its data; a slot torn.
    open("x/00000.npy.partial").write_all_at(b"!", HEADER_BYTES + BLOCK * 12 + 777).unwrap();
    fs::remove_file(building.join("x/00002.npy.partial")).unwrap();
    open("x/00001.blocks").write_all_at(b"!", 16 + 9).unwrap();
    let shared = Shared::resume(&path, options()).unwrap();
    assert_eq!(shared.kept(), 2 * BLOCK * 12);
    let missing = shared.missing("x", 1).unwrap();
    assert_eq!(missing.iter().map(|rows| rows.start / BLOCK).collect::<Vec<_>>(), [1, 3, 4, 5, 6, 7]);
    for rows in missing {
        fill(&shared, rows, Transfer::Auto).unwrap();
    }
    assert_eq!(shared.written(), (ROWS - 2 * BLOCK) * 12);
    fill_y(&shared).unwrap();
    shared.seal().unwrap();
    same(&path, &expected);
}

#[test]
fn parts_and_a_resumed_pack_give_the_bytes_of_one_run() {
    let tmp = tempfile::tempdir().unwrap();
    let text = tmp.path().join("x.tsv");
    let lines: String = (0..50_000).map(|i| format!("{i}\t{}\t{}.5\n", i * 7, i % 1000)).collect();
    fs::write(&text, lines).unwrap();
    let npy = tmp.path().join("whole/data/00000.npy");
    let (alone, out) = (tmp.path().join("alone"), tmp.path().join("x"));
    let options = PackOptions {
        name: "data".into(),
        write: WriteOptions::new().shard_bytes(1 << 19).sync(false),
        ..PackOptions::default()
    };
    let run = |input: &Path, out: &Path, options: &PackOptions| {
        pack(&[Input::from_arg(input)], out, options, &Progress::new())
    };
    let one_shard = PackOptions { write: WriteOptions::new().sync(false), ..options.clone() };
    run(&text, &tmp.path().join("whole"), &one_shard).unwrap();
    run(&text, &alone, &options).unwrap();
    let expected = files(&alone);
    for input in [&text, &npy] {
        for index in [2, 0, 1] {
            let part = PackOptions { part: Some((index, 3)), ..options.clone() };
            let packed = run(input, &out, &part).unwrap();
            assert_eq!(packed.dataset.is_some(), index == 1);
        }
        same(&out, &expected);
        fs::remove_dir_all(&out).unwrap();

        // As if killed after a part.
        let half = PackOptions { part: Some((0, 2)), ..options.clone() };
        assert!(run(input, &out, &half).unwrap().dataset.is_none());
        let other = PackOptions { name: "other".into(), resume: true, ..options.clone() };
        assert!(run(input, &out, &other).unwrap_err().to_string().contains("as in the plan"));
        let resumed = PackOptions { resume: true, ..options.clone() };
        run(input, &out, &resumed).unwrap();
        same(&out, &expected);
        fs::remove_dir_all(&out).unwrap();
        // Nothing to go on with.
        run(input, &out, &resumed).unwrap();
        same(&out, &expected);
        fs::remove_dir_all(&out).unwrap();
    }
    // Inputs of the same shape but other values are not mixed.
    let half = PackOptions { part: Some((0, 2)), ..options.clone() };
    run(&text, &out, &half).unwrap();
    let lines: String = (0..50_000).map(|i| format!("{i}\t{}\t{}.5\n", i * 7, i % 999)).collect();
    fs::write(&text, lines).unwrap();
    let resumed = PackOptions { resume: true, ..options };
    assert!(run(&text, &out, &resumed).unwrap_err().to_string().contains("input 1: expected"));
}

#[test]
fn rows_that_are_partly_taken_are_refused_whole() {
    let tmp = tempfile::tempdir().unwrap();
    let shared = plan(options()).create_shared(tmp.path().join("x")).unwrap();
    let rows = |range: Range<u64>| {
        Array2::from_shape_fn(((range.end - range.start) as usize, 3), |(i, j)| {
            value(range.start + i as u64, j as u64)
        })
    };
    shared.write_rows("x", 3 * BLOCK, &rows(3 * BLOCK..4 * BLOCK).view()).unwrap();
    let before = shared.status().unwrap();
    let held = shared.region("x", 5 * BLOCK..6 * BLOCK).unwrap();
    for range in [0..4 * BLOCK, 2 * BLOCK..5 * BLOCK, 4 * BLOCK..6 * BLOCK] {
        let error = shared.write_rows("x", range.start, &rows(range.clone()).view()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    }
    drop(held);
    assert_eq!(shared.status().unwrap(), before, "nothing of them was written");
    shared.write_rows("x", 0, &rows(0..3 * BLOCK).view()).unwrap();
}

#[test]
fn compressed_inputs_of_one_shape_are_not_mixed() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("x");
    // Arrays of the same shape and dtype, so that nothing but the values tells one from the other.
    let inputs: Vec<_> = [1u32, 2]
        .iter()
        .map(|&fill| {
            let plain = tmp.path().join(format!("plain{fill}"));
            let writer = Builder::new(options()).array("a", DType::UInt32, &[9000]).create(&plain).unwrap();
            writer.write("a", &ndarray::Array1::from_elem(9000, fill).view()).unwrap();
            writer.seal().unwrap();
            let path = tmp.path().join(format!("{fill}.npy.gz"));
            fs::write(&path, gz(&fs::read(plain.join("a/00000.npy")).unwrap())).unwrap();
            Input::Path(path)
        })
        .collect();
    let write = options().shard_bytes(8192);
    let base = PackOptions { name: "a".into(), write, ..PackOptions::default() };
    let run = |input: &Input, options: PackOptions| {
        pack(std::slice::from_ref(input), &out, &options, &Progress::new())
    };
    // A part of the first leaves something to go on with.
    let half = PackOptions { part: Some((0, 2)), ..base.clone() };
    assert!(run(&inputs[0], half).unwrap().dataset.is_none());
    let error = run(&inputs[1], PackOptions { resume: true, ..base.clone() }).unwrap_err();
    assert!(error.to_string().contains("input 1: expected"), "{error}");
    let resumed = PackOptions { resume: true, ..base.clone() };
    let first = run(&inputs[0], resumed.clone()).unwrap().dataset.unwrap();
    assert!(first.read::<u32, ndarray::Ix1>("a").unwrap().iter().all(|&v| v == 1));

    // A killed append of the first, as it stands when its rows are packed and not yet in the dataset.
    let append = PackOptions { mode: arrshard::Mode::Append, ..resumed };
    let building = tmp.path().join(".x.building");
    fs::create_dir(&building).unwrap();
    pack(&inputs[..1], &building.join("added"), &base, &Progress::new()).unwrap();
    let id = first.manifest().id().unwrap();
    fs::write(building.join("task"), format!("{id} of generation 1\nstream, read as 00000000\n")).unwrap();
    let error = run(&inputs[1], append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(!error.to_string().contains("found \"stream"), "the file is told from others: {error}");
}
