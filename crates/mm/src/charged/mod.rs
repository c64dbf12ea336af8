//! TODO map

use crate::config::Config;
use crate::lru::pages::Pages;
use crate::memcg::groups::Groups;
use crate::node::frames::Frames;

pub(crate) mod free;
pub(crate) mod offline;

/// Pages with the groups that are charged for them and the frames that they take: what may change
/// when a page comes or goes.
pub(crate) struct Charged<'a> {
    pub(crate) cfg: &'a Config,
    pub(crate) pages: &'a mut Pages,
    pub(crate) groups: &'a mut Groups,
    pub(crate) frames: &'a mut Frames,
}
