//! Pages in the pool of zram, and the traffic of any swap, while a trace is replayed.

use super::{SwapFigures, SwapKind, SwapSetup};
use refault_lab::device::Zram;
use refault_mm::{Ack, Content, Counter, Engine, PageId, SwapSlot};

/// Parts of a trace of which the size of the pool is kept.
const PARTS: u64 = 32;

/// Swap of a replay, as its world keeps it.
#[derive(Clone, Debug)]
pub struct SwapPool {
    setup: SwapSetup,
    seed: u64,
    accesses: u64,
    /// Pages in memory; none: zswap has them, or a disk.
    zram: Option<Zram>,
    disk_ins: u64,
    disk_outs: u64,
    pool_ins: u64,
    pool_outs: u64,
    /// Pages that the pool had no room for.
    refused: u64,
    compressed: u64,
    decompressed: u64,
    /// Bytes of the pool at the end of each part that is over.
    parts: Vec<u64>,
}

impl SwapPool {
    pub(super) fn new(setup: &SwapSetup, seed: u64, accesses: u64) -> SwapPool {
        let is_zram = setup.swap.kind == SwapKind::Zram;
        SwapPool {
            zram: is_zram.then(|| Zram::new(setup.compression.content.ratio, setup.pool_pages())),
            setup: setup.clone(),
            seed,
            accesses,
            disk_ins: 0,
            disk_outs: 0,
            pool_ins: 0,
            pool_outs: 0,
            refused: 0,
            compressed: 0,
            decompressed: 0,
            parts: Vec::new(),
        }
    }

    /// Content of a page, by the seed.
    pub(in crate::replay) fn content(&self, page: PageId) -> Content {
        match self.setup.swap.kind.compresses() {
            true => self.setup.compression.content.of_page(self.seed, 0, page.0),
            false => Content::Compressed { bytes: 4096 },
        }
    }

    /// zswap compresses a page.
    #[cold]
    pub(in crate::replay) fn zswap_store(&mut self, page: PageId) {
        self.compressed += u64::from(self.takes_codec(page));
    }

    /// zswap decompresses a page.
    #[cold]
    pub(in crate::replay) fn zswap_load(&mut self, page: PageId) {
        self.decompressed += u64::from(self.takes_codec(page));
    }

    /// Whether a page is compressed and decompressed, and not only noted.
    fn takes_codec(&self, page: PageId) -> bool {
        matches!(self.content(page), Content::Compressed { .. })
    }

    /// Pages go to the device.
    #[cold]
    pub(in crate::replay) fn swap_out(&mut self, page: PageId, order: u8, slot: SwapSlot) -> Ack {
        let nr = 1u32 << order;
        if self.zram.is_none() {
            self.disk_outs += u64::from(nr);
            return Ack::Done;
        }
        for at in 0..nr {
            let page = PageId(page.0 + at);
            let (content, takes_codec) = (self.content(page), self.takes_codec(page));
            self.compressed += u64::from(takes_codec);
            let kept = self.zram.as_mut().is_some_and(|zram| zram.store(place(slot.nth(at)), Some(content)));
            if !kept {
                self.refused += 1;
                return Ack::Failed;
            }
            self.pool_outs += 1;
        }
        Ack::Done
    }

    /// Pages come from the device.
    #[cold]
    pub(in crate::replay) fn swap_in(&mut self, page: PageId, order: u8) {
        let nr = 1u32 << order;
        if self.zram.is_none() {
            self.disk_ins += u64::from(nr);
            return;
        }
        self.pool_ins += u64::from(nr);
        let codec = (page.0..page.0 + nr).filter(|&page| self.takes_codec(PageId(page))).count();
        self.decompressed += codec as u64;
    }

    /// A slot holds nothing any more.
    #[cold]
    pub(in crate::replay) fn free_slot(&mut self, slot: SwapSlot) {
        if let Some(zram) = &mut self.zram {
            zram.free(place(slot));
        }
    }

    fn pool_bytes(&self, engine: &Engine) -> u64 {
        let zram = self.zram.as_ref().map(|zram| zram.stats().mem_used_total);
        zram.unwrap_or_else(|| engine.zswap_stats().map_or(0, |zswap| zswap.pool_total_size))
    }

    /// So many accesses are replayed.
    #[inline]
    pub(in crate::replay) fn tick(&mut self, at: u64, engine: &Engine) {
        if at >= self.accesses * (self.parts.len() as u64 + 1) / PARTS {
            let bytes = self.pool_bytes(engine);
            while at >= self.accesses * (self.parts.len() as u64 + 1) / PARTS && self.parts.len() < PARTS as usize {
                self.parts.push(bytes);
            }
        }
    }

    /// The result at the end.
    pub(crate) fn figures(mut self, engine: &Engine) -> SwapFigures {
        self.tick(self.accesses, engine);
        let zswap = engine.zswap_stats();
        let counted = |counter: Counter| engine.vmstat().get(counter);
        // A page that shrinks too little was compressed in vain.
        let poor = zswap.map_or(0, |zswap| zswap.reject_compress_poor);
        let zram = self.zram.as_ref().map(Zram::stats);
        let (peak, stored) = match (&zram, &zswap) {
            (Some(zram), _) => (zram.mem_used_max, zram.orig_data_size / 4096),
            (None, Some(zswap)) => (zswap.pool_peak_size, zswap.stored_pages),
            (None, None) => (0, 0),
        };
        let of_codec = &self.setup.compression;
        let codec_ns = (self.compressed + poor) * of_codec.compress_ns + self.decompressed * of_codec.decompress_ns;
        SwapFigures {
            pool_ins: self.pool_ins + counted(Counter::Zswpin),
            disk_ins: self.disk_ins,
            pool_outs: self.pool_outs + counted(Counter::Zswpout),
            disk_outs: self.disk_outs,
            written_back: counted(Counter::Zswpwb),
            refused: self.refused,
            stored_pages: stored,
            pool_bytes: self.pool_bytes(engine),
            pool_peak_bytes: peak,
            pool_parts_bytes: self.parts,
            compressions: self.compressed + poor,
            decompressions: self.decompressed,
            codec_ns,
            setup: self.setup,
        }
    }
}

/// Place of a slot in the table of a device.
fn place(slot: SwapSlot) -> u64 {
    u64::from(slot.offset())
}
