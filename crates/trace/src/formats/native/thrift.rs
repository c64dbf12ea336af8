//! A walk over Thrift's compact form before the library parses it.
//!
//! The library believes the length of a list before it has seen the elements: a few bytes that promise two
//! thousand million booleans cost it seconds, and a few hundred such lists an hour. Here every element takes a
//! byte at least, so the walk ends.

/// Structures in structures; those of Parquet are a handful deep.
const MAX_DEPTH: u32 = 32;

/// Whether bytes are one whole structure whose parts fit into them.
pub(super) fn is_struct(bytes: &[u8]) -> bool {
    Walk { rest: bytes }.structure(MAX_DEPTH).is_some()
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            value |= u64::from(b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn structure(&mut self, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            if head >> 4 == 0 {
                self.varint()?;
            }
            match head & 15 {
                // The field's type is its value.
                1 | 2 => {}
                kind => self.value(kind, depth)?,
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => self.list(depth.checked_sub(1)?),
            12 => self.structure(depth),
            // The metadata of Parquet has neither maps nor lists of booleans.
            _ => None,
        }
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        if count > self.rest.len() as u64 {
            return None;
        }
        (0..count).try_for_each(|_| self.value(head & 15, depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_structures_pass() {
        // An i32, a binary, a list of two i64, a structure with a boolean.
        assert!(is_struct(&[0x15, 2, 0x18, 3, b'a', b'b', b'c', 0x19, 0x26, 1, 0x80, 1, 0x1c, 0x11, 0, 0]));
        assert!(is_struct(&[0]));
    }

    /// Found by fuzzing: the library counts to two thousand million.
    #[test]
    fn a_list_longer_than_its_bytes() {
        assert!(!is_struct(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]));
        assert!(!is_struct(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 7, 1, 0]));
    }

    #[test]
    fn cut_or_bottomless_structures() {
        assert!(!is_struct(&[]));
        assert!(!is_struct(&[0x18, 9, b'a', 0]));
        assert!(!is_struct(&[0x1c; 1000]));
    }
}
