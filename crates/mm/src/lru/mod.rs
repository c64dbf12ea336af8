//! TODO map

pub(crate) mod aging;
pub(crate) mod batch;
pub(crate) mod look_around;
pub(crate) mod lruvec;
pub(crate) mod map;
pub(crate) mod multi_gen;
pub(crate) mod pages;
pub(crate) mod place;
pub(crate) mod policy;
pub(crate) mod read;
pub(crate) mod sizes;
pub(crate) mod sort;
pub(crate) mod two_list;
pub(crate) mod validate;
