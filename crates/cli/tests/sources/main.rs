//! What the sources of the workspace must keep to: which room imports which, and what comments
//! cite.

mod arrows;
mod comments;
mod crates;
mod rust;
