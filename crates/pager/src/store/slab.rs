//! Memory of the pool: objects of any size up to a page, in blocks of 32 KiB of one size class
//! each.
//!
//! The memory is one mapping, reserved in full and used by the block, so what is in use is known to
//! the byte, and a block that holds nothing any more goes back to the system at once.

use std::io;

use crate::mem::AnonymousMapping;
use crate::uffd::PAGE;

/// Bytes of a block.
pub(super) const BLOCK: usize = 8 * PAGE;
/// Sizes of objects are multiples of this: half of it is lost on average, of a compressed page of
/// some 2 KiB.
const GRAIN: usize = 128;
const CLASSES: usize = PAGE / GRAIN;
const MAX_OBJECTS: usize = BLOCK / GRAIN;
/// Blocks that hold nothing and are kept, for giving them back and getting others costs a fault for
/// each page. They count as used.
const KEPT: usize = 16;
const NOT_PARTIAL: u32 = u32::MAX;

/// Where an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    block: u32,
    object: u16,
    /// Bytes of it that count.
    pub(super) len: u16,
}

#[derive(Clone, Debug)]
struct Block {
    class: u8,
    used: u16,
    /// Its place among the blocks of its class that have room.
    partial: u32,
    /// Objects in use.
    map: [u64; MAX_OBJECTS / 64],
}

/// Blocks, and which have room.
#[derive(Debug)]
pub(super) struct Slab {
    mapping: AnonymousMapping,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    /// Blocks that hold nothing, with their memory.
    kept: Vec<u32>,
    partial: Vec<Vec<u32>>,
    in_use: usize,
    /// Blocks that may be in use.
    limit: usize,
}

fn object_bytes(class: u8) -> usize {
    (usize::from(class) + 1) * GRAIN
}

fn objects(class: u8) -> usize {
    BLOCK / object_bytes(class)
}

impl Slab {
    /// A slab of at most `limit_bytes` bytes, rounded down to blocks.
    pub(super) fn new(limit_bytes: usize) -> io::Result<Slab> {
        let mapping = AnonymousMapping::new((limit_bytes / BLOCK).max(1) * BLOCK)?;
        let limit = mapping.bytes() / BLOCK;
        let partial = vec![Vec::new(); CLASSES];
        Ok(Slab { mapping, blocks: Vec::new(), free_blocks: Vec::new(), kept: Vec::new(), partial, in_use: 0, limit })
    }

    /// Sets another limit, not above the first one. Pages beyond it stay, and nothing is added
    /// until enough of them are gone.
    pub(super) fn set_limit(&mut self, bytes: usize) {
        self.limit = (bytes / BLOCK).clamp(1, self.mapping.bytes() / BLOCK);
        while let Some(b) = self.kept.pop() {
            self.give_back(b);
        }
    }

    /// More is in use than may be.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.in_use > self.limit
    }

    /// Bytes that may be in use.
    pub(super) fn limit_bytes(&self) -> usize {
        self.limit * BLOCK
    }

    /// Bytes of blocks.
    pub(super) fn block_bytes(&self) -> usize {
        (self.in_use + self.kept.len()) * BLOCK
    }

    /// Bytes in use, with the tables.
    pub(super) fn memory_bytes(&self) -> usize {
        self.block_bytes() + self.blocks.capacity() * size_of::<Block>()
    }

    /// Stores bytes, at most a page and at least one. `None`: there is no room.
    pub(super) fn insert(&mut self, bytes: &[u8]) -> Option<Place> {
        assert!((1..=PAGE).contains(&bytes.len()), "objects are between a byte and a page");
        if self.is_beyond_limit() {
            return None;
        }
        let class = (bytes.len().div_ceil(GRAIN) - 1) as u8;
        let b = match self.partial[usize::from(class)].last() {
            Some(&b) => b,
            None => self.new_block(class)?,
        };
        let block = &mut self.blocks[b as usize];
        let word = block.map.iter().position(|&w| w != u64::MAX).expect("it has room");
        let object = word * 64 + block.map[word].trailing_ones() as usize;
        debug_assert!(object < objects(class));
        block.map[word] |= 1 << (object % 64);
        block.used += 1;
        if usize::from(block.used) == objects(class) {
            self.leave_partial(b);
        }
        let place = Place { block: b, object: object as u16, len: bytes.len() as u16 };
        let address = self.address(place);
        // SAFETY: the object lies inside the mapping (its block and number do, by construction), it
        // was free until now so nobody refers to it, and `&mut self` keeps others out.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Some(place)
    }

    /// The bytes of an object.
    pub(super) fn get(&self, place: Place) -> &[u8] {
        let block = &self.blocks[place.block as usize];
        let object = usize::from(place.object);
        assert!(block.map[object / 64] & 1 << (object % 64) != 0, "the object is in use");
        // SAFETY: an object in use lies inside the mapping and was written in full length; it is
        // changed only by `&mut self`.
        unsafe { std::slice::from_raw_parts(self.address(place) as *const u8, usize::from(place.len)) }
    }

    /// Gives an object back.
    pub(super) fn remove(&mut self, place: Place) {
        let block = &mut self.blocks[place.block as usize];
        let object = usize::from(place.object);
        assert!(block.map[object / 64] & 1 << (object % 64) != 0, "the object is in use");
        block.map[object / 64] &= !(1 << (object % 64));
        block.used -= 1;
        let (used, class, is_partial) = (block.used, block.class, block.partial != NOT_PARTIAL);
        if used == 0 {
            if is_partial {
                self.leave_partial(place.block);
            }
            self.free_block(place.block);
        } else if !is_partial {
            let list = &mut self.partial[usize::from(class)];
            self.blocks[place.block as usize].partial = list.len() as u32;
            list.push(place.block);
        }
    }

    fn address(&self, place: Place) -> usize {
        let class = self.blocks[place.block as usize].class;
        self.mapping.start() + place.block as usize * BLOCK + usize::from(place.object) * object_bytes(class)
    }

    fn new_block(&mut self, class: u8) -> Option<u32> {
        if self.in_use >= self.limit {
            return None;
        }
        let list = &mut self.partial[usize::from(class)];
        let mut block = Block { class, used: 0, partial: list.len() as u32, map: [0; MAX_OBJECTS / 64] };
        // Objects that the block is too small for count as used.
        (objects(class)..MAX_OBJECTS).for_each(|o| block.map[o / 64] |= 1 << (o % 64));
        let b = match self.kept.pop().or_else(|| self.free_blocks.pop()) {
            Some(b) => {
                self.blocks[b as usize] = block;
                b
            }
            // Below the limit, so inside the mapping.
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        };
        self.in_use += 1;
        self.partial[usize::from(class)].push(b);
        Some(b)
    }

    fn leave_partial(&mut self, b: u32) {
        let block = &mut self.blocks[b as usize];
        let (list, at) = (&mut self.partial[usize::from(block.class)], block.partial as usize);
        block.partial = NOT_PARTIAL;
        list.swap_remove(at);
        if let Some(&moved) = list.get(at) {
            self.blocks[moved as usize].partial = at as u32;
        }
    }

    fn free_block(&mut self, b: u32) {
        self.in_use -= 1;
        let most = KEPT.min(self.limit / 16);
        if self.kept.len() < most && self.in_use + self.kept.len() < self.limit {
            return self.kept.push(b);
        }
        self.give_back(b);
    }

    fn give_back(&mut self, b: u32) {
        self.free_blocks.push(b);
        // SAFETY: the block holds no object, so nobody refers to its memory. If the kernel refuses,
        // the memory is only not returned.
        _ = unsafe { self.mapping.discard(self.mapping.start() + b as usize * BLOCK, BLOCK) };
    }

    #[cfg(test)]
    pub(super) fn validate(&self, objects_in_use: usize) {
        let used: usize = self.blocks.iter().map(|b| usize::from(b.used)).sum();
        assert_eq!(used, objects_in_use);
        assert_eq!(self.in_use + self.kept.len() + self.free_blocks.len(), self.blocks.len());
        for (class, list) in self.partial.iter().enumerate() {
            for (at, &b) in list.iter().enumerate() {
                let block = &self.blocks[b as usize];
                assert_eq!((usize::from(block.class), block.partial as usize), (class, at));
                assert!(block.used > 0 && usize::from(block.used) < objects(block.class));
            }
        }
    }
}
