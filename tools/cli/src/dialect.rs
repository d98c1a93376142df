//! The options that say how a text table is written.

use arrshard::DType;
use arrshard::text::detect::Given;
use arrshard::text::number::Notation;
use arrshard::text::{
    Delimiter, Header, IndexBase, Layout, LineEnd, Missing, Ragged, SparseOptions, TextOptions,
};
use clap::{Args, ValueEnum};

#[derive(Args)]
#[command(next_help_heading = "Text input")]
pub(crate) struct TextArgs {
    /// A character, tab, comma, semicolon, pipe, space or blanks (runs)
    #[arg(long, value_name = "C", value_parser = delimiter, allow_hyphen_values = true)]
    delimiter: Option<Delimiter>,
    /// Whether the first row names the columns
    #[arg(long, value_name = "auto|yes|no", value_enum, default_value_t, hide_possible_values = true)]
    header: HeaderArg,
    /// Leave out what follows PREFIX on a line; in text # if not given
    #[arg(long, value_name = "PREFIX", value_parser = comment, allow_hyphen_values = true)]
    comment: Option<Comment>,
    /// Leave out the first N lines, as an editor counts them
    #[arg(long, value_name = "N", alias = "skip-lines", default_value_t = 0, hide_default_value = true)]
    skip_rows: u64,
    /// Take at most N rows
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
    /// Only these columns, in this order: names, numbers from 0, A:B
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    columns: Vec<String>,
    /// Type of every value: f8, f32, i4, bf16, uint8 … [default: auto]
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    dtype: Option<Kind>,
    /// What an empty field becomes [default: error]
    #[arg(long, value_name = "error|nan|VALUE", value_parser = missing, allow_hyphen_values = true)]
    missing: Option<Missing>,
    /// Words that count as empty among numbers: NA,null,-
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    na: Vec<String>,
    /// What encloses fields with delimiters [default: " but in text]
    #[arg(long, value_name = "C|none", value_parser = quote)]
    quote: Option<Quote>,
    /// Rows with too few or too many fields
    #[arg(long, value_name = "error|pad|skip", value_enum, default_value_t, hide_possible_values = true)]
    ragged: RaggedArg,
    /// One matrix, or one array a column
    #[arg(long, value_name = "matrix|columns", value_enum, default_value_t, hide_possible_values = true)]
    layout: LayoutArg,
    /// Line ends: lf is LF and CRLF, any also CR
    #[arg(long, value_name = "auto|lf|any", value_enum, default_value_t, hide_possible_values = true)]
    line_end: LineEndArg,
    /// Of word2vec: numbers in a vector [default: by the lines]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    dim: Option<u64>,
    /// Of svmlight: whether indices count from 0 [default: auto]
    #[arg(long, value_name = "auto|yes|no", value_enum, hide_possible_values = true)]
    zero_based: Option<HeaderArg>,
    /// Of svmlight: columns of the matrix [default: the highest index]
    #[arg(long, value_name = "N")]
    features: Option<u64>,
    /// Of svmlight: each line has a list of labels
    #[arg(long)]
    multilabel: bool,
    /// utf-16, latin-1, windows-1252 … [default: UTF-8, or by a mark]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// What stands before the fraction of a number [default: .]
    #[arg(long, value_name = "C", value_parser = mark, allow_hyphen_values = true)]
    decimal: Option<Mark>,
    /// What stands between groups of three digits [default: nothing]
    #[arg(long, value_name = "C", value_parser = mark, allow_hyphen_values = true)]
    thousands: Option<Mark>,
    /// 1.5D+03 is a number, as Fortran writes it
    #[arg(long)]
    fortran_exponent: bool,
    /// Numbers beyond the range of their float type become infinite
    #[arg(long)]
    allow_overflow: bool,
}

impl TextArgs {
    pub(crate) fn options(&self) -> TextOptions {
        let given = Given {
            extension: None,
            delimiter: self.delimiter,
            quote: self.quote.map(|quote| quote.0),
            comment: self.comment.clone().map(|comment| comment.0),
            line_end: match self.line_end {
                LineEndArg::Auto => None,
                LineEndArg::Lf => Some(LineEnd::Lf),
                LineEndArg::Any => Some(LineEnd::Any),
            },
            header: match self.header {
                HeaderArg::Auto => Header::Auto,
                HeaderArg::Yes => Header::Yes,
                HeaderArg::No => Header::No,
            },
            skip_lines: self.skip_rows,
            max_rows: self.max_rows,
            missing: self.missing.clone().unwrap_or_default(),
            ragged: match self.ragged {
                RaggedArg::Error => Ragged::Error,
                RaggedArg::Pad => Ragged::Pad,
                RaggedArg::Skip => Ragged::Skip,
            },
        };
        TextOptions {
            given,
            dtype: self.dtype.and_then(|kind| kind.0),
            layout: match self.layout {
                LayoutArg::Auto => Layout::Auto,
                LayoutArg::Matrix => Layout::Matrix,
                LayoutArg::Columns => Layout::Columns,
            },
            allow_overflow: self.allow_overflow,
            columns: self.columns.clone(),
            na: self.na.clone(),
            encoding: self.encoding.clone(),
            notation: Notation {
                decimal: self.decimal.map_or(b'.', |mark| mark.0),
                thousands: self.thousands.map(|mark| mark.0),
                fortran_exponent: self.fortran_exponent,
            },
            dim: self.dim,
            sparse: SparseOptions {
                base: match self.zero_based {
                    None | Some(HeaderArg::Auto) => IndexBase::Auto,
                    Some(HeaderArg::Yes) => IndexBase::Zero,
                    Some(HeaderArg::No) => IndexBase::One,
                },
                features: self.features,
                multilabel: self.multilabel,
            },
            ..TextOptions::default()
        }
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum HeaderArg {
    #[default]
    Auto,
    Yes,
    No,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum RaggedArg {
    #[default]
    Error,
    Pad,
    Skip,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum LayoutArg {
    #[default]
    Auto,
    Matrix,
    Columns,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum LineEndArg {
    #[default]
    Auto,
    Lf,
    Any,
}

#[derive(Clone, Copy)]
struct Mark(u8);

fn mark(text: &str) -> Result<Mark, String> {
    one_byte(text).map(Mark).ok_or_else(|| "expected one ASCII character".to_owned())
}

#[derive(Clone)]
struct Comment(Option<Vec<u8>>);

#[derive(Clone, Copy)]
struct Quote(Option<u8>);

/// No dtype is "auto".
#[derive(Clone, Copy)]
struct Kind(Option<DType>);

/// A delimiter as people write it, where a shell makes the character itself hard to type.
pub(crate) fn delimiter(text: &str) -> Result<Delimiter, String> {
    let byte = match text {
        "tab" | "\\t" => b'\t',
        "comma" => b',',
        "semicolon" => b';',
        "pipe" => b'|',
        "space" => b' ',
        "blanks" => return Ok(Delimiter::Blanks),
        _ => one_byte(text)
            .ok_or("expected one ASCII character, or tab, comma, semicolon, pipe, space or blanks")?,
    };
    Ok(Delimiter::Byte(byte))
}

fn one_byte(text: &str) -> Option<u8> {
    match text.as_bytes() {
        &[byte] if byte.is_ascii() => Some(byte),
        _ => None,
    }
}

fn quote(text: &str) -> Result<Quote, String> {
    match text {
        "none" => Ok(Quote(None)),
        _ => one_byte(text)
            .map(|byte| Quote(Some(byte)))
            .ok_or_else(|| "expected one ASCII character or none".to_owned()),
    }
}

fn comment(text: &str) -> Result<Comment, String> {
    Ok(Comment((text != "none").then(|| text.as_bytes().to_vec())))
}

fn missing(text: &str) -> Result<Missing, String> {
    Ok(match text {
        "error" => Missing::Error,
        "nan" => Missing::NaN,
        value => Missing::Value(value.to_owned()),
    })
}

fn dtype(text: &str) -> Result<Kind, String> {
    match text {
        "auto" => Ok(Kind(None)),
        _ => DType::parse(text).map(|dtype| Kind(Some(dtype))).map_err(|e| e.to_string()),
    }
}
