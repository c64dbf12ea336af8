//! Long work without the interpreter's lock.

use crate::error::{defect, exception};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use refault_cli::{Failure, Watch};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// How often is looked whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Does work on a thread of its own, and meanwhile hears signals: an exception of a handler, as
/// Ctrl-C is one, stops the work. A panic of it becomes an exception.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce(&Watch) -> Result<T, Failure> + Send) -> PyResult<T> {
    let stop = Watch::default();
    let (mut raised, done) = py.detach(|| {
        let mut raised = None;
        let done = scope(|scope| {
            let (sender, ended) = channel::<()>();
            let thread = Builder::new().name("refault".into()).spawn_scoped(scope, {
                let stop = &stop;
                move || {
                    // It hangs up when the work is over, or panics.
                    let _sender = sender;
                    work(stop)
                }
            });
            let thread = thread.map_err(|e| PyRuntimeError::new_err(format!("a thread cannot be started: {e}")))?;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(e) = Python::attach(|py| py.check_signals())
                {
                    raised = Some(e);
                    stop.stop();
                }
            }
            thread.join().map_err(|panic| defect(&*panic))
        });
        (raised, done)
    });
    match raised.take() {
        Some(e) => Err(e),
        None => done?.map_err(|e| exception(&e)),
    }
}
