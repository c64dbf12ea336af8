//! Facts that the system tells of the machine and of the limits of this process.

/// Bytes of a page of this machine.
pub fn page_bytes() -> u64 {
    // SAFETY: the call takes a number and gives one.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Limits of this process by name: soft, in bytes or counts; none is unlimited.
pub fn limits() -> Vec<(&'static str, Option<u64>)> {
    let get = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is filled by the call.
        let known = unsafe { libc::getrlimit(resource, &mut limit) } == 0 && limit.rlim_cur != libc::RLIM_INFINITY;
        known.then_some(limit.rlim_cur)
    };
    vec![
        ("address_space_bytes", get(libc::RLIMIT_AS)),
        ("file_size_bytes", get(libc::RLIMIT_FSIZE)),
        ("open_files", get(libc::RLIMIT_NOFILE)),
        ("processes", get(libc::RLIMIT_NPROC)),
        ("stack_bytes", get(libc::RLIMIT_STACK)),
    ]
}

/// A limit of this process by its name in [`limits`], if there is one.
pub fn limit(name: &str) -> Option<u64> {
    limits().into_iter().find(|limit| limit.0 == name)?.1
}
