//! Filters of events, as the kernel takes them, that let through what touches a sample of the pages
//! of files. They have comparisons with constants alone: bits are compared one by one.

use super::{Feature, Kind};
use refault_trace::SpaceSample;

/// log2 of the bytes of a page.
const PAGE_SHIFT: u32 = 12;

/// Bytes of a unit: a longer read or write may pass over one.
const UNIT_BYTES: u64 = 1 << 18;

/// Orders of folios that are larger than a unit.
const LARGE: std::ops::RangeInclusive<u32> = 7..=9;

/// Names of fields of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) inode: &'a str,
    /// Page or position at which it begins.
    pub(super) first: &'a str,
    /// The last page, the number of bytes, or the order of the folio.
    pub(super) second: &'a str,
}

/// Whether an event is of use to a sample.
pub(super) fn is_wanted(kind: Kind, feature: Feature) -> bool {
    let of_memory = matches!(kind, Kind::Address | Kind::AdviseMemory);
    !of_memory && feature != Feature::Direct
}

/// Filter of an event; none: all of them are wanted.
pub(super) fn filter(kind: Kind, sample: SpaceSample, of: Fields<'_>) -> Option<String> {
    let bits = Bits { sample, inode: of.inode };
    let (page, byte) = (bits.sample.unit_pages.trailing_zeros(), UNIT_BYTES.trailing_zeros());
    debug_assert_eq!(byte, page + PAGE_SHIFT);
    let of_first = |shift: u32| bits.equal(of.first, shift, 0);
    Some(match kind {
        Kind::Fault => of_first(page),
        Kind::Around => either(&[of_first(page), bits.equal(of.second, page, 0)]),
        Kind::Read => {
            // A batch that begins in front of a unit may end in it, or go on behind it.
            // Most reads fail the first bits of each part: the long part comes last.
            let differ = bits.differ(of.first, of.second, page);
            let passes = format!("({})&&({differ})", bits.precede(of.first, page, 0));
            either(&[of_first(page), bits.equal(of.second, page, 0), passes])
        }
        Kind::Begin | Kind::Write => {
            let passes = format!("{}>4096&&({})", of.second, bits.precede(of.first, byte, 0));
            either(&[of_first(byte), passes, format!("{}>{UNIT_BYTES}", of.second)])
        }
        Kind::Add | Kind::Delete if of.second.is_empty() => of_first(page),
        Kind::Add | Kind::Delete => {
            let large = LARGE.map(|order| {
                let rest = bits.equal(of.first, page, order - page);
                if rest.is_empty() {
                    format!("{}>={order}", of.second)
                } else {
                    format!("{}>={order}&&{rest}", of.second)
                }
            });
            either(&std::iter::once(of_first(page)).chain(large).collect::<Vec<_>>())
        }
        _ => return None,
    })
}

fn either(all: &[String]) -> String {
    all.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join("||")
}

/// Bits of the inode, and of the number of a unit.
struct Bits<'a> {
    sample: SpaceSample,
    inode: &'a str,
}

impl Bits<'_> {
    /// Bit of the number of the unit that is kept, and whether it is the opposite of the inode's.
    fn kept(&self, bit: u32, is: bool) -> String {
        let is = is ^ (self.sample.salt >> bit & 1 == 1);
        set(self.inode, bit, is)
    }

    /// The bits from `from` on are those of the unit that is kept.
    fn equal(&self, field: &str, shift: u32, from: u32) -> String {
        let one = |bit: u32| {
            let both = |is: bool| format!("{}&&{}", self.kept(bit, is), set(field, shift + bit, is));
            format!("({}||{})", both(true), both(false))
        };
        (from..self.sample.bits()).map(one).collect::<Vec<_>>().join("&&")
    }

    /// The unit that is kept follows: its bits from `from` on are those of the field and one.
    fn precede(&self, field: &str, shift: u32, from: u32) -> String {
        let [carry, none] =
            [true, false].map(|is| format!("{}&&{}", set(field, shift + from, is), self.kept(from, !is)));
        if from + 1 == self.sample.bits() {
            return format!("({carry}||{none})");
        }
        let (next, equal) = (self.precede(field, shift, from + 1), self.equal(field, shift, from + 1));
        format!("({carry}&&{next}||{none}&&{equal})")
    }

    /// The fields are of different units.
    fn differ(&self, a: &str, b: &str, shift: u32) -> String {
        let one = |bit: u32| {
            let both = |is: bool| format!("{}&&{}", set(a, shift + bit, is), set(b, shift + bit, !is));
            format!("{}||{}", both(true), both(false))
        };
        // More bits than a small sample has: a read may be as long as from one kept unit to the
        // next.
        (0..8).map(one).collect::<Vec<_>>().join("||")
    }
}

fn set(field: &str, bit: u32, is: bool) -> String {
    let bit = 1u64 << bit;
    if is { format!("{field}&{bit}") } else { format!("!({field}&{bit})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of an expression of the filters above.
    fn value(text: &str, fields: &[(&str, u64)]) -> bool {
        let (value, rest) = any(text, fields);
        assert_eq!(rest, "", "{text}");
        value
    }

    fn any<'a>(text: &'a str, fields: &[(&str, u64)]) -> (bool, &'a str) {
        let (mut value, mut rest) = all(text, fields);
        while let Some(next) = rest.strip_prefix("||") {
            let (other, left) = all(next, fields);
            (value, rest) = (value | other, left);
        }
        (value, rest)
    }

    fn all<'a>(text: &'a str, fields: &[(&str, u64)]) -> (bool, &'a str) {
        let (mut value, mut rest) = one(text, fields);
        while let Some(next) = rest.strip_prefix("&&") {
            let (other, left) = one(next, fields);
            (value, rest) = (value & other, left);
        }
        (value, rest)
    }

    fn one<'a>(text: &'a str, fields: &[(&str, u64)]) -> (bool, &'a str) {
        if let Some(inner) = text.strip_prefix('!') {
            let (value, rest) = one(inner, fields);
            return (!value, rest);
        }
        if let Some(inner) = text.strip_prefix('(') {
            let (value, rest) = any(inner, fields);
            return (value, rest.strip_prefix(')').expect("a bracket"));
        }
        let name = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().expect("a name");
        let field = fields.iter().find(|(known, _)| *known == name).expect("a field").1;
        let rest = &text[name.len()..];
        let digits = rest.trim_start_matches(['&', '>', '=']);
        let operator = &rest[..rest.len() - digits.len()];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let number: u64 = digits[..end].parse().expect("a number");
        let value = match operator {
            "&" => field & number != 0,
            ">" => field > number,
            ">=" => field >= number,
            _ => panic!("{operator:?}"),
        };
        (value, &digits[end..])
    }

    const OF: Fields<'static> = Fields { inode: "i_ino", first: "index", second: "last_index" };

    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    #[test]
    fn a_filter_has_room_in_a_page_of_the_kernel() {
        for (bits, salt) in [(1, 0), (6, 63), (8, 255)] {
            let sample = SpaceSample::new(1 << bits, salt).expect("a sample");
            for kind in [Kind::Read, Kind::Begin, Kind::Write, Kind::Around, Kind::Add, Kind::Fault] {
                let text = filter(kind, sample, OF).expect("a filter");
                assert!(text.len() < 4096, "{kind:?}: {}", text.len());
            }
        }
    }

    #[test]
    fn what_touches_the_sample_comes_through() {
        let mut state = 1;
        for (one_in, salt) in [(2, 1), (8, 0), (64, 37), (256, 0)] {
            let sample = SpaceSample::new(one_in, salt).expect("a sample");
            let [read, add, write] =
                [Kind::Read, Kind::Add, Kind::Write].map(|kind| filter(kind, sample, OF).expect("a filter"));
            let (mut through, mut touching) = (0, 0);
            for _ in 0..3000 {
                let (inode, page) = (random(&mut state, 1 << 30), random(&mut state, 1 << 28));
                let pages = 1 + random(&mut state, 120);
                let fields = [("i_ino", inode), ("index", page), ("last_index", page + pages - 1)];
                // A batch has no more than 31 pages where folios are small.
                let batch = page..page + pages.min(31);
                let touches = sample.first_of(inode, batch).is_some();
                let comes = value(&read, &fields);
                assert!(comes || !touches, "{fields:?}");
                (through, touching) = (through + u32::from(comes), touching + u32::from(touches));
                let order = random(&mut state, 10);
                let folio = page >> order << order;
                let fields = [("i_ino", inode), ("index", folio), ("last_index", order)];
                assert_eq!(
                    value(&add, &fields),
                    sample.first_of(inode, folio..folio + (1 << order)).is_some(),
                    "{fields:?}"
                );
                let (position, bytes) = (page << 12 | random(&mut state, 4096), 1 + random(&mut state, 1 << 17));
                let fields = [("i_ino", inode), ("index", position), ("last_index", bytes)];
                let written = position >> 12..((position + bytes - 1) >> 12) + 1;
                assert!(value(&write, &fields) || sample.first_of(inode, written).is_none(), "{fields:?}");
            }
            assert!(through <= touching * 3 + 30, "1/{one_in}: {through} for {touching}");
        }
    }
}
