//! Where a conversion writes: a dataset of its own, or one that several processes fill or that a
//! killed one has left.

use crate::building::Building;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Source;
use crate::layout::ArrayLayout;
use crate::region::Region;
use crate::shared::{Check, Shared};
use crate::writer::{Builder, Writer};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How a conversion shares its work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Together {
    /// Goes on with what a killed process has left.
    pub(crate) resume: bool,
    /// Does part `.0` of `.1`.
    pub(crate) part: Option<(u64, u64)>,
}

impl Together {
    /// Arrays that grow have one writer and one run.
    pub(crate) fn alone(self, why: &str) -> Result<()> {
        match self.part {
            None => Ok(()),
            Some(_) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("expected arrays of known shape to be written in parts, found {why}"),
            )
            .hint("convert it in one process")),
        }
    }
}

/// A dataset that is being filled.
#[derive(Debug)]
pub(crate) enum Output {
    Alone(Writer),
    Shared { shared: Box<Shared>, together: Together },
}

impl Output {
    /// Creates the dataset, or joins those who write it.
    pub(crate) fn create(builder: Builder, out: &Path, together: Together) -> Result<Self> {
        if !together.resume && together.part.is_none() {
            return builder.create(out).map(Self::Alone);
        }
        let (plan, options) = builder.into_plan()?;
        let check = if together.resume { Check::Always } else { Check::IfDoubtful };
        let shared = Box::new(Shared::enter(out, Some(plan), options, check)?);
        Ok(Self::Shared { shared, together })
    }

    fn building(&self) -> &Arc<Building> {
        match self {
            Self::Alone(writer) => writer.building(),
            Self::Shared { shared, .. } => shared.building(),
        }
    }

    /// The layout of the array `name`.
    pub(crate) fn layout(&self, name: &str) -> Result<&ArrayLayout> {
        let building = self.building();
        Ok(&building.arrays()[building.find(name)?].layout)
    }

    /// The rows of the array `name` that this process is to write, whoever has written some already.
    fn own(&self, name: &str) -> Result<Range<u64>> {
        let layout = self.layout(name)?;
        match self {
            Self::Shared { together: Together { part: Some((index, count)), .. }, .. } => {
                layout.part(*index, *count)
            }
            _ => Ok(0..layout.rows()),
        }
    }

    /// Those of these rows that are missing, in runs of about `bytes`.
    pub(crate) fn missing(&self, name: &str, bytes: u64) -> Result<Vec<Range<u64>>> {
        let building = self.building();
        building.runs(building.find(name)?, bytes, self.own(name)?)
    }

    /// Fills those of these rows that are missing, in regions of about `bytes`, by
    /// `fill(rows, bytes)`, in parallel; `fill` sets every byte.
    pub(crate) fn fill(
        &self,
        name: &str,
        bytes: u64,
        fill: impl Fn(Range<u64>, &mut [u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        let building = self.building();
        building.fill(building.find(name)?, bytes, self.own(name)?, fill)
    }

    /// A region of which every byte is going to be set.
    pub(crate) fn region(&self, name: &str, rows: Range<u64>) -> Result<Region> {
        let building = self.building();
        building.open_region(building.find(name)?, rows)
    }

    /// A file without a name beside the data, gone with its descriptor.
    pub(crate) fn scratch_file(&self) -> Result<File> {
        let mut number = 0u64;
        loop {
            let path = self.building().path().join(format!("spool.{number}"));
            match File::options().create_new(true).read(true).write(true).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path).map_err(|e| Error::io(&path, "remove", e))?;
                    return Ok(file);
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(Error::io(&path, "create", e)),
            }
        }
    }

    /// Seals the dataset. `None` if parts of other processes are still missing.
    pub(crate) fn seal(self) -> Result<Option<Dataset>> {
        match self {
            Self::Alone(writer) => writer.seal().map(Some),
            Self::Shared { shared, together } => match shared.seal() {
                Err(e) if e.kind() == ErrorKind::Incomplete && together.part.is_some() => Ok(None),
                result => result.map(Some),
            },
        }
    }
}

/// What tells an input from others of the same shape, at the cost of two short reads.
pub(crate) fn fingerprint(source: &Source) -> Result<String> {
    const PIECE: u64 = 1 << 16;
    let Some(file) = source.file() else { return Ok("stream".to_owned()) };
    let len = file.len();
    let mut crc = [0; 2];
    let mut piece = vec![0; len.min(PIECE) as usize];
    for (crc, offset) in crc.iter_mut().zip([0, len - len.min(PIECE)]) {
        file.read_at(&mut piece, offset)?;
        *crc = crate::checksum::crc32(&piece);
    }
    Ok(format!("{len} bytes {:08x} {:08x}", crc[0], crc[1]))
}
