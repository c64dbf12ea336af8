//! Next accesses of a task, drawn some blocks ahead.
//!
//! To simulate an access of a large machine takes a wait for memory: the entry of its page is in no
//! cache. Accesses that are known ahead can have all their entries loaded at once. Nothing else is
//! drawn from the generator of the task meanwhile, or the blocks are given back, so that the
//! sequence is the same as without looking ahead.

use refault_mm::PageId;
use refault_trace::generate::Rng;

use super::stream::{Block, Stream};

/// Blocks that are drawn ahead: as many misses as a processor has under way at once.
const AHEAD: usize = 16;

/// A block and its stream, in whole words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    pub(super) stream: u32,
    pub(super) block: Block,
}

/// The generator of a task, and what was drawn with it and not used yet.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    rng: Rng,
    weights: Vec<f64>,
    /// Blocks that were drawn ahead, each with the generator as it was before the draw; blocks from
    /// index `used` on are still to come.
    ahead: Vec<(Choice, Rng)>,
    used: usize,
    /// All streams of the phase are drawn: none has a position, which other tasks may share.
    looks_ahead: bool,
}

impl Choices {
    pub(super) fn new(rng: Rng) -> Choices {
        Choices { rng, weights: Vec::new(), ahead: Vec::new(), used: 0, looks_ahead: false }
    }

    /// A phase begins with streams of these weights.
    pub(super) fn start(&mut self, weights: Vec<f64>, streams: &[Stream]) {
        self.give_back();
        self.weights = weights;
        self.looks_ahead = !streams.is_empty() && streams.iter().all(Stream::is_drawn);
    }

    /// A number in [0, 1) for something else.
    pub(super) fn unit(&mut self) -> f64 {
        self.give_back();
        self.rng.unit()
    }

    /// The next block, and its stream.
    #[inline]
    pub(super) fn next(&mut self, streams: &mut [Stream]) -> Choice {
        match self.ahead.get(self.used) {
            Some((choice, _)) => {
                self.used += 1;
                *choice
            }
            None => self.draw(streams),
        }
    }

    /// Whether blocks of this phase can be drawn ahead.
    pub(super) fn looks_ahead(&self) -> bool {
        self.looks_ahead
    }

    /// The next block, if it was drawn.
    #[inline]
    pub(super) fn peek(&self) -> Option<&Choice> {
        self.ahead.get(self.used).map(|(choice, _)| choice)
    }

    /// So many of the blocks that were drawn are used.
    #[inline]
    pub(super) fn skip(&mut self, blocks: usize) {
        self.used += blocks;
        debug_assert!(self.used <= self.ahead.len(), "so many were not drawn");
    }

    /// Whether blocks can be drawn ahead and none is left.
    #[inline]
    pub(super) fn is_dry(&self) -> bool {
        self.looks_ahead && self.used == self.ahead.len()
    }

    /// Draws blocks ahead; their streams and pages.
    pub(super) fn look_ahead<'a>(
        &'a mut self,
        streams: &mut [Stream],
    ) -> impl Iterator<Item = (usize, PageId)> + Clone + use<'a> {
        self.ahead.resize(AHEAD, (Choice::default(), self.rng.clone()));
        self.used = 0;
        // In place: a block that is copied as soon as it is made waits until it is in the cache.
        match streams {
            [only] => {
                self.ahead.iter_mut().for_each(|(choice, _)| choice.stream = 0);
                only.draw_each(
                    &mut self.rng,
                    self.ahead.iter_mut().map(|(choice, before)| (&mut choice.block, before)),
                );
            }
            _ => self.draw_ahead(streams),
        }
        self.ahead.iter().map(|(choice, _)| (choice.stream as usize, choice.block.first))
    }

    /// Fills what is ahead, each time with a block of a stream that is picked.
    fn draw_ahead(&mut self, streams: &mut [Stream]) {
        for at in 0..AHEAD {
            self.ahead[at].1 = self.rng.clone();
            let stream = self.pick();
            let choice = &mut self.ahead[at].0;
            choice.stream = stream as u32;
            streams[stream].draw_next(&mut self.rng, &mut choice.block);
        }
    }

    /// The blocks that were drawn and not used yet.
    #[inline]
    pub(super) fn drawn(&self) -> impl Iterator<Item = Block> + Clone {
        self.ahead[self.used..].iter().map(|(choice, _)| choice.block)
    }

    /// Undoes draws ahead that were not used.
    fn give_back(&mut self) {
        if let Some((_, before)) = self.ahead.drain(..).nth(self.used) {
            self.rng = before;
        }
        self.used = 0;
    }

    #[inline]
    fn draw(&mut self, streams: &mut [Stream]) -> Choice {
        let stream = self.pick();
        Choice { stream: stream as u32, block: streams[stream].next(&mut self.rng) }
    }

    /// A stream by weight.
    fn pick(&mut self) -> usize {
        if self.weights.len() == 1 {
            return 0;
        }
        let total: f64 = self.weights.iter().sum();
        let mut at = self.rng.unit() * total;
        let found = self.weights.iter().position(|&w| {
            at -= w;
            at < 0.0
        });
        // Rounding may run past the last one with a weight.
        found.unwrap_or_else(|| self.weights.iter().rposition(|&w| w > 0.0).unwrap_or(0))
    }
}
