//! `arrshard head`: the first rows, aligned for reading. Only what is shown is read.

use crate::catalog::{self, Entry};
use crate::exit::{Answer, Outcome, Results};
use crate::options::alone;
use crate::show;
use crate::table::{Align, Table};
use arrshard::error::escape;
use arrshard::{Dataset, Result};
use std::ops::Range;
use std::path::PathBuf;

/// Print the first rows, aligned for reading
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  arrshard head emb.arrshard
  arrshard head emb.arrshard -n 3 --array data")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    /// How many rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    rows: u64,
    /// Only this array; may be given several times
    #[arg(long, value_name = "NAME")]
    array: Vec<String>,
}

/// Columns that a screen of unknown width has.
const WIDTH: usize = 100;
/// Rows that are read and lined up at a time.
const BATCH_ROWS: u64 = 1000;
/// Stands for the columns that are not shown.
const GAP: &str = "…";
/// Bytes of a column's name that are shown.
const TITLE_BYTES: usize = 40;

pub(crate) fn run(args: &Args) -> Outcome {
    alone();
    let dataset = Dataset::open(&args.dataset)?;
    let entries = if args.array.is_empty() {
        catalog::entries(&dataset)?
    } else {
        args.array.iter().map(|name| catalog::entry(&dataset, name)).collect::<Result<_>>()?
    };
    let parts = parts(entries);
    let room = console::Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| columns.into());
    let mut out = Results::new();
    for (i, part) in parts.iter().enumerate() {
        if parts.len() > 1 {
            let gap = if i == 0 { "" } else { "\n" };
            out.line(&format!("{gap}{}", part.caption()))?;
        }
        print(&dataset, part, args.rows, room, &mut out)?;
    }
    out.finish()?;
    Ok(Answer::Yes)
}

fn print(dataset: &Dataset, part: &Part<'_>, rows: u64, room: usize, out: &mut Results) -> Outcome<()> {
    if part.width == 0 {
        return out.line("no columns");
    }
    let rows = rows.min(part.rows());
    let mut batch = 0..rows.min(BATCH_ROWS);
    let view = View::fitting(dataset, part, batch.clone(), room)?;
    let titles = view.titles();
    let mut table = Table::new(view.aligns());
    table.fit(&titles);
    loop {
        let lines = view.read(dataset, batch.clone())?;
        lines.iter().for_each(|line| table.fit(line));
        if batch.start == 0 {
            out.line(&table.line(&titles))?;
        }
        lines.iter().try_for_each(|line| out.line(&table.line(line)))?;
        if batch.end == rows {
            return Ok(());
        }
        batch = batch.end..rows.min(batch.end + BATCH_ROWS);
    }
}

/// What is shown as one table: an array of rows, or arrays of one dimension side by side.
struct Part<'a> {
    entries: Vec<Entry<'a>>,
    /// Number of columns.
    width: u64,
}

/// Neighbours of one dimension and equal length are a table.
fn parts(entries: Vec<Entry<'_>>) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for entry in entries {
        if entry.shape.len() == 1
            && let Some(last) = parts.last_mut()
            && last.entries[0].shape == entry.shape
        {
            last.entries.push(entry);
            last.width += 1;
            continue;
        }
        // The manifest has made sure that this product is a number.
        let width = entry.shape.iter().skip(1).fold(1u64, |width, &dim| width.saturating_mul(dim));
        parts.push(Part { entries: vec![entry], width });
    }
    parts
}

impl Part<'_> {
    fn rows(&self) -> u64 {
        self.entries[0].rows()
    }

    fn caption(&self) -> String {
        match &self.entries[..] {
            [one] => format!(
                "{}: {} {}",
                escape(one.name.as_bytes(), TITLE_BYTES),
                one.dtype_name(),
                one.shape_text()
            ),
            many => format!("{} arrays {}", many.len(), many[0].shape_text()),
        }
    }

    fn entry_of(&self, column: u64) -> &Entry<'_> {
        &self.entries[if self.entries.len() == 1 { 0 } else { column as usize }]
    }

    /// The name a header gave, or the index within a row.
    fn title(&self, column: u64) -> String {
        let entry = self.entry_of(column);
        if entry.shape.len() < 2 {
            return escape(entry.name.as_bytes(), TITLE_BYTES);
        }
        let names = entry.attributes.get("columns").and_then(|names| names.as_array());
        let name = names
            .filter(|names| entry.shape.len() == 2 && names.len() as u64 == self.width)
            .and_then(|names| names.get(column as usize)?.as_str());
        if let Some(name) = name {
            return escape(name.as_bytes(), TITLE_BYTES);
        }
        let mut rest = column;
        let mut index: Vec<String> = Vec::new();
        for &dim in entry.shape[1..].iter().rev() {
            index.push((rest % dim.max(1)).to_string());
            rest /= dim.max(1);
        }
        index.reverse();
        index.join(",")
    }
}

/// The columns of a part that are shown: some at its front and some at its back, or all.
struct View<'a> {
    part: &'a Part<'a>,
    front: u64,
    back: u64,
}

impl<'a> View<'a> {
    /// As many columns as fit into `room` with these rows.
    fn fitting(dataset: &Dataset, part: &'a Part<'a>, rows: Range<u64>, room: usize) -> Result<Self> {
        // No column is narrower than one character and a gap, so more than these never fit.
        let most = (room / 3 + 1) as u64;
        let (front, back) = if part.width <= 2 * most { (part.width, 0) } else { (most, most) };
        let widest = View { part, front, back };
        let mut table = Table::new(widest.aligns());
        table.fit(&widest.titles());
        widest.read(dataset, rows)?.iter().for_each(|line| table.fit(line));
        let (front, back) = table.choose(room);
        Ok(View { part, front: front as u64, back: back as u64 })
    }

    fn is_whole(&self) -> bool {
        self.front + self.back == self.part.width
    }

    /// Something for each column, and `gap` for those that are not shown.
    fn each<T>(&self, of: impl Fn(u64) -> T, gap: T) -> Vec<T> {
        let mut all: Vec<T> = (0..self.front).map(&of).collect();
        if !self.is_whole() {
            all.push(gap);
        }
        all.extend((self.part.width - self.back..self.part.width).map(&of));
        all
    }

    fn aligns(&self) -> Vec<Align> {
        let is_number = |column| self.part.entry_of(column).dtype.is_some();
        self.each(|column| if is_number(column) { Align::Right } else { Align::Left }, Align::Right)
    }

    fn titles(&self) -> Vec<String> {
        self.each(|column| self.part.title(column), GAP.to_owned())
    }

    /// A line of cells for each row.
    fn read(&self, dataset: &Dataset, rows: Range<u64>) -> Result<Vec<Vec<String>>> {
        let width = self.part.width;
        if let [entry] = &self.part.entries[..] {
            if self.is_whole() {
                let cells = show::cells(dataset, entry, rows.start * width..rows.end * width)?;
                return Ok(cells.chunks(width as usize).map(<[String]>::to_vec).collect());
            }
            let line = |row: u64| {
                let (start, end) = (row * width, (row + 1) * width);
                let mut line = show::cells(dataset, entry, start..start + self.front)?;
                line.push(GAP.to_owned());
                line.extend(show::cells(dataset, entry, end - self.back..end)?);
                Ok(line)
            };
            return rows.map(line).collect();
        }
        let read = |column| show::cells(dataset, self.part.entry_of(column), rows.clone());
        let gap = || Ok(vec![GAP.to_owned(); (rows.end - rows.start) as usize]);
        let columns = self.each(read, gap()).into_iter().collect::<Result<Vec<_>>>()?;
        let line = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
        Ok((0..(rows.end - rows.start) as usize).map(line).collect())
    }
}
