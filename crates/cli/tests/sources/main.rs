//! Rules for the sources of the workspace: which room imports which, what comments
//! cite, and that drivers answer every effect.

mod arrows;
mod comments;
mod crates;
mod effects;
mod rust;
