//! Reading pages of the file: those side by side in one call.

use super::{Core, Shared, io};
use crate::store::PageBuf;
use crate::sync::MutexGuard;
use crate::uffd::PAGE;

impl Shared {
    /// Reads pages that are side by side, and tells the engine. If they cannot be read together
    /// each is read by itself, so that a bad one does not spoil the others, and once more: what
    /// failed on the way may be well where it is.
    pub(super) fn read_run<'a>(&'a self, mut core: MutexGuard<'a, Core>, run: &[u32]) -> MutexGuard<'a, Core> {
        let mut contents = core.memory.spare.pop().unwrap_or_default();
        drop(core);
        contents.resize_with(run.len().max(contents.len()), PageBuf::default);
        let mut calls = 1;
        let together = self.read(run[0], &mut contents[..run.len()]);
        let mut results: Vec<Result<(), String>> = Vec::with_capacity(run.len());
        for (&page, content) in run.iter().zip(contents.chunks_mut(1)) {
            let mut result = together.clone();
            for _ in 0..2 {
                if result.is_err() {
                    calls += 1;
                    result = self.read(page, content);
                }
            }
            results.push(result);
        }
        core = self.lock();
        self.tick(&mut core);
        core.memory.counts.read_calls += calls;
        core.memory.buffer = contents;
        for (i, (&page, result)) in run.iter().zip(results).enumerate() {
            core.arrive(page, result.map(|()| i));
        }
        let contents = std::mem::take(&mut core.memory.buffer);
        core.memory.spare.push(contents);
        core
    }

    /// Reads pages side by side. The rest behind the end of the file in the last one is zeros.
    fn read(&self, first: u32, contents: &mut [PageBuf]) -> Result<(), String> {
        let at = u64::from(first) * PAGE as u64;
        let bytes = PageBuf::bytes_of(contents);
        let expected = (self.bytes - at).min(bytes.len() as u64) as usize;
        let n = io::read_all(&*self.io, bytes, at).map_err(|e| format!("reading byte {at} of the file: {e}"))?;
        if n < expected {
            let bytes = self.io.bytes().ok().filter(|&b| b < at + expected as u64).unwrap_or(at + n as u64);
            return Err(format!("the file was cut to {bytes} bytes"));
        }
        bytes[expected..].fill(0);
        Ok(())
    }
}
