//! A system call in the place of another process, by `ptrace`: it stops for a moment, makes the
//! call, and goes on where it was. For what a process can only get for itself.
//!
//! Only on x86-64. A process that is traced already, that has stopped, or that filters its system
//! calls (seccomp), is left alone.

use libc::{c_void, pid_t};
#[cfg(target_arch = "x86_64")]
use refault_syscalls::maps::MapsLine;
use std::fs;
#[cfg(target_arch = "x86_64")]
use std::fs::File;
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A process that waits for a device cannot stop before it has an answer.
const LONGEST: Duration = Duration::from_secs(1);

/// A process that this one traces. It ends with this process.
#[derive(Debug)]
pub(super) struct Traced {
    pid: pid_t,
}

/// State of a process that is being stopped.
enum Stop {
    /// Where it was told to.
    There,
    /// For a signal, which it has to get.
    Signal(i32),
    /// Because somebody stopped all of it.
    Cgroup,
    NotYet,
    Gone,
}

impl Traced {
    /// Traces a process, and stops it. An error: it goes on as before.
    pub(super) fn stop(pid: u32) -> Result<Traced, String> {
        let pid = pid_t::try_from(pid).map_err(|_| "no such process".to_owned())?;
        refuse_filters(pid)?;
        // System calls are told from signals.
        request(libc::PTRACE_SEIZE, pid, 0, libc::PTRACE_O_TRACESYSGOOD as usize).map_err(|e| e.to_string())?;
        request(libc::PTRACE_INTERRUPT, pid, 0, 0).map_err(|e| e.to_string())?;
        let traced = Traced { pid };
        traced.wait(|traced, signal| request(libc::PTRACE_CONT, traced.pid, 0, signal as usize))?;
        Ok(traced)
    }

    /// Waits until it has stopped as it was told; what stops it for a signal goes on by `pass`.
    fn wait(&self, pass: impl Fn(&Traced, i32) -> io::Result<()>) -> Result<(), String> {
        let until = Instant::now() + LONGEST;
        loop {
            match self.look() {
                Stop::There => return Ok(()),
                Stop::Signal(signal) => pass(self, signal).map_err(|e| e.to_string())?,
                Stop::Cgroup => return Err("it is stopped".to_owned()),
                Stop::Gone => return Err("it ended".to_owned()),
                Stop::NotYet if Instant::now() > until => return Err("it does not stop".to_owned()),
                Stop::NotYet => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    fn look(&self) -> Stop {
        // SAFETY: all zeros are a value of this structure of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // A process that is looked at stays: the program's own end is for whoever started it.
        let how = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
        // SAFETY: the kernel fills the structure that the pointer is to.
        let done = unsafe { libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, how) };
        if done != 0 {
            return Stop::Gone;
        }
        // SAFETY: the kernel filled it as it does for children, or left the zeros.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        match (pid, info.si_code, status & 0xff, status >> 8) {
            (0, ..) => Stop::NotYet,
            (_, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED, ..) => Stop::Gone,
            (.., libc::SIGTRAP, libc::PTRACE_EVENT_STOP) => Stop::There,
            (.., libc::PTRACE_EVENT_STOP) => Stop::Cgroup,
            // A stop at a system call.
            (_, _, signal, 0) if signal == libc::SIGTRAP | 0x80 => Stop::There,
            (_, _, signal, _) => Stop::Signal(signal),
        }
    }

    /// Makes system calls in its place, and gives each result to the next.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn calls<R>(
        &self,
        with: impl FnOnce(&mut dyn FnMut([u64; 4]) -> io::Result<u64>) -> R,
    ) -> Result<R, String> {
        let fail = |e: io::Error| e.to_string();
        let place = instruction(self.pid)?;
        let before = self.registers().map_err(fail)?;
        let mask = self.block_signals().map_err(fail)?;
        let mut call = |[number, first, second, third]: [u64; 4]| {
            let registers = libc::user_regs_struct {
                rip: place,
                rax: number,
                // The process is in no call that would have to begin anew.
                orig_rax: u64::MAX,
                rdi: first,
                rsi: second,
                rdx: third,
                ..before
            };
            self.set_registers(&registers)?;
            // To its begin, and to its end.
            for _ in 0..2 {
                request(libc::PTRACE_SYSCALL, self.pid, 0, 0)?;
                let again = |t: &Traced, signal: i32| request(libc::PTRACE_SYSCALL, t.pid, 0, signal as usize);
                self.wait(again).map_err(io::Error::other)?;
            }
            match self.registers()?.rax as i64 {
                error @ -4095..0 => Err(io::Error::from_raw_os_error(-error as i32)),
                result => Ok(result as u64),
            }
        };
        let done = with(&mut call);
        self.set_registers(&begun_anew(before)).map_err(fail)?;
        self.set_signals(mask).map_err(fail)?;
        Ok(done)
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn calls<R>(
        &self,
        _: impl FnOnce(&mut dyn FnMut([u64; 4]) -> io::Result<u64>) -> R,
    ) -> Result<R, String> {
        Err("it works on x86-64 only".to_owned())
    }

    #[cfg(target_arch = "x86_64")]
    fn registers(&self) -> io::Result<libc::user_regs_struct> {
        // SAFETY: all zeros are a value of this structure of numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.pid, 0, (&raw mut registers).addr())?;
        Ok(registers)
    }

    #[cfg(target_arch = "x86_64")]
    fn set_registers(&self, registers: &libc::user_regs_struct) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.pid, 0, std::ptr::from_ref(registers).addr())
    }

    /// Blocks what can be, so that no handler runs in between; the mask as it was.
    #[cfg(target_arch = "x86_64")]
    fn block_signals(&self) -> io::Result<u64> {
        let mut mask = 0u64;
        request(libc::PTRACE_GETSIGMASK, self.pid, size_of::<u64>(), (&raw mut mask).addr())?;
        self.set_signals(u64::MAX)?;
        Ok(mask)
    }

    #[cfg(target_arch = "x86_64")]
    fn set_signals(&self, mask: u64) -> io::Result<()> {
        request(libc::PTRACE_SETSIGMASK, self.pid, size_of::<u64>(), std::ptr::from_ref(&mask).addr())
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // One that has not stopped yet cannot be let go before it does.
        let until = Instant::now() + LONGEST * 10;
        while request(libc::PTRACE_DETACH, self.pid, 0, 0).is_err() && Instant::now() < until {
            match self.look() {
                Stop::Gone => return,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

/// Filters may end a process for a call that it does not make itself.
fn refuse_filters(pid: pid_t) -> Result<(), String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|e| e.to_string())?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.map(str::trim) {
        None | Some("0") => Ok(()),
        _ => Err("it filters its system calls (seccomp)".to_owned()),
    }
}

/// A call that the stop interrupted begins anew, as the kernel does where no handler ran.
#[cfg(target_arch = "x86_64")]
fn begun_anew(mut registers: libc::user_regs_struct) -> libc::user_regs_struct {
    /// Numbers that the kernel calls ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and
    /// ERESTART_RESTARTBLOCK.
    const AGAIN: [i64; 3] = [-512, -513, -514];
    const GO_ON: i64 = -516;
    const BYTES: u64 = 2;
    let is_in_call = registers.orig_rax as i64 >= 0;
    let result = registers.rax as i64;
    if is_in_call && (AGAIN.contains(&result) || result == GO_ON) {
        registers.rax = if result == GO_ON { libc::SYS_restart_syscall as u64 } else { registers.orig_rax };
        registers.rip -= BYTES;
        registers.orig_rax = u64::MAX;
    }
    registers
}

/// The address of an instruction that makes a system call: the kernel's own page has one.
#[cfg(target_arch = "x86_64")]
fn instruction(pid: pid_t) -> Result<u64, String> {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let missing = || "its memory has no page of the kernel".to_owned();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| e.to_string())?;
    let page = maps.lines().filter_map(MapsLine::parse).find(|line| line.name == "[vdso]").ok_or_else(missing)?;
    let (start, end) = (page.addresses.start, page.addresses.end);
    let mut code = vec![0; end.saturating_sub(start).min(1 << 16) as usize];
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(|e| e.to_string())?;
    memory.read_exact_at(&mut code, start).map_err(|e| e.to_string())?;
    let at = code.windows(2).position(|two| two == SYSCALL).ok_or_else(missing)?;
    Ok(start + at as u64)
}

fn request(what: libc::c_uint, pid: pid_t, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests of this file either take numbers, or an address of a structure that is
    // theirs and that lives during the call. They change no memory of this process but that.
    let done = unsafe { libc::ptrace(what, pid, address as *mut c_void, data as *mut c_void) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn calls_are_made_in_the_place_of_another_process() {
        let mut child = Command::new("sleep").arg("0.3").stdout(Stdio::null()).spawn().expect("it starts");
        // Let it fall asleep: it is interrupted in the middle of a call.
        std::thread::sleep(Duration::from_millis(100));
        let traced = Traced::stop(child.id()).expect("traced");
        assert!(Traced::stop(child.id()).is_err(), "by one at a time");
        let (pid, wrong) = traced
            .calls(|call| {
                let pid = call([libc::SYS_getpid as u64, 0, 0, 0]).expect("a number");
                (pid, call([libc::SYS_close as u64, 9999, 0, 0]).expect_err("not open"))
            })
            .expect("made");
        assert_eq!((pid, wrong.raw_os_error()), (u64::from(child.id()), Some(libc::EBADF)));
        drop(traced);
        let begun = Instant::now();
        assert!(child.wait().expect("it ends").success(), "it sleeps on, and ends by itself");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn who_has_ended_is_not_traced() {
        let mut child = Command::new("true").spawn().expect("it starts");
        let pid = child.id();
        std::thread::sleep(Duration::from_millis(50));
        assert!(Traced::stop(pid).is_err(), "ended, and not waited for");
        assert!(child.wait().expect("its status is still there").success());
        assert!(Traced::stop(pid).is_err());
    }
}
