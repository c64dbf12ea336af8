//! Formats of others that are plain columns: a description each.
//!
//! Definitions: the publishers' descriptions beside the traces (Alibaba's block-traces, SNIA's
//! IOTTA repository for Tencent, Systor '17, FIU, CAMELab and IBM COS, the UMass trace repository
//! for SPC, twitter/cache-trace, CacheLib's documentation of Meta's traces, libCacheSim's), the
//! manuals of fio, MQSim, Ramulator, SST's Prospero and Dinero IV, and the example pinatrace of
//! Intel's Pin.

use crate::columns::Columns;
use crate::seen::Seen;

/// A description with a name.
struct Named {
    name: &'static str,
    separator: &'static str,
    /// Lines at the front that are passed over.
    skip_lines: u64,
    columns: &'static str,
    /// The kind of trace, in words.
    what: &'static str,
    seen: Option<Seen>,
}

const BLOCKS: Option<Seen> = Some(Seen::BlockRequests);
const OBJECTS: Option<Seen> = Some(Seen::Objects);

/// Words of Meta's caches; others are passed over.
macro_rules! meta {
    ($front:literal, $back:literal) => {
        concat!($front, ",op=GET+GET_LEASE|SET+SET_LEASE|*,", $back)
    };
}

const fn named(
    name: &'static str,
    separator: &'static str,
    columns: &'static str,
    what: &'static str,
    seen: Option<Seen>,
) -> Named {
    Named { name, separator, skip_lines: 0, columns, what, seen }
}

const ALL: [Named; 20] = [
    named("alibaba", ",", "object,op=R|W,offset:bytes,size:bytes,time:us", "Alibaba's block traces of 2020", BLOCKS),
    named("tencent", ",", "time:s,offset:512,size:512,op=0|1,object", "Tencent's block traces", BLOCKS),
    named(
        "systor",
        ",",
        "time:s,_,op=R|W|*,object,offset:bytes,size:bytes",
        "Systor '17: enterprise block traces",
        BLOCKS,
    ),
    named("spc", ",", "object,offset:512,size:bytes,op=R|W,time:s,*", "SPC-1, UMass: block traces", BLOCKS),
    named(
        "twitter",
        ",",
        "time:s,key,_,_,_,op=get+gets|set+add+replace+cas+append+prepend+incr+decr|delete,_",
        "Twitter's cache traces; each key is a page",
        OBJECTS,
    ),
    named(
        "meta-kv",
        ",",
        meta!("key", "_,count,*"),
        "Meta's cache traces (CacheLib); each key is a page, count times",
        OBJECTS,
    ),
    named(
        "meta-kv-2022",
        ",",
        meta!("time:s,key,_", "count,*"),
        "Meta's cache traces of 2022 and later; each key is a page, count times",
        OBJECTS,
    ),
    named("libcachesim-csv", ",", "time:s,key,_", "csv of libCacheSim, time,id,size; each id is a page", OBJECTS),
    named("libcachesim-txt", "space", "key", "text of libCacheSim, an id a line; each id is a page", OBJECTS),
    named("camelab", "space", "time:s,op=R|W,offset:512,size:512,_", "CAMELab's block traces", BLOCKS),
    named("mqsim", "space", "time:ns,object,offset:512,size:512,op=1|0", "traces of MQSim", BLOCKS),
    named("fiu", "space", "time:ns,_,task,offset:512,size:512,op=R|W,*", "FIU's block traces", BLOCKS),
    named(
        "ibm-cos",
        "space",
        "time:ms,op=REST.GET.OBJECT+REST.HEAD.OBJECT|REST.PUT.OBJECT+REST.COPY.OBJECT|REST.DELETE.OBJECT,key,*",
        "IBM's object store; each object is a page",
        OBJECTS,
    ),
    Named {
        name: "fio-iolog-2",
        separator: "space",
        skip_lines: 1,
        columns: "object,op=read|write|add+open+close+sync+datasync+trim+wait,offset:bytes,size:bytes",
        what: "iolog of fio, version 2",
        seen: None,
    },
    Named {
        name: "fio-iolog-3",
        separator: "space",
        skip_lines: 1,
        columns: "time:us,object,op=read|write|add+open+close+sync+datasync+trim+wait,offset:bytes,size:bytes",
        what: "iolog of fio, version 3",
        seen: None,
    },
    named(
        "fio-log",
        ",",
        "time:ms,_,op=0|1|2,size:bytes,offset:bytes,_,*",
        "logs of fio with log_offset=1 (write_lat_log and others)",
        None,
    ),
    named("dinero", "space", "op=0+2|1,offset:hex", "traces of Dinero: accesses to memory", None),
    named("pinatrace", "space", "_,op=R|W,offset:hex", "output of Pin's pinatrace: accesses to memory", None),
    named("prospero", "space", "_,op=R|W,offset:bytes,size:bytes", "traces of Prospero: accesses to memory", None),
    named("ramulator", "space", "offset:hex,op=R|W", "traces of Ramulator: accesses to memory behind caches", None),
];

/// Descriptions of accesses to memory.
const OF_MEMORY: [&str; 4] = ["dinero", "pinatrace", "prospero", "ramulator"];

impl Columns {
    /// The description of a format of others by its name.
    pub fn named(name: &str) -> Option<Columns> {
        let Named { separator, skip_lines, columns, seen, .. } = ALL.iter().find(|named| named.name == name)?;
        let columns = Columns::new(columns, separator, *skip_lines).expect("a test reads each");
        Some(Columns { is_memory: OF_MEMORY.contains(&name), seen: *seen, ..columns })
    }

    /// Formats of others that are read as columns: name, columns, and what each is.
    pub fn all_named() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        ALL.iter().map(|named| (named.name, named.columns, named.what))
    }
}
