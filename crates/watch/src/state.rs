//! State of a watcher that ends: the curves that it had, for the next one to show until it has its
//! own.

use crate::group::Curve;
use refault_trace::SpaceSample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the file.
const VERSION: u32 = 2;

/// The most bytes that a file may have.
const MOST_BYTES: u64 = 64 << 20;

/// Curves by group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// Pages that a page of the sample stood for at the end; 0: it is not known.
    #[serde(default)]
    pub one_in: u64,
    /// Curves by path of the group.
    pub curves: BTreeMap<String, Curve>,
}

/// The version alone.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl State {
    /// State of these curves, of a sample at the end.
    pub fn new(curves: BTreeMap<String, Curve>, one_in: u64) -> State {
        State { version: VERSION, one_in, curves }
    }

    /// Reads a file; none: there is none.
    ///
    /// # Errors
    /// A file that is none of these.
    pub fn read(path: &Path) -> Result<Option<State>, String> {
        let name = path.display();
        let text = match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Ok(metadata) if metadata.len() > MOST_BYTES => {
                return Err(format!("{name}: is no state of a watcher: it has {} bytes", metadata.len()));
            }
            _ => std::fs::read(path).map_err(|e| format!("{name}: cannot be read: {e}"))?,
        };
        State::parse(&text).map(Some).map_err(|e| format!("{name}: {e}; remove it, or name another"))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// A text that is no state.
    pub fn parse(text: &[u8]) -> Result<State, String> {
        let none = |e| format!("is no state of a watcher: {e}");
        // Curves of the first version are of other sizes.
        let of: Version = serde_json::from_slice(text).map_err(none)?;
        if of.version == 1 {
            return Ok(State::new(BTreeMap::new(), 0));
        }
        let state: State = serde_json::from_slice(text).map_err(none)?;
        if state.version != VERSION {
            return Err(format!("is of version {}, and this program reads {VERSION}", state.version));
        }
        match state.curves.values().all(Curve::is_whole) {
            true => Ok(state),
            false => Err("has a curve that is none".to_owned()),
        }
    }

    /// The sample at the end, if one is known.
    pub fn sample(&self) -> Option<SpaceSample> {
        SpaceSample::new(self.one_in, 0).ok()
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_state_is_an_error() {
        for text in ["", "{}", "[]", "{\"version\":3,\"curves\":{}}", "{\"version\":2,\"curves\":{\"a\":{}}}"] {
            assert!(State::parse(text.as_bytes()).is_err(), "{text}");
        }
        let state = State::new(BTreeMap::new(), 0);
        assert_eq!(State::parse(b"{\"version\":1,\"curves\":{\"a\":{\"points\":[]}}}"), Ok(state.clone()));
        assert_eq!(State::parse(state.text().as_bytes()), Ok(state));
    }
}
