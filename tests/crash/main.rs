//! A crash at any operation, an error of any of them, a kill at any time: a reader sees the old
//! dataset, the new one or none, and who goes on ends with the bytes of an undisturbed run.
//!
//! `tools/soak` runs what takes long. `ARRSHARD_SMALL_DISK=FOLDER` names an empty disk of a few MiB to fill up,
//! `ARRSHARD_SOAK_ROUNDS` how often to kill.

#[path = "../common/mod.rs"]
mod common;
mod disk;

use arrshard::{
    Builder, DType, Dataset, ErrorKind, Input, Mode, PackOptions, Progress, Shared, Status, Transfer,
    WriteOptions, pack,
};
use common::files;
use disk::{Dice, Disk, Fault, Leaves, Log, Record};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn options() -> WriteOptions {
    // Shards of two pages.
    WriteOptions::new().shard_bytes(8192)
}

/// Three shards of one block, one shard of two blocks, a shard without bytes.
fn plan(options: WriteOptions) -> Builder {
    Builder::new(options)
        .array("x/y", DType::UInt16, &[2500, 4])
        .array("rows", DType::UInt8, &[2, 600_000])
        .array("none", DType::UInt8, &[3, 0])
}

const NAMES: [&str; 2] = ["x/y", "rows"];
const TOTAL: u64 = 2500 * 8 + 2 * 600_000;

fn pattern(rows: Range<u64>, bytes: &mut [u8], seed: u64) {
    let mut dice = Dice(rows.start ^ seed);
    let row = bytes.len() / (rows.end - rows.start).max(1) as usize;
    for (row, out) in rows.zip(bytes.chunks_mut(row)) {
        dice.0 = row ^ seed << 32;
        out.fill(dice.roll(256) as u8);
        out[..8].copy_from_slice(&dice.roll(usize::MAX).to_le_bytes());
    }
}

/// Fills what is missing and seals; gives the bytes kept and written.
fn finish(shared: &Shared, transfer: Transfer) -> arrshard::Result<(u64, u64)> {
    for name in NAMES {
        for rows in shared.missing(name, 1)? {
            let mut region = shared.region_by(name, rows.clone(), transfer)?;
            pattern(rows, region.bytes_mut(), 1);
            region.finish()?;
        }
    }
    shared.seal()?;
    Ok((shared.kept(), shared.written()))
}

/// What a run does from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Shared(Transfer),
    /// By a writer that has the place to itself.
    Alone,
    /// Over another dataset.
    Replace,
}

impl Run {
    fn replaces(self) -> bool {
        self == Run::Replace
    }

    /// One thread, so that the operations come in one order.
    fn start(self, path: &Path, options: WriteOptions) -> arrshard::Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| match self {
            Run::Shared(transfer) => finish(&plan(options).create_shared(path)?, transfer).map(drop),
            Run::Replace => {
                finish(&plan(options.replace(true)).create_shared(path)?, Transfer::Map).map(drop)
            }
            Run::Alone => {
                let writer = plan(options).create(path)?;
                for name in NAMES {
                    writer.fill(name, |rows, bytes| {
                        pattern(rows, bytes, 1);
                        Ok(())
                    })?;
                }
                writer.seal().map(drop)
            }
        })
    }

    /// Goes on after a crash, without syncs, which it does not need.
    fn go_on(self, path: &Path) -> (u64, u64) {
        let options = options().sync(false).replace(self.replaces());
        match plan(options).create_shared(path) {
            Ok(shared) => finish(&shared, Transfer::Auto).unwrap(),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Exists, "{e}");
                (TOTAL, 0)
            }
        }
    }
}

/// An older dataset of the same plan.
fn older(path: &Path) {
    let writer = plan(options().sync(false)).create(path).unwrap();
    for name in NAMES {
        writer
            .fill(name, |rows, bytes| {
                pattern(rows, bytes, 2);
                Ok(())
            })
            .unwrap();
    }
    writer.seal().unwrap();
}

/// In memory where there is such a place: what is tested is the order, not the disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn undisturbed() -> (Files, Files) {
    let tmp = folder();
    let (new, old) = (tmp.path().join("new"), tmp.path().join("old"));
    Run::Alone.start(&new, options().sync(false)).unwrap();
    older(&old);
    (files(&new), files(&old))
}

/// A reader sees one of these datasets, whole, or none where none was.
fn see(path: &Path, new: &Files, old: Option<&Files>, when: &str) {
    match Dataset::open(path) {
        Ok(dataset) => {
            assert!(dataset.verify(&Progress::new()).unwrap().is_whole(), "{when}");
            let found = files(path);
            let is = |files: &Files| files.iter().all(|(name, bytes)| found.get(name) == Some(bytes));
            assert!(is(new) || old.is_some_and(is), "{when}");
        }
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Incomplete), "{when}: {e}");
            assert!(old.is_none(), "{when}: {e}");
        }
    }
}

fn same(path: &Path, expected: &Files, when: &str) {
    let found = files(path);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{when}");
    assert!(found == *expected, "{when}");
}

/// Runs once, and shows what a crash after each operation leaves, in every way it may.
fn crash_everywhere(run: Run) {
    let (new, old) = undisturbed();
    let tmp = folder();
    let path = tmp.path().join("x");
    if run.replaces() {
        older(&path);
    }
    let mut disk = Disk::new(tmp.path());
    let log = Arc::new(Log::default());
    run.start(&path, options().watch(log.clone())).unwrap();
    same(&path, &new, "undisturbed");
    let records = std::mem::take(&mut *log.records.lock().unwrap());
    assert!(records.iter().filter(|record| matches!(record, Record::Sync(_))).count() > 10);
    let mut kept = 0;
    for done in 0..=records.len() {
        if let Some(record) = done.checked_sub(1).map(|last| &records[last]) {
            disk.apply(record);
        }
        for leaves in [
            Leaves::All,
            Leaves::None,
            Leaves::Names,
            Leaves::Data,
            Leaves::Some(done as u64),
            Leaves::Some(!(done as u64)),
        ] {
            let when = format!("{run:?}, {leaves:?} after {done} operations");
            let after = folder();
            disk.crash(leaves, after.path());
            let path = after.path().join("x");
            see(&path, &new, run.replaces().then_some(&old), &when);
            let sealed = after.path().join(".x.building/arrshard.json").exists();
            let (whole, written) = run.go_on(&path);
            assert!(whole + written == TOTAL || sealed, "{when}: {whole} kept, {written} written");
            kept += whole;
            if done == records.len() {
                see(&path, &new, None, &when);
            }
            same(&path, &new, &when);
            assert_eq!(fs::read_dir(after.path()).unwrap().count(), 1, "{when}: nothing is left beside");
        }
    }
    assert!(kept > 0, "something was kept");
}

#[test]
fn after_any_operation_of_many_writers() {
    crash_everywhere(Run::Shared(Transfer::Map));
}

#[test]
fn after_any_operation_of_a_writer_alone() {
    crash_everywhere(Run::Alone);
}

#[test]
fn after_any_operation_of_a_replacement() {
    crash_everywhere(Run::Replace);
}

/// Lets each operation in turn fail in each way.
fn fail_everywhere(run: Run) {
    let (new, old) = undisturbed();
    let mut last = 0;
    for at in 0.. {
        let mut is_write = true;
        for fault in
            [Fault::Once(EIO), Fault::Once(ENOSPC), Fault::Forever, Fault::Short, Fault::ShortThen(ENOSPC)]
        {
            if matches!(fault, Fault::Short | Fault::ShortThen(_)) && !is_write {
                continue;
            }
            let tmp = folder();
            let path = tmp.path().join("x");
            if run.replaces() {
                older(&path);
            }
            let log = Arc::new(Log::with_fault(at, fault));
            let result = run.start(&path, options().watch(log.clone()));
            let records = std::mem::take(&mut *log.records.lock().unwrap());
            last = records.len();
            is_write = matches!(records.get(at), Some(Record::Write(..)));
            let when = format!("{run:?}, {fault:?} at operation {at} of {last}");
            see(&path, &new, run.replaces().then_some(&old), &when);
            match result {
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Io, "{when}: {e}");
                    assert!(e.path().is_some(), "{when}: {e}");
                }
                Ok(()) => same(&path, &new, &when),
            }
            run.go_on(&path);
            same(&path, &new, &when);
        }
        if at > last {
            break;
        }
    }
    assert!(last > 50, "{last}");
}

#[test]
fn any_operation_of_many_writers_may_fail() {
    fail_everywhere(Run::Shared(Transfer::Write));
}

#[test]
fn any_operation_of_a_replacement_may_fail() {
    fail_everywhere(Run::Replace);
}

#[test]
fn any_operation_of_a_writer_alone_may_fail() {
    fail_everywhere(Run::Alone);
}

#[test]
fn a_failed_sync_voids_its_shard() {
    let tmp = folder();
    let path = tmp.path().join("x");
    let log = Arc::new(Log::default());
    Run::Shared(Transfer::Map).start(&path, options().watch(log.clone())).unwrap();
    let first = |record: &Record| matches!(record, Record::Sync(p) if p.ends_with("00001.npy.partial"));
    let at = log.records.lock().unwrap().iter().position(first).unwrap();
    fs::remove_dir_all(&path).unwrap();
    let log = Arc::new(Log::with_fault(at, Fault::Once(EIO)));
    let error = Run::Shared(Transfer::Map).start(&path, options().watch(log)).unwrap_err();
    assert!(error.to_string().contains("must be written again"), "{error}");
    let status = Status::of(&path).unwrap();
    assert_eq!(status.arrays[0].missing, vec![1024..2048]);
    let building = tmp.path().join(".x.building");
    assert!(!building.join("x%2Fy/00001.npy.partial").exists(), "no later sync may find it");
    let (_, written) = Run::Shared(Transfer::Map).go_on(&path);
    assert_eq!(written, 1024 * 8);
    same(&path, &undisturbed().0, "afterwards");
}

#[test]
fn a_disk_that_is_full_anywhere() {
    let Some(disk) = std::env::var_os("ARRSHARD_SMALL_DISK").map(PathBuf::from) else { return };
    let (new, _) = undisturbed();
    let path = disk.join("x");
    let filler = disk.join("filler");
    let (mut full, mut free) = (0, 0);
    for run in [Run::Shared(Transfer::Map), Run::Shared(Transfer::Write), Run::Alone] {
        for pages in (0..).step_by(3) {
            let mut file = fs::File::create(&filler).unwrap();
            let mut len = 0;
            while file.write_all(&[1; 4096]).is_ok() {
                len += 4096u64;
            }
            file.set_len(len.saturating_sub(pages * 4096)).unwrap();
            drop(file);
            let when = format!("{run:?} with {pages} pages free");
            let result = run.start(&path, options());
            see(&path, &new, None, &when);
            if let Err(e) = &result {
                full += 1;
                assert_eq!(e.kind(), ErrorKind::Io, "{when}: {e}");
            }
            fs::remove_file(&filler).unwrap();
            run.go_on(&path);
            same(&path, &new, &when);
            fs::remove_dir_all(&path).unwrap();
            assert_eq!(fs::read_dir(&disk).unwrap().count(), 0, "{when}");
            if result.is_ok() {
                free += 1;
                break;
            }
        }
    }
    assert!(full > 100 && free == 3, "{full} runs on a full disk, {free} with room");
}

/// Rows of 128 KiB, eight to a block, so 32 blocks in four shards.
const KILL_ROWS: u64 = 256;

fn kill_options() -> WriteOptions {
    WriteOptions::new().shard_bytes(8 << 20).sync(false)
}

/// An npy file of rows `rows` of the pattern, each `width` values of 8 bytes.
fn npy_input(path: &Path, rows: Range<u64>, width: u64) {
    let count = rows.end - rows.start;
    let header = format!("{{'descr': '<u8', 'fortran_order': False, 'shape': ({count}, {width}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&118u16.to_le_bytes());
    bytes.extend_from_slice(format!("{header:<117}\n").as_bytes());
    let start = bytes.len();
    bytes.resize(start + (count * width * 8) as usize, 0);
    pattern(rows, &mut bytes[start..], 3);
    fs::File::create(path).unwrap().write_all(&bytes).unwrap();
}

/// What is done to a dataset that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Rows behind a short last shard, which is written anew.
    Copied,
    /// Rows behind full shards.
    Linked,
    /// Another array.
    Added,
}

impl Change {
    /// Rows of 16 bytes; a shard has 512 of them.
    fn base(self) -> u64 {
        if self == Change::Copied { 1300 } else { 1024 }
    }

    fn prepare(self, folder: &Path) {
        npy_input(&folder.join("base.npy"), 0..self.base(), 2);
        npy_input(&folder.join("in.npy"), if self == Change::Added { 0..1024 } else { 3000..4100 }, 2);
        self.pack(folder, "base.npy", Mode::Create, options().sync(false), false).unwrap();
    }

    fn pack(
        self,
        folder: &Path,
        input: &str,
        mode: Mode,
        write: WriteOptions,
        resume: bool,
    ) -> arrshard::Result<()> {
        let name = if mode == Mode::Add { "more" } else { "x" }.into();
        let options = PackOptions { name, write, mode, resume, ..PackOptions::default() };
        // One thread, so that the operations come in one order.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let inputs = [Input::from_arg(folder.join(input))];
        pool.install(|| pack(&inputs, &folder.join("x"), &options, &Progress::new())).map(drop)
    }

    fn run(self, folder: &Path, write: WriteOptions, resume: bool) -> arrshard::Result<()> {
        let mode = if self == Change::Added { Mode::Add } else { Mode::Append };
        self.pack(folder, "in.npy", mode, write, resume)
    }

    /// Goes on after a crash, unless all was done.
    fn go_on(self, folder: &Path) {
        let dataset = Dataset::open(folder.join("x")).unwrap();
        let begun = folder.join(".x.building/task").exists();
        if dataset.manifest().generation == 1 || begun {
            self.run(folder, options().sync(false), true).unwrap();
        }
    }

    /// The folder before and after, undisturbed.
    fn undisturbed(self) -> (Files, Files) {
        let tmp = folder();
        self.prepare(tmp.path());
        let old = files(&tmp.path().join("x"));
        self.run(tmp.path(), options().sync(false), false).unwrap();
        (old, files(&tmp.path().join("x")))
    }

    fn crash_everywhere(self) {
        let (old, new) = self.undisturbed();
        assert!(old.keys().all(|file| new.contains_key(file)), "readers of the old generation go on");
        let tmp = folder();
        self.prepare(tmp.path());
        let mut disk = Disk::new(tmp.path());
        let log = Arc::new(Log::default());
        self.run(tmp.path(), options().watch(log.clone()), true).unwrap();
        same(&tmp.path().join("x"), &new, "undisturbed");
        let records = std::mem::take(&mut *log.records.lock().unwrap());
        let (mut olds, mut news) = (0, 0);
        for done in 0..=records.len() {
            if let Some(record) = done.checked_sub(1).map(|last| &records[last]) {
                disk.apply(record);
            }
            let seed = done as u64;
            for leaves in [
                Leaves::All,
                Leaves::None,
                Leaves::Names,
                Leaves::Data,
                Leaves::Some(seed),
                Leaves::Some(!seed),
            ] {
                let when = format!("{self:?}, {leaves:?} after {done} operations");
                let after = folder();
                disk.crash(leaves, after.path());
                let path = after.path().join("x");
                see(&path, &new, Some(&old), &when);
                let is_new = Dataset::open(&path).unwrap().manifest().generation == 2;
                (olds, news) = (olds + u32::from(!is_new), news + u32::from(is_new));
                self.go_on(after.path());
                if leaves == Leaves::All && done == records.len() {
                    assert!(is_new && !after.path().join(".x.building").exists(), "{when}");
                }
                see(&path, &new, None, &when);
                let found = files(&path);
                // A power cut may keep what nobody names, which is what `gc` is for.
                let garbage = arrshard::gc(&path, false, &options().sync(false)).unwrap();
                let is_garbage = |file: &&PathBuf| garbage.files.contains(&path.join(file));
                assert!(found.keys().all(|file| new.contains_key(file) || is_garbage(&file)), "{when}");
            }
        }
        assert!(olds > 100 && news > 10, "{olds} {news}");
    }

    fn fail_everywhere(self) {
        let (old, new) = self.undisturbed();
        let mut last = 0;
        for at in 0.. {
            for fault in [Fault::Once(EIO), Fault::Forever, Fault::ShortThen(ENOSPC)] {
                let tmp = folder();
                self.prepare(tmp.path());
                let path = tmp.path().join("x");
                let log = Arc::new(Log::with_fault(at, fault));
                let result = self.run(tmp.path(), options().watch(log.clone()), false);
                last = log.records.lock().unwrap().len();
                let when = format!("{self:?}, {fault:?} at operation {at} of {last}");
                see(&path, &new, Some(&old), &when);
                let is_old = Dataset::open(&path).unwrap().manifest().generation == 1;
                match result {
                    Ok(()) => same(&path, &new, &when),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Io, "{when}: {e}");
                        assert!(e.path().is_some(), "{when}: {e}");
                        if is_old && fault != Fault::Forever {
                            same(&path, &old, &when);
                        }
                    }
                }
                if is_old {
                    self.run(tmp.path(), options().sync(false), false).unwrap();
                    same(&path, &new, &when);
                }
            }
            if at > last {
                break;
            }
        }
        assert!(last > 50, "{last}");
    }
}

#[test]
fn after_any_operation_of_a_next_generation() {
    Change::Copied.crash_everywhere();
    Change::Linked.crash_everywhere();
    Change::Added.crash_everywhere();
}

#[test]
fn any_operation_of_a_next_generation_may_fail() {
    Change::Copied.fail_everywhere();
    Change::Linked.fail_everywhere();
    Change::Added.fail_everywhere();
}

#[test]
#[ignore = "what another test runs as a process, and kills"]
fn child() {
    let (Ok(task), Some(path)) = (std::env::var("CRASH_TASK"), std::env::var_os("CRASH_PATH")) else {
        return;
    };
    let path = PathBuf::from(path);
    let out = path.join("x");
    if task == "append" {
        return append(&path, true);
    }
    let runs: &[(bool, Option<(u64, u64)>)] = match &*task {
        "pack" => &[(true, None)],
        "parts" => &[(false, Some((0, 2))), (false, Some((1, 2)))],
        _ => &[],
    };
    for &(resume, part) in runs {
        let options =
            PackOptions { name: "x".into(), write: kill_options(), resume, part, ..PackOptions::default() };
        match pack(&[Input::from_arg(path.join("in.npy"))], &out, &options, &Progress::new()) {
            // The one before was killed with all done.
            Err(e) if e.kind() == ErrorKind::Exists => {}
            packed => drop(packed.unwrap()),
        }
    }
    if !runs.is_empty() {
        return;
    }
    let shared =
        match Builder::new(kill_options()).array("x", DType::UInt64, &[KILL_ROWS, 16384]).create_shared(&out)
        {
            Err(e) if e.kind() == ErrorKind::Exists => return,
            shared => shared.unwrap(),
        };
    let missing = shared.missing("x", 1).unwrap();
    std::thread::scope(|scope| {
        for half in missing.chunks(missing.len().div_ceil(2).max(1)) {
            let shared = &shared;
            scope.spawn(move || {
                for rows in half {
                    let mut region = shared.region("x", rows.clone()).unwrap();
                    pattern(rows.clone(), region.bytes_mut(), 3);
                    region.finish().unwrap();
                }
            });
        }
    });
    fs::write(path.join("written"), shared.written().to_string()).unwrap();
    shared.seal().unwrap();
}

/// Appends the input to a dataset of 100 rows, which is there already if the one before was killed.
fn append(folder: &Path, resume: bool) {
    let pack = |input: &str, mode| {
        let options =
            PackOptions { name: "x".into(), write: kill_options(), resume, mode, ..PackOptions::default() };
        pack(&[Input::from_arg(folder.join(input))], &folder.join("x"), &options, &Progress::new())
    };
    match pack("base.npy", Mode::Create) {
        Err(e) if e.kind() == ErrorKind::Exists => {}
        packed => drop(packed.unwrap()),
    }
    let begun = folder.join(".x.building/task").exists();
    if begun || Dataset::open(folder.join("x")).unwrap().manifest().generation == 1 {
        pack("in.npy", Mode::Append).unwrap();
    }
}

#[test]
fn killed_at_any_time_and_started_again() {
    let rounds = std::env::var("ARRSHARD_SOAK_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let tmp = folder();
    let input = tmp.path().join("in.npy");
    npy_input(&input, 0..KILL_ROWS, 16384);
    let base = tmp.path().join("base.npy");
    npy_input(&base, 900..1000, 16384);
    let expected = tmp.path().join("expected");
    let options = PackOptions { name: "x".into(), write: kill_options(), ..PackOptions::default() };
    pack(&[Input::from_arg(&input)], &expected, &options, &Progress::new()).unwrap();
    let expected = files(&expected);
    let grown = tempfile::tempdir_in(tmp.path()).unwrap();
    for file in [&input, &base] {
        fs::hard_link(file, grown.path().join(file.file_name().unwrap())).unwrap();
    }
    append(grown.path(), false);
    let grown = files(&grown.path().join("x"));
    let mut dice = Dice(u64::from(std::process::id()));
    let (mut kills, mut halves) = (0, 0);
    // How long a run takes, found by trying: of two kills, one is to come before its end.
    let mut span = 60_000;
    for round in 0..rounds {
        let task = ["pack", "regions", "parts", "append"][round % 4];
        let work = tempfile::tempdir_in(tmp.path()).unwrap();
        fs::hard_link(&input, work.path().join("in.npy")).unwrap();
        fs::hard_link(&base, work.path().join("base.npy")).unwrap();
        let out = work.path().join("x");
        for attempt in 0.. {
            let before = Status::of(&out).ok();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["child", "--exact", "--ignored", "--test-threads=1"])
                .env("CRASH_TASK", task)
                .env("CRASH_PATH", work.path())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            if attempt < 4 {
                std::thread::sleep(Duration::from_micros(dice.roll(span) as u64));
                let _ = child.kill();
            }
            let status = child.wait().unwrap();
            let when = format!("round {round}, {task}, attempt {attempt}");
            if task != "append" {
                see(&out, &expected, None, &when);
            } else if let Ok(dataset) = Dataset::open(&out) {
                let report = dataset.verify(&Progress::new()).unwrap();
                assert!(report.is_whole(), "{when}: {report:?}");
                let rows = dataset.array("x").unwrap().layout.rows();
                assert!([100, 356].contains(&rows), "{when}: {rows} rows");
            }
            if status.success() {
                span = (span - span / 4).max(2_000);
                let written = fs::read_to_string(work.path().join("written")).ok();
                if let (Some(before), Some(written)) = (before, written) {
                    let missing: u64 = before.arrays[0].missing.iter().map(|r| r.end - r.start).sum();
                    halves += u64::from(missing < KILL_ROWS);
                    assert_eq!(
                        written,
                        (missing * (128 << 10)).to_string(),
                        "{when}: only what was not done"
                    );
                }
                break;
            }
            assert!(attempt < 4, "{when}: {status}");
            kills += 1;
            span = (span + span / 4).min(500_000);
        }
        let expected = if task == "append" { &grown } else { &expected };
        same(&out, expected, &format!("round {round}, {task}"));
    }
    writeln!(std::io::stdout(), "{rounds} rounds, {kills} kills, {halves} resumed in the middle").unwrap();
}
