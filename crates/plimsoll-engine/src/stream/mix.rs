//! The operations of one stream: a mix of reads and writes of several sizes, where the pattern says, made
//! durable when the policy says.
//!
//! Kinds and sizes are drawn from one number per operation. Those numbers are random, but stratified: of
//! each 64 in a row exactly one falls into each 64th of the unit interval, in an order of its own. So a
//! short run already has the shares that were asked for (the error falls with the number of operations
//! seven times faster than that of independent draws), while which operation is which stays
//! unforeseeable. Everything follows from the seed and the client, whatever the number of threads.

use plimsoll_sys::op::OpKind;
use plimsoll_workload::address::{AddressError, Pattern, Region, Walk, Walks};

use super::source::{Op, Source};

/// Numbers of a stratum: a power of two.
const STRATA: u64 = 64;

/// Class of reads, writes and flushes, counted from [`MixConfig::class_first`].
pub const CLASS_READ: u16 = 0;
/// See [`CLASS_READ`].
pub const CLASS_WRITE: u16 = 1;
/// See [`CLASS_READ`].
pub const CLASS_FLUSH: u16 = 2;
/// Classes of one stream.
pub const CLASSES: u16 = 3;

/// When writes are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system likes (or always, where files are open with `O_DSYNC`).
    #[default]
    None,
    /// Each write completes on stable storage (`RWF_DSYNC`; force-unit-access on devices that have it).
    EachWrite,
    /// A flush of every file written to, after so many writes of a client.
    Flush {
        /// After how many writes; 0 is taken as 1.
        every_writes: u32,
        /// With all metadata (`fsync`) instead of data alone (`fdatasync`).
        with_metadata: bool,
    },
}

/// A size of transfers and its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeShare {
    /// Bytes of one transfer.
    pub size_bytes: u32,
    /// Share, in any unit: shares are taken relative to their sum.
    pub share: f64,
}

/// What a stream does.
#[derive(Clone, Debug)]
pub struct MixConfig {
    /// Share of reads among reads and writes, 0 to 1.
    pub read_share: f64,
    /// Sizes of reads, and of writes where `write_sizes` is empty.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes, where they differ.
    pub write_sizes: Vec<SizeShare>,
    /// Where operations go.
    pub pattern: Pattern,
    /// The parts of files that they go to.
    pub regions: Vec<Region>,
    /// What offsets are multiples of; 0: the size of the transfer.
    pub align_bytes: u64,
    /// When writes are made durable.
    pub durability: Durability,
    /// First of the stream's three classes.
    pub class_first: u16,
    /// Number of the first client here among all clients of the stream.
    pub client_first: u32,
    /// Clients here.
    pub clients: u32,
    /// Clients of the stream, on all threads and hosts.
    pub clients_in_all: u32,
    /// Seed of the stream.
    pub seed: u64,
}

impl MixConfig {
    /// Uniform random reads of one size over one region.
    #[must_use]
    pub fn reads(size_bytes: u32, region: Region) -> Self {
        Self {
            read_share: 1.0,
            sizes: vec![SizeShare { size_bytes, share: 1.0 }],
            write_sizes: Vec::new(),
            pattern: Pattern::Random,
            regions: vec![region],
            align_bytes: 0,
            durability: Durability::None,
            class_first: 0,
            client_first: 0,
            clients: 1,
            clients_in_all: 1,
            seed: 1,
        }
    }

    /// The largest transfer.
    #[must_use]
    pub fn size_bytes_max(&self) -> u32 {
        let all = self.sizes.iter().chain(&self.write_sizes);
        all.map(|size| size.size_bytes).max().unwrap_or(0)
    }

    /// Kinds and sizes in the order of the unit interval, each with its end as a 64-bit fraction.
    fn choices(&self) -> Vec<Choice> {
        let write = match self.durability {
            Durability::EachWrite => OpKind::WriteDurable,
            _ => OpKind::Write,
        };
        let write_sizes = if self.write_sizes.is_empty() { &self.sizes } else { &self.write_sizes };
        let read_share = self.read_share.clamp(0.0, 1.0);
        let mut choices = Vec::new();
        let mut add = |kind, class, sizes: &[SizeShare], from: f64, width: f64| {
            let sum: f64 = sizes.iter().map(|size| size.share.max(0.0)).sum();
            let mut at = from;
            for size in sizes.iter().filter(|size| size.share > 0.0 && width > 0.0) {
                at += width * size.share / sum;
                // 2⁶⁴ as a float; the last end saturates.
                let end = (at * 18_446_744_073_709_551_616.0) as u64;
                choices.push(Choice { end, kind, class, size_bytes: size.size_bytes });
            }
        };
        add(OpKind::Read, CLASS_READ, &self.sizes, 0.0, read_share);
        add(write, CLASS_WRITE, write_sizes, read_share, 1.0 - read_share);
        if let Some(last) = choices.last_mut() {
            last.end = u64::MAX;
        }
        choices
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    end: u64,
    kind: OpKind,
    class: u16,
    size_bytes: u32,
}

/// Stratified random 64-bit fractions.
#[derive(Clone, Copy, Debug)]
struct Strata {
    state: u64,
    /// Operations of this block so far, and the block's order: `multiplier × k + offset`.
    at: u64,
    multiplier: u64,
    offset: u64,
}

impl Strata {
    fn new(seed: u64) -> Self {
        Self { state: seed, at: STRATA, multiplier: 1, offset: 0 }
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA '14).
    #[inline(always)]
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let bits = self.random();
        if self.at == STRATA {
            let order = self.random();
            // An odd multiplier makes the order a permutation of the strata.
            (self.at, self.multiplier, self.offset) = (0, order | 1, order >> 32);
        }
        let stratum =
            self.at.wrapping_mul(self.multiplier).wrapping_add(self.offset) & (STRATA - 1);
        self.at += 1;
        (stratum << (64 - STRATA.trailing_zeros())) | (bits >> STRATA.trailing_zeros())
    }
}

#[derive(Clone, Debug)]
struct Client {
    walk: Walk,
    strata: Strata,
    writes_unflushed: u32,
    /// Files written to since the last flush.
    dirty: Vec<u32>,
    /// How many of them are still to be flushed in this round.
    flushing: usize,
}

/// A stream's operations. See the module.
#[derive(Clone, Debug)]
pub struct Mix {
    walks: Walks,
    choices: Box<[Choice]>,
    clients: Box<[Client]>,
    durability: Durability,
    class_first: u16,
}

impl Mix {
    /// The operations that `config` asks for.
    ///
    /// # Errors
    /// An [`AddressError`] where its transfers don't fit its regions.
    pub fn new(config: &MixConfig) -> Result<Self, AddressError> {
        let choices = config.choices().into_boxed_slice();
        let sizes: Vec<u64> = choices.iter().map(|c| u64::from(c.size_bytes)).collect();
        let walks =
            Walks::new(&config.pattern, &config.regions, &sizes, config.align_bytes, config.seed)?;
        let files = config.regions.len();
        let client = |index: u32| {
            let number = u64::from(config.client_first) + u64::from(index);
            let mut seeds = Strata::new(config.seed ^ number.wrapping_mul(0xD134_2543_DE82_EF95));
            Client {
                walk: walks.walk(number, u64::from(config.clients_in_all.max(config.clients))),
                strata: Strata::new(seeds.random()),
                writes_unflushed: 0,
                dirty: Vec::with_capacity(files),
                flushing: 0,
            }
        };
        let clients = (0..config.clients).map(client).collect();
        let (durability, class_first) = (config.durability, config.class_first);
        Ok(Self { clients, choices, walks, durability, class_first })
    }

    /// The next operation of a client.
    #[inline(always)]
    pub fn take(&mut self, client: u32) -> Option<Op> {
        let client = self.clients.get_mut(client as usize)?;
        if client.flushing > 0 {
            return Some(flush(client, self.durability, self.class_first));
        }
        let choice = if let [only] = *self.choices {
            only
        } else {
            let number = client.strata.next();
            // Counted, not searched: no branch depends on the number.
            let at: usize = self.choices.iter().map(|c| usize::from(number >= c.end)).sum();
            self.choices[at.min(self.choices.len() - 1)]
        };
        let Choice { kind, class, size_bytes, .. } = choice;
        let place = self.walks.next(&mut client.walk, u64::from(size_bytes));
        if let Durability::Flush { every_writes, .. } = self.durability
            && class == CLASS_WRITE
        {
            note_write(client, place.file, every_writes);
        }
        Some(Op {
            kind,
            class: self.class_first + class,
            file: place.file,
            offset_bytes: place.offset_bytes,
            size_bytes,
            tag: 0,
        })
    }
}

#[inline]
fn note_write(client: &mut Client, file: u32, every_writes: u32) {
    if !client.dirty.contains(&file) {
        client.dirty.push(file);
    }
    client.writes_unflushed += 1;
    if client.writes_unflushed >= every_writes.max(1) {
        client.writes_unflushed = 0;
        client.flushing = client.dirty.len();
    }
}

#[inline(never)]
fn flush(client: &mut Client, durability: Durability, class_first: u16) -> Op {
    let with_metadata = matches!(durability, Durability::Flush { with_metadata: true, .. });
    let kind = if with_metadata { OpKind::Sync } else { OpKind::Flush };
    client.flushing -= 1;
    let file = client.dirty.pop().unwrap_or(0);
    let class = class_first + CLASS_FLUSH;
    Op { kind, class, file, offset_bytes: 0, size_bytes: 0, tag: 0 }
}

impl Source for Mix {
    #[inline(always)]
    fn next(&mut self, client: u32) -> Option<Op> {
        self.take(client)
    }
}

#[cfg(test)]
mod tests;
