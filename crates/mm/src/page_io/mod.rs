//! Pages on their way to swap: the stores in front of the devices, and the writes that go on to
//! them.
//!
//! | file | what is in it |
//! |---|---|
//! | `store` | the zero bitmap and zswap, as pages go out |
//! | `zswap_writeback` | compressed pages that go on to the device |
//!
//! It may call: `swap_cache`, `writeback`, `memcontrol`. It is called by: `reclaim`, `alloc`.

use crate::memory::Memory;

pub(crate) mod store;
pub(crate) mod zswap_writeback;

/// The stores in front of the swap devices. All may change: what zswap writes back is charged, and
/// written.
pub(crate) struct PageIo<'a, W> {
    pub(crate) mem: &'a mut Memory,
    pub(crate) world: &'a mut W,
}
