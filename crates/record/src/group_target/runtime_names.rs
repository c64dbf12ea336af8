//! Names of containers and pods of this machine, from files that their runtimes leave.
//!
//! | file | names |
//! |---|---|
//! | `/var/lib/docker/containers/ID/config.v2.json` | Docker's |
//! | `…/containers/storage/overlay-containers/containers.json` | Podman's, of root and of this user |
//! | `/var/lib/nerdctl/*/names/NAMESPACE/NAME` | nerdctl's |
//! | `/var/log/pods/NAMESPACE_NAME_UID` | pods |
//! | `/var/log/containers/POD_NAMESPACE_NAME-ID.log` | containers of pods |

use super::GroupOf;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Names of the containers and pods of a machine, by id.
#[derive(Clone, Debug, Default)]
pub struct RuntimeNames {
    containers: Vec<(String, String)>,
    pods: Vec<(String, String)>,
}

impl RuntimeNames {
    /// Names on this machine, as far as they may be read.
    pub fn read() -> RuntimeNames {
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        RuntimeNames::below(Path::new("/"), home.as_deref())
    }

    fn below(root: &Path, home: Option<&Path>) -> RuntimeNames {
        let mut names = RuntimeNames::default();
        for (id, folder) in entries(&root.join("var/lib/docker/containers")) {
            let name = json(&folder.join("config.v2.json")).and_then(|about| Some(about["Name"].as_str()?.to_owned()));
            names.containers.extend(name.map(|name| (id, name.trim_start_matches('/').to_owned())));
        }
        let storage = [Some(root.join("var/lib")), home.map(|home| home.join(".local/share"))];
        for folder in storage.into_iter().flatten() {
            let all = json(&folder.join("containers/storage/overlay-containers/containers.json"));
            for about in all.as_ref().and_then(Value::as_array).into_iter().flatten() {
                let id = about["id"].as_str().unwrap_or_default();
                let called = about["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
                names.containers.extend(called.map(|name| (id.to_owned(), name.to_owned())));
            }
        }
        for (_, store) in entries(&root.join("var/lib/nerdctl")) {
            for (name, file) in entries(&store.join("names")).into_iter().flat_map(|(_, folder)| entries(&folder)) {
                let id = fs::read_to_string(file).unwrap_or_default();
                names.containers.push((id.trim().to_owned(), name));
            }
        }
        for (entry, _) in entries(&root.join("var/log/pods")) {
            names.pods.extend(pod(&entry));
        }
        for (entry, _) in entries(&root.join("var/log/containers")) {
            names.containers.extend(container_of_pod(&entry));
        }
        names.containers.retain(|(id, name)| !id.is_empty() && !name.is_empty());
        names
    }

    fn of(&self, by: GroupOf) -> &[(String, String)] {
        match by {
            GroupOf::Container => &self.containers,
            GroupOf::Pod => &self.pods,
            GroupOf::Unit => &[],
        }
    }

    /// The ids of all that are so called: `NAME`, or `NAMESPACE/NAME`.
    pub(super) fn ids(&self, by: GroupOf, name: &str) -> Vec<String> {
        let is_it = |known: &str| known == name || known.rsplit_once('/').is_some_and(|(_, last)| last == name);
        let mut ids: Vec<String> =
            self.of(by).iter().filter(|(_, known)| is_it(known)).map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// The name of an id.
    pub(super) fn name(&self, by: GroupOf, id: &str) -> Option<&str> {
        self.of(by).iter().find(|(known, _)| known == id).map(|(_, name)| name.as_str())
    }

    #[cfg(test)]
    pub(super) fn with(containers: &[(&str, &str)], pods: &[(&str, &str)]) -> RuntimeNames {
        let own = |all: &[(&str, &str)]| all.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect();
        RuntimeNames { containers: own(containers), pods: own(pods) }
    }
}

/// Names and paths of what is in a folder.
fn entries(folder: &Path) -> Vec<(String, std::path::PathBuf)> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// `NAMESPACE_NAME_UID`.
fn pod(entry: &str) -> Option<(String, String)> {
    let (space, rest) = entry.split_once('_')?;
    let (name, uid) = rest.rsplit_once('_')?;
    Some((uid.to_owned(), format!("{space}/{name}")))
}

/// `POD_NAMESPACE_NAME-ID.log`: the pod and the name of the container in it.
fn container_of_pod(entry: &str) -> Option<(String, String)> {
    let (about, id) = entry.strip_suffix(".log")?.rsplit_once('-')?;
    let (pod, rest) = about.split_once('_')?;
    let (_, name) = rest.split_once('_')?;
    Some((id.to_owned(), format!("{pod}/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_where_runtimes_leave_them() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below")).expect("ours");
            fs::write(path, text).expect("ours");
        };
        put("var/lib/docker/containers/d1/config.v2.json", r#"{"ID":"d1","Name":"/web"}"#);
        put("var/lib/docker/containers/d2/config.v2.json", "no JSON");
        let podman = "containers/storage/overlay-containers/containers.json";
        put(&format!("var/lib/{podman}"), r#"[{"id":"p1","names":["db","db-alias"]},{"id":"p2"}]"#);
        put(&format!("home/.local/share/{podman}"), r#"[{"id":"p3","names":["mine"]}]"#);
        put("var/lib/nerdctl/1935db59/names/default/cache", "n1\n");
        put("var/log/pods/shop_front-7d9_0a1b/0.log", "");
        put("var/log/containers/front-7d9_shop_nginx-c1.log", "");
        let names = RuntimeNames::below(root.path(), Some(&root.path().join("home")));
        let id = |by, name| names.ids(by, name).join(",");
        for (name, want) in
            [("web", "d1"), ("db-alias", "p1"), ("mine", "p3"), ("cache", "n1"), ("front-7d9/nginx", "c1")]
        {
            assert_eq!(id(GroupOf::Container, name), want, "{name}");
        }
        assert_eq!(
            (id(GroupOf::Pod, "front-7d9"), id(GroupOf::Pod, "shop/front-7d9")),
            ("0a1b".to_owned(), "0a1b".to_owned())
        );
        assert_eq!(
            (id(GroupOf::Container, "other"), names.name(GroupOf::Container, "p1")),
            (String::new(), Some("db"))
        );
    }
}
