//! Invariants after every step, by name.

use refault_mm::PageId;

use super::kernel::Kernel;
use super::threads::{Model, Thread};
use crate::core::{Core, State, used_pages};

/// A check: its name, and what it looks at.
pub(super) type Checker = (&'static str, fn(&View) -> Result<(), String>);

/// All of a run.
pub(super) struct View<'a> {
    pub(super) core: &'a Core<Kernel>,
    pub(super) kernel: &'a Kernel,
    pub(super) model: &'a Model,
    /// Places that are being discarded.
    pub(super) discarding: u64,
    /// A limit is being lowered, or the last word was that it cannot be met.
    pub(super) is_resizing: bool,
    /// Pages of the pager's own that were charged last, and whether there was room for all.
    pub(super) charged: (u64, bool),
    /// Some page may be lost: something went wrong that can lose one, or there was no room.
    pub(super) may_lose: bool,
}

/// After every step.
pub(super) const ALWAYS: &[Checker] = &[
    ("the structures are valid", is_valid),
    ("what is in place is what it should be", content_in_place),
    ("a page is lost only where something went wrong", losses),
    ("the budget is held", budget),
    ("each frame is charged once", charges),
    ("a slot holds the page that is out of memory", slots),
    ("no write is forgotten that the kernel told of", writes_told),
    ("no waiter is forgotten", waiters),
];

/// When nothing is under way any more.
pub(super) const AT_REST: &[Checker] =
    &[("nobody waits at rest", nobody_waits), ("nothing is under way", nothing_moves)];

fn is_valid(v: &View) -> Result<(), String> {
    v.core.validate()
}

/// Every byte is right, or its loss is said. Content elsewhere is looked at when it comes back.
fn content_in_place(v: &View) -> Result<(), String> {
    let kernel = v.kernel.0.borrow();
    for (page, frame) in kernel.pages.iter().enumerate() {
        let state = v.core.memory.state(page as u32);
        match frame {
            Some(_) if matches!(state, State::Mapped | State::Leaving) => {}
            Some(_) => return Err(format!("page {page} is in place and {state:?}")),
            None if state == State::Mapped => return Err(format!("page {page} is mapped and not in place")),
            None => {}
        }
        let is_lost = state == State::Poisoned;
        if kernel.poisoned[page] != is_lost {
            return Err(format!("page {page} is {state:?}; its loss is said: {}", kernel.poisoned[page]));
        }
    }
    Ok(())
}

fn losses(v: &View) -> Result<(), String> {
    let lost = v.core.memory.counts.poisoned;
    if lost > 0 && !v.may_lose {
        return Err(format!("{lost} pages were lost, and nothing went wrong"));
    }
    Ok(())
}

/// Frames in use and the pager's own memory, without frames that are being given back, are within
/// the limit.
fn budget(v: &View) -> Result<(), String> {
    if v.is_resizing {
        return Ok(());
    }
    let kernel = v.kernel.0.borrow();
    let useless = v.core.memory.discards.len() as u64 + v.discarding + kernel.garbage;
    let content = kernel.present() + kernel.filled() - useless;
    let is_beside = v.core.budget.overhead_beside;
    let own = if is_beside { 0 } else { v.core.own_bytes().div_ceil(crate::uffd::PAGE) as u64 };
    let max = v.core.budget.max_pages;
    if content + own > max {
        return Err(format!("{content} pages of content and {own} of the pager's own are more than {max}"));
    }
    Ok(())
}

/// The engine has as many frames in use as there are pages in memory, its page tables, and the
/// memory of the pager. It may have one or none for a lost page.
fn charges(v: &View) -> Result<(), String> {
    let m = &v.core.memory;
    let in_memory = [State::Mapped, State::Leaving, State::Staged, State::Writing, State::Written, State::Reading];
    let mut unread = 0;
    for page in 0..m.len() as u32 {
        let (state, has_frame) = (m.state(page), v.core.engine.is_resident(PageId(page)));
        match (in_memory.contains(&state), has_frame, state) {
            (true, true, _) | (false, false, _) | (_, _, State::Poisoned) => {}
            // It could not be read ahead, and is tried again when it is touched.
            (_, true, State::Stored) if v.may_lose => unread += 1,
            _ => return Err(format!("page {page} is {state:?}, and has a frame: {has_frame}")),
        }
    }
    let least = in_memory.map(|s| m.count(s)).iter().sum::<u64>() + unread;
    let most = least + m.count(State::Poisoned);
    let (own, is_all) = v.charged;
    let gauges = v.core.engine.memcg_gauges(v.core.group);
    let tables = gauges.iter().find(|g| g.name == "kernel").map_or(0, |g| g.value);
    let (least, most) = (least + tables, most + tables);
    let used = used_pages(&v.core.engine);
    if used > most + own || is_all && used < least + own {
        return Err(format!("{used} frames are in use, for {least} to {most} pages and {own} of the pager's own"));
    }
    Ok(())
}

/// A page in the swap area is there until it is in memory, and no longer.
fn slots(v: &View) -> Result<(), String> {
    let m = &v.core.memory;
    let is_away = |p: &u32| matches!(m.state(*p), State::Written | State::Stored | State::Reading);
    for page in (0..m.len() as u32).filter(is_away) {
        let slot = m.slot[page as usize];
        let held = m.area.page_in(slot);
        if held != Some(page) {
            return Err(format!("page {page} is {:?}, and slot {slot} holds {held:?}", m.state(page)));
        }
    }
    let (held, used) = (m.area.stats().pages, v.core.engine.swap_used_pages() + m.freed.len() as u64);
    if held > used { Err(format!("{held} slots hold pages, and {used} are in use")) } else { Ok(()) }
}

/// To tell of a write the kernel protects the page again: it tells once.
fn writes_told(v: &View) -> Result<(), String> {
    let (told, seen) = (v.kernel.0.borrow().told_written, v.core.memory.counts.seen_written);
    if told == seen { Ok(()) } else { Err(format!("the kernel told of {told} pages, {seen} are known")) }
}

/// A thread that waits is known to someone who will wake it.
fn waiters(v: &View) -> Result<(), String> {
    let kernel = v.kernel.0.borrow();
    for (i, thread) in kernel.threads.all().iter().enumerate() {
        let Thread::Waits { page, .. } = *thread else { continue };
        let is_told = kernel.messages.iter().any(|m| m.page == page);
        if !is_told && !v.core.is_known_to_wait(page) {
            let state = v.core.memory.state(page);
            return Err(format!("thread {i} waits for page {page} ({state:?}), and nobody knows"));
        }
    }
    Ok(())
}

fn nobody_waits(v: &View) -> Result<(), String> {
    let kernel = v.kernel.0.borrow();
    match kernel.threads.all().iter().find(|t| **t != Thread::Runs) {
        Some(thread) => Err(format!("{thread:?}")),
        None => Ok(()),
    }
}

fn nothing_moves(v: &View) -> Result<(), String> {
    let moving = |p: &u32| v.core.memory.state(*p).is_moving();
    match (0..v.core.memory.len() as u32).find(moving) {
        Some(page) => Err(format!("page {page} is {:?}", v.core.memory.state(page))),
        None => Ok(()),
    }
}

/// Reads of a thread: the page holds what was written last.
pub(super) fn check_read(v: &View, page: u32) -> Result<(), String> {
    let kernel = v.kernel.0.borrow();
    match &kernel.pages[page as usize] {
        Some(frame) => v.model.check(page, frame),
        None => Err(format!("page {page} was read and is not in place")),
    }
}
