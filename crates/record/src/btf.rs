//! Where the fields of the kernel's structures are: its BPF type format, as far as that takes.
//! Libraries for it are under licences other than ours.

use std::fs;
use std::path::Path;

/// Kinds of types.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Kinds that only qualify, or rename, another type.
const ALIASES: [u32; 5] = [8, 9, 10, 11, 18];

/// The types of a kernel.
pub(crate) struct Btf {
    data: Vec<u8>,
    /// Where each type begins, the first having number 1.
    types: Vec<usize>,
    strings: usize,
}

impl Btf {
    /// Reads the types of this kernel.
    pub(crate) fn of_kernel() -> Result<Btf, String> {
        Btf::read("/sys/kernel/btf/vmlinux".as_ref())
    }

    fn read(path: &Path) -> Result<Btf, String> {
        let data = fs::read(path).map_err(|e| format!("{}: cannot be read: {e}", path.display()))?;
        Btf::parse(data).ok_or_else(|| format!("{}: is not understood", path.display()))
    }

    fn parse(data: Vec<u8>) -> Option<Btf> {
        let mut btf = Btf { data, types: Vec::new(), strings: 0 };
        let word = |at: usize| btf.word(at).map(|word| word as usize);
        let is_ours = btf.data.get(..2)? == 0xeb9fu16.to_ne_bytes();
        let (head, types, length, strings) = (word(4)?, word(8)?, word(12)?, word(16)?);
        let mut at = head.checked_add(types)?;
        let end = at.checked_add(length).filter(|&end| is_ours && end <= btf.data.len())?;
        btf.strings = head.checked_add(strings)?;
        while at < end {
            btf.types.push(at);
            let info = btf.word(at + 4)?;
            let entries = (info & 0xffff) as usize;
            at += 12
                + match info >> 24 & 31 {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    STRUCT | UNION | 15 | 19 => 12 * entries,
                    6 | 13 => 8 * entries,
                    2 | 7..=12 | 16 | 18 => 0,
                    _ => return None,
                };
        }
        Some(btf)
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.data.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn is_named(&self, offset: u32, name: &str) -> bool {
        let at = self.strings.saturating_add(offset as usize);
        self.data
            .get(at..)
            .is_some_and(|text| text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0)))
    }

    /// Offset of a field in a structure, in bytes.
    pub(crate) fn offset(&self, structure: &str, field: &str) -> Result<u32, String> {
        let of = |&at: &usize| {
            let is_it = self.word(at + 4)? >> 24 & 31 == STRUCT && self.is_named(self.word(at)?, structure);
            is_it.then(|| self.bits(at, field, 0)).flatten()
        };
        let bits = self.types.iter().find_map(of);
        bits.map(|bits| bits / 8).ok_or_else(|| format!("this kernel has no {structure}.{field}"))
    }

    /// The bits in front of a field, of a part without a name, too.
    fn bits(&self, at: usize, field: &str, depth: u32) -> Option<u32> {
        let info = self.word(at + 4)?;
        // With bit fields their size is in the upper bits.
        let mask = if info >> 31 == 1 { 0xff_ffff } else { u32::MAX };
        (0..(info & 0xffff) as usize).find_map(|i| {
            let member = at + 12 + 12 * i;
            let (name, kind, offset) = (self.word(member)?, self.word(member + 4)?, self.word(member + 8)? & mask);
            if self.is_named(name, field) {
                return Some(offset);
            }
            let part = self.is_named(name, "").then(|| self.structure(kind)).flatten()?;
            let inner = (depth < 8).then(|| self.bits(part, field, depth + 1)).flatten()?;
            offset.checked_add(inner)
        })
    }

    /// The structure or union that a number is of.
    fn structure(&self, mut number: u32) -> Option<usize> {
        for _ in 0..16 {
            let at = *self.types.get((number as usize).checked_sub(1)?)?;
            match self.word(at + 4)? >> 24 & 31 {
                STRUCT | UNION => return Some(at),
                kind if ALIASES.contains(&kind) => number = self.word(at + 8)?,
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct a { int x; const struct { int y; }; int z; }`, numbered from 1: int, the inner one,
    /// const, a.
    fn made_up() -> Vec<u8> {
        let strings = b"\0int\0x\0y\0z\0a\0";
        let types: [u32; 31] = [
            1,
            1 << 24,
            4,
            32, // int
            0,
            STRUCT << 24 | 1,
            4,
            7,
            1,
            0, // the inner one
            0,
            10 << 24,
            2, // const
            11,
            STRUCT << 24 | 3,
            12,
            5,
            1,
            0,
            0,
            3,
            32,
            9,
            1,
            64, // a
            1,
            2 << 24,
            1,
            1,
            2 << 24,
            1, // pointers
        ];
        let length = 4 * types.len() as u32;
        let mut data = 0xeb9fu16.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        let head = [24, 0, length, length, strings.len() as u32];
        data.extend(head.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
        data.extend(strings);
        data
    }

    #[test]
    fn fields_are_found_in_parts_without_a_name() {
        let btf = Btf::parse(made_up()).expect("whole");
        assert_eq!(["x", "y", "z"].map(|field| btf.offset("a", field)), [Ok(0), Ok(4), Ok(8)]);
        assert!(btf.offset("a", "int").is_err() && btf.offset("b", "x").is_err());
    }

    #[test]
    fn cut_or_broken_types_are_no_panic() {
        let whole = made_up();
        for length in 0..whole.len() {
            let cut = Btf::parse(whole[..length].to_vec());
            assert!(cut.is_none_or(|btf| {
                ["x", "y", "z"].iter().all(|field| btf.offset("a", field).is_ok_and(|n| n < 9) || length > 140)
            }));
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            if let Some(btf) = Btf::parse(broken) {
                let _ = btf.offset("a", "y");
            }
        }
    }
}
