//! Policies that are classes of Python: the hooks of the engine, noted and handed over in batches.

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use refault::Watch;
use refault::replay::PlugIn;
use refault_mm::{Cache, CacheExtOps, CloneOps, Eviction, FolioId};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

/// Hooks that are noted at most before they are handed over.
const MOST_NOTED: usize = 1 << 16;

/// Event of a folio, as `refault.Policy` numbers it.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Hook {
    Added = 0,
    Accessed = 1,
    Evicted = 2,
    Removed = 3,
}

/// Facts of the group for hooks.
#[pyclass(name = "Cache", module = "refault", frozen, get_all)]
pub(crate) struct Room {
    /// Folios that the group may have.
    limit: u64,
    /// Folios of files that it has in memory.
    resident: u64,
    /// Numbers of folios are below this.
    folios: u32,
}

/// Name of a class in rows, and the class.
pub(crate) type Named = (String, Py<PyAny>);

/// The exception of a class that ended a replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The first one, if there was any.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Classes as policies of a replay over so many pages.
pub(crate) fn plug_ins(classes: Vec<Named>, folios: u32, raised: &Raised, stop: &Watch) -> Vec<PlugIn> {
    let plug_in = |(name, class): Named| {
        let ops = ByClass::new(Arc::new(class), folios, raised.clone(), stop.clone());
        PlugIn { name, ops: Box::new(ops) }
    };
    classes.into_iter().map(plug_in).collect()
}

/// A policy that asks an object of a class.
#[derive(Debug)]
struct ByClass {
    class: Arc<Py<PyAny>>,
    /// Made when the policy begins.
    object: Option<Py<PyAny>>,
    folios: u32,
    /// Events since the object was told.
    hooks: Vec<u8>,
    of: Vec<u32>,
    raised: Raised,
    stop: Watch,
}

impl ByClass {
    fn new(class: Arc<Py<PyAny>>, folios: u32, raised: Raised, stop: Watch) -> ByClass {
        ByClass { class, object: None, folios, hooks: Vec::new(), of: Vec::new(), raised, stop }
    }

    fn note(&mut self, cache: &Cache<'_>, hook: Hook, folio: FolioId) {
        self.hooks.push(hook as u8);
        self.of.push(folio.0);
        if self.hooks.len() == MOST_NOTED {
            self.call(cache, |_, _, _| Ok(()));
        }
    }

    /// Hands over what was noted, and does something with the object. An exception ends the replay;
    /// without an object nothing is done.
    fn call(&mut self, cache: &Cache<'_>, then: impl FnOnce(&Bound<'_, PyAny>, Bound<'_, Room>, u32) -> PyResult<()>) {
        let (hooks, of) = (take(&mut self.hooks), take(&mut self.of));
        let Some(object) = &self.object else { return };
        let done = Python::attach(|py| {
            let object = object.bind(py);
            let room = self.room(py, cache)?;
            if !hooks.is_empty() {
                let (hooks, of): (Bound<'_, PyArray1<u8>>, _) = (hooks.into_pyarray(py), of.into_pyarray(py));
                object.call_method1("batch", (&room, hooks, of))?;
            }
            then(object, room, self.folios)
        });
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn room<'py>(&self, py: Python<'py>, cache: &Cache<'_>) -> PyResult<Bound<'py, Room>> {
        Bound::new(py, Room { limit: cache.limit, resident: cache.resident, folios: self.folios })
    }

    fn fail(&mut self, error: PyErr) {
        self.raised.keep(error);
        self.object = None;
        self.stop.stop();
    }
}

impl CacheExtOps for ByClass {
    fn init(&mut self, cache: &mut Cache<'_>) {
        let made = Python::attach(|py| {
            let object = self.class.bind(py).call0()?;
            object.call_method1("init", (self.room(py, cache)?,))?;
            Ok(object.unbind())
        });
        match made {
            Ok(object) => self.object = Some(object),
            Err(error) => self.fail(error),
        }
    }

    fn folio_added(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.note(cache, Hook::Added, folio);
    }

    fn folio_accessed(&mut self, cache: &mut Cache<'_>, folio: FolioId) {
        self.note(cache, Hook::Accessed, folio);
    }

    fn folio_removed(&mut self, cache: &mut Cache<'_>, folio: FolioId, evicted: bool) {
        self.note(cache, if evicted { Hook::Evicted } else { Hook::Removed }, folio);
    }

    fn evict_folios(&mut self, cache: &mut Cache<'_>, eviction: &mut Eviction) {
        self.call(cache, |object, room, folios| {
            let wanted = eviction.wanted();
            let victims = object.call_method1("evict_folios", (room, wanted))?;
            for victim in victims.try_iter().map_err(|_| no_folios(object, &victims))?.take(wanted) {
                // One that is no folio at all is passed over as one that is not in memory is.
                if let Some(folio) = number(object, &victim?)?.filter(|&folio| folio < folios) {
                    eviction.propose(FolioId(folio));
                }
            }
            Ok(())
        });
    }
}

/// The number of a folio; none: no folio has it.
fn number(object: &Bound<'_, PyAny>, victim: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    match victim.extract::<i64>() {
        Ok(number) => Ok(u32::try_from(number).ok()),
        Err(e) if e.is_instance_of::<PyOverflowError>(victim.py()) => Ok(None),
        Err(_) => Err(no_folios(object, victim)),
    }
}

fn no_folios(object: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>) -> PyErr {
    let name = |of: &Bound<'_, PyAny>| of.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    let (class, given) = (name(object), name(given));
    PyTypeError::new_err(format!("{class}.evict_folios: gives {given}, not numbers of folios; give a list of them"))
}

impl CloneOps for ByClass {
    /// An engine that gets the policy makes an object of its own.
    fn clone_ops(&self) -> Box<dyn CacheExtOps> {
        Box::new(ByClass::new(Arc::clone(&self.class), self.folios, self.raised.clone(), self.stop.clone()))
    }
}
