//! Reading Thrift's compact form, in which Parquet keeps its metadata.
//!
//! Nothing that the bytes claim is believed: a field has the type that is asked for or the whole is
//! refused, a list has no more elements than bytes follow, and structures nest only so deep. Every
//! step takes a byte, so that reading ends.

/// Depth of structures in structures, at most; Parquet's are a handful deep.
const MAX_DEPTH: u32 = 32;

/// Types of fields and elements that Parquet has.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Bytes that are still to be read.
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
    depth: u32,
}

/// The head of a field; its value follows and must be read or skipped.
#[derive(Clone, Copy)]
pub(super) struct ThriftField {
    pub(super) id: i16,
    kind: u8,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: MAX_DEPTH }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads a structure: `each` takes the value of every field.
    pub(super) fn structure(&mut self, mut each: impl FnMut(&mut Self, ThriftField) -> Option<()>) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.depth += 1;
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                more => id.checked_add(i16::from(more))?,
            };
            each(self, ThriftField { id, kind: head & 15 })?;
        }
    }

    /// A field that is a structure.
    pub(super) fn inner(
        &mut self,
        field: ThriftField,
        each: impl FnMut(&mut Self, ThriftField) -> Option<()>,
    ) -> Option<()> {
        if field.kind == STRUCT { self.structure(each) } else { None }
    }

    /// A field that is a list of structures; `element` must read each structure.
    pub(super) fn structures(
        &mut self,
        field: ThriftField,
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        if field.kind != LIST {
            return None;
        }
        let (kind, count) = self.elements()?;
        if count > 0 && kind != STRUCT {
            return None;
        }
        (0..count).try_for_each(|_| element(self))
    }

    /// A field that is a 32-bit number.
    pub(super) fn i32(&mut self, field: ThriftField) -> Option<i32> {
        if field.kind == I32 { i32::try_from(self.zigzag()?).ok() } else { None }
    }

    /// A field that is a 32-bit number and must not be negative.
    pub(super) fn u32(&mut self, field: ThriftField) -> Option<u32> {
        u32::try_from(self.i32(field)?).ok()
    }

    /// A field that is a 64-bit number.
    pub(super) fn i64(&mut self, field: ThriftField) -> Option<i64> {
        if field.kind == I64 { self.zigzag() } else { None }
    }

    /// A field that is true or false, which is its type.
    pub(super) fn bool(field: ThriftField) -> Option<bool> {
        match field.kind {
            TRUE => Some(true),
            FALSE => Some(false),
            _ => None,
        }
    }

    /// A field that is text or bytes.
    pub(super) fn binary(&mut self, field: ThriftField) -> Option<&'a [u8]> {
        if field.kind == BINARY { self.bytes() } else { None }
    }

    /// A field of no interest.
    pub(super) fn skip(&mut self, field: ThriftField) -> Option<()> {
        match field.kind {
            TRUE | FALSE => Some(()),
            kind => self.value(kind),
        }
    }

    fn value(&mut self, kind: u8) -> Option<()> {
        match kind {
            BYTE => self.take(1).map(drop),
            I16 | I32 | I64 => varint(&mut self.rest).map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.bytes().map(drop),
            LIST | SET => {
                self.depth = self.depth.checked_sub(1)?;
                let (kind, count) = self.elements()?;
                (0..count).try_for_each(|_| self.value(kind))?;
                self.depth += 1;
                Some(())
            }
            STRUCT => self.structure(Self::skip),
            // Structures that are read here have neither maps nor lists of booleans.
            _ => None,
        }
    }

    /// The type and the number of the elements of a list.
    fn elements(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => varint(&mut self.rest)?,
            short => u64::from(short),
        };
        if count > self.rest.len() as u64 { None } else { Some((head & 15, count)) }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = varint(&mut self.rest)?;
        self.take(usize::try_from(length).ok()?)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = varint(&mut self.rest)?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// Takes a number of seven bits a byte off the front; 64 bits have ten bytes at most.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(bytes: &[u8]) -> bool {
        Thrift::new(bytes).structure(Thrift::skip).is_some()
    }

    #[test]
    fn whole_structures_pass() {
        // An i32, a binary, a list of two i64, a structure with a boolean.
        assert!(skips(&[0x15, 2, 0x18, 3, b'a', b'b', b'c', 0x19, 0x26, 1, 0x80, 1, 0x1c, 0x11, 0, 0]));
        assert!(skips(&[0]));
    }

    #[test]
    fn values_arrive() {
        let bytes = [0x15, 3, 0x26, 0xd8, 4, 0x18, 1, b'x', 0x11, 0x05, 0x0e, 2, 0x19, 0x1c, 0x15, 2, 0, 0];
        let mut seen = Vec::new();
        let mut thrift = Thrift::new(&bytes);
        let done = thrift.structure(|t, f| {
            let value = match f.id {
                1 => i64::from(t.i32(f)?),
                3 => t.i64(f)?,
                4 => i64::from(t.binary(f)?[0]),
                5 => i64::from(Thrift::bool(f)?),
                7 => i64::from(t.u32(f)?),
                _ => {
                    t.structures(f, |t| t.structure(|t, f| t.u32(f).map(drop)))?;
                    -1
                }
            };
            seen.push((f.id, value));
            Some(())
        });
        assert_eq!((done, thrift.left()), (Some(()), 0));
        assert_eq!(seen, [(1, -2), (3, 300), (4, 120), (5, 1), (7, 1), (8, -1)]);
    }

    /// Found by fuzzing: the library reads a field by its number and gets out of step when its type
    /// is another.
    #[test]
    fn a_field_of_another_type() {
        let field = |kind| ThriftField { id: 1, kind };
        // A number; 17 bytes; a list of a boolean; a boolean and the end of a structure.
        let bytes = [&[0x11][..], &[0; 20]].concat();
        let thrift = || Thrift::new(&bytes);
        for kind in 0..16 {
            assert_eq!(thrift().i32(field(kind)).is_some(), kind == I32);
            assert_eq!(thrift().i64(field(kind)).is_some(), kind == I64);
            assert_eq!(thrift().binary(field(kind)).is_some(), kind == BINARY);
            assert!(thrift().structures(field(kind), |_| Some(())).is_none());
            assert_eq!(thrift().inner(field(kind), Thrift::skip).is_some(), kind == STRUCT);
        }
        assert_eq!(Thrift::new(&[1]).u32(field(I32)), None);
        assert_eq!(Thrift::new(&[0x80, 0x80, 0x80, 0x80, 0x20]).i32(field(I32)), None);
    }

    /// Found by fuzzing: the library counts to two thousand million.
    #[test]
    fn a_list_longer_than_its_bytes() {
        assert!(!skips(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]));
        assert!(!skips(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 7, 1, 0]));
    }

    #[test]
    fn numbers_of_fields_that_overflow() {
        assert!(!skips(&[0x05, 0xfe, 0xff, 3, 0, 0x15, 0, 0]));
        assert!(!skips(&[0x05, 0x80, 0x80, 4, 0, 0]));
    }

    #[test]
    fn cut_or_bottomless_structures() {
        assert!(!skips(&[]));
        assert!(!skips(&[0x18, 9, b'a', 0]));
        assert!(!skips(&[0x1c; 1000]));
        assert!(!skips(&[0x19; 1000]));
        assert!(!skips(&[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0]));
    }
}
