//! The native format: Parquet with zstd, so that pandas, polars and DuckDB read it as it is.
//!
//! One row is one [`Record`](crate::Record); what the file says about itself is in its key-value
//! metadata.
//!
//! | file | what is in it |
//! |---|---|
//! | `write`, `read` | rows to Parquet, by the library; Parquet to rows |
//! | `metadata`, `thrift` | the footer: what must hold before the library may read it |
//! | `pages`, `header`, `checked` | pages of columns, the same way |
//!
//! It calls `input`, `memcg` and `error`. The parent and `open` call it, writers of traces call
//! [`NativeWriter`].

mod checked;
mod header;
mod metadata;
mod pages;
mod read;
mod thrift;
mod write;

pub(crate) use read::{from_input, from_path};
pub use write::NativeWriter;

use crate::record::{Op, Via};

/// What every Parquet file starts and ends with.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// Keys of the metadata.
mod key {
    pub(super) const VERSION: &str = "refault.version";
    pub(super) const PAGE_SIZE: &str = "refault.page_size";
    pub(super) const OBJECTS: &str = "refault.objects";
    pub(super) const TASKS: &str = "refault.tasks";
    pub(super) const MEMCGS: &str = "refault.memcgs";
    pub(super) const SOURCE: &str = "refault.source";
    pub(super) const RECORDED_ON: &str = "refault.recorded_on";
    pub(super) const COLLAPSE: &str = "refault.collapse";
}

/// The columns, in the order of the file.
const SCHEMA: &str = "
message refault_trace {
  REQUIRED INT64 time_ns (INTEGER(64,false));
  REQUIRED INT32 task (INTEGER(32,false));
  REQUIRED INT32 memcg (INTEGER(32,false));
  REQUIRED INT32 object (INTEGER(32,false));
  REQUIRED INT64 page (INTEGER(64,false));
  REQUIRED INT32 pages (INTEGER(32,false));
  REQUIRED INT32 op (INTEGER(8,false));
}";

/// Names of the columns, in the order of [`SCHEMA`].
const COLUMNS: [&str; 7] = ["time_ns", "task", "memcg", "object", "page", "pages", "op"];

/// The code of an operation: bit 0 is write, the rest is 0 unspecified, 1 by descriptor, 2 by
/// mapping.
fn op_code(op: Op) -> i32 {
    let via = match op.via {
        None => 0,
        Some(Via::Fd) => 1,
        Some(Via::Map) => 2,
    };
    via << 1 | i32::from(op.write)
}

/// The operation of a code.
fn op_from_code(code: i64) -> Option<Op> {
    let via = match code >> 1 {
        0 => None,
        1 => Some(Via::Fd),
        2 => Some(Via::Map),
        _ => return None,
    };
    let write = code & 1 == 1;
    Some(Op { write, via })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn op_codes_round_trip() {
        for code in 0..6 {
            let op = op_from_code(code).expect("documented code");
            assert_eq!(i64::from(op_code(op)), code);
        }
        assert_eq!(op_from_code(6), None);
        assert_eq!(op_from_code(-1), None);
    }
}
