//! Swap devices at the end of a run, as JSON.

use refault_mm::{SwapList, SwapMap};
use serde_json::{Value, json};

/// A device as JSON; its clusters only if `all`. Names are the names of a scenario.
pub fn json(map: &SwapMap, name: Option<&str>, all: bool) -> Value {
    let d = &map.device;
    let mut value = json!({
        "number": d.number,
        "priority": d.priority,
        "pages": d.pages,
        "usable_pages": d.usable_pages,
        "used_pages": d.used_pages,
        "peak_pages": d.peak_pages,
        "higher_used_percent": d.higher_used_percent,
    });
    if let Some(name) = name {
        value["device"] = name.into();
    }
    if all {
        let lists = map.lists();
        let of = |list: SwapList| lists.iter().find(|l| l.0 == list).map_or(0, |l| l.1);
        let orders = |list: fn(u8) -> SwapList| (0..10).map(|o| of(list(o))).collect::<Vec<_>>();
        value["cluster_pages"] = map.cluster_pages.into();
        value["clusters"] = json!({
            "free": of(SwapList::Free),
            "nonfull": orders(SwapList::Nonfull),
            "frag": orders(SwapList::Frag),
            "full": of(SwapList::Full),
            "discard": of(SwapList::Discard),
        });
        value["clusters_by_usage"] = map.usage_histogram().to_vec().into();
        value["free_places"] = map.free_places.to_vec().into();
    }
    value
}
