//! Text in columns, for people.

use crate::words::WIDEST;
use std::ops::Range;

/// Widest line of a table that [gives up columns](Table::spare) or [folds](Table::folded).
const COLUMNS: usize = 100;

/// Longest remark that stays at the end of a line that is wider than a terminal; others go below.
const A_WORD: usize = 24;

/// Columns with a heading of two lines; all but the first `left` are aligned at the right.
#[derive(Clone, Debug)]
pub struct Table {
    heads: Vec<Head>,
    left: usize,
    sparse: Vec<Range<usize>>,
    spare: Vec<usize>,
    keys: Option<usize>,
    rows: Vec<Vec<String>>,
}

/// A heading.
#[derive(Clone, Debug)]
struct Head {
    lines: [String; 2],
    /// Under the upper line of the column before.
    goes_on: bool,
}

impl Head {
    fn new(text: &str) -> Head {
        let (above, below) = text.split_once('\n').unwrap_or(("", text));
        Head { lines: [above.to_owned(), below.to_owned()], goes_on: text.starts_with('\n') }
    }
}

impl Table {
    /// A table with these headings, the lines of one separated by a line feed.
    pub fn new<S: AsRef<str>>(heads: impl IntoIterator<Item = S>, left: usize) -> Table {
        let heads = heads.into_iter().map(|head| Head::new(head.as_ref())).collect();
        Table { heads, left, sparse: Vec::new(), spare: Vec::new(), keys: None, rows: Vec::new() }
    }

    /// Leaves out those of these columns in which nothing but 0 or `-` stands.
    pub fn sparse(mut self, columns: Range<usize>) -> Table {
        self.sparse.push(columns);
        self
    }

    /// Gives up these columns, one after the other, while the table is wider than 100 columns.
    pub fn spare(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        self.spare.extend(columns);
        self
    }

    /// Goes on below with what does not fit 100 columns, the first `keys` columns once more.
    pub fn folded(mut self, keys: usize) -> Table {
        self.keys = Some(keys);
        self
    }

    /// Adds a row; a cell beyond the headings is a remark at its end.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Leaves a line free.
    pub fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    /// The text.
    pub fn render(&self) -> String {
        let mut shown: Vec<usize> = (0..self.heads.len()).filter(|&column| !self.is_left_out(column)).collect();
        let mut spare = self.spare.iter();
        while line_width(&self.widths(&shown)) > COLUMNS
            && let Some(least) = spare.next()
        {
            shown.retain(|column| column != least);
        }
        let heads = self.heads_of(&shown);
        let widths = self.widths(&shown);
        let blocks = self.blocks(&shown, &widths);
        let mut text = String::new();
        for (n, block) in blocks.iter().enumerate() {
            text.push_str(if n > 0 { "\n" } else { "" });
            let widths: Vec<_> = block.iter().map(|&at| widths[at]).collect();
            for line in [0, 1] {
                let head: Vec<_> = block.iter().map(|&at| heads[at][line]).collect();
                if head.iter().any(|cell| !cell.is_empty()) {
                    self.line(&mut text, &head, &widths);
                }
            }
            for row in &self.rows {
                let cells = block.iter().filter_map(|&at| row.get(shown[at]));
                let remarks = row.iter().skip(self.heads.len()).filter(|_| n + 1 == blocks.len());
                let (cells, remarks): (Vec<_>, Vec<_>) =
                    (cells.map(String::as_str).collect(), remarks.map(String::as_str).collect());
                let remark = remarks.join("  ");
                let length = remark.chars().count();
                match length > A_WORD && line_width(&widths) + 2 + length > WIDEST {
                    true => {
                        self.line(&mut text, &cells, &widths);
                        text += &format!("    {remark}\n");
                    }
                    false => self.line(&mut text, &[cells, remarks].concat(), &widths),
                }
            }
        }
        text
    }

    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let width = |(&column, head): (&usize, [&str; 2])| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
            cells.chain(head).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        shown.iter().zip(self.heads_of(shown)).map(width).collect()
    }

    fn is_left_out(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
        self.sparse.iter().any(|columns| columns.contains(&column))
            && cells.peek().is_some()
            && cells.all(|cell| ["0", "-"].contains(&cell.as_str()))
    }

    /// Headings of the columns that are shown; an upper line goes to the first that is left under
    /// it.
    fn heads_of(&self, shown: &[usize]) -> Vec<[&str; 2]> {
        let mut above = "";
        let mut heads = Vec::new();
        for (column, head) in self.heads.iter().enumerate() {
            if !head.goes_on {
                above = &head.lines[0];
            }
            if shown.contains(&column) {
                heads.push([std::mem::take(&mut above), head.lines[1].as_str()]);
            }
        }
        heads
    }

    /// Columns beside each other, by their places among those that are shown. Those under one upper
    /// line stay together.
    fn blocks(&self, shown: &[usize], widths: &[usize]) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..shown.len()).collect();
        let Some(keys) = self.keys else { return vec![all] };
        let width = |block: &[usize]| line_width(&block.iter().map(|&at| widths[at]).collect::<Vec<_>>());
        let mut blocks: Vec<Vec<usize>> = vec![all[..keys].to_vec()];
        for together in all[keys..].chunk_by(|_, &next| self.heads[shown[next]].goes_on) {
            let last = blocks.last_mut().expect("one at least");
            let longer = [last.as_slice(), together].concat();
            match last.len() > keys && width(&longer) > COLUMNS {
                true => blocks.push([&all[..keys], together].concat()),
                false => *last = longer,
            }
        }
        blocks
    }

    fn line(&self, text: &mut String, cells: &[&str], widths: &[usize]) {
        let start = text.len();
        for (column, cell) in cells.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            if column > 0 {
                text.push_str("  ");
            }
            match column < self.left || column >= widths.len() {
                true => text.extend([cell, pad.as_str()]),
                false => text.extend([pad.as_str(), cell]),
            }
        }
        let end = text.trim_end_matches(' ').len().max(start);
        text.truncate(end);
        text.push('\n');
    }
}

/// The width of a line of columns.
fn line_width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["policy", "hit\nrate"], 1);
        table.row(vec!["lru".into(), "1.00%".into()]);
        table.row(vec!["mglru".into(), "12.00%".into(), "OOM".into()]);
        assert_eq!(table.render(), "           hit\npolicy    rate\nlru      1.00%\nmglru   12.00%  OOM\n");
    }

    #[test]
    fn columns_of_nothing_are_left_out() {
        let heads = ["group", "misses", "events\nlow", "\nhigh", "\nmax"];
        let mut table = Table::new(heads, 1).sparse(2..5);
        table.row(["/", "0", "-", "-", "-"].map(str::to_owned).to_vec());
        table.row(["/a", "0", "0", "7", "0", "max 1M"].map(str::to_owned).to_vec());
        let text =
            "               events\ngroup  misses    high\n/           0       -\n/a          0       7  max 1M\n";
        assert_eq!(table.render(), text);
    }

    #[test]
    fn a_wide_table_gives_up_what_is_needed_least() {
        let wide = "w".repeat(60);
        let mut table = Table::new(["key", "first", wide.as_str(), "last"], 1).spare([1, 3]);
        table.row(["k", "1", "2", "3"].map(str::to_owned).to_vec());
        assert!(table.render().starts_with("key  first "), "it fits");
        table.row(vec!["k".repeat(35), "1".into(), "2".into(), "3".into()]);
        let text = table.render();
        assert!(!text.contains("first") && !text.contains("last") && text.contains("ww"), "{text}");
    }

    #[test]
    fn a_wide_table_goes_on_below() {
        let wide = "w".repeat(60);
        let mut table = Table::new(["key", wide.as_str(), "one\nfirst", "\nsecond", wide.as_str()], 1).folded(1);
        table.row(["k", "1", "2", "3", "4", "remark"].map(str::to_owned).to_vec());
        let text = table.render();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let keys: Vec<_> = text.lines().filter(|line| line.starts_with("k ")).collect();
        assert_eq!(keys.len(), 2, "{text}");
        assert!(keys[1].ends_with("4  remark") && !keys[0].contains("remark"), "{text}");
    }
}
