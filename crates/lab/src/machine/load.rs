//! Accesses of tasks, as the engine, the page tables and the devices know them: objects of the
//! scenario, then those of traces.

use std::rc::Rc;

use refault_mm::{Engine, MappingKind, PageId};
use refault_trace::{LoadOptions, ObjectKind, Trace};

use crate::groups::Groups;
use crate::hardware::Hardware;
use crate::programs::{Instance, Owner};
use crate::scenario::{ObjectSpec, Scenario, TaskSpec, TraceSpec};
use crate::task::Script;

/// Instances of an object.
pub(super) fn copies(spec: &Scenario, object: usize) -> u32 {
    if !spec.objects[object].private {
        return 1;
    }
    let uses = |t: &&TaskSpec| t.phases.iter().flat_map(|p| &p.streams).any(|s| s.object == object);
    spec.tasks.iter().find(uses).map_or(1, |t| t.count)
}

/// Registers the objects of the scenario: their instances, and the first of each.
pub(super) fn objects(
    spec: &Scenario,
    engine: &mut Engine,
    hw: &mut Hardware,
    groups: &Groups,
) -> Result<(Vec<Instance>, Vec<usize>), String> {
    let (mut instances, mut first) = (Vec::new(), Vec::new());
    let mut base = vec![0u64; spec.devices.len()];
    for (i, o) in spec.objects.iter().enumerate() {
        first.push(instances.len());
        let anon = o.kind == ObjectKind::Anon;
        let kind = if anon { MappingKind::Anon } else { MappingKind::File };
        let memcg = groups.nearest(spec, o.memcg);
        for _ in 0..copies(spec, i) {
            let (mapping, page) = engine.add_mapping(kind, memcg, indices(o))?;
            engine.advise_huge(mapping, o.huge);
            hw.tables.add_extent(page, o.pages as u32, o.device, o.device.map_or(0, |d| base[d]));
            if let Some(extent) = hw.tables.extents.last_mut() {
                extent.content = o.content;
                extent.group = group_number(o.memcg);
            }
            if let Some(d) = o.device {
                base[d] += o.pages;
            }
            if anon {
                // The threads of a program share its page table.
                hw.tables.add_space(instances.len());
            }
            instances.push(Instance { mapping, anon, of: Owner::Object(i), memcg: o.memcg });
        }
    }
    Ok((instances, first))
}

/// The root is 0, then come the groups of the scenario.
fn group_number(memcg: Option<usize>) -> u32 {
    memcg.map_or(0, |m| m as u32 + 1)
}

/// The places of the pages of an object in its address space: a hole behind each area.
fn indices(object: &ObjectSpec) -> impl Iterator<Item = u64> + '_ {
    let mut areas = object.areas.iter().copied().cycle();
    let mut left = areas.next().unwrap_or(u64::MAX);
    let mut holes = 0;
    (0..object.pages).map(move |page| {
        if left == 0 {
            left = areas.next().unwrap_or(u64::MAX);
            holes += 1;
        }
        left -= 1;
        page + holes
    })
}

/// Loads the traces and registers what they access, after the objects of the scenario.
pub(super) fn traces(
    spec: &Scenario,
    engine: &mut Engine,
    hw: &mut Hardware,
    groups: &Groups,
    instances: &mut Vec<Instance>,
) -> Result<Vec<Option<Script>>, String> {
    let mut scripts = Vec::new();
    for (n, t) in spec.tasks.iter().enumerate() {
        let Some(source) = &t.trace else {
            scripts.push(None);
            continue;
        };
        let trace = load_trace(source)?;
        let memcg = groups.nearest(spec, t.memcg);
        let (first_extent, mut first, mut objects) = (instances.len(), None, Vec::new());
        for o in trace.objects.iter().filter(|o| !o.indices.is_empty()) {
            let anon = o.kind == ObjectKind::Anon;
            if !anon && source.device.is_none() {
                let what = "has files; say where they are: trace = { file = \"...\", device = \"...\" }";
                return Err(format!("task {}: {} {what}", t.name, source.path.display()));
            }
            let kind = if anon { MappingKind::Anon } else { MappingKind::File };
            let (mapping, page) = engine.add_mapping(kind, memcg, o.indices.iter().copied())?;
            first.get_or_insert(page);
            objects.push(o.first_page);
            // A place on the device is the place in the file, and files lie far apart.
            let base = (instances.len() as u64) << 32;
            hw.tables.add_extent(page, o.indices.len() as u32, source.device.filter(|_| !anon), base);
            if let Some(extent) = hw.tables.extents.last_mut() {
                extent.group = group_number(t.memcg);
            }
            if anon {
                hw.tables.add_space(instances.len());
            }
            instances.push(Instance { mapping, anon, of: Owner::Trace(n), memcg: t.memcg });
        }
        let (trace, first) = (Rc::new(trace), first.unwrap_or(PageId(0)));
        let objects = objects.into();
        scripts.push(Some(Script {
            trace,
            first,
            first_extent,
            objects,
            at: 0,
            timed: source.timed,
            mincore: source.mincore,
            start_ns: 0,
        }));
    }
    Ok(scripts)
}

fn load_trace(source: &TraceSpec) -> Result<Trace, String> {
    if source.path.as_os_str() == "-" {
        return Err("trace: a scenario cannot read a trace from standard input".into());
    }
    let mut records =
        refault_trace::open(&source.path, &refault_trace::OpenOptions::default()).map_err(|e| e.to_string())?;
    let options = LoadOptions { keep_time: source.timed, ..LoadOptions::default() };
    let trace = Trace::load(&mut *records, &options).map_err(|e| e.to_string())?;
    if source.timed && trace.time_ns.as_ref().is_none_or(|t| t.iter().all(|&at| at == 0)) {
        return Err(format!("trace: {} has no times; leave timed out", source.path.display()));
    }
    Ok(trace)
}
