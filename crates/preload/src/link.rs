//! The agent's socket: packets, with descriptors.

use crate::abi::{AgentHello, Order};
use crate::agent::Name;
use crate::sys::{self, call3};

/// Room for a control message with two descriptors: a header of 16 bytes, and they.
#[repr(C, align(8))]
struct Ancillary {
    len: usize,
    level: i32,
    kind: i32,
    fds: [i32; 2],
}

const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
const MSG_NOSIGNAL: usize = 0x4000;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;

#[repr(C)]
struct IoVec {
    base: usize,
    len: usize,
}

#[repr(C)]
struct MsgHdr {
    name: usize,
    name_len: u32,
    iov: *mut IoVec,
    iov_len: usize,
    control: usize,
    control_len: usize,
    flags: i32,
}

/// A name that a socket has.
#[repr(C)]
struct Address {
    family: u16,
    path: Name,
}

const AF_UNIX: u16 = 1;

/// The file of the other socket: the first two numbers of the name are those of the manager and of
/// its descriptor.
fn socket_file(name: &Name) -> Name {
    const BEFORE: usize = b"refault-".len();
    let mut path = [0; 108];
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        bytes.iter().for_each(|&b| {
            path[end] = b;
            end += 1;
        });
    };
    let mut numbers = name[BEFORE..].split(|b| !b.is_ascii_digit());
    put(b"/proc/");
    put(numbers.next().unwrap_or(b""));
    put(b"/fd/");
    put(numbers.next().unwrap_or(b""));
    path
}

/// A connected socket.
#[derive(Clone, Copy)]
pub struct Link(usize);

/// Message that came: the order, and descriptors (-1: none).
pub struct Received {
    pub order: Order,
    pub fds: [i32; 2],
}

impl Link {
    /// To the socket of that name in the abstract name space; zeros behind the name do not belong
    /// to it. In another network namespace there is none of that name: then to the one beside it.
    pub fn connect(name: &Name) -> Result<Link, u32> {
        let mut address = Address { family: AF_UNIX, path: [0; 108] };
        let len = name.iter().position(|&b| b == 0).unwrap_or(name.len()).min(107);
        address.path[1..1 + len].copy_from_slice(&name[..len]);
        // SOCK_SEQPACKET | SOCK_CLOEXEC.
        // SAFETY: the call makes a new descriptor.
        let fd = unsafe { call3(sys::SOCKET, AF_UNIX as usize, 5 | 0x80000, 0) };
        if fd < 0 {
            return Err(-fd as u32);
        }
        // SAFETY: the address is as long as said.
        let mut done = unsafe { call3(sys::CONNECT, fd as usize, &raw const address as usize, 3 + len) };
        if done < 0 {
            let in_file = Address { family: AF_UNIX, path: socket_file(name) };
            // SAFETY: likewise.
            done = unsafe {
                call3(sys::CONNECT, fd as usize, &raw const in_file as usize, core::mem::size_of::<Address>())
            };
        }
        if done < 0 { Err(-done as u32) } else { Ok(Link(fd as usize)) }
    }

    /// Sends the greeting, with a descriptor if it is not negative.
    pub fn greet(&self, hello: &AgentHello, fd: i32) -> bool {
        let mut control = Ancillary { len: 20, level: SOL_SOCKET, kind: SCM_RIGHTS, fds: [fd, 0] };
        let mut iov = IoVec { base: core::ptr::from_ref(hello) as usize, len: size_of::<AgentHello>() };
        let (at, len) = if fd < 0 { (0, 0) } else { (&raw mut control as usize, 24) };
        let message =
            MsgHdr { name: 0, name_len: 0, iov: &raw mut iov, iov_len: 1, control: at, control_len: len, flags: 0 };
        // SAFETY: all parts of the message live until the call is done.
        unsafe { call3(sys::SENDMSG, self.0, &raw const message as usize, MSG_NOSIGNAL) > 0 }
    }

    /// Waits for an order. `None`: the manager is gone.
    pub fn receive(&self) -> Option<Received> {
        loop {
            let mut order = Order::default();
            let mut control = Ancillary { len: 0, level: 0, kind: 0, fds: [-1; 2] };
            let mut iov = IoVec { base: &raw mut order as usize, len: size_of::<Order>() };
            let mut message = MsgHdr {
                name: 0,
                name_len: 0,
                iov: &raw mut iov,
                iov_len: 1,
                control: &raw mut control as usize,
                control_len: size_of::<Ancillary>(),
                flags: 0,
            };
            // SAFETY: all parts of the message live until the call is done.
            let got = unsafe { call3(sys::RECVMSG, self.0, &raw mut message as usize, MSG_CMSG_CLOEXEC) };
            if got == sys::EINTR {
                continue;
            }
            if got != size_of::<Order>() as isize {
                return None;
            }
            let n = if message.control_len >= 20 { (control.len - 16) / 4 } else { 0 };
            let fd = |i| if i < n { control.fds[i] } else { -1 };
            return Some(Received { order, fds: [fd(0), fd(1)] });
        }
    }

    /// Says that an order was carried out.
    pub fn answer(&self) -> bool {
        let byte = 1u8;
        loop {
            // SAFETY: one byte of this frame.
            let sent = unsafe { call3(sys::WRITE, self.0, &raw const byte as usize, 1) };
            if sent != sys::EINTR {
                return sent == 1;
            }
        }
    }
}
