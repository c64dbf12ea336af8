//! Objects that are too many to name each: the ones that matter least are summed by folder.

use std::collections::BTreeMap;

/// Objects that are together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectFolder {
    /// The name of one, or its folder with how many they are.
    pub(super) name: String,
    /// Places of the objects.
    pub(super) objects: Vec<usize>,
}

/// At most `most` groups of objects, in the order of their first objects. `names` are in the order
/// of importance; at least half of `most` stay single.
pub(super) fn together(names: &[&str], most: usize) -> Vec<ObjectFolder> {
    let alone = |at: usize| ObjectFolder { name: names[at].to_owned(), objects: vec![at] };
    if names.len() <= most {
        return (0..names.len()).map(alone).collect();
    }
    // Where few folders take the others there is room for more names.
    let most_folders = most - most / 2;
    let single = most - by_folder(names, most / 2, most_folders).len();
    let folders = by_folder(names, single, most_folders);
    let of_folder = |(folder, mut objects): (&str, Vec<usize>)| {
        objects.sort_unstable();
        match (objects.as_slice(), folder) {
            (&[at], _) => alone(at),
            (_, "") => ObjectFolder { name: format!("{} others", objects.len()), objects },
            (_, folder) => ObjectFolder { name: format!("{folder}/ ({} others)", objects.len()), objects },
        }
    };
    let mut all: Vec<_> = (0..single).map(alone).chain(folders.into_iter().map(of_folder)).collect();
    all.sort_by_key(|of| of.objects[0]);
    all
}

/// Places from `from` on, by folder, of at most `most` folders.
fn by_folder<'a>(names: &[&'a str], from: usize, most: usize) -> BTreeMap<&'a str, Vec<usize>> {
    let mut folders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, name) in names.iter().enumerate().skip(from) {
        folders.entry(parent(name)).or_default().push(at);
    }
    while folders.len() > most {
        // The deepest folders are the smallest: each is merged into its parent.
        let deepest = folders.keys().map(|folder| depth(folder)).max().unwrap_or(0);
        if deepest == 0 {
            break;
        }
        let mut above: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (folder, objects) in folders {
            let folder = if depth(folder) == deepest { parent(folder) } else { folder };
            above.entry(folder).or_default().extend(objects);
        }
        folders = above;
    }
    folders
}

/// The folder of a path; of what is in none, nothing.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn depth(folder: &str) -> usize {
    if folder.is_empty() { 0 } else { folder.matches('/').count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_many_small_files_are_summed_by_folder() {
        let names = ["/a/hot", "memory", "/w/1/x", "/w/1/y", "/w/2/z", "/w/2/u", "/b/c", "heap"];
        let told = |most| {
            let all = together(&names, most);
            let mut places: Vec<_> = all.iter().flat_map(|of| of.objects.clone()).collect();
            places.sort_unstable();
            assert_eq!(places, (0..names.len()).collect::<Vec<_>>());
            assert!(all.len() <= most);
            all.into_iter().map(|of| of.name).collect::<Vec<_>>()
        };
        assert_eq!(told(8), names);
        assert_eq!(told(7), ["/a/hot", "memory", "/w/1/x", "/w/1/y", "/w/2/ (2 others)", "/b/c", "heap"]);
        assert_eq!(told(4), ["/a/hot", "memory", "/w/1/x", "5 others"]);
        assert_eq!(told(2), ["/a/hot", "7 others"]);
    }

    #[test]
    fn names_without_folders_are_told_as_far_as_there_is_room() {
        let names: Vec<_> = (0..1000).map(|n| n.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let all = together(&names, 201);
        assert_eq!((all.len(), all[199].name.as_str(), all[200].name.as_str()), (201, "199", "800 others"));
    }
}
