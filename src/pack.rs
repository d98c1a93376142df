//! Files of any known format into a dataset.

use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result, escape_path};
use crate::generation::{Begin, Next};
use crate::input::{Input, Source};
use crate::npy::NpyOptions;
use crate::output::{Together, fingerprint};
use crate::plan::READ_AS;
use crate::progress::Progress;
use crate::text::{
    Delimiter, Header, Layout, Like, Missing, Ragged, SparseOptions, TextOptions, svmlight, vectors,
};
use crate::writer::WriteOptions;
use std::path::Path;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// By extension, then by content.
    #[default]
    Auto,
    /// Fields separated by tabs.
    Tsv,
    /// Fields separated by commas unless the text shows another separator.
    Csv,
    /// Fields separated by runs of blanks, as `np.loadtxt` reads them.
    Text,
    /// NumPy's array file.
    Npy,
    /// NumPy's archive of array files.
    Npz,
    /// Vectors with a token each, as word2vec and GloVe write them: arrays `vectors` and `tokens`. word2vec's binary form
    /// too.
    Word2vec,
    /// Sparse rows, as svmlight and libsvm write them: arrays `data`, `indices`, `indptr` as SciPy's `csr_matrix` takes them,
    /// `labels`, and `qid` where there are such. The shape of the matrix is in the attributes.
    Svmlight,
}

/// What becomes of the dataset that inputs are packed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mode {
    /// It is new.
    #[default]
    Create,
    /// It is there, and gets the rows of the inputs at its end. Text is read as the types that it has.
    Append,
    /// It is there, and gets the arrays of the inputs beside its own, which must have as many rows.
    Add,
}

/// What to make of inputs.
#[derive(Debug, Clone, Default)]
pub struct PackOptions {
    /// What the inputs are.
    pub format: Format,
    /// For text.
    pub text: TextOptions,
    /// For npy and npz: whether raw two-byte items are bfloat16.
    pub as_bf16: bool,
    /// Name of the array that a matrix or a `.npy` becomes. Not used to append to a single array, which has one.
    pub name: String,
    /// For the dataset.
    pub write: WriteOptions,
    /// Whether the dataset is new.
    pub mode: Mode,
    /// Goes on with what a killed conversion of the same inputs has left, if anything: blocks that are done
    /// and match their checksums stay. So it is for arrays whose shape is known from the start: `.npy`,
    /// `.npz`, and matrices from text files. Anything else starts from the beginning.
    pub resume: bool,
    /// `Some((index, count))`, `index` from 0: writes only this part, whole shards, of what `count` processes,
    /// on one host or several, write together from the same inputs. Whoever ends last seals. Text without
    /// a dtype is read once more before, to find the types of all values.
    pub part: Option<(u64, u64)>,
}

/// What [`pack`] has made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Packed {
    /// The sealed dataset; `None` if this was a part, and others are still missing.
    pub dataset: Option<Dataset>,
    /// What was guessed, a line each.
    pub notes: Vec<String>,
}

/// Converts `inputs`, joined by rows in their order, into the dataset `out`.
///
/// Runs on the rayon pool it is called from. The same inputs give the same bytes, whatever the
/// number of its threads.
///
/// # Errors
///
/// Of the inputs: with file, line and field of text, file and byte else. Of the output: as
/// [`crate::Builder::create`] and [`crate::Writer::seal`]. After an error nothing is left at
/// `out` or beside it; with `resume` or `part`, what has been written stays beside it, and
/// an error says if it is of other inputs or settings. To append or to add, as [`crate::append`] and
/// [`crate::add`]: after an error the dataset is what it was.
pub fn pack(inputs: &[Input], out: &Path, options: &PackOptions, progress: &Progress) -> Result<Packed> {
    if options.mode == Mode::Create {
        return create(inputs, out, options, None, progress);
    }
    let refused = |what: &str| {
        let text = format!("expected one writer that keeps the dataset's rows, found a request for {what}");
        Err(Error::new(ErrorKind::Unsupported, text))
    };
    if options.part.is_some() {
        return refused("parts");
    }
    if options.write.replaces() {
        return refused("replacement");
    }
    let mut next = Next::claim(out, &options.write)?;
    let (task, repeatable) = task(inputs, options, progress)?;
    if next.begin(&task, options.resume && repeatable)? == Begin::Done {
        let notes = vec!["the killed run had done all".to_owned()];
        return Ok(Packed { dataset: Some(Dataset::open(out)?), notes });
    }
    let added = next.added();
    let mut notes = Vec::new();
    if !is_whole(&added, progress)? {
        let like = (options.mode == Mode::Append).then(|| next.base());
        let write = options.write.clone();
        let options = PackOptions {
            mode: Mode::Create,
            name: like.and_then(only_name).unwrap_or_else(|| options.name.clone()),
            write: like.map_or(write.clone(), |base| write.shard_bytes(shard_bytes(base))),
            ..options.clone()
        };
        notes = create(inputs, &added, &options, like, progress)?.notes;
    }
    let rows = Dataset::open(&added)?;
    progress.advance(0)?;
    let dataset = if options.mode == Mode::Append { next.append(&rows)? } else { next.add(&rows)? };
    Ok(Packed { dataset: Some(dataset), notes })
}

/// Whether a killed run has left the whole dataset `added`. One that is damaged goes.
fn is_whole(added: &Path, progress: &Progress) -> Result<bool> {
    if added.symlink_metadata().is_err() {
        return Ok(false);
    }
    if Dataset::open(added).and_then(|rows| rows.verify(progress))?.is_whole() {
        return Ok(true);
    }
    std::fs::remove_dir_all(added).map_err(|e| Error::io(added, "remove", e))?;
    Ok(false)
}

/// What tells this work from work with other inputs or settings, and whether the inputs can be read again.
fn task(inputs: &[Input], options: &PackOptions, progress: &Progress) -> Result<(String, bool)> {
    let mut files = Vec::with_capacity(inputs.len());
    let mut repeatable = true;
    for input in inputs {
        // To open a pipe would be to begin to read from it.
        let is_pipe = match input {
            Input::Stdin => true,
            Input::Path(path) => path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()),
        };
        repeatable &= !is_pipe;
        files.push(if is_pipe { "stream".to_owned() } else { fingerprint(&input.open_raw(progress)?)? });
    }
    let settings = format!(
        "{:?} {:?} {:?} {} {}",
        options.mode, options.format, options.text, options.as_bf16, options.name
    );
    let settings = crate::checksum::crc32(settings.as_bytes());
    Ok((format!("{}, {READ_AS}{settings:08x}", files.join(", ")), repeatable))
}

/// The name of the one array that a dataset has.
fn only_name(dataset: &Dataset) -> Option<String> {
    match (dataset.arrays(), dataset.manifest().strings.as_slice()) {
        ([array], []) => Some(array.name.clone()),
        _ => None,
    }
}

/// Bytes of a shard by which new shards are most often as long as those of `dataset`.
fn shard_bytes(dataset: &Dataset) -> u64 {
    let by_row = dataset.arrays().iter().map(|array| array.layout.by_row());
    by_row
        .map(|by_row| by_row.rows_per_shard * by_row.row_bytes)
        .max()
        .filter(|&bytes| bytes > 0)
        .unwrap_or(1)
}

/// As [`pack`], for a new dataset. With `like`, text becomes arrays of the names and types that it has.
fn create(
    inputs: &[Input],
    out: &Path,
    options: &PackOptions,
    like: Option<&Dataset>,
    progress: &Progress,
) -> Result<Packed> {
    crate::staging::check_target(out, options.write.replaces())?;
    if let Some((index, count)) = options.part.filter(|(index, count)| index >= count) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected one of {count} parts, counted from 0, found {index}"),
        ));
    }
    let together = Together { resume: options.resume, part: options.part };
    let mut sources = Vec::with_capacity(inputs.len());
    let mut kind = None;
    for input in inputs {
        let mut source = input.open(progress)?;
        let found = kind_of(&mut source, options.format).map_err(|e| e.at(input.name()))?;
        match kind {
            None => kind = Some(found),
            Some(first) if first == found => {}
            Some(first) => {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "expected {} like {}, found {}",
                        first.name(),
                        escape_path(inputs[0].name()),
                        found.name()
                    ),
                )
                .at(input.name()));
            }
        }
        sources.push(source);
    }
    if let Some(kind) = kind {
        check_options(kind, &options.text).map_err(|e| e.at(inputs[0].name()))?;
    }
    let mut charsets = Vec::new();
    if kind.is_some_and(|kind| kind != Kind::Npy) {
        let mut texts = Vec::with_capacity(sources.len());
        for source in sources {
            let path = source.path().to_owned();
            let (text, charset) =
                source.decoded(options.text.encoding.as_deref()).map_err(|e| e.at(&path))?;
            charsets.extend(charset.map(|charset| {
                format!("{}: {}; otherwise by --encoding", escape_path(&path), charset.name())
            }));
            texts.push(text);
        }
        sources = texts;
    }
    let (output, mut notes) = match kind {
        None => {
            return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one input, found none"));
        }
        Some(Kind::Npy) if options.text.dtype.is_some() => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "expected npy to keep its dtype, found a request for another",
            )
            .at(inputs[0].name()));
        }
        Some(Kind::Npy) => {
            let npy = NpyOptions { name: options.name.clone(), as_bf16: options.as_bf16 };
            (crate::npy::pack(sources, out, &npy, options.write.clone(), together, progress)?, Vec::new())
        }
        Some(Kind::Sparse) => {
            svmlight::pack(sources, out, &options.text, &options.write, together, progress)?
        }
        Some(Kind::Vectors) => {
            let mut text = options.text.clone();
            let vectors = like.and_then(|like| like.array(vectors::VECTORS).ok());
            text.dtype = text.dtype.or(vectors.map(|array| array.layout.dtype()));
            vectors::pack(sources, out, &text, &options.write, together, progress)?
        }
        Some(Kind::Text) => {
            let mut text = options.text.clone();
            text.name.clone_from(&options.name);
            let given = &mut text.given;
            given.delimiter = given.delimiter.or(match options.format {
                Format::Tsv => Some(Delimiter::Byte(b'\t')),
                Format::Text => Some(Delimiter::Blanks),
                _ => None,
            });
            if options.format == Format::Csv {
                given.extension = Some("csv".to_owned());
            }
            let like = like.map(Like::of).transpose()?;
            crate::text::pack(sources, out, &text, like.as_ref(), &options.write, together, progress)?
        }
    };
    // A stop that came with the end of a stream must not seal what is only its start.
    progress.advance(0)?;
    notes.splice(0..0, charsets);
    Ok(Packed { dataset: output.seal()?, notes })
}

/// An option that has no meaning for inputs of this kind is no wish that may be passed over.
fn check_options(kind: Kind, text: &TextOptions) -> Result<()> {
    use Kind::{Sparse, Text, Vectors};
    let given = &text.given;
    let options: [(&str, bool, &[Kind]); 17] = [
        ("--columns", !text.columns.is_empty(), &[Text]),
        ("--na", !text.na.is_empty(), &[Text]),
        ("--decimal, --thousands or --fortran-exponent", !text.notation.is_plain(), &[Text]),
        ("--delimiter", given.delimiter.is_some(), &[Text]),
        ("--quote", given.quote.is_some(), &[Text]),
        ("--comment", given.comment.is_some(), &[Text]),
        ("--line-end", given.line_end.is_some(), &[Text]),
        ("--skip-rows", given.skip_lines > 0, &[Text]),
        ("--missing", given.missing != Missing::Error, &[Text]),
        ("--ragged", given.ragged != Ragged::Error, &[Text]),
        ("--layout", text.layout != Layout::Auto, &[Text]),
        ("--header", given.header != Header::Auto, &[Text, Vectors, Sparse]),
        ("--max-rows", given.max_rows.is_some(), &[Text, Vectors, Sparse]),
        ("--encoding", text.encoding.is_some(), &[Text, Vectors, Sparse]),
        ("--allow-overflow", text.allow_overflow, &[Text, Vectors, Sparse]),
        ("--dim", text.dim.is_some(), &[Vectors]),
        ("--zero-based, --features or --multilabel", text.sparse != SparseOptions::default(), &[Sparse]),
    ];
    match options.iter().find(|(_, set, kinds)| *set && !kinds.contains(&kind)) {
        None => Ok(()),
        Some((name, ..)) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected options that {} has, found {name}", kind.name()),
        )),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npy,
    Text,
    Vectors,
    Sparse,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Npy => "npy or npz",
            Kind::Text => "text",
            Kind::Vectors => "word2vec",
            Kind::Sparse => "svmlight",
        }
    }
}

/// The content decides where it has a mark of its own; a name alone may lie.
fn kind_of(source: &mut Source, format: Format) -> Result<Kind> {
    match format {
        Format::Npy | Format::Npz => return Ok(Kind::Npy),
        Format::Tsv | Format::Csv | Format::Text => return Ok(Kind::Text),
        Format::Word2vec => return Ok(Kind::Vectors),
        Format::Svmlight => return Ok(Kind::Sparse),
        Format::Auto => {}
    }
    let start = source.peek(8)?;
    let extension = source.path().extension().map(std::ffi::OsStr::to_ascii_lowercase);
    let named = extension.is_some_and(|e| e == "npy" || e == "npz");
    if named || start.starts_with(&crate::npy::header::MAGIC) || start.starts_with(b"PK\x03\x04") {
        return Ok(Kind::Npy);
    }
    Ok(Kind::Text)
}
