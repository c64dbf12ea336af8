//! The manager's side of an agent, and of the socket that agents come to.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::abi::{self, AgentHello, CALLS, Control, NewMemory, Order, WINDOW};
use crate::calls::{self, Call};
use crate::store::PageBuf;
use crate::threads::nanoseconds;
use crate::uffd::PAGE;
use refault_syscalls::newer;

/// Time without an answer after which an agent counts as stopped, or without a processor: others
/// need not wait for it. As a rule it answers in microseconds.
const ANSWERS_WITHIN: Duration = Duration::from_millis(10);

/// A connection to an agent.
#[derive(Debug)]
pub(super) struct Link(OwnedFd);

impl Link {
    pub(super) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The greeting, and the descriptor that came with it.
    pub(super) fn greeting(&self) -> io::Result<(AgentHello, Option<OwnedFd>)> {
        let mut hello = AgentHello::default();
        let mut control = [0u64; 4];
        let mut iov = libc::iovec { iov_base: (&raw mut hello).cast(), iov_len: size_of::<AgentHello>() };
        // SAFETY: a message header is plain data; all that it refers to lives until the call is
        // done; the kernel writes numbers into the greeting, which any numbers are valid for, and
        // new descriptors into the control message.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &raw mut iov;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            let receive = || libc::recvmsg(self.raw(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
            let got = calls::number(Call::ReadHello, receive)?;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            let mut fd = None;
            if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
                let raw = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
                fd = Some(OwnedFd::from_raw_fd(raw));
            }
            if got as usize != size_of::<AgentHello>() || hello.magic != abi::HELLO_MAGIC {
                return Err(io::Error::other("not a greeting"));
            }
            Ok((hello, fd))
        }
    }

    /// Sends an order, with up to two descriptors.
    pub(super) fn order(&self, kind: u32, count: usize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut order = Order { kind, count: count as u32 };
        let mut control = [0u64; 4];
        let mut iov = libc::iovec { iov_base: (&raw mut order).cast(), iov_len: size_of::<Order>() };
        // SAFETY: as above; the control message has room for two descriptors.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &raw mut iov;
            message.msg_iovlen = 1;
            if !fds.is_empty() {
                let bytes = (fds.len() * size_of::<RawFd>()) as u32;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(bytes) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for (i, fd) in fds.iter().enumerate() {
                    data.add(i).write_unaligned(fd.as_raw_fd());
                }
            }
            loop {
                let send = || libc::sendmsg(self.raw(), &raw const message, libc::MSG_NOSIGNAL);
                match calls::number(Call::SendOrder, send) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => return other.map(drop),
                }
            }
        }
    }

    /// Whether there is an answer to an order, for which it waits a moment, or not at all
    /// (`MSG_DONTWAIT`). An error: the process is gone.
    fn answer(&self, flags: libc::c_int) -> io::Result<bool> {
        let mut byte = 0u8;
        loop {
            // SAFETY: one byte of this frame.
            let receive = || unsafe { libc::recv(self.raw(), (&raw mut byte).cast(), 1, flags) };
            match calls::number(Call::ReadAnswer, receive) {
                Ok(1) => return Ok(true),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sets how long answers are waited for.
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        let time = libc::timeval { tv_sec: 0, tv_usec: patience.subsec_micros().into() };
        let (at, len) = ((&raw const time).cast(), size_of::<libc::timeval>() as libc::socklen_t);
        // SAFETY: the structure lives until the call is done, which is told its size.
        let set = || unsafe { libc::setsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, at, len) };
        calls::number(Call::SetPatience, set).map(drop)
    }

    /// The process at the other end.
    pub(super) fn pid(&self) -> io::Result<i32> {
        // SAFETY: the structure is plain data, filled by the call, which is told its size.
        unsafe {
            let mut peer: libc::ucred = zeroed();
            let mut len = size_of::<libc::ucred>() as libc::socklen_t;
            let at = (&raw mut peer).cast();
            let ask = || libc::getsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_PEERCRED, at, &raw mut len);
            calls::number(Call::PeerOf, ask)?;
            Ok(peer.pid)
        }
    }
}

/// The socket that agents come to, in the abstract name space, and the one beside it.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd, Option<OwnedFd>);

impl Listener {
    /// With this name. `beside`: one that listens already.
    pub(super) fn new(name: &str, beside: Option<OwnedFd>) -> io::Result<Listener> {
        // SAFETY: the address is plain data and as long as said; the descriptor is new and ours.
        unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            let fd = calls::number(Call::Socket, || libc::socket(libc::AF_UNIX, kind, 0))?;
            let fd = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_un = zeroed();
            address.sun_family = libc::AF_UNIX as libc::sa_family_t;
            for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
                *to = from as libc::c_char;
            }
            let len = (size_of::<libc::sa_family_t>() + 1 + name.len()) as libc::socklen_t;
            calls::number(Call::Bind, || libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
            calls::number(Call::Listen, || libc::listen(fd.as_raw_fd(), 128))?;
            Ok(Listener(fd, beside))
        }
    }

    /// The next agent. An error of kind `InvalidInput` after [`Listener::close`].
    pub(super) fn accept(&self) -> io::Result<Link> {
        let pollfd = self.next();
        // SAFETY: no address is asked for; the descriptor is new and ours.
        unsafe {
            let (nobody, none) = (std::ptr::null_mut(), std::ptr::null_mut());
            let accept = || libc::accept4(pollfd, nobody, none, libc::SOCK_CLOEXEC);
            let fd = calls::number(Call::Accept, accept)?;
            Ok(Link(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Waits until somebody is at one of the sockets: that one.
    fn next(&self) -> RawFd {
        let pollfd = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative number is none.
        let mut both = [pollfd(self.0.as_raw_fd()), pollfd(self.1.as_ref().map_or(-1, |beside| beside.as_raw_fd()))];
        // SAFETY: the array is as long as said.
        unsafe { libc::poll(both.as_mut_ptr(), both.len() as libc::nfds_t, -1) };
        both.iter().find(|pollfd| pollfd.revents != 0).map_or(self.0.as_raw_fd(), |pollfd| pollfd.fd)
    }

    /// Nobody is let in any more; who waits in [`Listener::accept`] goes on.
    pub(super) fn close(&self) {
        for fd in std::iter::once(&self.0).chain(&self.1) {
            // SAFETY: the descriptor is ours, and stays open.
            unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
        }
    }
}

/// Answer of an agent to an order.
pub(super) enum Answer {
    /// Outcome of each page.
    Outcomes(Vec<u32>),
    /// No answer for this long: what the order asks for may still be done.
    Open { waited_ns: u64 },
}

/// An agent that is at work.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) link: Link,
    /// Address of the memory that the agent and the manager both map.
    shared: usize,
    memory: OwnedFd,
    /// Pages of the window that are filled: they stay so until they are emptied.
    filled: usize,
    /// Whether the last answer was late: then the agent is not waited for.
    pub(super) is_late: bool,
}

impl Agent {
    /// Agent of a connection; makes the memory that the agent and the manager both map.
    pub(super) fn new(link: Link) -> io::Result<Agent> {
        link.set_patience(ANSWERS_WITHIN)?;
        // SAFETY: the descriptor is new and ours, the mapping is new,
        // where the kernel chooses.
        unsafe {
            let fd = calls::number(Call::MemFd, || newer::memfd_create(c"refault"))? as RawFd;
            let memory = OwnedFd::from_raw_fd(fd);
            calls::number(Call::Truncate, || libc::ftruncate(fd, abi::SHARED_BYTES as libc::off_t))?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let map = || libc::mmap(std::ptr::null_mut(), abi::SHARED_BYTES, protection, libc::MAP_SHARED, fd, 0);
            let at = calls::number(Call::Map, || map() as isize)?;
            Ok(Agent { link, shared: at as usize, memory, filled: 0, is_late: false })
        }
    }

    /// Lets the program go on; a forked one gets its userfaultfd.
    pub(super) fn go(&self, uffd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let memory = std::os::fd::AsFd::as_fd(&self.memory);
        match uffd {
            Some(uffd) => self.link.order(abi::GO, 0, &[memory, uffd]),
            None => self.link.order(abi::GO, 0, &[memory]),
        }
    }

    /// Has it do something to pages, at most [`WINDOW`]; what became of each. An error: the process
    /// is gone.
    pub(super) fn carry_out(&mut self, kind: u32, addresses: &[usize]) -> io::Result<Answer> {
        let n = addresses.len().min(WINDOW);
        let control = self.shared as *mut Control;
        // SAFETY: the shared memory is mapped as long as `self` lives; the agent touches it between
        // an order and its answer only, and a program that writes to it can change numbers, which
        // any numbers are valid for.
        unsafe {
            for (i, &a) in addresses[..n].iter().enumerate() {
                (&raw mut (*control).address[i]).write_volatile(a as u64);
                (&raw mut (*control).outcome[i]).write_volatile(libc::EIO as u32);
            }
        }
        self.filled = self.filled.max(n);
        self.link.order(kind, n, &[])?;
        let (flags, waited) = if self.is_late { (libc::MSG_DONTWAIT, Duration::ZERO) } else { (0, ANSWERS_WITHIN) };
        Ok(match self.link.answer(flags)? {
            true => Answer::Outcomes(self.outcomes(n)),
            false => Answer::Open { waited_ns: nanoseconds(waited) },
        })
    }

    /// Late answer to an order about `n` pages; `None`: it has not come yet.
    pub(super) fn late_answer(&self, n: usize) -> io::Result<Option<Vec<u32>>> {
        Ok(self.link.answer(libc::MSG_DONTWAIT)?.then(|| self.outcomes(n)))
    }

    fn outcomes(&self, n: usize) -> Vec<u32> {
        let control = self.shared as *const Control;
        // SAFETY: as above.
        unsafe { (0..n.min(WINDOW)).map(|i| (&raw const (*control).outcome[i]).read_volatile()).collect() }
    }

    /// Pages of the last order, a bit for each, that had to be made the process's own first.
    pub(super) fn unshared(&self) -> u64 {
        let control = self.shared as *const Control;
        // SAFETY: as above.
        unsafe { (&raw const (*control).unshared).read_volatile() }
    }

    /// Bytes of the memory that both sides map, without pages of the window that were never filled.
    pub(super) fn shared_bytes(&self) -> usize {
        abi::SHARED_BYTES - (WINDOW - self.filled) * PAGE
    }

    /// Empties the window: its content is of no use after an order.
    pub(super) fn empty_window(&mut self) {
        // SAFETY: the pages of the window, which the agent fills anew before they are read.
        unsafe { libc::madvise((self.shared + PAGE) as *mut _, WINDOW * PAGE, libc::MADV_REMOVE) };
        self.filled = 0;
    }

    /// NewMemory through which threads of the program and the manager tell each other things.
    fn new_memory(&self) -> &NewMemory {
        // SAFETY: the shared memory is mapped as long as `self` lives; all in it is atomic, and any
        // numbers are valid for it.
        unsafe { &*((self.shared + abi::NEW_MEMORY_AT) as *const NewMemory) }
    }

    /// Sets how many bytes of unwatched memory the program may make; `None`: none, everything is
    /// watched.
    pub(super) fn allow(&self, bytes: Option<u64>) {
        let bytes = bytes.map_or(2 * abi::WATCHED, |b| b.min(1 << 50) as i64);
        self.new_memory().allowance.store(bytes, Ordering::Release);
    }

    /// Rest of the allowance.
    pub(super) fn allowed(&self) -> u64 {
        self.new_memory().allowance.load(Ordering::Acquire).max(0) as u64
    }

    /// Range that a thread of the program asks to be seen to, if that is whole pages of memory.
    pub(super) fn asked(&self, entry: usize) -> Option<std::ops::Range<usize>> {
        const MOST: usize = 1 << 47;
        let [start, bytes] = &self.new_memory().range[entry % CALLS];
        let (start, bytes) = (start.load(Ordering::Acquire) as usize, bytes.load(Ordering::Acquire) as usize);
        let is_memory = start < MOST && bytes < MOST - start && bytes > 0 && (start | bytes).is_multiple_of(PAGE);
        is_memory.then(|| start..start + bytes)
    }

    /// Copies a page of the window that was moved there.
    ///
    /// # Safety
    /// `to` must be a page of memory that nobody else refers to.
    pub(super) unsafe fn take_page(&self, i: usize, to: usize) {
        assert!(i < WINDOW);
        let from = self.shared + (1 + i) * PAGE;
        // SAFETY: the window is mapped; the rest is the caller's contract.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, size_of::<PageBuf>()) };
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone.
        unsafe { libc::munmap(self.shared as *mut _, abi::SHARED_BYTES) };
    }
}
