//! Where data comes from: a regular file, read at any place by many threads, or a stream, read once.

use crate::decompress::{Compression, MAGIC_BYTES};
use crate::encoding::Charset;
use crate::error::{Error, ErrorKind, Result, escape_path};
use crate::folder::read_exact_at;
use crate::progress::{Progress, Stop};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An input of a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A file or a named pipe.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// What the command line calls it: a path, or `-` for standard input.
    pub fn from_arg(arg: impl AsRef<Path>) -> Self {
        if arg.as_ref() == Path::new("-") { Self::Stdin } else { Self::Path(arg.as_ref().to_owned()) }
    }

    /// Its name in messages.
    pub fn name(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Stdin => Path::new("standard input"),
        }
    }

    /// Opens it; what is compressed becomes a stream of what is in it. A read of a stream ends with an error
    /// soon after `progress` is stopped.
    pub(crate) fn open(&self, progress: &Progress) -> Result<Source> {
        self.open_raw(progress)?.decompressed().map_err(|e| e.at(self.name()))
    }

    /// Opens it as it is, compressed or not.
    pub(crate) fn open_raw(&self, progress: &Progress) -> Result<Source> {
        match self {
            Self::Stdin => stdin(progress.request()),
            Self::Path(path) => {
                // A folder can be opened too, and a device may never end.
                let meta = path.metadata().map_err(|e| Error::io(path, "open", e))?;
                let file = || File::open(path).map_err(|e| Error::io(path, "open", e));
                match kind(&meta) {
                    Kind::File => Ok(Source::File(SourceFile::new(file()?, path)?)),
                    Kind::Stream => Ok(Source::Stream(SourceStream::new(file()?, path, progress.request()))),
                    Kind::Other(found) => Err(Error::new(
                        ErrorKind::InvalidArgument,
                        format!("expected a file or a pipe, found {found}"),
                    )
                    .at(path)),
                }
            }
        }
    }
}

enum Kind {
    File,
    Stream,
    Other(&'static str),
}

fn kind(meta: &std::fs::Metadata) -> Kind {
    if meta.is_file() {
        return Kind::File;
    }
    if meta.is_dir() {
        return Kind::Other("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if meta.file_type().is_fifo() || meta.file_type().is_socket() {
            return Kind::Stream;
        }
    }
    Kind::Other("a device")
}

/// Standard input redirected from a file is that file, from where it stands; anything else is a stream.
fn stdin(stop: Stop) -> Result<Source> {
    let name = Input::Stdin;
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let at = |e: io::Error| Error::io(name.name(), "open", e);
        let file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(at)?);
        let meta = file.metadata().map_err(at)?;
        let position = rustix::fs::seek(&file, rustix::fs::SeekFrom::Current(0));
        if meta.is_file() && position == Ok(0) {
            return Ok(Source::File(SourceFile::new(file, name.name())?));
        }
        if let Kind::Other(found @ "a folder") = kind(&meta) {
            let what = format!("expected a file or a pipe, found {found}");
            return Err(Error::new(ErrorKind::InvalidArgument, what).at(name.name()));
        }
        Ok(Source::Stream(SourceStream::new(file, name.name(), stop)))
    }
    #[cfg(not(unix))]
    Ok(Source::Stream(SourceStream::new(io::stdin(), name.name(), stop)))
}

/// An open input.
pub(crate) enum Source {
    File(SourceFile),
    Stream(SourceStream),
}

impl Source {
    /// The first bytes, at most `max` of them; they stay to be read.
    pub(crate) fn peek(&mut self, max: usize) -> Result<Vec<u8>> {
        match self {
            Self::File(file) => {
                let mut start = vec![0; file.len.min(max as u64) as usize];
                file.read_at(&mut start, 0)?;
                Ok(start)
            }
            Self::Stream(stream) => stream.peek(max),
        }
    }

    /// A text as UTF-8: by the name of its encoding, or by its mark. Says which it was in, if it was in another.
    pub(crate) fn decoded(mut self, name: Option<&str>) -> Result<(Self, Option<Charset>)> {
        let mark = Charset::of_mark(&self.peek(4)?);
        let charset = match name {
            Some(name) => Charset::of_name(name)?.map(|charset| charset.with_mark(name, mark)).transpose()?,
            None => mark,
        };
        let Some(charset) = charset else { return Ok((self, None)) };
        Ok((self.through(|reader| Ok(Box::new(charset.decode(reader))))?, Some(charset)))
    }

    fn decompressed(mut self) -> Result<Self> {
        let Some(compression) = Compression::of(&self.peek(MAGIC_BYTES)?) else { return Ok(self) };
        self.through(|reader| Ok(Box::new(compression.open(reader)?)))
    }

    /// The stream that `change` makes of this. It is still told from others by the file beneath.
    fn through(
        self,
        change: impl FnOnce(Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>>,
    ) -> Result<Self> {
        let path = self.path().to_owned();
        let file = self.file().map(|file| SourceFile::new(file.reader()?, &path)).transpose()?;
        let reader = change(self.into_reader())?;
        Ok(Self::Stream(SourceStream { reader, path, ahead: Vec::new(), taken: 0, file }))
    }

    /// Bytes of work that it is known to be; 0 for a stream.
    pub(crate) fn known_len(&self) -> u64 {
        match self {
            Self::File(file) => file.len(),
            Self::Stream(_) => 0,
        }
    }

    /// The file that all of it comes from, if that is one.
    pub(crate) fn file(&self) -> Option<&SourceFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Stream(stream) => stream.file.as_ref(),
        }
    }

    /// Its bytes in order.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        match self {
            Self::File(file) => Box::new(file.into_reader()),
            Self::Stream(stream) => Box::new(stream),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(file) => &file.path,
            Self::Stream(stream) => &stream.path,
        }
    }
}

/// A regular file of known length.
#[derive(Debug)]
pub(crate) struct SourceFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl SourceFile {
    pub(crate) fn new(file: File, path: &Path) -> Result<Self> {
        let len = file.metadata().map_err(|e| Error::io(path, "stat", e))?.len();
        Ok(Self { file, path: path.to_owned(), len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `out` from `offset`; a file that has become shorter is an error, never a crash.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, &self.path, out, offset)
    }

    /// A reader of its own over the same file.
    pub(crate) fn reader(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| Error::io(&self.path, "open", e))
    }

    pub(crate) fn into_reader(self) -> impl Read + Send {
        Cursor { source: self, at: 0 }
    }
}

/// Reads by position, so that it does not depend on where the descriptor stands.
struct Cursor {
    source: SourceFile,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (out.len() as u64).min(self.source.len - self.at) as usize;
        self.source.read_at(&mut out[..len], self.at).map_err(io::Error::other)?;
        self.at += len as u64;
        Ok(len)
    }
}

/// A stream whose length shows when it ends.
pub(crate) struct SourceStream {
    reader: Box<dyn Read + Send>,
    path: PathBuf,
    /// Bytes that were looked at and not taken.
    ahead: Vec<u8>,
    taken: usize,
    /// What it is made from, if that is a file.
    file: Option<SourceFile>,
}

impl SourceStream {
    fn new(reader: impl Read + Waits + Send + 'static, path: &Path, stop: Stop) -> Self {
        let reader = Box::new(Stoppable { reader, stop });
        Self { reader, path: path.to_owned(), ahead: Vec::new(), taken: 0, file: None }
    }

    fn peek(&mut self, max: usize) -> Result<Vec<u8>> {
        let have = self.ahead.len() - self.taken;
        if have < max {
            let mut more = Vec::new();
            let limit = (max - have) as u64;
            self.reader.by_ref().take(limit).read_to_end(&mut more).map_err(|e| read_error(e, &self.path))?;
            self.ahead.append(&mut more);
        }
        Ok(self.ahead[self.taken..].iter().take(max).copied().collect())
    }
}

/// A reader that can say whether a read would return at once.
#[cfg(unix)]
use std::os::fd::AsFd as Waits;
#[cfg(not(unix))]
trait Waits {}
#[cfg(not(unix))]
impl<T> Waits for T {}

/// Reads unless asked to stop, also while nothing comes: a read of a silent pipe never returns.
struct Stoppable<R> {
    reader: R,
    stop: Stop,
}

impl<R: Read + Waits> Read for Stoppable<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        #[cfg(unix)]
        {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            while poll(&mut [PollFd::new(&self.reader, PollFlags::IN)], Some(&patience))? == 0 {
                self.stop.check().map_err(io::Error::other)?;
            }
        }
        self.reader.read(out)
    }
}

impl Read for SourceStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let have = &self.ahead[self.taken..];
        if have.is_empty() {
            self.ahead = Vec::new();
            self.taken = 0;
            return self.reader.read(out);
        }
        let len = have.len().min(out.len());
        out[..len].copy_from_slice(&have[..len]);
        self.taken += len;
        Ok(len)
    }
}

/// Fills `out` as far as the reader goes; gives the bytes read.
pub(crate) fn read_full(reader: &mut dyn Read, out: &mut [u8], path: &Path) -> Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match reader.read(&mut out[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(e, path)),
        }
    }
    Ok(done)
}

/// An error of a reader, which may carry one of ours.
pub(crate) fn read_error(error: io::Error, path: &Path) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours.at(path),
        Err(error) => {
            debug_assert!(!escape_path(path).is_empty());
            Error::io(path, "read", error)
        }
    }
}
