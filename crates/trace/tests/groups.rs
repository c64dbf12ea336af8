//! Traces with memory cgroups: who a page belongs to, and that nothing else of a trace depends on
//! it.

use proptest::prelude::*;
use refault_trace::generate::Workload;
use refault_trace::{Header, LoadOptions, ObjectInfo, ObjectKind, Op, Record, RecordSource, Records, Summary, Trace};
use std::collections::{BTreeMap, HashMap};

fn header(memcgs: &[&str]) -> Header {
    let mut header = Header::new(refault_trace::Format::Native);
    header.objects = vec![ObjectInfo::new("a", ObjectKind::File), ObjectInfo::new("b", ObjectKind::Anon)];
    header.memcgs = memcgs.iter().map(|&name| name.to_owned()).collect();
    header
}

fn load(memcgs: &[&str], records: &[Record], keep_memcg: bool) -> Trace {
    let mut source = Records::new("t.test", header(memcgs), records.to_vec());
    Trace::load(&mut source, &LoadOptions { keep_memcg, ..LoadOptions::default() }).expect("loads")
}

fn touch(memcg: u32, object: u32, page: u64) -> Record {
    Record { memcg, object, ..Record::touch(page, Op::READ) }
}

#[test]
fn a_page_belongs_to_who_touches_it_first() {
    let records = [touch(0, 0, 5), touch(1, 0, 6), touch(1, 0, 5), touch(0, 0, 6), touch(1, 1, 0), touch(0, 0, 4)];
    let trace = load(&["web", "batch/a"], &records, true);
    assert_eq!(trace.groups, ["/batch/a", "/web"]);
    assert_eq!(trace.memcg.as_deref(), Some(&[1, 0, 0, 1, 0, 1][..]));
    let objects: Vec<_> = trace.objects.iter().map(|o| (&*o.name, o.group, o.first_page, o.indices.clone())).collect();
    assert_eq!(objects, [("a", 0, 0, vec![6]), ("a", 1, 1, vec![4, 5]), ("b", 0, 3, vec![0])]);
    let pages: Vec<_> = trace.accesses.iter().map(|a| a.page()).collect();
    assert_eq!(pages, [2, 0, 2, 0, 3, 1]);
    // A loader that does not ask gets whole objects.
    let whole = load(&["web", "batch/a"], &records, false);
    assert_eq!((whole.objects.len(), whole.groups.len(), whole.memcg), (2, 0, None));
}

#[test]
fn generated_groups_have_names_and_the_rest_is_the_root() {
    let phases = ["300: A:loop:9:memcg=/web; B:loop:9:memcg=/a/b; C:loop:9", "10: A:loop:9:memcg=/a/b"];
    let generator = || Workload::parse(&phases, 1).and_then(|w| w.generator("t")).expect("makes sense");
    assert_eq!(generator().header().memcgs, ["/web", "/a/b", "/"]);
    let summary = Summary::of(&mut generator()).expect("reads");
    let groups: Vec<_> = summary.groups.iter().map(|g| (&*g.path, g.pages)).collect();
    assert_eq!(groups, [("/", 9), ("/a/b", 9), ("/web", 9)]);
    assert_eq!(summary.groups.iter().map(|g| g.accesses).sum::<u64>(), 310);
    // The key changes nothing but the group: the accesses are those of the workload without it.
    let without = phases.map(|phase| phase.replace(":memcg=/web", "").replace(":memcg=/a/b", ""));
    let mut plain = Workload::parse(&without, 1).and_then(|w| w.generator("t")).expect("makes sense");
    assert!(plain.header().memcgs.is_empty());
    let (mut with, mut chunk, mut other) = (generator(), Vec::new(), Vec::new());
    while with.next_chunk(&mut chunk).expect("reads") {
        assert!(plain.next_chunk(&mut other).expect("reads"));
        chunk.iter_mut().for_each(|record| record.memcg = 0);
        assert_eq!(chunk, other);
    }
    assert!(Summary::of(&mut Workload::parse(&without, 1).unwrap().generator("t").unwrap()).unwrap().groups.is_empty());
}

proptest! {
    #[test]
    fn loading_with_groups_loses_nothing(records in prop::collection::vec((0..4u32, 0..2u32, 0..40u64, 1..5u32), 1..200)) {
        let records: Vec<_> =
            records.into_iter().map(|(memcg, object, page, pages)| Record { pages, ..touch(memcg, object, page) }).collect();
        let names = ["/x", "/y", "y"];
        let trace = load(&names, &records, true);
        let paths = ["/x", "/y", "/y", "/3"];
        let mut owners: HashMap<(u32, u64), &str> = HashMap::new();
        let mut at = trace.accesses.iter().zip(trace.memcg.as_deref().expect("kept"));
        for r in &records {
            for page in r.page..r.page + u64::from(r.pages) {
                let (access, &group) = at.next().expect("as many accesses");
                prop_assert_eq!(&trace.groups[usize::from(group)], paths[r.memcg as usize]);
                let object = &trace.objects[trace.object_of(access.page())];
                let owner = *owners.entry((r.object, page)).or_insert(paths[r.memcg as usize]);
                prop_assert_eq!(&trace.groups[usize::from(object.group)], owner);
                prop_assert_eq!(object.indices[(access.page() - object.first_page) as usize], page);
                prop_assert_eq!(&object.name, ["a", "b"][r.object as usize]);
            }
        }
        prop_assert!(at.next().is_none() && trace.footprint_pages() as usize == owners.len());
        let mut source = Records::new("t.test", header(&names), records);
        let summary = Summary::of(&mut source).expect("reads");
        let mut pages: BTreeMap<&str, u64> = BTreeMap::new();
        owners.values().for_each(|&owner| *pages.entry(owner).or_default() += 1);
        for group in &summary.groups {
            prop_assert_eq!(group.pages, pages.get(&*group.path).copied().unwrap_or(0));
        }
    }
}
