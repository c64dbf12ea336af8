//! Numbers that could be meant in more than one unit: pages, sectors, addresses in bytes, keys.
//!
//! A format says how its numbers are read. Where those at the front of a file look as if they were
//! meant otherwise, that is said with the flag for the other reading, and refused if asked to.

use crate::text::words;
use std::collections::HashSet;

/// Distinct numbers that it takes for a judgement: of as few as these, none is a multiple of 8 by
/// chance.
const LEAST: usize = 16;

/// A share of numbers, in percent, that does not come about by exceptions.
const MOST: usize = 90;

/// Hexadecimal numbers from here on are no pages: these would be beyond 48 bits of addresses.
const BEYOND_PAGES: u64 = 1 << 36;

/// A doubt about ids and sizes of oracleGeneral, the first of which are read as sectors.
pub(crate) fn of_ids(all: impl Iterator<Item = (u64, u32)>) -> Option<String> {
    let all: Vec<_> = all.collect();
    let ids: HashSet<u64> = all.iter().map(|(id, _)| *id).collect();
    if ids.len() < LEAST {
        return None;
    }
    let share = |n: usize, of: usize| 100 * n / of;
    let odd = share(all.iter().filter(|(_, size)| size % 512 != 0).count(), all.len());
    let mut residues = [0; 8];
    ids.iter().for_each(|id| residues[(id % 8) as usize] += 1);
    let aligned = share(residues.into_iter().max().unwrap_or(0), ids.len());
    let why = if odd >= 100 - MOST {
        format!("{odd} % of the sizes are no whole sectors")
    } else if aligned < 50 && all.iter().filter(|(_, size)| size % 4096 == 0).count() * 100 >= MOST * all.len() {
        "accesses of whole pages begin anywhere in a page".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "ids are read as sectors of 512 bytes, as block traces have them, but {why}, as with keys of a cache: --raw-ids \
         reads an id as a page, --block-bytes 512 says that sectors are meant"
    ))
}

/// A doubt about numbers of text that are read as pages.
pub(crate) fn of_lines(head: &[u8], page_size: u32) -> Option<String> {
    // The last line may be cut.
    let end = memchr::memrchr(b'\n', head).unwrap_or(head.len());
    let first = |line| words(line).next().map(|word| word.trim_ascii_end());
    let number = |word: &[u8]| {
        let text = std::str::from_utf8(word).ok()?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| (n, true)),
            None => text.parse().ok().map(|n| (n, false)),
        }
    };
    let all: Vec<_> = head[..end].split(|b| *b == b'\n').filter_map(|line| number(first(line)?)).collect();
    let hexadecimal = !all.is_empty() && all.iter().all(|(_, hexadecimal)| *hexadecimal);
    of_numbers(all.into_iter().map(|(n, _)| n), hexadecimal, page_size)
}

/// The same of numbers that stand there without a format.
pub(crate) fn of_numbers(all: impl Iterator<Item = u64>, hexadecimal: bool, page_size: u32) -> Option<String> {
    let all: HashSet<u64> = all.collect();
    if all.len() < LEAST {
        return None;
    }
    let every = |unit: u64| all.iter().all(|n| n % unit == 0);
    let (why, meant, block) = if every(512) {
        (format!("all are multiples of {}", if every(4096) { 4096 } else { 512 }), "addresses in bytes", 1)
    } else if hexadecimal && all.iter().any(|n| *n >= BEYOND_PAGES) {
        ("they are hexadecimal and beyond what memory has pages".to_owned(), "addresses in bytes", 1)
    } else if every(8) {
        ("all are multiples of 8".to_owned(), "sectors of 512 bytes", 512)
    } else {
        return None;
    };
    Some(format!(
        "numbers are read as pages, but {why}, as of {meant}: --block-bytes {block} reads them as these, --block-bytes \
         {page_size} says that pages are meant"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(of: impl Fn(u64) -> (u64, u32)) -> impl Iterator<Item = (u64, u32)> {
        (0..100).map(of)
    }

    #[test]
    fn regression_keys_are_not_taken_for_sectors_in_silence() {
        let said = of_ids(ids(|i| (i * 37 % 91, 62))).expect("a cache");
        assert!(
            said.contains("100 % of the sizes") && said.contains("--raw-ids") && said.contains("--block-bytes 512")
        );
        assert!(of_ids(ids(|i| (i * 37 % 91, 4096))).expect("a cache").contains("begin anywhere"));
        // A disk, and a partition that begins at sector 63.
        assert_eq!(of_ids(ids(|i| (i * 8, 4096))), None);
        assert_eq!(of_ids(ids(|i| (i * 8 + 63, 4096))), None);
        assert_eq!(of_ids(ids(|i| (i * 37, 512))), None);
        assert_eq!(of_ids(ids(|_| (1, 62))), None, "too few");
    }

    #[test]
    fn regression_addresses_and_sectors_are_not_taken_for_pages_in_silence() {
        let text = |of: &dyn Fn(u64) -> String| (0..50).map(of).collect::<Vec<_>>().join("\n");
        let said = |text: String| of_lines(text.as_bytes(), 4096);
        for (line, want) in [
            (&(|i: u64| format!("{} r", i * 4096)) as &dyn Fn(u64) -> String, "--block-bytes 1 "),
            (&|i| format!("{} 8 0 {i}", i * 512), "multiples of 512"),
            (&|i| format!("0x{:x}", 0x7fff_1234_5678u64 + i), "--block-bytes 1 "),
            (&|i| format!("{}", i * 8), "--block-bytes 512 "),
        ] {
            let said = said(text(line)).expect("a doubt");
            assert!(said.contains(want) && said.contains("--block-bytes 4096 says"), "{said}");
        }
        assert_eq!(said(text(&|i| i.to_string())), None);
        assert_eq!(said(text(&|i| format!("0x{i:x}"))), None);
        assert_eq!(said("*\n0\n8\n16\n".to_owned()), None, "too few");
    }
}
