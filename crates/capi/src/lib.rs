//! The pager for C: what `refault.h` declares, and says. Every function here is one of the header;
//! a test compares both.
//!
//! All pointers come from a caller that Rust knows nothing of. Their use is sound by the
//! contract of the header, which is that of C in general: a pointer is null, or it points to what
//! its type says, of which nobody else changes anything meanwhile; a handle comes from the function
//! that makes it, and is not used after the one that ends it. Null is looked for everywhere. No
//! panic gets out.
#![deny(missing_docs)]

mod error;
mod file;
mod region;

use std::ffi::{CStr, c_char};

pub use error::{refault_last_errno, refault_last_error};
pub use file::*;
pub use region::*;

use crate::error::Failure;

/// The version of the library, as text.
#[unsafe(no_mangle)]
pub extern "C" fn refault_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero byte"),
    };
    VERSION.as_ptr()
}

/// Borrows the value that a pointer of the caller points to.
///
/// # Safety
/// It is null, or points to a `T` that nobody changes while the reference lives.
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's contract.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format!("{what} is null")))
}

/// A text of the caller; none for null.
///
/// # Safety
/// It is null, or points to a text that ends in a zero byte and that nobody changes while the
/// reference lives.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    // SAFETY: it is not null; the rest is the caller's contract.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })
}

/// Puts a value where the caller wants it, if it wants it.
///
/// # Safety
/// The pointer is null, or a `T` may be written to where it points.
pub(crate) unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's contract.
        unsafe { to.write(value) };
    }
}

/// Fills the first `size` bytes of the caller's struct, which may be of an older header.
///
/// # Safety
/// `to` is null, or `size` bytes may be written to where it points.
pub(crate) unsafe fn give_prefix<T: Copy>(to: *mut T, size: usize, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("stats is null".into()));
    }
    let n = size.min(size_of::<T>());
    // SAFETY: `value` has `n` bytes, all of which are initialised (structs of `u64` have no
    // padding); the rest is the caller's contract, and a local value does not overlap with what is
    // the caller's.
    unsafe { std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), to.cast::<u8>(), n) };
    Ok(())
}

/// A size of the caller as one of Rust. The largest is that of Rust.
pub(crate) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The policy of that name.
pub(crate) fn policy(name: Option<&CStr>) -> Result<refault_pager::Policy, Failure> {
    let Some(name) = name else { return Ok(refault_pager::Policy::Mglru) };
    name.to_string_lossy().parse().map_err(|e| Failure::config(format!("policy: {e}")))
}

/// How the program says that it accesses its memory, as the header numbers it.
pub(crate) fn access_advice(advice: std::ffi::c_int) -> Result<refault_pager::AccessAdvice, Failure> {
    use refault_pager::AccessAdvice;
    Ok(match advice {
        0 => AccessAdvice::Normal,
        1 => AccessAdvice::Random,
        2 => AccessAdvice::Sequential,
        3 => AccessAdvice::NoReuse,
        other => return Err(Failure::argument(format!("there is no advice on accesses {other}"))),
    })
}

/// Whether a struct of the caller is the one that this library knows.
pub(crate) fn check_struct<T>(bytes: u64, name: &str) -> Result<(), Failure> {
    let known = size_of::<T>();
    match bytes == known as u64 {
        true => Ok(()),
        false => Err(Failure::argument(format!(
            "{name} has {bytes} bytes, {known} are expected; fill it in by {name}_init, with the refault.h of this library"
        ))),
    }
}

/// A range of bytes, as Rust has it.
pub(crate) fn range(offset: u64, length: u64) -> Result<std::ops::Range<usize>, Failure> {
    let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
    let Some(end) = end else {
        return Err(Failure::from(refault_pager::Error::Range(format!(
            "there are no {length} bytes from {offset} on"
        ))));
    };
    Ok(offset as usize..end)
}
