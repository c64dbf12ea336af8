//! Rules for the sources of the workspace: which room imports which, what comments
//! cite, that drivers answer every effect, names, lengths, and plurals of what is printed.

mod arrows;
mod comments;
mod crates;
mod effects;
mod functions;
mod names;
mod plurals;
mod rust;
mod terminal;
mod words;
