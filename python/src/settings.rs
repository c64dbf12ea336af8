//! Settings of Python, texts and flags, as types of the library. A mistake has the keyword, and the
//! words that the command has for the same flag.

use pyo3::prelude::*;
use refault::loaded::LoadedReplay;
use refault::memory_size::Size;
use refault::replay::policy::PolicyList;
use refault::replay::{PlugIn, Replay, curve_sizes};
use refault::settings::{Set as EngineSet, Thp};
use refault::{Failure, Watch};
use refault_mm::Kernel;
use refault_trace::{LoadOptions, OpenOptions, Via};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A text that a caller may give.
pub(crate) type Text = Option<String>;

/// A key of `--set`, and its value.
pub(crate) type Set = (String, String);

/// Threads that can be asked for.
pub(crate) const THREADS: RangeInclusive<i64> = 1..=1024;

/// The mistake in a value, under its keyword; of a setting of the engine its key is that.
fn wrong(flag: &str, text: &str, what: impl Display) -> Failure {
    let keyword = flag.split(' ').next().unwrap_or(flag).replace('-', "_");
    let (keyword, text) = match text.split_once('=').filter(|_| keyword == "set") {
        Some((key, value)) => (key.to_owned(), value),
        None => (keyword, text),
    };
    format!("{keyword}='{text}': {what}").into()
}

/// A value of a flag, which is written `NAME <KIND>`.
pub(crate) fn one<T: FromStr<Err: Display>>(flag: &str, text: &Text) -> Result<Option<T>, Failure> {
    text.as_deref().map(|text| text.parse().map_err(|e| wrong(flag, text, e))).transpose()
}

/// A value of a flag that is no type of its own.
pub(crate) fn read<T>(
    flag: &str,
    text: &Text,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    text.as_deref().map(|text| parse(text).map_err(|what| wrong(flag, text, what))).transpose()
}

/// Settings of the engine.
pub(crate) fn sets(pairs: &[Set]) -> Result<Vec<EngineSet>, Failure> {
    let set = |(key, value): &Set| one("set <KEY=VALUE>", &Some(format!("{key}={value}")));
    pairs.iter().filter_map(|pair| set(pair).transpose()).collect()
}

/// Values of a flag, separated by commas.
pub(crate) fn list<T: FromStr<Err: Display>>(flag: &str, text: &Text) -> Result<Vec<T>, Failure> {
    let texts = text.iter().flat_map(|text| text.split(','));
    texts.map(|text| text.parse().map_err(|e| wrong(flag, text, e))).collect()
}

/// A whole number of a flag, in its range.
pub(crate) fn number<T: TryFrom<i64>>(
    flag: &str,
    text: &Text,
    range: &RangeInclusive<i64>,
) -> Result<Option<T>, Failure> {
    let Some(text) = text.as_deref() else { return Ok(None) };
    let number: i64 = text.parse().map_err(|_| wrong(flag, text, "is not a whole number, 0 or more"))?;
    let found = Some(number).filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
    let out = || wrong(flag, text, format!("{number} is not in {}..={}", range.start(), range.end()));
    found.map(Some).ok_or_else(out)
}

/// Any whole number of a flag.
pub(crate) fn count(flag: &str, text: &Text) -> Result<Option<u64>, Failure> {
    let read = |text: &str| text.parse().map_err(|_| wrong(flag, text, "is not a whole number, 0 or more"));
    text.as_deref().map(read).transpose()
}

/// Limit of swap; none: no limit.
pub(crate) fn swap_max(text: &Text) -> Result<Option<Size>, Failure> {
    match text.as_deref().filter(|text| *text != "max") {
        Some(text) => text.parse().map(Some).map_err(|e| wrong("swap-max <SIZE>", text, format!("{e}, or max"))),
        None => Ok(None),
    }
}

/// How file pages are touched where a trace does not say.
pub(crate) fn via(text: &Text) -> Result<Via, Failure> {
    match text.as_deref() {
        None | Some("fd") => Ok(Via::Fd),
        Some("map") => Ok(Via::Map),
        Some(text) => Err(wrong("via <HOW>", text, "is neither map nor fd")),
    }
}

/// The kernel whose rules hold.
pub(crate) fn kernel(text: &Text) -> Result<Option<Kernel>, Failure> {
    let read = |name: &str| name.parse::<Kernel>().map_err(|e| wrong("kernel <NAME>", name, e));
    text.as_deref().map(read).transpose()
}

/// Accesses that are read; none: all.
pub(crate) fn max_accesses(text: &Text) -> Result<Option<u64>, Failure> {
    match count("max-accesses <N>", text)? {
        Some(0) => Err(wrong("max-accesses <N>", "0", format!("0 is not in 1..{}", u64::MAX))),
        most => Ok(most),
    }
}

/// How a file is read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading {
    format: Text,
    raw_ids: bool,
    block_bytes: Text,
    page_size: Text,
    instructions: bool,
}

impl Reading {
    /// The same for the library.
    pub(crate) fn options(&self) -> Result<OpenOptions, Failure> {
        const BYTES: RangeInclusive<i64> = 0..=u32::MAX as i64;
        let mut options = OpenOptions::default();
        if let Some(format) = &self.format {
            options.set_format(format).map_err(|e| wrong("format <FORMAT>", format, e))?;
        }
        options.raw_ids = self.raw_ids;
        options.block_bytes = number("block-bytes <BYTES>", &self.block_bytes, &BYTES)?;
        options.page_size = number("page-size <BYTES>", &self.page_size, &BYTES)?.unwrap_or(options.page_size);
        options.instructions = self.instructions;
        Ok(options)
    }
}

/// Settings with which a trace is read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Loading {
    via: Text,
    max_accesses: Text,
}

impl Loading {
    /// The same for the library.
    pub(crate) fn options(&self) -> Result<LoadOptions, Failure> {
        Ok(LoadOptions {
            default_via: via(&self.via)?,
            max_accesses: max_accesses(&self.max_accesses)?,
            ..LoadOptions::default()
        })
    }
}

/// Settings of a replay.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReplaySettings {
    memory: Text,
    policy: Text,
    curve: bool,
    miss_bits: bool,
    kernel: Text,
    swap_max: Text,
    swap: Text,
    compression: Text,
    swappiness: Text,
    seed: Text,
    beyond_footprint: bool,
    page_by_page: bool,
    thp: Text,
    threads: Text,
    windows: Text,
    /// How its file was read, which a recording says itself.
    via: Text,
    /// Keys of `--set`.
    set: Vec<Set>,
}

impl ReplaySettings {
    /// The request of the library.
    pub(crate) fn request<'a>(&self, plug_ins: &'a [PlugIn], watch: Watch) -> Result<LoadedReplay<'a>, Failure> {
        let plain = Replay::default();
        let memory = list::<Size>("memory <LIST>", &self.memory)?;
        let request = Replay {
            policies: one::<PolicyList>("policy <LIST>", &self.policy)?.map_or(plain.policies, |list| list.0),
            memory: match (memory.is_empty(), self.curve) {
                (true, true) => curve_sizes(),
                (true, false) => plain.memory,
                (false, _) => memory,
            },
            beyond_footprint: self.beyond_footprint,
            swap_max: swap_max(&self.swap_max)?,
            swap: one("swap <KIND[:SIZE]>", &self.swap)?,
            compression: one("compression <LIST>", &self.compression)?,
            kernel: kernel(&self.kernel)?,
            swappiness: number("swappiness <N>", &self.swappiness, &(0..=200))?.unwrap_or(plain.swappiness),
            set: sets(&self.set)?,
            thp: list::<Thp>("thp <LIST>", &self.thp)?,
            seed: count("seed <N>", &self.seed)?.unwrap_or(plain.seed),
            windows: number("windows <N>", &self.windows, &(1..=100_000))?,
            bits: self.miss_bits,
            threads: number("threads <N>", &self.threads, &THREADS)?,
            watch,
            ..Replay::default()
        };
        let foreign = [("swap-max", &self.swap_max), ("swap", &self.swap), ("via", &self.via), ("thp", &self.thp)];
        Ok(LoadedReplay {
            request,
            has_policies: self.policy.is_some(),
            has_sizes: self.memory.is_some() || self.curve,
            is_curve: self.memory.is_none() && self.curve,
            has_swappiness: self.swappiness.is_some(),
            foreign: foreign.into_iter().find(|(_, text)| text.is_some()).map(|(flag, _)| flag),
            page_by_page: self.page_by_page,
            plug_ins,
        })
    }
}
