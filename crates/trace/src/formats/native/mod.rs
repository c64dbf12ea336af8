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
//! | `sums` | checksums of row groups and metadata |
//!
//! It calls `input`, `memcg` and `error`. The parent and `open` call it, writers of traces call
//! [`NativeWriter`].

mod checked;
mod header;
mod metadata;
mod pages;
mod read;
mod sums;
mod thrift;
mod write;

pub(crate) use read::{from_input, from_path};
pub use write::NativeWriter;

use crate::record::{AdviceKind, Op, RecordKind, Via};

/// Bytes that every Parquet file starts and ends with.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// The newest version that is read. Written is 1, and 2 if there is a record that is more than a
/// plain touch, which readers of version 1 do not know.
pub const VERSION: u32 = 2;

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
    pub(super) const DOUBTS: &str = "refault.doubts";
    pub(super) const SEEN: &str = "refault.seen";
    pub(super) const RECORDING: &str = "refault.recording";
    pub(super) const SUMS: &str = "refault.checksums";
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

/// Numbers that are added to the code of a touch that the kernel had in memory, and had not.
const HIT: i32 = 8;
const MISS: i32 = 16;
/// Codes of what is no touch.
const DROP: i32 = 32;
const ADD: i32 = 33;
const EVICT: i32 = 34;
/// Code of the first of [`AdviceKind::ALL`].
const ADVISE: i32 = 35;
/// Pages that were in memory when the recorder first looked.
const RESIDENT: i32 = 48;
/// Pages that were added for somebody who is not recorded.
const ADD_OTHER: i32 = 49;
/// Number that is added to the code of a touch that was seen by sampling.
const SAMPLED: i32 = 64;

/// Ranges of the codes, for messages.
const OPS: &str = "0 to 5, 8 to 13, 16 to 21, 32 to 49 or 64 to 69";

/// The code of an operation. In the code of a touch bit 0 is write, bits 1 and 2 are 0 unspecified,
/// 1 by descriptor, 2 by mapping.
fn op_code(op: Op, kind: RecordKind) -> i32 {
    let via = match op.via {
        None => 0,
        Some(Via::Fd) => 1,
        Some(Via::Map) => 2,
    };
    let touch = via << 1 | i32::from(op.write);
    match kind {
        RecordKind::Touch => touch,
        RecordKind::Hit => HIT | touch,
        RecordKind::Miss => MISS | touch,
        RecordKind::Sampled => SAMPLED | touch,
        RecordKind::Drop => DROP,
        RecordKind::Add => ADD,
        RecordKind::Evict => EVICT,
        RecordKind::Advise(advised) => ADVISE + advised as i32,
        RecordKind::Resident => RESIDENT,
        RecordKind::AddOther => ADD_OTHER,
    }
}

/// The operation of a code.
#[inline]
fn op_from_code(code: i64) -> Option<(Op, RecordKind)> {
    let code = i32::try_from(code).ok()?;
    let kind = match code & !7 {
        0 => RecordKind::Touch,
        HIT => RecordKind::Hit,
        MISS => RecordKind::Miss,
        SAMPLED => RecordKind::Sampled,
        _ => {
            let kind = match code {
                DROP => RecordKind::Drop,
                ADD => RecordKind::Add,
                EVICT => RecordKind::Evict,
                RESIDENT => RecordKind::Resident,
                ADD_OTHER => RecordKind::AddOther,
                _ => RecordKind::Advise(*AdviceKind::ALL.get(usize::try_from(code.checked_sub(ADVISE)?).ok()?)?),
            };
            return Some((Op::READ, kind));
        }
    };
    let via = match code >> 1 & 3 {
        0 => None,
        1 => Some(Via::Fd),
        2 => Some(Via::Map),
        _ => return None,
    };
    Some((Op { write: code & 1 == 1, via }, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn op_codes_round_trip() {
        for code in (0..6).chain(8..14).chain(16..22).chain(32..50).chain(64..70) {
            let (op, kind) = op_from_code(code).expect("documented code");
            assert_eq!(i64::from(op_code(op, kind)), code);
        }
        for code in [-1, 6, 7, 14, 15, 22, 24, 31, 50, 63, 70, 72, 256, i64::MAX] {
            assert_eq!(op_from_code(code), None, "{code}");
        }
    }
}
