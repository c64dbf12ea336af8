//! Rules for the sources of the workspace: which room imports which, what comments
//! cite, that drivers answer every effect, and plurals of what is printed.

mod arrows;
mod comments;
mod crates;
mod effects;
mod plurals;
mod rust;
