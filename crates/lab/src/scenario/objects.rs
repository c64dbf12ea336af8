//! Memory cgroups, files and anonymous regions.

use super::read::{self, Field, Result, Section};
use super::types::{ContentSpec, DeviceSpec, LimitChanges, MemcgSpec, ObjectSpec};
use super::{MAX_OBJECTS, MAX_PAGES};
use refault_mm::{CacheExtPolicy, HugeAdvice, MemcgLimits};
use refault_trace::ObjectKind;

const MAX_MEMCGS: usize = 1024;
const MAX_DEPTH: usize = 16;
const MAX_AREAS: usize = 256;
pub(super) const MEMCG_KEYS: [&str; 10] =
    ["min", "low", "high", "max", "swap_high", "swap_max", "zswap_max", "zswap_writeback", "swappiness", "oom_group"];

/// Reads memcgs, declared ones and ones that events make, and puts parents before their children.
pub(super) fn memcgs(field: Option<Field<'_>>, made: &[(&str, Section<'_>)]) -> Result<Vec<MemcgSpec>> {
    let keys = [&MEMCG_KEYS[..], &["cache_ext"]].concat();
    let declared = field.map_or(Ok(Vec::new()), |field| field.named(&keys, MAX_MEMCGS))?;
    let mut all: Vec<_> = declared.iter().map(|(path, s)| (*path, s, false)).collect();
    all.extend(made.iter().map(|(path, s)| (*path, s, true)));
    all.sort_by_key(|(path, _, made)| (*made, path.matches('/').count()));
    let mut memcgs: Vec<MemcgSpec> = Vec::new();
    for (path, s, made_by_event) in all {
        let error = |what: String| s.get("create").map_or_else(|| s.error(&what), |field| field.error(&what));
        memcg_path(path).map_err(|what| error(what.into()))?;
        if memcgs.len() == MAX_MEMCGS {
            return Err(error(format!("there are more than {MAX_MEMCGS} groups, made ones counted")));
        }
        if memcgs.iter().any(|m| m.path == path) {
            return Err(error(format!("there is a group {path} already; give this one another name")));
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = memcgs.iter().position(|m| m.path == above);
        if parent.is_none() && !above.is_empty() {
            return Err(error(format!("the group above it is not declared; write [memcg.\"{above}\"]")));
        }
        let limits = limit_changes(s)?.applied_to(&MemcgLimits::default());
        let cache_ext = s.opt("cache_ext", |f| f.choice(&CacheExtPolicy::ALL.map(|p| (p.name(), p))))?;
        memcgs.push(MemcgSpec { path: path.to_owned(), parent, limits, made_by_event, cache_ext });
    }
    Ok(memcgs)
}

/// The limits that a table names.
pub(super) fn limit_changes(s: &Section<'_>) -> Result<LimitChanges> {
    let limit = |key| s.opt(key, Field::limit);
    Ok(LimitChanges {
        min: limit("min")?,
        low: limit("low")?,
        high: limit("high")?,
        max: limit("max")?,
        swap_high: limit("swap_high")?,
        swap_max: limit("swap_max")?,
        zswap_max: limit("zswap_max")?,
        zswap_writeback: s.opt("zswap_writeback", Field::boolean)?,
        swappiness: s.opt("swappiness", |f| f.int(0..=200))?,
        oom_group: s.opt("oom_group", Field::boolean)?,
    })
}

fn memcg_path(path: &str) -> std::result::Result<(), &'static str> {
    let Some(names) = path.strip_prefix('/') else {
        return Err("is not the path of a group; write a / before each name: \"/a/b\"");
    };
    if names.is_empty() {
        return Err("the root has no limits and is not declared");
    }
    let good = |name: &str| name != "." && name != ".." && read::name(&name.replace('.', "-")).is_ok();
    match names.split('/').count() <= MAX_DEPTH && names.split('/').all(good) {
        true => Ok(()),
        false => Err("is not the path of a group; write up to 16 names of letters, digits, - _ and . after a / each"),
    }
}

/// The group that a field names; `/` is the root.
pub(super) fn memcg(field: &Field<'_>, memcgs: &[MemcgSpec]) -> Result<Option<usize>> {
    if field.text()? == "/" {
        return Ok(None);
    }
    field.index("a memcg", memcgs.iter().map(|m| m.path.as_str())).map(Some)
}

/// An object, and what is still to be found out about it.
pub(super) struct DeclaredObject<'s> {
    pub(super) spec: ObjectSpec,
    pub(super) section: Section<'s>,
}

pub(super) fn objects<'s>(
    field: &Field<'s>,
    devices: &[DeviceSpec],
    swap_devices: &[usize],
    memcgs: &[MemcgSpec],
) -> Result<Vec<DeclaredObject<'s>>> {
    let keys = ["kind", "size", "areas", "advice", "device", "memcg", "private", "content"];
    let named = field.named(&keys, MAX_OBJECTS)?;
    let read = |(name, section): (&str, Section<'s>)| {
        read::name(name).map_err(|what| section.error(what))?;
        let spec = object(name, &section, devices, swap_devices, memcgs)?;
        Ok(DeclaredObject { spec, section })
    };
    named.into_iter().map(read).collect()
}

fn object(
    name: &str,
    s: &Section<'_>,
    devices: &[DeviceSpec],
    swap_devices: &[usize],
    memcgs: &[MemcgSpec],
) -> Result<ObjectSpec> {
    let kinds = [("file", ObjectKind::File), ("anon", ObjectKind::Anon)];
    let kind = s.need("kind", "kind = \"file\" or \"anon\"")?.choice(&kinds)?;
    Ok(ObjectSpec {
        name: name.to_owned(),
        kind,
        pages: s.need("size", "size = \"12G\"")?.pages(1..=MAX_PAGES)?,
        areas: s.or("areas", Vec::new(), |f| areas(f, kind))?,
        huge: s.or("advice", HugeAdvice::None, |f| huge(f, kind))?,
        device: device(s, kind, devices, swap_devices)?,
        memcg: s.opt("memcg", |f| memcg(f, memcgs))?.flatten(),
        private: s.or("private", false, Field::boolean)?,
        content: s.opt("content", |f| content(f, kind))?,
    })
}

fn content(field: &Field<'_>, kind: ObjectKind) -> Result<ContentSpec> {
    if kind != ObjectKind::Anon {
        return Err(field.error("only anonymous memory is compressed; leave it out"));
    }
    let s = field.section(&["zero", "same", "incompressible", "ratio"])?;
    let share = |key| s.or(key, 0.0, |f| f.float(0.0..=1.0));
    let spec = ContentSpec {
        zero: share("zero")?,
        same: share("same")?,
        incompressible: share("incompressible")?,
        ratio: s.or("ratio", ContentSpec::RATIO, |f| f.float(1.0..=4096.0))?,
    };
    match spec.zero + spec.same + spec.incompressible <= 1.0 {
        true => Ok(spec),
        false => Err(s.error("zero, same and incompressible are shares of one whole; together they are more than 1")),
    }
}

fn huge(field: &Field<'_>, kind: ObjectKind) -> Result<HugeAdvice> {
    if kind == ObjectKind::File {
        return Err(field.error("only anonymous memory has large folios; files have single pages"));
    }
    let all = [("normal", HugeAdvice::None), ("hugepage", HugeAdvice::Huge), ("nohugepage", HugeAdvice::NoHuge)];
    field.choice(&all)
}

fn areas(field: &Field<'_>, kind: ObjectKind) -> Result<Vec<u64>> {
    if kind == ObjectKind::File {
        return Err(field.error("only anonymous memory has areas"));
    }
    let sizes = field.list(MAX_AREAS)?.iter().map(|f| f.pages(1..=MAX_PAGES)).collect::<Result<Vec<_>>>()?;
    if sizes.is_empty() { Err(field.error("there is none; write areas = [\"132K\", \"2M\"]")) } else { Ok(sizes) }
}

fn device(s: &Section<'_>, kind: ObjectKind, devices: &[DeviceSpec], swap_devices: &[usize]) -> Result<Option<usize>> {
    match (kind, s.get("device")) {
        (ObjectKind::Anon, None) => Ok(None),
        (ObjectKind::Anon, Some(field)) => Err(field.error("anonymous memory has no device; its pages go to swap")),
        (ObjectKind::File, None) => s.need("device", "device = \"...\", the device that the file is on").map(|_| None),
        (ObjectKind::File, Some(field)) => {
            let device = field.index("a device", devices.iter().map(|d| d.name.as_str()))?;
            if swap_devices.contains(&device) {
                return Err(field.bad("is a swap device; a file needs another one"));
            }
            Ok(Some(device))
        }
    }
}
