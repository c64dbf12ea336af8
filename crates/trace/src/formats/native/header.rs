//! The header in front of every page of a column.

use super::thrift::{Thrift, ThriftField};

/// The header of a page.
#[derive(Debug, PartialEq)]
pub(super) struct PageHeader {
    /// Bytes behind the header, as they are and decompressed.
    pub(super) packed: u32,
    pub(super) size: u32,
    pub(super) values: u32,
    pub(super) encoding: i32,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Dictionary,
    First { levels: i32 },
    Second { nulls: u32, rows: u32, definition: u32, repetition: u32, compressed: bool },
}

impl PageHeader {
    /// A header and its length.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut thrift = Thrift::new(bytes);
        let (mut kind, mut size, mut packed) = (None, None, None);
        let mut bodies = [None, None, None];
        thrift.structure(|t, f| {
            match f.id {
                1 => kind = Some(t.i32(f)?),
                2 => size = Some(t.u32(f)?),
                3 => packed = Some(t.u32(f)?),
                5 => bodies[0] = Some(first(t, f)?),
                7 => bodies[1] = Some(dictionary(t, f)?),
                8 => bodies[2] = Some(second(t, f)?),
                _ => t.skip(f)?,
            }
            Some(())
        })?;
        let [first, dictionary, second] = bodies;
        let (values, encoding, kind) = match kind? {
            0 => first?,
            2 => dictionary?,
            3 => second?,
            // Pages of an index are in no file that there is.
            _ => return None,
        };
        Some((Self { packed: packed?, size: size?, values, encoding, kind }, bytes.len() - thrift.left()))
    }
}

/// The number of values, their encoding, and the rest.
type Body = (u32, i32, Kind);

fn first(t: &mut Thrift<'_>, field: ThriftField) -> Option<Body> {
    let (mut values, mut encoding, mut levels) = (None, None, None);
    t.inner(field, |t, f| {
        match f.id {
            1 => values = Some(t.u32(f)?),
            2 => encoding = Some(t.i32(f)?),
            3 => levels = Some(t.i32(f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    Some((values?, encoding?, Kind::First { levels: levels? }))
}

fn dictionary(t: &mut Thrift<'_>, field: ThriftField) -> Option<Body> {
    let (mut values, mut encoding) = (None, None);
    t.inner(field, |t, f| {
        match f.id {
            1 => values = Some(t.u32(f)?),
            2 => encoding = Some(t.i32(f)?),
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    Some((values?, encoding?, Kind::Dictionary))
}

fn second(t: &mut Thrift<'_>, field: ThriftField) -> Option<Body> {
    let mut numbers = [None; 6];
    let mut compressed = true;
    t.inner(field, |t, f| {
        match f.id {
            1..=6 => numbers[f.id as usize - 1] = Some(t.u32(f)?),
            7 => compressed = Thrift::bool(f)?,
            _ => t.skip(f)?,
        }
        Some(())
    })?;
    let [values, nulls, rows, encoding, definition, repetition] = numbers;
    let (nulls, rows, definition, repetition) = (nulls?, rows?, definition?, repetition?);
    let kind = Kind::Second { nulls, rows, definition, repetition, compressed };
    Some((values?, i32::try_from(encoding?).ok()?, kind))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A page header: its type, the sizes of the page as they are written, and the fields of its
    /// body.
    pub(in super::super) fn head(kind: u8, size: &[u8], packed: &[u8], body: &[u8]) -> Vec<u8> {
        let id = [5, 6, 7, 8][usize::from(kind)];
        let start: [&[u8]; 6] = [&[0x15, 2 * kind, 0x15], size, &[0x15], packed, &[0x0c, 2 * id], body];
        [start.concat(), vec![0, 0]].concat()
    }

    /// The body of a page of one value, as it is.
    pub(in super::super) const PLAIN: &[u8] = &[0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6];

    #[test]
    fn headers_are_read() {
        let want = PageHeader { packed: 3, size: 300, values: 1, encoding: 0, kind: Kind::First { levels: 3 } };
        let bytes = head(0, &[0xd8, 4], &[6], PLAIN);
        assert_eq!(PageHeader::read(&bytes), Some((want, bytes.len())));
        let body = [0x15, 2, 0x15, 0, 0x15, 2, 0x15, 16, 0x15, 4, 0x15, 6, 0x12];
        let kind = Kind::Second { nulls: 0, rows: 1, definition: 2, repetition: 3, compressed: false };
        let want = PageHeader { packed: 3, size: 300, values: 1, encoding: 8, kind };
        let bytes = head(3, &[0xd8, 4], &[6], &body);
        assert_eq!(PageHeader::read(&bytes), Some((want, bytes.len())));
        for cut in 0..bytes.len() {
            assert_eq!(PageHeader::read(&bytes[..cut]), None);
        }
        // Heads of a negative size; of a size that is not a number of 32 bits; without a size;
        // without a body.
        assert_eq!(PageHeader::read(&head(0, &[1], &[6], PLAIN)), None);
        assert_eq!(PageHeader::read(&head(0, &[0xff, 0xff, 0xff, 0xff, 0x7f], &[6], PLAIN)), None);
        assert_eq!(PageHeader::read(&[0x15, 0, 0x25, 2, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0, 0]), None);
        assert_eq!(PageHeader::read(&head(2, &[6], &[6], &[])), None);
        assert_eq!(PageHeader::read(&[0x15, 0, 0x15, 2, 0x15, 2, 0]), None);
    }

    /// Found by fuzzing: statistics with a list of two thousand million booleans, through which the
    /// library counts.
    #[test]
    fn statistics_that_never_end() {
        for kind in [0, 3] {
            let body =
                [0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0x15, 0, 0x15, 0, 0x2c, 0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7];
            let mut bytes = head(kind, &[2], &[2], &body);
            bytes.push(0);
            assert_eq!(PageHeader::read(&bytes), None);
        }
    }
}
