//! TODO map

pub(crate) mod batch;
pub(crate) mod lruvec;
pub(crate) mod multi_gen;
pub(crate) mod pages;
pub(crate) mod place;
