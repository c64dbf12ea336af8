//! The `lru_gen` files of debugfs, and `min_ttl_ms`.

use crate::engine::Engine;
use crate::ids::{MemcgId, NodeId};
use crate::reclaim::lru_gen_debugfs::LruGenFile;
use crate::scan::ScanControl;
use crate::world::World;

impl Engine {
    /// The text of `lru_gen`: per memcg and generation its age in milliseconds, anon pages, file
    /// pages.
    pub fn lru_gen_text(&self) -> String {
        self.lru_gen_file().text(false)
    }

    /// The text of `lru_gen_full`: all four generations, and for each tier what was refaulted,
    /// evicted and protected.
    pub fn lru_gen_full_text(&self) -> String {
        self.lru_gen_file().text(true)
    }

    fn lru_gen_file(&self) -> LruGenFile<'_> {
        LruGenFile { pages: &self.mem.pages, groups: &self.mem.groups, now_ns: self.mem.now_ns }
    }

    /// Runs commands as written to `lru_gen`, separated by `,`, `;` or a newline: `+ memcg node
    /// max_seq [swappiness [force]]` ages, `- memcg node seq [swappiness [nr]]` evicts.
    ///
    /// The error names the command and what is wrong with it; the commands before it have been
    /// carried out.
    pub fn lru_gen_command<W: World>(&mut self, w: &mut W, text: &str) -> Result<(), String> {
        for command in text.split([',', ';', '\n']).map(str::trim).filter(|c| !c.is_empty()) {
            self.reclaim_with(w, ScanControl::for_memcg(MemcgId::ROOT, 0, None))
                .run_command(command)
                .map_err(|e| format!("lru_gen: {command:?}: {e}"))?;
        }
        Ok(())
    }

    /// Ages the first node as kswapd does before each shrink. True: out of memory, since every
    /// group's working set is younger than `min_ttl_ms`.
    pub fn age_node<W: World>(&mut self, w: &mut W) -> bool {
        self.reclaim_with(w, ScanControl::for_memcg(MemcgId::ROOT, 0, None)).age_node_on(NodeId::default())
    }
}
