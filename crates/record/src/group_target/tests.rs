use super::*;

/// Ids of 64 digits.
fn id(first: &str) -> String {
    format!("{first:0<64}")
}

fn found(by: GroupOf, name: &str, paths: &[&str]) -> Result<String, String> {
    let names = RuntimeNames::with(
        &[(&id("aa11"), "web"), (&id("bb22"), "front-7d9/nginx"), (&id("dd44"), "gone")],
        &[("0a1b2c3d-1111-2222-3333-444455556666", "shop/front-7d9")],
    );
    find_group(by, name, &paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), &names)
}

#[test]
fn containers_are_found_in_the_groups_of_every_runtime() {
    let full = id("aa11");
    let layouts = [
        format!("/docker/{full}"),
        format!("/system.slice/docker-{full}.scope"),
        format!("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{full}.scope"),
        format!("/machine.slice/libpod-{full}.scope"),
        format!("/libpod_parent/libpod-{full}"),
        format!("/default/{full}"),
        format!("/system.slice/nerdctl-{full}.scope"),
        format!("/kubepods/burstable/pod0a1b2c3d-1111-2222-3333-444455556666/{full}"),
        format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/\
             cri-containerd-{full}.scope"
        ),
        format!("/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/crio-{full}.scope"),
        format!(
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/\
             kubelet-kubepods-besteffort-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-{full}.scope"
        ),
    ];
    for path in &layouts {
        let below = format!("{path}/container");
        let watcher = path.replace("libpod-", "libpod-conmon-").replace("crio-", "crio-conmon-");
        let other = format!("/docker/{}", id("cc33"));
        let mut paths = vec!["/", "/system.slice", "/system.slice/cron.service", &below, path, &other];
        if watcher != *path {
            paths.push(&watcher);
        }
        for name in ["aa11", &full, "web", &full[..12]] {
            assert_eq!(found(GroupOf::Container, name, &paths), Ok(path.clone()), "{name}");
        }
    }
}

#[test]
fn groups_have_the_names_of_their_containers() {
    let names = RuntimeNames::with(
        &[(&id("aa11"), "web"), (&id("bb22"), "front-7d9/nginx")],
        &[("0a1b2c3d-1111-2222-3333-444455556666", "shop/front-7d9")],
    );
    let slice = "/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice";
    for (path, want) in [
        (format!("/docker/{}", id("aa11")), Some("web (aa1100000000)")),
        (format!("/docker/{}/init.scope", id("aa11")), Some("web (aa1100000000)")),
        (format!("{slice}/crio-{}.scope", id("bb22")), Some("front-7d9/nginx (bb2200000000)")),
        (slice.to_owned(), Some("shop/front-7d9 (0a1b2c3d-1111-2222-3333-444455556666)")),
        (format!("/docker/{}", id("cc33")), Some("cc3300000000")),
        ("/system.slice/nginx.service".to_owned(), None),
    ] {
        assert_eq!(group_label(&path, &names).as_deref(), want, "{path}");
    }
}

#[test]
fn containers_that_have_names_in_the_place_of_ids() {
    for path in ["/lxc.payload.web1", "/lxc/web1", "/lxc.payload/web1", "/machine.slice/systemd-nspawn@web1.service"] {
        assert_eq!(found(GroupOf::Container, "web1", &["/", path, &format!("{path}/init.scope")]), Ok(path.to_owned()));
    }
}

#[test]
fn pods_are_found_by_uid_and_name() {
    let uid = "0a1b2c3d-1111-2222-3333-444455556666";
    let slice = uid.replace('-', "_");
    for path in [
        format!("/kubepods/burstable/pod{uid}"),
        format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice"),
        format!("/kubepods.slice/kubepods-pod{slice}.slice"),
    ] {
        let below = format!("{path}/{}", id("aa11"));
        let other = "/kubepods/podffffffff-1111-2222-3333-444455556666";
        for name in [uid, "0a1b", "front-7d9", "shop/front-7d9"] {
            assert_eq!(found(GroupOf::Pod, name, &["/kubepods", &path, &below, other]), Ok(path.clone()), "{name}");
        }
    }
}

#[test]
fn units_are_found_by_name() {
    let paths = [
        "/",
        "/system.slice",
        "/system.slice/nginx.service",
        "/system.slice/system-postgresql.slice",
        "/system.slice/system-postgresql.slice/postgresql@15-main.service",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service",
        "/user.slice/user-1001.slice/user@1001.service/app.slice/sync.service",
    ];
    let unit = |name| found(GroupOf::Unit, name, &paths);
    assert_eq!(unit("nginx"), Ok(paths[2].to_owned()));
    assert_eq!(unit("nginx.service"), Ok(paths[2].to_owned()));
    assert_eq!(unit("postgresql@15-main"), Ok(paths[4].to_owned()));
    assert_eq!(unit("system.slice"), Ok("/system.slice".to_owned()));
    let told = unit("postgresql").expect_err("none is so called");
    assert!(told.starts_with("--unit postgresql: there is none; nearest: postgresql@15-main.service"), "{told}");
}

#[test]
fn what_is_not_there_names_what_is() {
    let (a, b) = (format!("/docker/{}", id("aa11")), format!("/docker/{}", id("aa22")));
    let paths = ["/docker", &*a, &*b];
    let told = found(GroupOf::Container, "wed", &paths).expect_err("none");
    assert!(told.contains("--container wed: there is none; nearest: web (aa1100000000), aa2200000000"), "{told}");
    // One that has ended has a name, and no group.
    assert!(found(GroupOf::Container, "gone", &paths).is_err());
    let told = found(GroupOf::Container, "aa", &paths).expect_err("too short");
    assert!(told.contains("there is none"), "{told}");
    let paths = ["/docker", &*a, &*b.replace("aa22", "aa11b")];
    let told = found(GroupOf::Container, "aa11", &paths).expect_err("two");
    assert!(told.contains("is more than one: web (aa1100000000) (/docker/aa11"), "{told}");
    let told = found(GroupOf::Pod, "x", &["/"]).expect_err("none");
    assert_eq!(told, "--pod x: there are no pods among the memory cgroups here");
}
