//! The disk: blocks on the media, and a volatile write cache.

use std::collections::HashMap;
use std::str::FromStr;

use crate::random::Random;

pub const BLOCK_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// Default maximum number of writes in the cache. Older writes are moved to the media.
const CACHE_WRITES: usize = 64;

type Block = Box<[u8; BLOCK_BYTES]>;

/// Behaviour of the disk towards flushed writes when it loses power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Every flushed write is on the media. Any sector of other writes may or may not be on the
    /// media.
    Honest,
    /// A flush does nothing, and the whole cache is lost.
    DropCache,
    /// The flushed writes to one block are lost, although later writes to other blocks survive.
    DropBlock,
    /// Half of the sectors of a single flushed write are lost.
    TearBlock,
    /// A single flushed write is written to a wrong block.
    Misdirect,
    /// The block of a single flushed write is filled with zeros.
    ZeroBlock,
}

impl Behaviour {
    pub const LIES: [Self; 5] =
        [Self::DropCache, Self::DropBlock, Self::TearBlock, Self::Misdirect, Self::ZeroBlock];

    const WORDS: [(&str, Self); 6] = [
        ("honest", Self::Honest),
        ("drop-cache", Self::DropCache),
        ("drop-block", Self::DropBlock),
        ("tear-block", Self::TearBlock),
        ("misdirect", Self::Misdirect),
        ("zero-block", Self::ZeroBlock),
    ];
}

impl FromStr for Behaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::WORDS.iter().find(|(word, _)| *word == text);
        let words = Self::WORDS.map(|(word, _)| word).join(", ");
        found.map(|(_, one)| *one).ok_or_else(|| format!("{text} is not one of {words}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoweredOff;

struct CachedWrite {
    block: u64,
    bytes: Block,
    is_flushed: bool,
}

/// Disk with a volatile cache.
pub struct LossyDisk {
    media: HashMap<u64, Block>,
    cache: Vec<CachedWrite>,
    cache_writes: usize,
    behaviour: Behaviour,
    random: Random,
    is_off: bool,
    /// Number of power cuts after which flushed data was not intact.
    lies: u64,
    /// Number of operations after which the disk loses power by itself; `None` if it never does so.
    cut_after: Option<u64>,
}

impl LossyDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(behaviour: Behaviour, seed: u64) -> Self {
        Self {
            media: HashMap::new(),
            cache: Vec::new(),
            cache_writes: CACHE_WRITES,
            behaviour,
            random: Random::new(seed),
            is_off: false,
            lies: 0,
            cut_after: None,
        }
    }

    /// Sets the maximum number of writes in the cache.
    #[must_use]
    pub fn with_cache(self, cache_writes: usize) -> Self {
        Self { cache_writes, ..self }
    }

    /// Returns the number of power cuts after which flushed data was not intact.
    #[must_use]
    pub fn lies(&self) -> u64 {
        self.lies
    }

    /// Makes the disk lose power after this number of writes and flushes.
    pub fn cut_after(&mut self, operations: u64) {
        self.cut_after = Some(operations);
    }

    /// Counts an operation. Makes the disk lose power if the set number of operations is reached.
    fn operate(&mut self) -> Result<(), PoweredOff> {
        match &mut self.cut_after {
            Some(0) => {
                self.cut_after = None;
                self.cut();
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if self.is_off { Err(PoweredOff) } else { Ok(()) }
    }

    /// Returns the current content of a block.
    fn block(&self, block: u64) -> Option<&[u8; BLOCK_BYTES]> {
        let cached = self.cache.iter().rev().find(|write| write.block == block);
        cached.map(|write| &*write.bytes).or_else(|| self.media.get(&block).map(|bytes| &**bytes))
    }

    /// Reads bytes. Blocks that were never written are zeros.
    ///
    /// # Errors
    /// The disk has no power.
    pub fn read(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), PoweredOff> {
        if self.is_off {
            return Err(PoweredOff);
        }
        let mut at = 0;
        while at < out.len() {
            let (block, within, size) = piece(offset_bytes + at as u64, out.len() - at);
            let to = &mut out[at..at + size];
            match self.block(block) {
                Some(bytes) => to.copy_from_slice(&bytes[within..within + size]),
                None => to.fill(0),
            }
            at += size;
        }
        Ok(())
    }

    /// Writes bytes to the cache.
    ///
    /// # Errors
    /// The disk has no power.
    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<(), PoweredOff> {
        self.operate()?;
        let mut at = 0;
        while at < bytes.len() {
            let (block, within, size) = piece(offset_bytes + at as u64, bytes.len() - at);
            let mut image: Block = Box::new(*self.block(block).unwrap_or(&[0; BLOCK_BYTES]));
            image[within..within + size].copy_from_slice(&bytes[at..at + size]);
            self.cache.push(CachedWrite { block, bytes: image, is_flushed: false });
            at += size;
        }
        while self.cache.len() > self.cache_writes {
            let oldest = self.cache.remove(0);
            self.media.insert(oldest.block, oldest.bytes);
        }
        Ok(())
    }

    /// Acknowledges a flush.
    ///
    /// # Errors
    /// The disk has no power.
    pub fn flush(&mut self) -> Result<(), PoweredOff> {
        self.operate()?;
        if self.behaviour == Behaviour::Honest {
            for write in self.cache.drain(..) {
                self.media.insert(write.block, write.bytes);
            }
        }
        self.cache.iter_mut().for_each(|write| write.is_flushed = true);
        Ok(())
    }

    /// Cuts the power. Does nothing if the disk has no power.
    pub fn cut(&mut self) {
        if std::mem::replace(&mut self.is_off, true) {
            return;
        }
        let cache = std::mem::take(&mut self.cache);
        // Only a block whose last write was flushed can be damaged, because a later write could
        // hide the loss.
        let is_last = |at: usize, block| !cache[at + 1..].iter().any(|later| later.block == block);
        let victims: Vec<usize> = (0..cache.len())
            .filter(|at| cache[*at].is_flushed && is_last(*at, cache[*at].block))
            .collect();
        let victim = match self.behaviour {
            Behaviour::Honest => None,
            _ if victims.is_empty() => None,
            _ => victims.get(self.random.draw(victims.len() as u64) as usize).copied(),
        };
        let Some(victim) = victim else {
            cache.into_iter().for_each(|write| self.settle(write));
            return;
        };
        self.lies += 1;
        if self.behaviour == Behaviour::DropCache {
            return;
        }
        let block = cache[victim].block;
        let others: Vec<u64> = self.media.keys().copied().filter(|one| *one != block).collect();
        let mut meant = None;
        for (at, write) in cache.into_iter().enumerate() {
            if at == victim {
                meant = Some(write.bytes);
            } else if write.block != block {
                self.settle(write);
            }
        }
        let Some(meant) = meant else { return };
        match self.behaviour {
            Behaviour::TearBlock => {
                let old = self.media.entry(block).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
                old[..BLOCK_BYTES / 2].copy_from_slice(&meant[..BLOCK_BYTES / 2]);
            }
            Behaviour::ZeroBlock => drop(self.media.insert(block, Box::new([0; BLOCK_BYTES]))),
            Behaviour::Misdirect => {
                // The keys are sorted, because the order of keys in the map is arbitrary.
                let mut others = others;
                others.sort_unstable();
                let at = self.random.draw(others.len() as u64) as usize;
                if let Some(other) = others.get(at) {
                    self.media.insert(*other, meant);
                }
            }
            _ => {}
        }
    }

    /// At a power cut, decides which sectors of a cached write reach the medium. All sectors of a
    /// flushed write reach it. Of any other write, each sector may reach it or be lost.
    fn settle(&mut self, write: CachedWrite) {
        if write.is_flushed {
            self.media.insert(write.block, write.bytes);
            return;
        }
        // The write is lost completely, preserved completely, or torn, each with a probability of
        // one third.
        let sectors = match self.random.draw(3) {
            0 => 0,
            1 => u64::MAX,
            _ => self.random.draw(1 << 8),
        };
        let old = self.media.entry(write.block).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
        let pairs = old.chunks_mut(SECTOR_BYTES).zip(write.bytes.chunks(SECTOR_BYTES));
        for (at, (old, new)) in pairs.enumerate() {
            if sectors >> at & 1 == 1 {
                old.copy_from_slice(new);
            }
        }
    }

    /// Restores the power.
    pub fn restore(&mut self) {
        self.is_off = false;
    }
}

/// Returns the first piece of a range: its block, its offset in this block and its size.
fn piece(offset_bytes: u64, size_bytes: usize) -> (u64, usize, usize) {
    let within = (offset_bytes % BLOCK_BYTES as u64) as usize;
    (offset_bytes / BLOCK_BYTES as u64, within, size_bytes.min(BLOCK_BYTES - within))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(disk: &LossyDisk, block: u64) -> Vec<u8> {
        let mut out = vec![9; BLOCK_BYTES];
        disk.read(block * BLOCK_BYTES as u64, &mut out).unwrap();
        out
    }

    fn after_cut(behaviour: Behaviour) -> LossyDisk {
        let mut disk = LossyDisk::new(behaviour, 7);
        for block in 0..4u64 {
            disk.write(block * BLOCK_BYTES as u64, &[1 + block as u8; BLOCK_BYTES]).unwrap();
        }
        disk.flush().unwrap();
        disk.cut();
        assert_eq!(disk.write(0, &[1]), Err(PoweredOff));
        assert_eq!(disk.read(0, &mut [0]), Err(PoweredOff));
        disk.restore();
        disk
    }

    #[test]
    fn an_honest_disk_keeps_flushed_writes_and_each_lie_breaks_one() {
        let intact = |disk: &LossyDisk| {
            (0..4).filter(|b| read(disk, *b) == [1 + *b as u8; BLOCK_BYTES]).count()
        };
        let honest = after_cut(Behaviour::Honest);
        assert_eq!((intact(&honest), honest.lies()), (4, 0));
        for lie in Behaviour::LIES {
            let disk = after_cut(lie);
            assert!(intact(&disk) < 4, "{lie:?}");
            assert_eq!(disk.lies(), 1, "{lie:?}");
        }
    }

    #[test]
    fn unflushed_writes_may_be_lost_and_parts_of_a_block_are_kept() {
        let mut disk = LossyDisk::new(Behaviour::Honest, 3);
        disk.write(100, &[5; 5000]).unwrap();
        assert_eq!(read(&disk, 0)[99..101], [0, 5]);
        assert_eq!(read(&disk, 1)[1003..1005], [5, 0]);
        disk.flush().unwrap();
        let lost = (0..50).filter(|at| {
            disk.write(0, &[*at + 10; BLOCK_BYTES]).unwrap();
            disk.cut();
            disk.restore();
            read(&disk, 0)[0] != *at + 10
        });
        assert!((10..40).contains(&lost.count()));
    }
}
