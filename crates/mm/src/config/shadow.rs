//! How shadow entries are packed.

use super::one_of;
/// How a shadow entry is packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowConfig {
    /// Width of the node id in a shadow.
    pub nodes_shift: u32,
    /// Fewer eviction bits than the layout leaves, for tests of the bucket order.
    pub eviction_bits_max: u32,
}

impl Default for ShadowConfig {
    /// As the kernel has it.
    fn default() -> ShadowConfig {
        ShadowConfig { nodes_shift: 10, eviction_bits_max: 64 }
    }
}

impl ShadowConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        one_of(&[
            (self.nodes_shift <= 10, "nodes_shift is at most 10"),
            ((8..=64).contains(&self.eviction_bits_max), "eviction_bits_max is 8 to 64"),
        ])
    }
}
