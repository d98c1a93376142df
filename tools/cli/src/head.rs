//! `arrshard head`: the first rows, aligned for reading. Only what is shown is read.

use crate::catalog::{self, Entry};
use crate::exit::{Answer, Outcome, Results};
use crate::options::Work;
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
/// Bytes of a column's name that are shown.
const TITLE_BYTES: usize = 40;

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
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
        print(&dataset, part, args.rows, room, work, &mut out)?;
    }
    out.finish()?;
    Ok(Answer::Yes)
}

fn print(
    dataset: &Dataset,
    part: &Part<'_>,
    rows: u64,
    room: usize,
    work: &Work,
    out: &mut Results,
) -> Outcome<()> {
    let rows = rows.min(part.rows());
    let read =
        |rows: Range<u64>, front: u64, back: u64| work.on_threads(|| part.read(dataset, rows, front, back));
    // No column is narrower than one character and a gap, so more than these can't be shown.
    let most = (room / 3 + 1) as u64;
    let (mut front, mut back) = if part.width <= 2 * most { (part.width, 0) } else { (most, most) };
    let mut first = read(0..rows.min(BATCH_ROWS), front, back)?;
    let mut table = part.table(front, back);
    table.fit(&part.titles(front, back));
    first.iter().for_each(|line| table.fit(line));
    let (shown_front, shown_back) = table.choose(room);
    let is_cut = (shown_front + shown_back) as u64 != part.width;
    if is_cut {
        let candidates = (front + back) as usize;
        for line in &mut first {
            line.drain(shown_front..candidates - shown_back);
        }
        (front, back) = (shown_front as u64, shown_back as u64);
        table = part.table(front, back);
    }
    let with_gap = |mut line: Vec<String>| {
        if is_cut {
            line.insert(front as usize, "…".to_owned());
        }
        line
    };
    if is_cut {
        table = part.table_with_gap(front, back);
    }
    let titles = with_gap(part.titles(front, back));
    let mut lines: Vec<_> = first.into_iter().map(with_gap).collect();
    table.fit(&titles);
    lines.iter().for_each(|line| table.fit(line));
    out.line(&table.line(&titles))?;
    let mut done = 0;
    loop {
        for line in &lines {
            out.line(&table.line(line))?;
        }
        done += lines.len() as u64;
        if done >= rows {
            return Ok(());
        }
        lines = read(done..rows.min(done + BATCH_ROWS), front, back)?.into_iter().map(with_gap).collect();
        lines.iter().for_each(|line| table.fit(line));
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

    /// Numbers of the columns at the front and at the back.
    fn columns(&self, front: u64, back: u64) -> impl Iterator<Item = u64> {
        (0..front).chain(self.width - back..self.width)
    }

    fn entry_of(&self, column: u64) -> &Entry<'_> {
        &self.entries[if self.entries.len() == 1 { 0 } else { column as usize }]
    }

    fn aligns(&self, front: u64, back: u64) -> Vec<Align> {
        let align = |column| if self.entry_of(column).dtype.is_some() { Align::Right } else { Align::Left };
        self.columns(front, back).map(align).collect()
    }

    fn table(&self, front: u64, back: u64) -> Table {
        Table::new(self.aligns(front, back))
    }

    fn table_with_gap(&self, front: u64, back: u64) -> Table {
        let mut aligns = self.aligns(front, back);
        aligns.insert(front as usize, Align::Right);
        Table::new(aligns)
    }

    fn titles(&self, front: u64, back: u64) -> Vec<String> {
        self.columns(front, back).map(|column| self.title(column)).collect()
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

    /// Lines of cells: the columns at the front, then those at the back.
    fn read(&self, dataset: &Dataset, rows: Range<u64>, front: u64, back: u64) -> Result<Vec<Vec<String>>> {
        let count = (rows.end - rows.start) as usize;
        let mut lines = vec![Vec::with_capacity((front + back) as usize); count];
        if let [entry] = &self.entries[..] {
            let width = self.width;
            if front + back == width {
                let cells = show::cells(dataset, entry, rows.start * width..rows.end * width)?;
                let mut cells = cells.into_iter();
                lines.iter_mut().for_each(|line| line.extend(cells.by_ref().take(width as usize)));
                return Ok(lines);
            }
            for (line, row) in lines.iter_mut().zip(rows) {
                let (start, end) = (row * width, (row + 1) * width);
                line.extend(show::cells(dataset, entry, start..start + front)?);
                line.extend(show::cells(dataset, entry, end - back..end)?);
            }
            return Ok(lines);
        }
        for column in self.columns(front, back) {
            let cells = show::cells(dataset, self.entry_of(column), rows.clone())?;
            lines.iter_mut().zip(cells).for_each(|(line, cell)| line.push(cell));
        }
        Ok(lines)
    }
}
