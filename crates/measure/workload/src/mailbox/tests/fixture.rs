//! Small stores that the tests use.

use std::sync::{Arc, Mutex};

use super::disk::{Disk, Latency, NextStep};
use crate::mailbox::{
    Create, DatabaseConfig, DatabaseState, Duplicate, Format, GenerationMap, MailboxConfig, Mark,
    MemoryGenerationMap, Phase, PhaseIo, Store,
};

/// Generation map that is not dropped together with its machine, like a map in shared memory. The
/// flag is true if the map is trusted.
#[derive(Clone, Debug)]
pub struct SharedGenerationMap(pub Arc<Mutex<MemoryGenerationMap>>, pub bool);

impl SharedGenerationMap {
    pub fn new(pages: u32) -> Self {
        Self(Arc::new(Mutex::new(MemoryGenerationMap::new(pages))), true)
    }

    /// Returns a copy of the map. Changes to the map do not affect the copy.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().unwrap().clone())), self.1)
    }

    /// Returns a copy of the map. The copy is marked as not trusted.
    pub fn untrusted(&self) -> Self {
        Self(self.copy().0, false)
    }
}

impl GenerationMap for SharedGenerationMap {
    fn get(&self, page: u32) -> Mark {
        self.0.lock().unwrap().get(page)
    }

    fn set(&mut self, page: u32, mark: Mark) {
        self.0.lock().unwrap().set(page, mark);
    }

    fn durable_lsn(&self) -> u64 {
        self.0.lock().unwrap().durable_lsn()
    }

    fn set_durable_lsn(&mut self, lsn: u64) {
        self.0.lock().unwrap().set_durable_lsn(lsn);
    }

    fn is_trusted(&self, _end_lsn: u64) -> bool {
        self.1
    }
}

/// All latencies are similar, so that events occur in every possible order.
pub const LATENCY: Latency =
    Latency { read_ns: 200_000, write_ns: 300_000, durable_ns: 100_000, flush_ns: 500_000 };

/// Size of the I/Os that phases issue on small stores, and the number of I/Os in flight.
pub const PHASE_IO: PhaseIo = PhaseIo { chunk_bytes: 32 << 10, depth: 3 };

/// Configuration of a store that is so small that every event occurs often. It has pages of 4 KiB,
/// and a cache smaller than the database. Its log ring is overwritten every few dozen commits.
pub fn small(seed: u64) -> MailboxConfig {
    let databases = (0..2).map(|id| DatabaseConfig::new(id, 0, 1, 36)).collect();
    MailboxConfig {
        page_bytes: 4096,
        record_bytes: 200,
        cache_bytes: 2 * 26 * 4096,
        coalesce_bytes: 4 * 4096,
        writes_in_flight: 4,
        checkpoint_depth_bytes: 32 << 10,
        checkpoint_step_bytes: 8 << 10,
        log_file_bytes: 16 << 10,
        log_files: 9,
        log_buffer_bytes: 36 << 10,
        lazy_flush_ns: 2_000_000,
        maintenance_bytes: 16 << 10,
        maintenance_interval_ns: 1_000_000,
        replication_bytes: 8 << 10,
        copies: 2,
        ..MailboxConfig::new(0x504c, seed, databases, 6)
    }
}

/// Returns an empty map for each database of a store, in the order of the databases.
pub fn maps(config: &MailboxConfig) -> Vec<SharedGenerationMap> {
    config.databases.iter().map(|d| SharedGenerationMap::new(d.pages_max)).collect()
}

/// Creates a store that contains all databases of a configuration, with these maps.
pub fn store(config: &MailboxConfig, maps: &[SharedGenerationMap]) -> Store {
    let state = |(d, m): (&DatabaseConfig, &SharedGenerationMap)| {
        DatabaseState::new(d.clone(), Box::new(m.clone()))
    };
    let states = config.databases.iter().zip(maps).map(state).collect();
    Store::new(config.clone(), states).unwrap()
}

/// Runs a phase to its end and returns the store.
pub fn finish<P: Phase>(disk: &mut Disk, mut phase: P) -> Store {
    disk.run(&mut phase, |_, _| NextStep::On);
    assert_eq!(phase.poison(), None);
    assert!(phase.is_complete());
    assert_eq!(phase.findings(), []);
    Box::new(phase).into_store()
}

/// Creates the first database of a store, formats the logs, and duplicates the database. Returns
/// the store and its disk.
pub fn prepared(config: &MailboxConfig, maps: &[SharedGenerationMap]) -> (Disk, Store) {
    let mut disk = Disk::new(config.seed, LATENCY);
    let store = finish(&mut disk, Create::new(store(config, maps), PHASE_IO));
    let store = finish(&mut disk, Format::new(store, PHASE_IO));
    let store = finish(&mut disk, Duplicate::new(store, PHASE_IO));
    (disk, store)
}
