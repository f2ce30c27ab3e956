//! Buffers for database writes. All databases of a group share these buffers.

use super::config::MailboxConfig;

/// A database write that is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteSlot {
    pub place: usize,
    pub first_page: u32,
    pub pages: u32,
    /// Cache frame that contains the written page.
    pub frame: u32,
    /// Log position before the first change of the page that no earlier write contains.
    pub rec_lsn: u64,
    pub buffer_at: u64,
    busy: bool,
}

/// Buffers for the database writes of a group.
#[derive(Debug)]
pub(crate) struct Pool {
    pub slots: Vec<WriteSlot>,
    free: Vec<u32>,
}

/// Maximum number of write buffers in a group. More writes in flight would only be useful on a
/// target with several devices.
const SLOTS_MAX: usize = 128;

impl Pool {
    /// Creates the buffers for a group with `databases` databases. In the arena, they start at the
    /// offset `buffer_at`.
    pub fn new(config: &MailboxConfig, databases: usize, buffer_at: u64) -> Self {
        let count = Self::count(config, databases);
        let slot = |i: usize| WriteSlot {
            place: 0,
            first_page: 0,
            pages: 0,
            frame: 0,
            rec_lsn: u64::MAX,
            buffer_at: buffer_at + i as u64 * u64::from(config.coalesce_bytes),
            busy: false,
        };
        let free = (0..count as u32).rev().collect();
        Self { slots: (0..count).map(slot).collect(), free }
    }

    /// Returns how many buffers a group of `databases` databases needs.
    pub fn count(config: &MailboxConfig, databases: usize) -> usize {
        let most = SLOTS_MAX.max(databases);
        (config.writes_in_flight as usize).saturating_mul(databases).min(most)
    }

    /// Allocates a buffer.
    pub fn take(&mut self) -> Option<u32> {
        let at = self.free.pop()?;
        self.slots[at as usize].busy = true;
        Some(at)
    }

    /// Returns true if no buffer is free.
    pub fn is_used_up(&self) -> bool {
        self.free.is_empty()
    }

    /// Frees a buffer.
    pub fn release(&mut self, at: u32) {
        self.slots[at as usize].busy = false;
        self.free.push(at);
    }

    /// Returns the write whose data is in a buffer, if this write is in flight.
    pub fn get(&self, at: u32) -> Option<WriteSlot> {
        self.slots.get(at as usize).copied().filter(|slot| slot.busy)
    }

    /// Returns the lowest `rec_lsn` among the writes of a database that are in flight.
    pub fn rec_lsn_min(&self, place: usize) -> u64 {
        let mine = self.slots.iter().filter(|slot| slot.busy && slot.place == place);
        mine.map(|slot| slot.rec_lsn).min().unwrap_or(u64::MAX)
    }
}
