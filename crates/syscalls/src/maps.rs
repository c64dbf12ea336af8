//! Lines of `/proc/PID/maps`.

use std::ops::Range;

/// A line: `start-end rights offset major:minor inode name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapsLine<'a> {
    /// Addresses, in bytes.
    pub addresses: Range<u64>,
    /// Letters: `r`, `w`, `x`, and `p` (private) or `s` (shared); `-` for a right that is absent.
    pub rights: &'a str,
    /// Bytes of the file before the first one that is mapped.
    pub offset: u64,
    /// The device of the file: major and minor number.
    pub device: (u32, u32),
    /// The inode of the file; 0: there is none.
    pub inode: u64,
    /// The path, or the kernel's name in brackets, up to the first space; empty: none.
    pub name: &'a str,
}

impl<'a> MapsLine<'a> {
    /// Parses a line; none: it is none.
    pub fn parse(line: &'a str) -> Option<MapsLine<'a>> {
        let mut words = line.split_ascii_whitespace();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = words.next()?.split_once('-')?;
        let addresses = hex(start)?..hex(end)?;
        let rights = words.next()?;
        let offset = hex(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = (u32::try_from(hex(major)?).ok()?, u32::try_from(hex(minor)?).ok()?);
        let inode = words.next()?.parse().ok()?;
        Some(MapsLine { addresses, rights, offset, device, inode, name: words.next().unwrap_or_default() })
    }

    /// Whether it has a right, by its letter.
    pub fn has(&self, right: char) -> bool {
        self.rights.contains(right)
    }

    /// Whether writes are seen by others.
    pub fn is_shared(&self) -> bool {
        self.rights.ends_with('s')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_all_its_fields() {
        let line = MapsLine::parse("7f00-7f10 r-xs 00001000 08:01 77 /lib/a b.so").unwrap();
        assert_eq!((line.addresses.clone(), line.offset, line.device, line.inode), (0x7f00..0x7f10, 4096, (8, 1), 77));
        assert!(line.has('r') && !line.has('w') && line.has('x') && line.is_shared() && line.name == "/lib/a");
        let heap = MapsLine::parse("55d0-55e0 rw-p 00000000 00:00 0  [heap]").unwrap();
        assert!(!heap.is_shared() && heap.inode == 0 && heap.name == "[heap]");
        for other in ["", "junk", "7f00 rw-p", "7f00-7f10 rw-p 0 00:00", "7f00-7f10 rw-p 0 00:00 x"] {
            assert_eq!(MapsLine::parse(other), None, "{other}");
        }
    }
}
