//! Errors as numbers, with a line of text for each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use refault_pager::Error;

/// All went well.
pub const REFAULT_OK: c_int = 0;
/// A setting is impossible.
pub const REFAULT_ERR_CONFIG: c_int = -1;
/// The machine does not allow it.
pub const REFAULT_ERR_UNSUPPORTED: c_int = -2;
/// A limit cannot be met.
pub const REFAULT_ERR_LIMIT: c_int = -3;
/// There are no such bytes.
pub const REFAULT_ERR_RANGE: c_int = -4;
/// A system call failed.
pub const REFAULT_ERR_IO: c_int = -5;
/// The caller passed nonsense.
pub const REFAULT_ERR_ARGUMENT: c_int = -6;
/// A defect.
pub const REFAULT_ERR_INTERNAL: c_int = -7;

/// Failure of a call: its code, the errno if it has one, and the message.
pub(crate) struct Failure {
    code: c_int,
    errno: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn argument(text: String) -> Failure {
        Failure { code: REFAULT_ERR_ARGUMENT, errno: 0, text }
    }

    pub(crate) fn config(text: String) -> Failure {
        Failure { code: REFAULT_ERR_CONFIG, errno: 0, text }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        let (code, errno) = match &e {
            Error::Config(_) => (REFAULT_ERR_CONFIG, 0),
            Error::Unsupported(_) => (REFAULT_ERR_UNSUPPORTED, 0),
            Error::Limit(_) => (REFAULT_ERR_LIMIT, 0),
            Error::Range(_) => (REFAULT_ERR_RANGE, 0),
            Error::Io { source, .. } => (REFAULT_ERR_IO, source.raw_os_error().unwrap_or(0)),
            _ => (REFAULT_ERR_INTERNAL, 0),
        };
        Failure { code, errno, text: e.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<(CString, c_int)> = RefCell::default();
}

/// The process that made a handle. A child of fork has neither its memory nor its threads, and its
/// locks are held by nobody who is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner(u32);

impl Owner {
    pub(crate) fn this() -> Owner {
        Owner(std::process::id())
    }

    pub(crate) fn check(self) -> Result<(), Failure> {
        match self.0 == std::process::id() {
            true => Ok(()),
            false => Err(Failure::argument("it is of the process that this one was forked from".into())),
        }
    }
}

/// Does it, and makes a number of what comes of it. A panic stops here.
pub(crate) fn guard(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // A panic leaves only the pager's own state half done, whose lock is poisoned by it: the next
    // call aborts.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let text = format!("defect: {}", what.unwrap_or("a panic without a word"));
        Err(Failure { code: REFAULT_ERR_INTERNAL, errno: 0, text })
    });
    let Err(failure) = result else { return REFAULT_OK };
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has no last error any more.
    _ = LAST.try_with(|last| *last.borrow_mut() = (text, failure.errno));
    failure.code
}

/// Message of the last failed call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn refault_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().0.as_ptr()).unwrap_or(c"".as_ptr())
}

/// The errno of the last failed call of this thread, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn refault_last_errno() -> c_int {
    LAST.try_with(|last| last.borrow().1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_what_it_was() {
        assert_eq!(guard(|| panic!("number {}", 7)), REFAULT_ERR_INTERNAL);
        // SAFETY: the text lives until the next call of this thread that fails.
        let text = unsafe { std::ffi::CStr::from_ptr(refault_last_error()) };
        assert_eq!(text.to_str(), Ok("defect: number 7"));
        assert_eq!(guard(|| Ok(())), REFAULT_OK);
    }

    #[test]
    fn errors_of_the_system_keep_their_number() {
        let source = std::io::Error::from_raw_os_error(28);
        assert_eq!(guard(|| Err(Error::Io { what: "writing".into(), source }.into())), REFAULT_ERR_IO);
        assert_eq!(refault_last_errno(), 28);
        let other = std::thread::spawn(|| refault_last_errno()).join();
        assert_eq!(other.ok(), Some(0), "each thread has its own");
    }
}
