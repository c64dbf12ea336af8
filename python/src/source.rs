//! Columns of numbers as records of a trace, whoever holds them.

use refault_trace::{
    ErrorKind, Format, Header, MAX_PAGES_PER_RECORD, ObjectInfo, Op, Place, Record, RecordSource, TraceError, Via,
};

/// Rows of a chunk.
pub(crate) const ROWS: usize = 1 << 16;

/// The next rows of each column. A column that is not there is empty.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) page: Vec<u64>,
    pub(crate) pages: Vec<u64>,
    pub(crate) write: Vec<u64>,
    /// As in the native format, in the place of `write`.
    pub(crate) op: Vec<u64>,
    pub(crate) object: Vec<u64>,
    pub(crate) task: Vec<u64>,
    pub(crate) time_ns: Vec<u64>,
}

impl Rows {
    pub(crate) fn clear(&mut self) {
        for column in [
            &mut self.page,
            &mut self.pages,
            &mut self.write,
            &mut self.op,
            &mut self.object,
            &mut self.task,
            &mut self.time_ns,
        ] {
            column.clear();
        }
    }
}

/// A column has a value that it may not have: row and what is wrong.
pub(crate) type Wrong = (u64, String);

/// Holder of columns.
pub(crate) trait Columns: Send {
    /// Puts the next rows into `rows`, which is empty; none at the end.
    fn next(&mut self, rows: &mut Rows) -> Result<(), Wrong>;
}

/// A trace of columns.
pub(crate) struct ColumnSource<C> {
    name: String,
    header: Header,
    columns: C,
    rows: Rows,
    row: u64,
}

impl<C: Columns> ColumnSource<C> {
    pub(crate) fn new(name: &str, page_size: u32, objects: Vec<ObjectInfo>, rows: Option<u64>, columns: C) -> Self {
        let header = Header { page_size, objects, records_hint: rows, ..Header::new(Format::Generated) };
        ColumnSource { name: name.to_owned(), header, columns, rows: Rows::default(), row: 0 }
    }

    fn record(&self, at: usize) -> Result<Record, Wrong> {
        let row = self.row + at as u64;
        let of = |column: &[u64], default: u64| column.get(at).copied().unwrap_or(default);
        let small = |column: &[u64], what: &str, most: u64| match of(column, 0) {
            n if n <= most => Ok(n as u32),
            n => Err((row, format!("{what} {n} is too large; at most {most} is possible"))),
        };
        let (page, pages) = (self.rows.page[at], of(&self.rows.pages, 1));
        if !(1..=u64::from(MAX_PAGES_PER_RECORD)).contains(&pages) {
            return Err((row, format!("{pages} pages are not 1 to {MAX_PAGES_PER_RECORD}")));
        }
        if page.checked_add(pages).is_none() {
            return Err((row, format!("page {page} plus {pages} is beyond 64 bits")));
        }
        let object = small(&self.rows.object, "object", self.header.objects.len() as u64 - 1)?;
        let op = match (self.rows.op.get(at), of(&self.rows.write, 0)) {
            (Some(&op @ 0..=5), _) => {
                Op { write: op % 2 == 1, via: [None, Some(Via::Fd), Some(Via::Map)][op as usize / 2] }
            }
            (Some(op), _) => return Err((row, format!("op {op} is not 0 to 5"))),
            (None, 0) => Op::READ,
            (None, 1) => Op::WRITE,
            (None, n) => return Err((row, format!("write {n} is neither 0 nor 1"))),
        };
        let task = small(&self.rows.task, "task", u64::from(u32::MAX))?;
        let time_ns = of(&self.rows.time_ns, 0);
        Ok(Record { time_ns, task, object, pages: pages as u32, op, ..Record::touch(page, op) })
    }

    fn wrong(&self, (row, what): Wrong) -> TraceError {
        TraceError::new(ErrorKind::Malformed, &*self.name, Place::Row(row), what)
    }
}

impl<C: Columns> RecordSource for ColumnSource<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_chunk(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        out.clear();
        self.rows.clear();
        self.columns.next(&mut self.rows).map_err(|wrong| self.wrong(wrong))?;
        for at in 0..self.rows.page.len() {
            out.push(self.record(at).map_err(|wrong| self.wrong(wrong))?);
        }
        self.row += self.rows.page.len() as u64;
        Ok(!out.is_empty())
    }
}
