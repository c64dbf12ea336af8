//! Page-access traces.
