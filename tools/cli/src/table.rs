//! Columns of text, aligned for reading.

use unicode_width::UnicodeWidthStr;

/// Between two columns.
const GAP: usize = 2;

/// At which side the cells of a column line up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// How wide columns are; they only grow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    columns: Vec<(Align, usize)>,
}

impl Table {
    pub(crate) fn new(aligns: impl IntoIterator<Item = Align>) -> Self {
        Self { columns: aligns.into_iter().map(|align| (align, 0)).collect() }
    }

    /// Makes room for a line.
    pub(crate) fn fit<S: AsRef<str>>(&mut self, cells: &[S]) {
        for ((_, width), cell) in self.columns.iter_mut().zip(cells) {
            *width = (*width).max(cell.as_ref().width());
        }
    }

    /// A line without blanks at its end.
    pub(crate) fn line<S: AsRef<str>>(&self, cells: &[S]) -> String {
        let mut line = String::new();
        for (i, (&(align, width), cell)) in self.columns.iter().zip(cells).enumerate() {
            let cell = cell.as_ref();
            let blanks = width.saturating_sub(cell.width());
            let gap = if i == 0 { 0 } else { GAP };
            let (before, after) = if align == Align::Right { (gap + blanks, 0) } else { (gap, blanks) };
            line.extend(std::iter::repeat_n(' ', before));
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', after));
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// How many columns at the front and at the back fit into `room` together with one of width 1
    /// between them that stands for the rest; all at the front if all fit. One is always shown.
    pub(crate) fn choose(&self, room: usize) -> (usize, usize) {
        let count = self.columns.len();
        let total = self.columns.iter().map(|(_, width)| width + GAP).sum::<usize>();
        if count <= 1 || total.saturating_sub(GAP) <= room {
            return (count, 0);
        }
        let (mut front, mut back, mut used) = (0, 0, 1);
        while front + back < count {
            let next = if front > back { count - 1 - back } else { front };
            used += self.columns[next].1 + GAP;
            if used > room && front > 0 {
                break;
            }
            if front > back { back += 1 } else { front += 1 }
        }
        (front, back)
    }
}

#[cfg(test)]
mod tests {
    use super::{Align, Table};

    fn table(widths: &[usize]) -> Table {
        let mut table = Table::new(widths.iter().map(|_| Align::Right));
        table.fit(&widths.iter().map(|&width| "x".repeat(width)).collect::<Vec<_>>());
        table
    }

    #[test]
    fn cells_line_up_by_what_a_terminal_shows() {
        let mut table = Table::new([Align::Left, Align::Right]);
        let lines = [["name", "n"], ["価", "100"], ["x", "7"]];
        lines.iter().for_each(|line| table.fit(line));
        assert_eq!(lines.map(|line| table.line(&line)), ["name    n", "価    100", "x       7"]);
        assert_eq!(Table::new([Align::Left]).line(&[""]), "");
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_the_middle() {
        assert_eq!(table(&[5; 4]).choose(26), (4, 0));
        assert_eq!(table(&[5; 4]).choose(25), (2, 1));
        assert_eq!(table(&[5; 4]).choose(15), (1, 1));
        assert_eq!(table(&[5; 4]).choose(14), (1, 0));
        assert_eq!(table(&[50, 50]).choose(10), (1, 0));
        assert_eq!(table(&[50]).choose(10), (1, 0));
        assert_eq!(table(&[]).choose(10), (0, 0));
    }
}
