//! Promises of the command: figures of a limit, from a recording at another one. Fields of the JSON
//! are looked up as they may be there: older versions have fewer of them.

use crate::machine;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A figure that is promised.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    pub value: Option<f64>,
    /// From and to, where the command gives such.
    pub interval: Option<(f64, f64)>,
}

/// All of one limit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Promise {
    pub limit_bytes: u64,
    /// A part of 1.
    pub hit_rate: Figure,
    pub misses: Figure,
    pub disk_pages: Figure,
    pub refaults: Figure,
    /// Why there is none.
    pub refused: Option<String>,
    /// Figures that `size` does not trust this recording for, and why.
    pub not_for: BTreeMap<String, String>,
}

/// An answer of `size`: the limit, or why there is none.
pub struct Answer {
    pub promise: Result<Promise, String>,
    pub target: String,
}

/// The limit that `size` recommends.
pub fn sized(file: &Path, target: String, range: (u64, u64)) -> Answer {
    let promise = points(file, &target, range).and_then(|json| {
        let bytes = json["answer_bytes"].as_u64();
        let verdict = json["verdict"].as_str().unwrap_or("?");
        let at = bytes.ok_or_else(|| format!("{verdict} {}", distrust(&json).unwrap_or_else(|| warnings(&json))))?;
        if let Some(why) = distrust(&json) {
            return Err(why);
        }
        if json["verdict"] == "met-at-smallest" {
            return Err("met at the smallest size".to_owned());
        }
        Ok(verified(file, point(&json, at)?))
    });
    Answer { promise, target }
}

/// A limit that is given.
pub fn at(file: &Path, limit_bytes: u64) -> Promise {
    let promised = points(file, "hit_rate>0.01%", (limit_bytes, limit_bytes + (1 << 20)));
    let promise = promised.and_then(|json| point(&json, limit_bytes));
    verified(file, promise.unwrap_or_else(|why| refused(why, limit_bytes)))
}

/// A promise with what `verify` alone has.
fn verified(file: &Path, mut promise: Promise) -> Promise {
    let limit = promise.limit_bytes.to_string();
    let verified = machine::refault(&["verify", "--json", "--memory", &limit, &file.to_string_lossy()]);
    match verified.and_then(|said| serde_json::from_str::<Value>(&said).map_err(|e| e.to_string())) {
        Ok(json) => beside(&mut promise, &json),
        Err(why) => promise.refused = promise.refused.or(Some(why)),
    }
    if promise.refused.is_none() {
        bounds(file, &mut promise);
    }
    promise
}

/// Takes over the bounds of figures that are not those of the target.
fn bounds(file: &Path, promise: &mut Promise) {
    let range = (promise.limit_bytes, promise.limit_bytes + (1 << 20));
    let mut untrusted = BTreeMap::new();
    let mut of = |target: &str, metric: &str| {
        let json = points(file, target, range).ok()?;
        untrusted.extend(distrust(&json).map(|why| (metric.to_owned(), why)));
        let point = json["points"].as_array()?.iter().find(|point| point["bytes"] == range.0)?;
        Some((point["value"].as_f64(), point["low"].as_f64().zip(point["high"].as_f64())))
    };
    // Only metrics that are targets have bounds; older versions have not all of them.
    let accesses = promise.misses.value.zip(promise.hit_rate.value).map(|(misses, rate)| misses / (1.0 - rate));
    if let Some((value, interval)) = of("misses<1000000M", "misses") {
        promise.misses = Figure { value: value.or(promise.misses.value), interval };
    }
    if let Some((value, interval)) = of("read_bytes<1000T", "disk_reads") {
        let pages = |bytes: f64| bytes / 4096.0;
        promise.disk_pages.value = value.map(pages).or(promise.disk_pages.value);
        promise.disk_pages.interval = interval.map(|(low, high)| (pages(low), pages(high)));
    }
    if let (Some((_, Some((low, high)))), Some(accesses)) =
        (of("refaults_per_access<100%", "refaults"), accesses.filter(|n| n.is_finite()))
    {
        promise.refaults.interval = Some((accesses * low, accesses * high));
    }
    promise.not_for.extend(untrusted);
}

/// Why `size` does not trust the recording for its target, if so.
fn distrust(json: &Value) -> Option<String> {
    let of = &json["baseline"];
    (of["trust"] == "refused").then(|| format!("as recorded the kernel has {}, the lab {}", of["kernel"], of["lab"]))
}

fn refused(why: String, limit_bytes: u64) -> Promise {
    Promise { limit_bytes, refused: Some(why), ..Promise::default() }
}

/// Takes over what `verify` alone has.
fn beside(promise: &mut Promise, json: &Value) {
    let refaults = json["lab_counters"]["workingset_refault_file"].as_f64();
    promise.refaults.value = promise.refaults.value.or(refaults);
    promise.hit_rate.value = promise.hit_rate.value.or(json["lab_hit_rate"].as_f64());
    if promise.disk_pages.value.is_none() {
        promise.disk_pages = disk(json);
    }
    let said = json["verdict"]["text"].as_str().unwrap_or_default();
    if said.contains("out of memory") {
        promise.refused = promise.refused.take().or(Some("out of memory".to_owned()));
    }
}

fn points(file: &Path, target: &str, range: (u64, u64)) -> Result<Value, String> {
    let range = format!("{}..{}", range.0, range.1);
    let said = machine::refault(&["size", &file.to_string_lossy(), "--target", target, "--range", &range, "--json"])?;
    serde_json::from_str(&said).map_err(|e| format!("size: {e}"))
}

fn warnings(json: &Value) -> String {
    let all = json["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
}

/// A size that was tried.
fn point(json: &Value, bytes: u64) -> Result<Promise, String> {
    let all = json["points"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(point) = all.iter().find(|point| point["bytes"] == bytes) else {
        return Err(format!("size has not tried {bytes} bytes"));
    };
    let rate = figure(point, "hit_rate");
    let target = point["low"].as_f64().zip(point["high"].as_f64()).filter(|_| json["metric"] == "hit_rate");
    let why = ["refused", "failed"].iter().find_map(|key| point[*key].as_str()).map(str::to_owned);
    Ok(Promise {
        limit_bytes: bytes,
        hit_rate: Figure { interval: rate.interval.or(target), ..rate },
        misses: figure(point, "misses"),
        disk_pages: disk(point),
        refaults: figure(point, "refaults"),
        refused: why,
        not_for: distrust(json).map(|why| ("hit_rate".to_owned(), why)).into_iter().collect(),
    })
}

/// Pages that are read from disk: of `verify` those of the lab, of a size under one of the names
/// that they may have.
fn disk(json: &Value) -> Figure {
    let places = [&json["disk_reads"]["lab"], &json["disk_reads"], json];
    let names = ["read_pages", "disk_read_pages", "pages_read", "disk_reads"];
    let pages = places.iter().flat_map(|place| names.iter().map(|name| figure(place, name)));
    if let Some(pages) = pages.into_iter().find(|figure| figure.value.is_some()) {
        return pages;
    }
    let bytes = ["disk_read_bytes", "read_bytes"].iter().map(|name| figure(json, name));
    let bytes = bytes.into_iter().find(|figure| figure.value.is_some()).unwrap_or_default();
    Figure {
        value: bytes.value.map(|bytes| bytes / 4096.0),
        interval: bytes.interval.map(|(low, high)| (low / 4096.0, high / 4096.0)),
    }
}

/// A figure with its interval: `NAME`, and `NAME_low` with `NAME_high`, or `NAME_interval` or
/// `interval.NAME` of two; or `NAME` of `low`, `best` and `high`.
fn figure(json: &Value, name: &str) -> Figure {
    let pair = |value: &Value| {
        let low = value.get(0).or_else(|| value.get("low"))?.as_f64()?;
        Some((low, value.get(1).or_else(|| value.get("high"))?.as_f64()?))
    };
    let (low, high) = (&json[format!("{name}_low")], &json[format!("{name}_high")]);
    let places = [&json[format!("{name}_interval")], &json["interval"][name], &json[name]];
    let interval = low.as_f64().zip(high.as_f64()).or_else(|| places.into_iter().find_map(pair));
    Figure { value: json[name].as_f64().or(json[name]["best"].as_f64()), interval }
}
