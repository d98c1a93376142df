//! A disk that forgets: what a log of operations leaves on it, live and after a power cut.

use arrshard::storage::{Fate, Op, Watch};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An operation as it is kept.
#[derive(Debug, Clone)]
pub(crate) enum Record {
    CreateFolder(PathBuf),
    Create(PathBuf),
    Resize(PathBuf, u64),
    Write(PathBuf, u64, Vec<u8>),
    Sync(PathBuf),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Record {
    fn of(op: Op<'_>) -> Self {
        match op {
            Op::CreateFolder(path) => Record::CreateFolder(path.into()),
            Op::Create(path) => Record::Create(path.into()),
            Op::Resize(path, len) => Record::Resize(path.into(), len),
            Op::Write(path, offset, bytes) => Record::Write(path.into(), offset, bytes.into()),
            Op::Sync(path) => Record::Sync(path.into()),
            Op::SyncFolder(path) => Record::SyncFolder(path.into()),
            Op::Rename(from, to) => Record::Rename(from.into(), to.into()),
            Op::Exchange(one, two) => Record::Exchange(one.into(), two.into()),
            Op::Link(from, to) => Record::Link(from.into(), to.into()),
            Op::Remove(path) | Op::RemoveAll(path) => Record::Remove(path.into()),
            other => panic!("{other:?}"),
        }
    }
}

/// What goes wrong, and from which operation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// One operation fails with this error of the system.
    Once(i32),
    /// That one and all after it: the process is dead.
    Forever,
    /// A write takes half of its bytes, and the rest when asked again.
    Short,
    /// A write takes half of its bytes, and then fails with this error.
    ShortThen(i32),
}

/// Keeps every operation and lets one of them fail.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) records: Mutex<Vec<Record>>,
    fault: Option<(usize, Fault)>,
}

impl Log {
    pub(crate) fn with_fault(at: usize, fault: Fault) -> Self {
        Self { records: Mutex::default(), fault: Some((at, fault)) }
    }
}

impl Watch for Log {
    fn before(&self, op: Op<'_>) -> io::Result<Fate> {
        let mut records = self.records.lock().unwrap();
        let number = records.len();
        records.push(Record::of(op));
        let Some((at, fault)) = self.fault else { return Ok(Fate::Whole) };
        let half = match op {
            Op::Write(_, _, bytes) if bytes.len() > 1 => Some(Fate::Short(bytes.len() / 2)),
            _ => None,
        };
        match fault {
            Fault::Once(code) if number == at => Err(io::Error::from_raw_os_error(code)),
            Fault::Forever if number >= at => Err(io::Error::from_raw_os_error(5)),
            Fault::Short | Fault::ShortThen(_) if number == at => Ok(half.unwrap_or(Fate::Whole)),
            // What follows a short write is the rest of it.
            Fault::ShortThen(code) if number == at + 1 => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(Fate::Whole),
        }
    }
}

/// Small, fast, and the same on every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

type Names = BTreeMap<String, usize>;

#[derive(Clone)]
enum Node {
    File {
        live: Vec<u8>,
        durable: Vec<u8>,
    },
    /// All that a folder has held since it was last made durable; the last is what it holds.
    Folder(Vec<Names>),
}

/// What a crash leaves of what was not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Everything: the process was killed, the machine goes on.
    All,
    /// Nothing.
    None,
    /// Names, but no data.
    Names,
    /// Data, but no names.
    Data,
    /// Of each folder any state since it was last durable, of each file any of its pages.
    Some(u64),
}

/// The state of a disk after some operations.
#[derive(Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
}

impl Disk {
    /// A disk that holds what the folder `root` holds, all of it durable.
    pub(crate) fn new(root: &Path) -> Self {
        let mut disk = Self { root: root.into(), nodes: vec![Node::Folder(vec![Names::new()])] };
        disk.load(root, 0);
        disk
    }

    fn load(&mut self, path: &Path, into: usize) {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let id = self.nodes.len();
            if entry.path().is_dir() {
                self.nodes.push(Node::Folder(vec![Names::new()]));
                self.load(&entry.path(), id);
            } else {
                let live = fs::read(entry.path()).unwrap();
                self.nodes.push(Node::File { durable: live.clone(), live });
            }
            let Node::Folder(states) = &mut self.nodes[into] else { panic!() };
            states[0].insert(entry.file_name().into_string().unwrap(), id);
        }
    }

    fn names(&self, folder: usize) -> &Names {
        let Node::Folder(states) = &self.nodes[folder] else { panic!("a file is no folder") };
        states.last().unwrap()
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let below = path.strip_prefix(&self.root).unwrap();
        below.iter().try_fold(0, |folder, name| self.names(folder).get(name.to_str().unwrap()).copied())
    }

    /// Changes the names of the folder that `path` is in.
    fn change(&mut self, path: &Path, change: impl FnOnce(&mut Names, String)) {
        let folder = self.find(path.parent().unwrap()).unwrap();
        let mut names = self.names(folder).clone();
        change(&mut names, path.file_name().unwrap().to_str().unwrap().to_owned());
        let Node::Folder(states) = &mut self.nodes[folder] else { panic!() };
        states.push(names);
    }

    fn add(&mut self, path: &Path, node: Node) {
        if self.find(path).is_none() {
            let id = self.nodes.len();
            self.nodes.push(node);
            self.change(path, |names, name| _ = names.insert(name, id));
        }
    }

    fn live(&mut self, path: &Path) -> &mut Vec<u8> {
        let id = self.find(path).unwrap();
        let Node::File { live, .. } = &mut self.nodes[id] else { panic!("a folder is no file") };
        live
    }

    /// Does an operation.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::CreateFolder(path) => self.add(path, Node::Folder(vec![Names::new()])),
            Record::Create(path) => self.add(path, Node::File { live: Vec::new(), durable: Vec::new() }),
            Record::Resize(path, len) => self.live(path).resize(*len as usize, 0),
            Record::Write(path, offset, bytes) => {
                let (start, live) = (*offset as usize, self.live(path));
                live.resize(live.len().max(start + bytes.len()), 0);
                live[start..start + bytes.len()].copy_from_slice(bytes);
            }
            Record::Sync(path) => {
                let id = self.find(path).unwrap();
                let Node::File { live, durable } = &mut self.nodes[id] else { panic!() };
                durable.clone_from(live);
            }
            Record::SyncFolder(path) => {
                let id = self.find(path).unwrap();
                let Node::Folder(states) = &mut self.nodes[id] else { panic!() };
                states.drain(..states.len() - 1);
            }
            Record::Rename(from, to) => {
                let id = self.find(from).unwrap();
                assert_eq!(from.parent(), to.parent(), "one folder, so one step");
                let old = from.file_name().unwrap().to_str().unwrap().to_owned();
                self.change(to, |names, name| {
                    names.remove(&old);
                    names.insert(name, id);
                });
            }
            Record::Exchange(one, two) => {
                let (a, b) = (self.find(one).unwrap(), self.find(two).unwrap());
                let first = one.file_name().unwrap().to_str().unwrap().to_owned();
                self.change(two, |names, name| {
                    names.insert(name, a);
                    names.insert(first, b);
                });
            }
            Record::Link(from, to) => {
                let id = self.find(from).unwrap();
                if self.find(to).is_none() {
                    self.change(to, |names, name| _ = names.insert(name, id));
                }
            }
            Record::Remove(path) => {
                if self.find(path).is_some() {
                    self.change(path, |names, name| _ = names.remove(&name));
                }
            }
        }
    }

    /// Writes what a crash leaves to the empty folder `to`.
    pub(crate) fn crash(&self, leaves: Leaves, to: &Path) {
        let mut dice = Dice(if let Leaves::Some(seed) = leaves { seed } else { 0 });
        // A file has one content under all its names.
        let mut contents = HashMap::new();
        self.write_folder(0, leaves, &mut dice, &mut contents, to);
    }

    fn write_folder(
        &self,
        id: usize,
        leaves: Leaves,
        dice: &mut Dice,
        contents: &mut HashMap<usize, Vec<u8>>,
        to: &Path,
    ) {
        let Node::Folder(states) = &self.nodes[id] else { panic!() };
        let names = match leaves {
            Leaves::All | Leaves::Names => states.last().unwrap(),
            Leaves::None | Leaves::Data => &states[0],
            Leaves::Some(_) => &states[dice.roll(states.len())],
        };
        for (name, id) in names {
            let path = to.join(name);
            match &self.nodes[*id] {
                Node::Folder(_) => {
                    fs::create_dir(&path).unwrap();
                    self.write_folder(*id, leaves, dice, contents, &path);
                }
                Node::File { live, durable } => {
                    let bytes = contents.entry(*id).or_insert_with(|| match leaves {
                        Leaves::All | Leaves::Data => live.clone(),
                        Leaves::None | Leaves::Names => durable.clone(),
                        Leaves::Some(_) => some(live, durable, dice),
                    });
                    fs::write(&path, bytes).unwrap();
                }
            }
        }
    }
}

/// A length, and in each sector, of the one or the other.
fn some(live: &[u8], durable: &[u8], dice: &mut Dice) -> Vec<u8> {
    let len = [live.len(), durable.len()][dice.roll(2)];
    let mut bytes = vec![0; len];
    for (number, out) in bytes.chunks_mut(512).enumerate() {
        let from = [live, durable][dice.roll(2)];
        let start = number * 512;
        if let Some(from) = from.get(start..from.len().min(start + out.len())) {
            out[..from.len()].copy_from_slice(from);
        }
    }
    bytes
}
