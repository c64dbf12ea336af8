//! Groups by the names that people have for them: a container, a unit of systemd, a pod.
//!
//! The layouts below are those of Docker, Podman, containerd, CRI-O, Kubernetes and systemd, each
//! with groups that it makes by itself (cgroupfs) and with those that systemd makes for it.
//! `runtime_names` reads what is known of containers and pods on this machine.

mod nearest;
mod runtime_names;

use nearest::nearest;
use std::collections::BTreeMap;

pub use runtime_names::RuntimeNames;

/// Kind of thing that a group belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOf {
    /// A container, by its name, its id, or how that begins.
    Container,
    /// A unit of systemd; a name without a kind is a service's.
    Unit,
    /// A pod of Kubernetes: `NAME`, `NAMESPACE/NAME`, its UID, or how that begins.
    Pod,
}

impl GroupOf {
    fn flag(self) -> &'static str {
        match self {
            GroupOf::Container => "--container",
            GroupOf::Unit => "--unit",
            GroupOf::Pod => "--pod",
        }
    }

    fn many(self) -> &'static str {
        match self {
            GroupOf::Container => "containers",
            GroupOf::Unit => "units",
            GroupOf::Pod => "pods",
        }
    }
}

/// Candidates that an error lists.
const MOST: usize = 5;

/// An id has so many digits at least where it is cut.
const SHORTEST: usize = 4;

/// Path of the memory cgroup of that name among these paths.
///
/// # Errors
/// One line: there is none, with the nearest names; or there are several, with their paths.
pub fn find_group(by: GroupOf, name: &str, paths: &[String], names: &RuntimeNames) -> Result<String, String> {
    // GroupOf id, or as the unit is called: the first group on the way that has it.
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for path in paths {
        if let Some((id, group)) = identified(by, path) {
            let shorter = known.get(&id).is_none_or(|known| group.len() < known.len());
            if shorter {
                known.insert(id, group);
            }
        }
    }
    let ids: Vec<String> = match by {
        GroupOf::Unit => known.keys().filter(|id| unit_is(id, name)).cloned().collect(),
        GroupOf::Container | GroupOf::Pod => {
            let exact: Vec<String> = names.ids(by, name).into_iter().filter(|id| known.contains_key(id)).collect();
            let begins = |id: &&String| *id == name || name.len() >= SHORTEST && id.starts_with(name);
            if exact.is_empty() { known.keys().filter(begins).cloned().collect() } else { exact }
        }
    };
    let label = |id: &String| label(by, id, names);
    match ids.as_slice() {
        [id] => Ok(known[id].clone()),
        [] if known.is_empty() => {
            Err(format!("{} {name}: there are no {} among the memory cgroups here", by.flag(), by.many()))
        }
        [] => {
            let labels: Vec<String> = known.keys().map(label).collect();
            let near = nearest(name, &labels, MOST).join(", ");
            let hint = if by == GroupOf::Container {
                "; a container whose name cannot be read is named by its id"
            } else {
                ""
            };
            Err(format!("{} {name}: there is none; nearest: {near}{hint}", by.flag()))
        }
        several => {
            let list: Vec<String> =
                several.iter().take(MOST).map(|id| format!("{} ({})", label(id), known[id])).collect();
            let more = if several.len() > MOST { ", ..." } else { "" };
            Err(format!("{} {name}: is more than one: {}{more}; give --cgroup PATH", by.flag(), list.join(", ")))
        }
    }
}

/// Name that people have for the group of a container or a pod; `None` for other groups, whose
/// paths say what they are.
pub fn group_label(path: &str, names: &RuntimeNames) -> Option<String> {
    let named = |of: GroupOf| identified(of, path).map(|(id, _)| label(of, &id, names));
    named(GroupOf::Container).or_else(|| named(GroupOf::Pod))
}

/// As a list has it: short, with the name that people have for it.
fn label(by: GroupOf, id: &str, names: &RuntimeNames) -> String {
    let short = match by {
        GroupOf::Container if is_hex(id) && id.len() == 64 => &id[..12],
        _ => id,
    };
    match names.name(by, id) {
        Some(name) => format!("{name} ({short})"),
        None => short.to_owned(),
    }
}

/// The id in a path, and the group that has it.
fn identified(by: GroupOf, path: &str) -> Option<(String, String)> {
    let mut end = 0;
    let mut above = "";
    for part in path.split('/').skip(1) {
        end += 1 + part.len();
        let id = match by {
            GroupOf::Container => container(above, part),
            GroupOf::Pod => pod(part),
            GroupOf::Unit => is_unit(part).then(|| part.to_owned()),
        };
        if let Some(id) = id {
            // A unit may hold others: the last one of the path is meant, as each has a path.
            let is_last = end == path.len();
            if by != GroupOf::Unit || is_last {
                return Some((id, path[..end].to_owned()));
            }
        }
        above = part;
    }
    None
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// RuntimeNames of scopes of systemd begin so, and the id follows.
const SCOPES: [&str; 6] = ["docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-", "podman-"];

/// Folders of runtimes that make groups by themselves.
const FOLDERS: [&str; 4] = ["docker", "libpod_parent", "lxc", "lxc.payload"];

/// The id of the container whose group is so called, below another one.
fn container(above: &str, part: &str) -> Option<String> {
    let bare = part.strip_suffix(".scope").or_else(|| part.strip_suffix(".service")).unwrap_or(part);
    if let Some(name) = bare.strip_prefix("lxc.payload.").or_else(|| bare.strip_prefix("systemd-nspawn@")) {
        return Some(name.to_owned());
    }
    // The watcher of a container has a group, too.
    if bare.contains("conmon") {
        return None;
    }
    if let Some(id) = SCOPES.iter().find_map(|scope| bare.strip_prefix(scope)) {
        return (!id.is_empty() && !id.contains('-') || is_id(id)).then(|| id.to_owned());
    }
    let is_below = FOLDERS.contains(&above) || is_pod_folder(above);
    (is_id(bare) || is_below && !part.contains('.') && pod(part).is_none()).then(|| bare.to_owned())
}

/// The whole id of a container of most runtimes.
fn is_id(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

fn is_pod_folder(part: &str) -> bool {
    part.starts_with("pod") && pod(part).is_some()
}

/// The id of a pod: `podUID`, or `kubepods-burstable-podUID.slice`, where systemd takes `-` apart.
fn pod(part: &str) -> Option<String> {
    let id = match part.strip_suffix(".slice") {
        Some(slice) if slice.contains("kubepods") => slice.rsplit_once("-pod")?.1.replace('_', "-"),
        Some(_) => return None,
        None => part.strip_prefix("pod")?.to_owned(),
    };
    let is_uid = id.len() >= 32 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uid.then_some(id)
}

/// Kinds of units that have groups.
const KINDS: [&str; 3] = [".service", ".scope", ".slice"];

fn is_unit(part: &str) -> bool {
    KINDS.iter().any(|kind| part.ends_with(kind))
}

/// Whether a unit is so called; without a kind it is a service.
fn unit_is(unit: &str, name: &str) -> bool {
    unit == name || !is_unit(name) && unit.strip_suffix(".service") == Some(name)
}

#[cfg(test)]
mod tests;
