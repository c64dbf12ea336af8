//! In which ways each call can fail.

use CallFault::*;
use refault_pager::calls::{Call, CallFault};

const NAMES: &[(i32, &str)] = &[
    (libc::EAGAIN, "EAGAIN"),
    (libc::EEXIST, "EEXIST"),
    (libc::ENOENT, "ENOENT"),
    (libc::ESRCH, "ESRCH"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EFAULT, "EFAULT"),
    (libc::EBUSY, "EBUSY"),
    (libc::EINVAL, "EINVAL"),
    (libc::EPERM, "EPERM"),
    (libc::EACCES, "EACCES"),
    (libc::EMFILE, "EMFILE"),
    (libc::ENOSYS, "ENOSYS"),
    (libc::EINTR, "EINTR"),
    (libc::EIO, "EIO"),
    (libc::ENOSPC, "ENOSPC"),
    (libc::EDQUOT, "EDQUOT"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::EPIPE, "EPIPE"),
    (libc::ECONNRESET, "ECONNRESET"),
];

/// Errors of the ioctls of userfaultfd.
const OF_UFFD: [i32; 8] =
    [libc::EAGAIN, libc::EEXIST, libc::ENOENT, libc::ESRCH, libc::ENOMEM, libc::EFAULT, libc::EBUSY, libc::EINVAL];

fn errors(errnos: &[i32]) -> Vec<CallFault> {
    errnos.iter().map(|&e| Fails(e)).collect()
}

/// As long as a device that resets itself takes; longer than what is waited for room.
pub const TEN_SECONDS: u64 = 10_000;

/// The ways in which a call can fail.
pub fn faults(call: Call) -> Vec<CallFault> {
    let mut all = match call {
        Call::OpenUffd => errors(&[libc::EPERM, libc::ENOMEM, libc::EMFILE, libc::ENOSYS]),
        Call::Api => errors(&[libc::EINVAL, libc::EPERM, libc::EFAULT]),
        Call::Register | Call::Unregister | Call::Wake | Call::Poison | Call::Protect | Call::Probe => errors(&OF_UFFD),
        Call::Copy | Call::Zero => [errors(&OF_UFFD), vec![Short(0)]].concat(),
        Call::Move => {
            let odd =
                vec![Short(0), Short(8192), DoneButFails(libc::EEXIST), DoneButFails(libc::EIO), Loses(libc::EIO)];
            [errors(&OF_UFFD), odd].concat()
        }
        Call::ReadFaults => errors(&[libc::EAGAIN, libc::EINTR, libc::EIO, libc::EINVAL]),
        Call::Map => errors(&[libc::ENOMEM, libc::EAGAIN]),
        Call::Unmap => errors(&[libc::ENOMEM, libc::EINVAL]),
        Call::Discard | Call::Advise => errors(&[libc::EAGAIN, libc::ENOMEM, libc::EINVAL]),
        Call::ForbidWrites => errors(&[libc::ENOMEM, libc::EACCES]),
        Call::OpenPagemap => errors(&[libc::EACCES, libc::EMFILE, libc::ENOENT]),
        Call::ReadPagemap => [errors(&[libc::EIO, libc::EINTR, libc::ENOMEM]), vec![Short(0), Short(3)]].concat(),
        Call::ScanPagemap => errors(&[libc::EINTR, libc::ENOMEM, libc::EFAULT, libc::EINVAL, libc::EPERM]),
        Call::Spawn => errors(&[libc::EAGAIN]),
        Call::OpenSwap => {
            errors(&[libc::EACCES, libc::ENOSPC, libc::EMFILE, libc::EIO, libc::EINVAL, libc::EOPNOTSUPP])
        }
        Call::SwapRead | Call::FileRead => {
            let errors = errors(&[libc::EIO, libc::EINTR, libc::EAGAIN, libc::ENOMEM, libc::EINVAL]);
            [errors, vec![Short(0), Short(512), Flips]].concat()
        }
        Call::SwapWrite | Call::FileWrite => {
            let errnos = [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EINTR, libc::EAGAIN, libc::EINVAL];
            [errors(&errnos), vec![Short(0), Short(512), DoneButFails(libc::EIO), Loses(0)]].concat()
        }
        Call::RingSetup => errors(&[libc::ENOSYS, libc::EPERM, libc::ENOMEM]),
        Call::RingEnter => errors(&[libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::EINVAL, libc::ENOMEM]),
        Call::RingResult => {
            [errors(&[libc::EIO, libc::ENOSPC, libc::EINTR, libc::EAGAIN]), vec![Short(0), Short(512)]].concat()
        }
        Call::EpollCreate | Call::EventFd | Call::Socket | Call::MemFd => errors(&[libc::EMFILE, libc::ENOMEM]),
        Call::EpollAdd | Call::EpollChange => errors(&[libc::ENOMEM, libc::ENOSPC, libc::EEXIST]),
        Call::EpollWait => errors(&[libc::EINTR, libc::EINVAL]),
        Call::EventWrite => errors(&[libc::EINTR, libc::EAGAIN]),
        Call::Bind | Call::Listen => errors(&[libc::EACCES, libc::EINVAL]),
        Call::Accept => errors(&[libc::EMFILE, libc::EINTR, libc::ENOMEM]),
        Call::PeerOf | Call::SetPatience => errors(&[libc::EINVAL]),
        Call::ReadHello => errors(&[libc::EINTR, libc::ECONNRESET, libc::ENOMEM]),
        Call::ReadAnswer => errors(&[libc::EINTR, libc::EAGAIN, libc::ECONNRESET, libc::ENOMEM]),
        Call::SendOrder => errors(&[libc::EINTR, libc::EPIPE, libc::ECONNRESET, libc::ENOMEM]),
        Call::Truncate => errors(&[libc::ENOSPC, libc::EINTR]),
        Call::ReadProc => errors(&[libc::ESRCH, libc::EACCES, libc::ENOMEM, libc::EMFILE]),
        Call::Random => errors(&[libc::ENOSYS, libc::EAGAIN]),
        Call::OpenLatency => errors(&[libc::EACCES, libc::ENOENT, libc::EMFILE]),
        Call::AskLatency => errors(&[libc::EINVAL, libc::EIO]),
        Call::Start => errors(&[libc::EAGAIN, libc::ENOENT]),
        Call::FileOpen => errors(&[libc::EACCES, libc::ENOENT, libc::EMFILE, libc::EINVAL]),
        Call::FileLength => errors(&[libc::EIO, libc::ENOMEM]),
        Call::FileSync => [errors(&[libc::EIO, libc::ENOSPC, libc::EINTR]), vec![DoneButFails(libc::EIO)]].concat(),
    };
    // The device says that it wrote what it did not, or gives other bytes than it has: of a mapped
    // file nobody can know.
    if matches!(call, Call::FileRead | Call::FileWrite) {
        all.retain(|f| !matches!(f, Flips | Loses(_)));
    }
    all.extend([Stalls(50), Dies]);
    if matches!(call, Call::SwapRead | Call::SwapWrite) {
        all.push(Stalls(TEN_SECONDS));
    }
    all
}

/// Name of an allocation in the table.
pub const ALLOCATION: (&str, &str) = ("allocation of memory", "fails");

/// The calls of agents: their names, numbers, requests, and errors.
pub fn agents() -> Vec<(&'static str, u16, u8, Vec<i32>)> {
    let ioctl = libc::SYS_ioctl;
    let of = |name, call: i64, request, errnos: &[i32]| (name, call as u16, request, errnos.to_vec());
    vec![
        of("agent: mmap", libc::SYS_mmap, 0, &[libc::ENOMEM]),
        of("agent: clone", libc::SYS_clone, 0, &[libc::EAGAIN]),
        of("agent: unshare", libc::SYS_unshare, 0, &[libc::ENOMEM]),
        of("agent: userfaultfd", libc::SYS_userfaultfd, 0, &[libc::EMFILE, libc::ENOMEM]),
        of("agent: UFFDIO_API", ioctl, 0x3F, &[libc::EINVAL, libc::EPERM]),
        of("agent: socket", libc::SYS_socket, 0, &[libc::EMFILE]),
        of("agent: connect", libc::SYS_connect, 0, &[libc::ECONNRESET, libc::EAGAIN]),
        of("agent: sendmsg", libc::SYS_sendmsg, 0, &[libc::EPIPE, libc::ENOMEM, libc::EINTR]),
        of("agent: recvmsg", libc::SYS_recvmsg, 0, &[libc::EINTR, libc::ECONNRESET, libc::ENOMEM]),
        of("agent: write", libc::SYS_write, 0, &[libc::EINTR, libc::EPIPE]),
        of("agent: UFFDIO_MOVE", ioctl, 5, &OF_UFFD),
        of("agent: UFFDIO_WRITEPROTECT", ioctl, 6, &OF_UFFD),
        of("agent: UFFDIO_UNREGISTER", ioctl, 1, &[libc::ENOMEM, libc::EINVAL]),
        of("agent: UFFDIO_REGISTER", ioctl, 0, &[libc::ENOMEM, libc::EINVAL, libc::EBUSY]),
        of("agent: madvise", libc::SYS_madvise, 0, &[libc::ENOMEM, libc::EAGAIN, libc::EINVAL]),
        of("agent: mincore", libc::SYS_mincore, 0, &[libc::EAGAIN, libc::ENOMEM]),
    ]
}

/// All that the table is about: what is called, and the ways in which it can fail.
pub fn rows() -> Vec<(&'static str, Vec<String>)> {
    let of_call = |&call: &Call| (call.name(), faults(call).into_iter().map(name).collect());
    let of_agents = agents().into_iter().map(|a| (a.0, a.3.into_iter().map(|e| name(Fails(e))).collect()));
    let allocation = (ALLOCATION.0, vec![ALLOCATION.1.into()]);
    Call::ALL.iter().map(of_call).chain(of_agents).chain([allocation]).collect()
}

/// Name of a fault in the table.
pub fn name(fault: CallFault) -> String {
    let errno = |e: i32| NAMES.iter().find(|n| n.0 == e).map_or_else(|| format!("error {e}"), |n| n.1.to_string());
    match fault {
        Fails(e) => errno(e),
        DoneButFails(e) => format!("done but {}", errno(e)),
        Loses(0) => "not done and no error".into(),
        Loses(e) => format!("content vanishes and {}", errno(e)),
        Short(0) => "nothing moved".into(),
        Short(n) => format!("stops after {n} bytes"),
        Flips => "a flipped bit".into(),
        Stalls(ms) if ms < 1000 => "a delay".into(),
        Stalls(ms) => format!("a delay of {} s", ms / 1000),
        Dies => "its thread dies".into(),
    }
}
