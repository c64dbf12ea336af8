//! Calls that fail as they are told.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ARMED, MINE};

macro_rules! calls {
    ($($name:ident = $text:literal;)*) => {
        /// A call that can be made to fail.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Call {
            $(#[doc = $text] $name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &'static [Call] = &[$(Call::$name),*];

            /// Name, as a reader of the manual pages knows it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Call::$name => $text,)*
                }
            }
        }
    };
}

calls! {
    OpenUffd = "userfaultfd";
    Api = "UFFDIO_API";
    Register = "UFFDIO_REGISTER";
    Unregister = "UFFDIO_UNREGISTER";
    Wake = "UFFDIO_WAKE";
    Copy = "UFFDIO_COPY";
    Zero = "UFFDIO_ZEROPAGE";
    Move = "UFFDIO_MOVE";
    Poison = "UFFDIO_POISON";
    Protect = "UFFDIO_WRITEPROTECT";
    Probe = "UFFDIO_CONTINUE";
    ReadFaults = "read of a userfaultfd";
    Map = "mmap";
    Unmap = "munmap";
    Discard = "madvise(MADV_DONTNEED)";
    Advise = "madvise, other";
    ForbidWrites = "mprotect";
    OpenPagemap = "open of /proc/PID/pagemap";
    ReadPagemap = "read of /proc/PID/pagemap";
    ScanPagemap = "PAGEMAP_SCAN";
    Spawn = "start of a thread";
    OpenSwap = "open of the swap file";
    SwapRead = "preadv of the swap file";
    SwapWrite = "pwritev of the swap file";
    RingSetup = "io_uring_setup";
    RingEnter = "io_uring_enter";
    RingResult = "completion of io_uring";
    FileOpen = "open of the mapped file";
    FileLength = "fstat of the mapped file";
    FileRead = "pread of the mapped file";
    FileWrite = "pwrite of the mapped file";
    FileSync = "fdatasync of the mapped file";
    EpollCreate = "epoll_create1";
    EventFd = "eventfd";
    EpollAdd = "epoll_ctl";
    EpollChange = "epoll_ctl(EPOLL_CTL_MOD)";
    EpollWait = "epoll_wait";
    EventWrite = "write of an eventfd";
    Socket = "socket";
    Bind = "bind";
    Listen = "listen";
    Accept = "accept4";
    PeerOf = "getsockopt(SO_PEERCRED)";
    SetPatience = "setsockopt(SO_RCVTIMEO)";
    ReadHello = "recvmsg of a greeting";
    SendOrder = "sendmsg of an order";
    ReadAnswer = "recv of an answer";
    MemFd = "memfd_create";
    Truncate = "ftruncate";
    ReadProc = "read of a file of /proc/PID";
    Random = "getrandom";
    Start = "start of the program";
    OpenLatency = "open of /dev/cpu_dma_latency";
    AskLatency = "write to /dev/cpu_dma_latency";
}

/// A call that an agent makes in a program and that fails: agents count for themselves, and say on
/// standard error that they did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentFault {
    /// The number of the system call.
    pub call: u16,
    /// For `ioctl`, the last byte of the request; else 0.
    pub request: u8,
    /// Number of the call among these, from 0.
    pub n: u32,
    /// `errno` of the failure.
    pub errno: u8,
}

/// Way in which a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallFault {
    /// Nothing is done, and this is the error (`errno`).
    Fails(i32),
    /// The call is done, and yet fails with this `errno`.
    DoneButFails(i32),
    /// A move: the pages are in neither place afterwards, and this is the error. A write: nothing
    /// is written, and it says that all was. Other calls: as [`CallFault::Fails`].
    Loses(i32),
    /// A read or a write moves at most this many bytes; 0 bytes of a read are the end of the file.
    /// A change of pages stops after this many bytes. A file is reported with at most this many.
    Short(usize),
    /// One bit of the content read is flipped.
    Flips,
    /// The call takes this many milliseconds, and then goes well.
    Stalls(u64),
    /// The thread that makes it ends, if it is one of the pager's.
    Dies,
}

/// Calls that fail: asked with the call and its number among calls of its kind, from 0.
pub struct CallPlan {
    plan: Box<dyn Fn(Call, u64) -> Option<CallFault> + Send + Sync>,
    made: [AtomicU64; Call::ALL.len()],
    of_agents: Option<AgentFault>,
}

impl CallPlan {
    /// A plan.
    pub fn new(plan: impl Fn(Call, u64) -> Option<CallFault> + Send + Sync + 'static) -> CallPlan {
        CallPlan { plan: Box::new(plan), made: [const { AtomicU64::new(0) }; Call::ALL.len()], of_agents: None }
    }

    /// And one of the calls of agents, in each process of a tree, fails.
    pub fn with_agents(self, fault: AgentFault) -> CallPlan {
        CallPlan { of_agents: Some(fault), ..self }
    }

    /// Makes it the plan of this thread until the returned value is dropped. Threads of the pager
    /// that are started from this thread meanwhile have it, too, and keep it. It is never freed.
    pub fn enter(self) -> EnteredPlan {
        ARMED.store(true, Ordering::Relaxed);
        let plan: &'static CallPlan = Box::leak(Box::new(self));
        let before = MINE.replace((Some(plan), false));
        EnteredPlan { plan, before, _of_this_thread: std::marker::PhantomData }
    }

    /// Number of calls of a kind that were made.
    pub fn made(&self, call: Call) -> u64 {
        self.made[call as usize].load(Ordering::Relaxed)
    }

    pub(super) fn of_agents(&self) -> Option<AgentFault> {
        self.of_agents
    }

    pub(super) fn next(&self, call: Call) -> Option<CallFault> {
        let n = self.made[call as usize].fetch_add(1, Ordering::Relaxed);
        (self.plan)(call, n)
    }
}

impl fmt::Debug for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPlan").field("made", &self.made).finish_non_exhaustive()
    }
}

/// A plan that is in force on this thread.
#[derive(Debug)]
pub struct EnteredPlan {
    plan: &'static CallPlan,
    before: (Option<&'static CallPlan>, bool),
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl EnteredPlan {
    /// The plan.
    pub fn plan(&self) -> &'static CallPlan {
        self.plan
    }
}

impl Drop for EnteredPlan {
    fn drop(&mut self) {
        MINE.set(self.before);
    }
}
