//! `.npy` and `.npz` files into a dataset: by blocks of rows, in parallel where the data can be read
//! at any place.

use super::convert::{check_bools, gather_field, swap_in_place, transpose_rows};
use super::descr::Descr;
use super::header::{Header, header_len, read_header};
use super::npz::{Member, NpzReader};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, escape_path, quoted};
use crate::input::{Source, SourceFile, read_full};
use crate::layout::BLOCK_BYTES;
use crate::output::{Output, Together, fingerprint};
use crate::progress::Progress;
use crate::region::Region;
use crate::writer::{Builder, WriteOptions};
use crc32fast::Hasher;
use std::collections::HashSet;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes of rows that are turned from Fortran order at a time, for each thread.
const TURN_BYTES: u64 = 8 << 20;

/// What to make of `.npy` and `.npz` inputs.
#[derive(Debug, Clone)]
pub struct NpyOptions {
    /// Name of the array that a `.npy` becomes.
    pub name: String,
    /// Whether raw two-byte items (`<V2`) are bfloat16.
    pub as_bf16: bool,
}

/// One array of one input.
struct Part {
    /// Name of the array that it becomes a run of rows of.
    name: String,
    /// Number of the input that it is in.
    input: usize,
    header: Header,
    data: Data,
    path: PathBuf,
}

/// Where a part's bytes are.
enum Data {
    /// At `offset` of a file; the member of an archive says what their checksum must be.
    At { file: SourceFile, offset: u64, member: Option<Member> },
    /// In a compressed member of the archive `file`.
    Packed { file: SourceFile, index: usize, as_bf16: bool },
    /// To come from a stream, behind its header.
    Stream(Mutex<Box<dyn Read + Send>>),
}

/// An array of the dataset to be written.
struct Target {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    /// What its rows come from, in order.
    runs: Vec<Run>,
}

/// Rows of an array in one part. Byte order and place in a record are the part's own.
#[derive(Clone, Copy)]
struct Run {
    part: usize,
    big_endian: bool,
    /// Where it stands in each record of a structured dtype.
    field: Option<FieldAt>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FieldAt {
    offset: usize,
    bytes: usize,
    itemsize: usize,
}

/// Writes the arrays of `inputs`, joined by rows where several have the same name.
pub(crate) fn pack(
    sources: Vec<Source>,
    out: &Path,
    npy: &NpyOptions,
    options: WriteOptions,
    together: Together,
    progress: &Progress,
) -> Result<Output> {
    let mut parts = Vec::new();
    let mut inputs = Vec::new();
    for source in sources {
        inputs.push(fingerprint(&source)?);
        let path = source.path().to_owned();
        let before = parts.len();
        open_parts(source, inputs.len(), npy, &mut parts).map_err(|e| e.at(&path))?;
        if parts.len() == before {
            return Err(
                Error::new(ErrorKind::InvalidArgument, "expected at least one array, found none").at(path)
            );
        }
    }
    let targets = targets(&parts)?;
    let builder =
        targets.iter().fold(Builder::new(options), |builder, t| builder.array(&t.name, t.dtype, &t.shape));
    let output = Output::create(builder.inputs(inputs), out, together)?;
    progress.start(parts.iter().map(|part| part.header.data_len).sum());
    spool_streams(&mut parts, &targets, &output)?;
    for target in &targets {
        write_target(target, &parts, &output, progress)?;
    }
    Ok(output)
}

fn open_parts(mut source: Source, input: usize, npy: &NpyOptions, parts: &mut Vec<Part>) -> Result<()> {
    let start = source.peek(12)?;
    let path = source.path().to_owned();
    if start.starts_with(b"PK") {
        let Source::File(file) = source else {
            return Err(Error::new(ErrorKind::Unsupported, "expected an .npz file, found a stream")
                .hint("the directory of an archive stands at its end; save it to a file first"));
        };
        let reader = NpzReader::open(BufReader::new(file.reader()?), npy.as_bf16)?;
        for (index, member) in reader.members().iter().enumerate() {
            let file = SourceFile::new(file.reader()?, &path)?;
            let data = match member.stored_at {
                Some(offset) => Data::At { file, offset, member: Some(member.clone()) },
                None => Data::Packed { file, index, as_bf16: npy.as_bf16 },
            };
            parts.push(Part {
                name: member.name.clone(),
                input,
                header: member.header.clone(),
                data,
                path: path.clone(),
            });
        }
        return Ok(());
    }
    let part = match source {
        Source::File(file) => {
            let len = header_len(&start, Some(file.len()))?;
            let mut prefix = vec![0; len as usize];
            file.read_at(&mut prefix, 0)?;
            let header = read_header(&prefix, Some(file.len()), npy.as_bf16)?;
            let offset = header.data_offset;
            Part {
                name: npy.name.clone(),
                input,
                header,
                data: Data::At { file, offset, member: None },
                path,
            }
        }
        Source::Stream(mut stream) => {
            let len = header_len(&start, None)?;
            let mut prefix = vec![0; len as usize];
            let found = read_full(&mut stream, &mut prefix, &path)?;
            let header = read_header(&prefix[..found], None, npy.as_bf16)?;
            Part {
                name: npy.name.clone(),
                input,
                header,
                data: Data::Stream(Mutex::new(Box::new(stream))),
                path,
            }
        }
    };
    parts.push(part);
    Ok(())
}

/// The arrays that the parts make: a part with a structured dtype makes one for each field.
fn targets(parts: &[Part]) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        for new in targets_of(index, parts) {
            match targets.iter_mut().find(|target| target.name == new.name) {
                None => targets.push(new),
                Some(target) => join(target, new).map_err(|e| e.at(&part.path))?,
            }
        }
    }
    same_arrays(&targets, parts)?;
    if targets.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one array, found none"));
    }
    Ok(targets)
}

fn targets_of(index: usize, parts: &[Part]) -> Vec<Target> {
    let part = &parts[index];
    let shape = part.header.shape.clone();
    match &part.header.descr {
        Descr::Plain { dtype, big_endian } => vec![Target {
            name: part.name.clone(),
            dtype: *dtype,
            shape,
            runs: vec![Run { part: index, big_endian: *big_endian, field: None }],
        }],
        Descr::Record { fields, itemsize } => {
            // In an archive of several arrays the field alone would not say whose it is.
            let alone = parts.iter().all(|other| other.name == part.name);
            let target = |field: &super::descr::Field| {
                let mut shape = shape.clone();
                shape.extend_from_slice(&field.subshape);
                Target {
                    name: if alone { field.name.clone() } else { format!("{}.{}", part.name, field.name) },
                    dtype: field.dtype,
                    shape,
                    runs: vec![Run {
                        part: index,
                        big_endian: field.big_endian,
                        field: Some(FieldAt {
                            offset: field.offset as usize,
                            bytes: field.nbytes() as usize,
                            itemsize: *itemsize as usize,
                        }),
                    }],
                }
            };
            fields.iter().map(target).collect()
        }
    }
}

/// If inputs are joined by rows, each of them has rows for every array: else rows that belong together
/// would not stand beside each other.
fn same_arrays(targets: &[Target], parts: &[Part]) -> Result<()> {
    let inputs =
        |target: &Target| -> HashSet<usize> { target.runs.iter().map(|run| parts[run.part].input).collect() };
    let Some(joined) = targets.iter().find(|target| inputs(target).len() > 1) else { return Ok(()) };
    let all: HashSet<usize> = parts.iter().map(|part| part.input).collect();
    for target in targets {
        let found = inputs(target);
        let lacks = parts.iter().find(|part| all.contains(&part.input) && !found.contains(&part.input));
        if let Some(part) = lacks {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected rows for array {}, as {} has rows from several inputs, found none",
                    quoted(target.name.as_bytes()),
                    quoted(joined.name.as_bytes())
                ),
            )
            .at(&part.path));
        }
    }
    Ok(())
}

/// Adds the rows of `new` at the end of `target`.
fn join(target: &mut Target, new: Target) -> Result<()> {
    let rows = |shape: &[u64]| shape.first().copied();
    let same = target.dtype == new.dtype && target.shape.get(1..) == new.shape.get(1..);
    let sum = rows(&target.shape).zip(rows(&new.shape)).and_then(|(a, b)| a.checked_add(b));
    match (same, sum) {
        (true, Some(sum)) => {
            target.shape[0] = sum;
            target.runs.extend(new.runs);
            Ok(())
        }
        _ => Err(Error::new(
            ErrorKind::TypeMismatch,
            format!(
                "array {}: expected rows of {} {:?} as before, found {} {:?}",
                quoted(target.name.as_bytes()),
                target.dtype,
                target.shape.get(1..).unwrap_or_default(),
                new.dtype,
                new.shape.get(1..).unwrap_or_default()
            ),
        )),
    }
}

/// Data that is wanted in another order than it comes in goes through a file in the building folder.
fn spool_streams(parts: &mut [Part], targets: &[Target], output: &Output) -> Result<()> {
    // Where one run of an array is not simply its rows in order, all of them are read by place.
    let by_place = |target: &Target| {
        target.runs.iter().any(|run| run.field.is_some() || parts[run.part].header.needs_transpose())
    };
    let needs_file = |(index, part): (usize, &Part)| {
        let of_part = |target: &&Target| target.runs.iter().any(|run| run.part == index);
        let sequential = matches!(part.data, Data::Stream(_) | Data::Packed { .. });
        sequential
            && (targets.iter().filter(of_part).count() > 1 || targets.iter().filter(of_part).any(by_place))
    };
    let spooled: Vec<bool> = parts.iter().enumerate().map(needs_file).collect();
    for (part, _) in parts.iter_mut().zip(spooled).filter(|(_, spooled)| *spooled) {
        let mut file = output.scratch_file()?;
        let mut left = part.header.data_len;
        read_in_order(&part.data, &part.path, |reader| {
            let mut buffer = vec![0; left.min(BLOCK_BYTES) as usize];
            while left > 0 {
                let len = left.min(BLOCK_BYTES) as usize;
                read_whole(reader, &mut buffer[..len], &part.header, &part.path)?;
                file.write_all(&buffer[..len]).map_err(|e| Error::io("spool", "write", e))?;
                left -= len as u64;
            }
            Ok(())
        })?;
        part.data = Data::At { file: SourceFile::new(file, &part.path)?, offset: 0, member: None };
    }
    Ok(())
}

/// Fills `out` or says how much of the array is missing.
fn read_whole(reader: &mut dyn Read, out: &mut [u8], header: &Header, path: &Path) -> Result<()> {
    let found = read_full(reader, out, path)?;
    if found == out.len() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corrupt,
        format!("expected {} bytes of data, found {} less at the end", header.data_len, out.len() - found),
    )
    .hint("the input was cut off")
    .at(path))
}

/// Runs `job` on a reader over the bytes of a part.
fn read_in_order(data: &Data, path: &Path, job: impl FnOnce(&mut dyn Read) -> Result<()>) -> Result<()> {
    match data {
        Data::At { file, offset, .. } => {
            let mut reader = file.reader()?;
            reader.seek(SeekFrom::Start(*offset)).map_err(|e| Error::io(path, "seek", e))?;
            job(&mut reader)
        }
        Data::Packed { file, index, as_bf16 } => {
            let mut archive = NpzReader::open(BufReader::new(file.reader()?), *as_bf16)?;
            job(&mut archive.data(*index).map_err(|e| e.at(path))?)
        }
        Data::Stream(reader) => job(&mut **reader.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Rows of an archive's member that were read, and the checksum of their bytes.
type Piece = (Range<u64>, Hasher);

fn write_target(target: &Target, parts: &[Part], output: &Output, progress: &Progress) -> Result<()> {
    // The first row of each part in the array.
    let mut starts = vec![0u64];
    for run in &target.runs {
        starts.push(starts.last().copied().unwrap_or(0) + parts[run.part].header.rows());
    }
    let checks: Vec<Mutex<Vec<Piece>>> = target.runs.iter().map(|_| Mutex::default()).collect();
    let copy = |rows: Range<u64>, out: &mut [u8]| -> Result<()> {
        let row_bytes = out.len() / (rows.end - rows.start).max(1) as usize;
        let mut out = out;
        for (i, run) in target.runs.iter().enumerate() {
            let (start, end) = (rows.start.max(starts[i]), rows.end.min(starts[i + 1]));
            if start >= end {
                continue;
            }
            let piece;
            (piece, out) = out.split_at_mut((end - start) as usize * row_bytes);
            let part = &parts[run.part];
            let within = start - starts[i]..end - starts[i];
            let hasher =
                copy_rows(target.dtype, run, part, within.clone(), piece).map_err(|e| e.at(&part.path))?;
            if let Some(hasher) = hasher {
                checks[i].lock().unwrap_or_else(PoisonError::into_inner).push((within, hasher));
            }
            if target.dtype == DType::Bool {
                let first = start.saturating_mul(row_bytes as u64);
                check_bools(piece, first).map_err(|e| e.at(&part.path))?;
            }
            progress.advance(piece.len() as u64)?;
        }
        Ok(())
    };
    let sequential = |run: &Run| !matches!(parts[run.part].data, Data::At { .. });
    if target.runs.iter().any(sequential) {
        write_in_order(target, parts, output, progress)?;
    } else {
        // A column of a Fortran-ordered file gives as many bytes in a row as a region has rows.
        let turns = target.runs.iter().any(|run| parts[run.part].header.needs_transpose());
        output.fill(&target.name, if turns { TURN_BYTES } else { BLOCK_BYTES }, copy)?;
    }
    for (check, run) in checks.into_iter().zip(&target.runs) {
        let part = &parts[run.part];
        if let Data::At { member: Some(member), file, offset } = &part.data {
            let pieces = check.into_inner().unwrap_or_else(PoisonError::into_inner);
            check_member(member, file, *offset, pieces).map_err(|e| e.at(&part.path))?;
        }
    }
    Ok(())
}

/// Compares an archive's checksum with that of the pieces that were read, or of the data read once more.
fn check_member(member: &Member, file: &SourceFile, offset: u64, mut pieces: Vec<Piece>) -> Result<()> {
    let mut all = Hasher::new();
    pieces.sort_by_key(|(rows, _)| rows.start);
    // Who resumes, or does a part, has not read all of it.
    let read: u64 = pieces.iter().map(|(rows, _)| rows.end - rows.start).sum();
    if read == member.header.rows() {
        pieces.iter().for_each(|(_, piece)| all.combine(piece));
    } else {
        let mut buffer = vec![0; BLOCK_BYTES as usize];
        let mut at = 0;
        while at < member.header.data_len {
            let len = (member.header.data_len - at).min(BLOCK_BYTES) as usize;
            file.read_at(&mut buffer[..len], offset + at)?;
            all.update(&buffer[..len]);
            at += len as u64;
        }
    }
    member.check_crc(&all)
}

/// Copies rows `rows` of a part to `out`; gives the checksum of the bytes read where they were
/// read in the order of the file.
fn copy_rows(
    dtype: DType,
    run: &Run,
    part: &Part,
    rows: Range<u64>,
    out: &mut [u8],
) -> Result<Option<Hasher>> {
    let Data::At { file, offset, member } = &part.data else { return Ok(None) };
    let header = &part.header;
    let swap = dtype.swap_unit();
    let hash = |bytes: &[u8]| {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher
    };
    let hashed = member.is_some();
    if header.needs_transpose() {
        transpose_from(file, *offset, header, rows, run.field, out)?;
        if run.big_endian {
            swap_in_place(out, swap);
        }
        return Ok(None);
    }
    let start = offset + rows.start * header.row_bytes();
    if let Some(field) = run.field {
        // A field may be a small part of its record, so records are read in runs of bounded size.
        let count = (BLOCK_BYTES as usize / field.itemsize.max(1)).max(1);
        let mut records = Vec::new();
        let mut hasher = Hasher::new();
        let mut at = start;
        for out in out.chunks_mut(count * field.bytes.max(1)) {
            records.resize(out.len() / field.bytes.max(1) * field.itemsize, 0);
            file.read_at(&mut records, at)?;
            at += records.len() as u64;
            if hashed {
                hasher.update(&records);
            }
            gather_field(&records, field.itemsize, field.offset, field.bytes, out);
        }
        if run.big_endian {
            swap_in_place(out, swap);
        }
        return Ok(hashed.then_some(hasher));
    }
    file.read_at(out, start)?;
    let hasher = hashed.then(|| hash(out));
    if run.big_endian {
        swap_in_place(out, swap);
    }
    Ok(hasher)
}

/// Reads rows of a Fortran-ordered array: the same run of each column, then turned in memory.
fn transpose_from(
    file: &SourceFile,
    offset: u64,
    header: &Header,
    rows: Range<u64>,
    field: Option<FieldAt>,
    out: &mut [u8],
) -> Result<()> {
    let itemsize = header.descr.itemsize();
    let columns = header.data_len / (header.rows() * itemsize).max(1);
    let out_row = out.len() / (rows.end - rows.start).max(1) as usize;
    // Records may be much longer than the field of them that is wanted.
    let step = (TURN_BYTES / (columns * itemsize).max(1)).max(1);
    let (mut band, mut turned) = (Vec::new(), Vec::new());
    for (start, out) in
        rows.clone().step_by(step as usize).zip(out.chunks_mut(step as usize * out_row.max(1)))
    {
        let count = step.min(rows.end - start);
        let run = (count * itemsize) as usize;
        band.resize(run * columns as usize, 0);
        for (column, piece) in (0..columns).zip(band.chunks_exact_mut(run)) {
            file.read_at(piece, offset + (column * header.rows() + start) * itemsize)?;
        }
        let mut shape = header.shape.clone();
        shape[0] = count;
        match field {
            None => transpose_rows(&band, &shape, itemsize as usize, 0..count, out),
            Some(field) => {
                turned.resize(band.len(), 0);
                transpose_rows(&band, &shape, itemsize as usize, 0..count, &mut turned);
                gather_field(&turned, field.itemsize, field.offset, field.bytes, out);
            }
        }
    }
    Ok(())
}

/// Where the bytes of a region go that are next in the order of the rows.
enum Open {
    Region(Region),
    /// Somebody else writes them or has written them.
    Skipped(Vec<u8>),
}

impl Open {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Open::Region(region) => region.bytes_mut(),
            Open::Skipped(bytes) => bytes,
        }
    }
}

/// Fills an array from readers that only go forward, region after region.
fn write_in_order(target: &Target, parts: &[Part], output: &Output, progress: &Progress) -> Result<()> {
    let layout = output.layout(&target.name)?;
    let regions: Vec<Range<u64>> = layout.regions(BLOCK_BYTES).collect();
    // Regions of one block: each is missing or not, as a whole.
    let missing = output.missing(&target.name, BLOCK_BYTES)?;
    let is_missing = |rows: &Range<u64>| missing.binary_search_by_key(&rows.start, |run| run.start).is_ok();
    let row_bytes = layout.by_row().row_bytes;
    let mut next = 0;
    let mut open = None;
    let mut filled = 0;
    for run in &target.runs {
        let part = &parts[run.part];
        read_in_order(&part.data, &part.path, |reader| {
            let mut left = part.header.data_len;
            loop {
                if open.is_none() {
                    let Some(rows) = regions.get(next) else { break };
                    open = Some(if is_missing(rows) {
                        Open::Region(output.region(&target.name, rows.clone())?)
                    } else {
                        Open::Skipped(vec![0; ((rows.end - rows.start) * row_bytes) as usize])
                    });
                    (next, filled) = (next + 1, 0);
                }
                let Some(region) = open.as_mut() else { break };
                let out = region.bytes_mut();
                let len = left.min((out.len() - filled) as u64) as usize;
                let piece = &mut out[filled..filled + len];
                read_whole(reader, piece, &part.header, &part.path)?;
                if run.big_endian {
                    swap_in_place(piece, target.dtype.swap_unit());
                }
                if target.dtype == DType::Bool {
                    check_bools(piece, part.header.data_len - left)?;
                }
                filled += len;
                left -= len as u64;
                progress.advance(len as u64)?;
                if filled == region.bytes_mut().len()
                    && let Some(Open::Region(region)) = open.take()
                {
                    region.finish()?;
                }
                if left == 0 && (open.is_some() || next >= regions.len()) {
                    break;
                }
            }
            // The end of a compressed member is where its checksum is compared.
            read_full(reader, &mut [0], &part.path).map(drop)
        })
        .map_err(|e| e.at(&part.path))?;
    }
    Ok(())
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Part({} of {})", quoted(self.name.as_bytes()), escape_path(&self.path))
    }
}
