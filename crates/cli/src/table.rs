//! Text in columns, for people.

/// Columns with a heading of two lines; all but the first `left` are aligned at the right.
#[derive(Clone, Debug)]
pub struct Table {
    heads: Vec<[String; 2]>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings, the lines of one separated by a line feed.
    pub fn new<S: AsRef<str>>(heads: impl IntoIterator<Item = S>, left: usize) -> Table {
        let two_lines = |head: S| match head.as_ref().split_once('\n') {
            Some((above, below)) => [above.to_owned(), below.to_owned()],
            None => [String::new(), head.as_ref().to_owned()],
        };
        Table { heads: heads.into_iter().map(two_lines).collect(), left, rows: Vec::new() }
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
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.chain(&self.heads[column]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.heads.len()).map(width).collect();
        let mut text = String::new();
        for line in 0..2 {
            let head: Vec<_> = self.heads.iter().map(|head| head[line].as_str()).collect();
            if head.iter().any(|cell| !cell.is_empty()) {
                self.line(&mut text, &head, &widths);
            }
        }
        for row in &self.rows {
            let row: Vec<_> = row.iter().map(String::as_str).collect();
            self.line(&mut text, &row, &widths);
        }
        text
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
}
