//! The grammar of workloads: `ACCESSES: STREAM; STREAM; ...`.

use super::{Interleave, Pattern, Phase, Stream, Workload};
use crate::error::TraceError;
use crate::record::{ObjectKind, Via};
use std::str::FromStr;

impl Workload {
    /// Parses phases, one text each.
    ///
    /// A phase is a number of accesses, a colon, and streams separated by semicolons. A stream is
    /// `object:pattern:pages` and perhaps `:key=value,...`:
    ///
    /// - patterns: `uniform`, `zipf`, `seq` (once through), `loop` (round and round);
    /// - `weight=N` (1): share of the accesses; `start=PAGE` (0): where `seq` and `loop` begin;
    ///   `base=PAGE` (0): where the set begins in the object;
    /// - `skew=X` (1.0) and `permute=yes|no` (no): for `zipf`;
    /// - `op=r|w` (r), `via=fd|map` (left to the replay), `kind=file|anon` (file);
    /// - `task=N`: the task; the place of the stream in its phase by default;
    /// - `memcg=/PATH`: the memory cgroup of the task; the root by default.
    ///
    /// Among the streams, `interleave=random|round` (random) says how they take turns.
    ///
    /// ```
    /// use refault_trace::generate::Workload;
    /// let phases = ["3000: A:uniform:1000; B:loop:500:start=20,weight=2", "500: B:seq:500:op=w"];
    /// let workload = Workload::parse(&phases, 1)?;
    /// assert_eq!(workload.accesses(), 3500);
    /// # Ok::<(), refault_trace::TraceError>(())
    /// ```
    pub fn parse<S: AsRef<str>>(phases: &[S], seed: u64) -> Result<Self, TraceError> {
        let parsed = phases.iter().zip(1..).map(|(text, number)| {
            phase(text.as_ref()).map_err(|what| TraceError::usage(format!("phase {number}"), what))
        });
        Ok(Self { phases: parsed.collect::<Result<_, _>>()?, seed })
    }
}

fn phase(text: &str) -> Result<Phase, String> {
    let Some((accesses, rest)) = text.split_once(':') else {
        return Err(format!("{text:?} is not ACCESSES: STREAM; ..., such as \"1000: A:uniform:100\""));
    };
    let mut phase = Phase {
        accesses: number(accesses, "the number of accesses")?,
        interleave: Interleave::Random,
        streams: Vec::new(),
    };
    for item in rest.split(';').map(str::trim).filter(|s| !s.is_empty()) {
        match item {
            "interleave=random" => phase.interleave = Interleave::Random,
            "interleave=round" => phase.interleave = Interleave::Round,
            _ => {
                let task = phase.streams.len() as u32;
                let stream = stream(item, task).map_err(|what| format!("stream {item:?}: {what}"))?;
                phase.streams.push(stream);
            }
        }
    }
    if phase.streams.is_empty() {
        return Err(format!("{text:?} has no stream"));
    }
    Ok(phase)
}

fn stream(text: &str, task: u32) -> Result<Stream, String> {
    let parts: Vec<_> = text.split(':').map(str::trim).collect();
    let (object, pattern, pages, keys) = match parts.as_slice() {
        [object, pattern, pages] => (*object, *pattern, *pages, ""),
        [object, pattern, pages, keys] => (*object, *pattern, *pages, *keys),
        _ => return Err("is not object:pattern:pages[:key=value,...]".to_owned()),
    };
    if object.is_empty() {
        return Err("the object has no name".to_owned());
    }
    let pattern = match pattern {
        "uniform" => Pattern::Uniform,
        "zipf" => Pattern::Zipf { skew: 1.0, permute: false },
        "seq" => Pattern::Sequential,
        "loop" => Pattern::Loop,
        _ => {
            return Err(format!("pattern {pattern:?} is not known; one of uniform, zipf, seq, loop"));
        }
    };
    let mut stream = Stream::new(object, pattern, number(pages, "pages")?);
    stream.task = task;
    let mut seen = Vec::new();
    for pair in keys.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!("{pair:?} is not key=value"));
        };
        let key = key.trim();
        if seen.contains(&key) {
            return Err(format!("key {key:?} stands twice"));
        }
        seen.push(key);
        set(&mut stream, key, value.trim())?;
    }
    Ok(stream)
}

fn set(stream: &mut Stream, key: &str, value: &str) -> Result<(), String> {
    let choice = |one, two| match value {
        v if v == one => Ok(false),
        v if v == two => Ok(true),
        _ => Err(format!("{key}={value} is neither {one} nor {two}")),
    };
    match key {
        "weight" => stream.weight = number(value, key)?,
        "start" => stream.start = number(value, key)?,
        "base" => stream.base = number(value, key)?,
        "task" => stream.task = number(value, key)?,
        "op" => stream.write = choice("r", "w")?,
        "kind" => {
            let anon = choice("file", "anon")?;
            stream.kind = if anon { ObjectKind::Anon } else { ObjectKind::File };
        }
        "via" => stream.via = Some(if choice("fd", "map")? { Via::Map } else { Via::Fd }),
        "memcg" => stream.memcg = Some(path(value)?),
        "skew" | "permute" => return set_zipf(&mut stream.pattern, key, value),
        _ => {
            return Err(format!(
                "key {key:?} is not known; one of weight, start, base, skew, permute, op, via, kind, task, memcg"
            ));
        }
    }
    Ok(())
}

/// The path of a memory cgroup, such as `/a/b`.
fn path(text: &str) -> Result<String, String> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"-_.@".contains(&b);
    let name = |name: &str| (1..=64).contains(&name.len()) && name.bytes().all(letter) && name != "." && name != "..";
    match text.strip_prefix('/') {
        // The root, as it is without the key.
        Some("") => Ok(text.to_owned()),
        Some(rest) if rest.split('/').all(name) => Ok(text.to_owned()),
        _ => Err(format!("memcg={text} is not the path of a group, such as /web or /a/b")),
    }
}

fn set_zipf(pattern: &mut Pattern, key: &str, value: &str) -> Result<(), String> {
    let Pattern::Zipf { skew, permute } = pattern else {
        return Err(format!("{key} is only for zipf"));
    };
    match (key, value) {
        ("permute", "yes") => *permute = true,
        ("permute", "no") => *permute = false,
        ("permute", _) => return Err(format!("permute={value} is neither yes nor no")),
        _ => *skew = number(value, key)?,
    }
    Ok(())
}

fn number<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
    let text = text.trim();
    text.parse().map_err(|_| format!("{what} {text:?} is not a number that fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_grammar() {
        let text = "10: interleave=round; A:loop:20:start=5,weight=3,task=9 ; \
                    h:zipf:8:skew=0.5,permute=yes,op=w,kind=anon,via=map,base=4,memcg=/a/b;";
        let phase = phase(text).expect("parses");
        let mut a = Stream::new("A", Pattern::Loop, 20);
        (a.start, a.weight, a.task) = (5, 3, 9);
        let zipf = Pattern::Zipf { skew: 0.5, permute: true };
        let mut h = Stream::new("h", zipf, 8);
        (h.write, h.kind, h.via) = (true, ObjectKind::Anon, Some(Via::Map));
        (h.base, h.task, h.memcg) = (4, 1, Some("/a/b".into()));
        let want = Phase { accesses: 10, interleave: Interleave::Round, streams: vec![a, h] };
        assert_eq!(phase, want);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("A:loop:1", "accesses \"A\""),
            ("", "not ACCESSES"),
            ("5:", "no stream"),
            ("5: A:lop:1", "pattern \"lop\""),
            ("5: A:loop:-1", "pages \"-1\""),
            ("5: A:loop:1:skew=1", "only for zipf"),
            ("5: A:loop:1:wait=1", "key \"wait\""),
            ("5: A:loop:1:op=x", "neither r nor w"),
            ("5: :loop:1", "no name"),
            ("5: A:loop:1:memcg=web", "memcg=web is not the path of a group"),
            ("5: A:loop:1:memcg=//", "not the path"),
            ("5: A:loop:1:memcg=/a//b", "not the path"),
            ("5: A:loop:1:memcg=/../b", "not the path"),
            ("5: A:loop:1:memcg=/a,memcg=/b", "key \"memcg\" stands twice"),
        ] {
            let error = phase(text).expect_err(text);
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
