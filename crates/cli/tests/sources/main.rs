//! What the sources of the workspace must keep to: which room imports which, what comments
//! cite, and that drivers answer every effect.

mod arrows;
mod comments;
mod crates;
mod effects;
mod rust;
