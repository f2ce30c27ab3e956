//! Expected generation of each unit. It is stored in five bytes for each unit.
//!
//! Four bytes of an entry count the writes of the unit. The fifth byte is the state of the entry:
//! it shows which other generations the unit may have.
//!
//! | bits | meaning |
//! |---|---|
//! | 0-2, 6 | number of writes in flight (15: the entry is being changed) |
//! | 3-5 | number of older generations that are also possible (7: any generation is possible) |
//! | 7 | set if a read has returned the current generation undamaged |
//!
//! Threads share the entries without a global lock. To change an entry, a thread locks only this
//! entry, with a compare-and-swap and for a few instructions.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::ExpectedContent;

const FLIGHT: u8 = 0x47;
const TAKEN: u8 = FLIGHT;
/// Maximum number of writes of one unit that may be in flight.
const FLIGHT_MAX: u8 = 14;
const BACK_SHIFT: u8 = 3;
const BACK: u8 = 0x07 << BACK_SHIFT;
const BACK_MAX: u8 = 7;
const SEEN: u8 = 0x80;
/// Value of the count that marks a unit as no longer tracked.
const GIVEN_UP: u32 = u32::MAX;

/// Returns the number of writes in flight that a state byte contains.
#[inline]
const fn flight_of(state: u8) -> u8 {
    state & 0x07 | (state & 0x40) >> 3
}

/// Converts a number of writes in flight to the bits of a state byte.
#[inline]
const fn flight_bits(flight: u8) -> u8 {
    flight & 0x07 | (flight & 0x08) << 3
}

/// Generations of all units of a target.
#[derive(Debug)]
pub struct Generations {
    counts: Box<[AtomicU32]>,
    states: Box<[AtomicU8]>,
}

/// Ticket for a write that was started. The caller must pass the ticket back when the write ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a started write must be ended, or its unit stays uncertain"]
pub struct Ticket {
    pub unit: u64,
    /// Generation of the content that the write must contain.
    pub generation: u32,
    /// True if no other write of the unit was in flight when this write started.
    alone: bool,
}

impl Generations {
    /// Number of bytes of memory that one unit needs.
    pub const BYTES_PER_UNIT: usize = 5;

    /// Creates the generations of units that were never written.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self {
            counts: (0..units).map(|_| AtomicU32::new(0)).collect(),
            states: (0..units).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    #[must_use]
    pub fn units(&self) -> usize {
        self.counts.len()
    }

    /// Locks an entry, changes it and stores the changed entry.
    #[inline]
    fn change<T>(&self, unit: u64, change: impl Fn(&AtomicU32, &mut u8) -> T) -> Option<T> {
        let at = usize::try_from(unit).ok()?;
        let (count, state) = (self.counts.get(at)?, self.states.get(at)?);
        let mut now = state.load(Ordering::Relaxed);
        loop {
            if now & FLIGHT == TAKEN {
                core::hint::spin_loop();
                now = state.load(Ordering::Relaxed);
                continue;
            }
            let taken = now | TAKEN;
            let order = (Ordering::Acquire, Ordering::Relaxed);
            match state.compare_exchange_weak(now, taken, order.0, order.1) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        let result = change(count, &mut now);
        state.store(now, Ordering::Release);
        Some(result)
    }

    /// Starts a write: counts the write and returns a ticket with its generation. Returns `None` if
    /// the unit does not exist, already has 14 writes in flight, or already had 2^32 - 1 writes. If
    /// the write is issued nevertheless, the content of the unit is unknown
    /// ([`Generations::give_up`]).
    #[inline]
    pub fn begin(&self, unit: u64) -> Option<Ticket> {
        self.change(unit, |count, state| {
            let flight = flight_of(*state);
            let generation = count.load(Ordering::Relaxed).checked_add(1)?;
            if flight >= FLIGHT_MAX {
                return None;
            }
            let back = ((*state & BACK) >> BACK_SHIFT).saturating_add(1).min(BACK_MAX);
            *state = flight_bits(flight + 1) | back << BACK_SHIFT;
            count.store(generation, Ordering::Relaxed);
            Some(Ticket { unit, generation, alone: flight == 0 })
        })?
    }

    /// Ends a write that was acknowledged. If no other write of the unit was in flight at the same
    /// time, the content of the unit is known again.
    #[inline]
    pub fn end(&self, ticket: Ticket) {
        self.change(ticket.unit, |count, state| {
            let flight = flight_of(*state).saturating_sub(1);
            let last = count.load(Ordering::Relaxed) == ticket.generation;
            let sure = flight == 0 && last && ticket.alone;
            *state = if sure { 0 } else { flight_bits(flight) | *state & BACK };
        });
    }

    /// Ends a write that failed or was abandoned. The content of the unit is uncertain until its
    /// next write.
    pub fn fail(&self, ticket: Ticket) {
        self.change(ticket.unit, |_, state| {
            let flight = flight_of(*state).saturating_sub(1);
            *state = flight_bits(flight) | *state & BACK;
        });
    }

    /// Stops tracking a unit. After that, [`Generations::begin`] returns `None` for the unit, and
    /// the unit has no expected content.
    pub fn give_up(&self, unit: u64) {
        self.change(unit, |count, state| {
            count.store(GIVEN_UP, Ordering::Relaxed);
            *state |= BACK;
        });
    }

    /// Records that a read returned the current generation undamaged while no write overlapped the
    /// read ([`super::ReadStart::was_alone`]). After that, an older generation of the unit is
    /// reported as stale and not as lost.
    #[inline]
    pub fn saw(&self, unit: u64, generation: u32) {
        self.change(unit, |count, state| {
            if *state & FLIGHT == 0 && count.load(Ordering::Relaxed) == generation {
                *state = SEEN;
            }
        });
    }

    /// Returns the expected content of the unit. A unit that does not exist or is no longer tracked
    /// has no expected content.
    #[must_use]
    #[inline]
    pub fn expected(&self, unit: u64) -> ExpectedContent {
        let found = self.change(unit, |count, state| {
            let generation = Some(count.load(Ordering::Relaxed)).filter(|all| *all != GIVEN_UP)?;
            Some(ExpectedContent {
                generation,
                back: match (*state & BACK) >> BACK_SHIFT {
                    BACK_MAX => u32::MAX,
                    back => back.into(),
                },
                in_flight: *state & FLIGHT != 0,
                seen: *state & SEEN != 0,
            })
        });
        found.flatten().unwrap_or_default()
    }

    /// Records that every unit was written once, which is the state after a layout.
    pub fn written_once(&self) {
        for (count, state) in self.counts.iter().zip(&self.states) {
            count.store(1, Ordering::Relaxed);
            state.store(0, Ordering::Relaxed);
        }
    }

    /// Calls `each` with the bytes of each entry: the count in little-endian order, and then the
    /// state. The caller stores the bytes in a file.
    pub fn save(&self, mut each: impl FnMut([u8; Self::BYTES_PER_UNIT])) {
        for (count, state) in self.counts.iter().zip(&self.states) {
            let [a, b, c, d] = count.load(Ordering::Relaxed).to_le_bytes();
            each([a, b, c, d, state.load(Ordering::Relaxed)]);
        }
    }

    /// Restores the entries from the bytes that [`Generations::save`] produced. If a write was in
    /// flight when the bytes were saved, the result of the write is uncertain. Bytes after the last
    /// whole entry are ignored.
    #[must_use]
    pub fn load(bytes: &[u8]) -> Self {
        let (entries, _) = bytes.as_chunks::<{ Self::BYTES_PER_UNIT }>();
        let count = |e: &[u8; 5]| AtomicU32::new(u32::from_le_bytes([e[0], e[1], e[2], e[3]]));
        let state = |e: &[u8; 5]| AtomicU8::new(e[4] & !FLIGHT);
        Self {
            counts: entries.iter().map(count).collect(),
            states: entries.iter().map(state).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(generation: u32, back: u32, in_flight: bool, seen: bool) -> ExpectedContent {
        ExpectedContent { generation, back, in_flight, seen }
    }

    #[test]
    fn it_takes_five_bytes_a_unit() {
        let entry = std::mem::size_of::<AtomicU32>() + std::mem::size_of::<AtomicU8>();
        assert_eq!(entry, Generations::BYTES_PER_UNIT);
    }

    #[test]
    fn a_write_alone_is_sure_when_it_ends() {
        let g = Generations::new(2);
        assert_eq!(g.expected(1), expected(0, 0, false, false));
        let a = g.begin(1).unwrap();
        assert_eq!((a.generation, g.expected(1)), (1, expected(1, 1, true, false)));
        g.end(a);
        assert_eq!(g.expected(1), expected(1, 0, false, false));
        g.saw(1, 1);
        assert_eq!(g.expected(1), expected(1, 0, false, true));
        let b = g.begin(1).unwrap();
        g.end(b);
        assert_eq!(g.expected(1), expected(2, 0, false, false));
        assert_eq!(g.expected(0).generation, 0);
        assert!(g.begin(2).is_none());
    }

    #[test]
    fn overlapping_and_failed_writes_stay_unsure_until_one_is_alone() {
        let g = Generations::new(1);
        g.written_once();
        let (a, b) = (g.begin(0).unwrap(), g.begin(0).unwrap());
        g.end(b);
        g.end(a);
        assert_eq!(g.expected(0), expected(3, 2, false, false));
        // The two writes overlapped, so either of them may have reached the target last. After a
        // read has returned the newer generation, the content is known again.
        g.saw(0, 2);
        assert_eq!(g.expected(0).back, 2);
        g.saw(0, 3);
        assert_eq!(g.expected(0), expected(3, 0, false, true));
        let c = g.begin(0).unwrap();
        g.fail(c);
        assert_eq!(g.expected(0), expected(4, 1, false, false));
        let d = g.begin(0).unwrap();
        g.end(d);
        assert_eq!(g.expected(0), expected(5, 0, false, false));
    }

    #[test]
    fn a_later_write_that_ends_first_leaves_the_earlier_in_doubt() {
        let g = Generations::new(1);
        let a = g.begin(0).unwrap();
        let b = g.begin(0).unwrap();
        g.end(a);
        assert!(g.expected(0).in_flight && g.expected(0).back == 2);
        g.end(b);
        assert_eq!(g.expected(0), expected(2, 2, false, false));
    }

    #[test]
    fn too_many_at_once_are_turned_away() {
        let g = Generations::new(1);
        let all: Vec<Ticket> = (0..14).map(|_| g.begin(0).unwrap()).collect();
        assert!(g.begin(0).is_none() && g.expected(0).in_flight);
        for ticket in all {
            g.end(ticket);
        }
        assert_eq!(g.expected(0), expected(14, u32::MAX, false, false));
        let (x, y) = (g.begin(0).unwrap(), g.begin(0).unwrap());
        g.end(x);
        g.end(y);
        assert_eq!(g.expected(0).back, u32::MAX);
        let unfinished = g.begin(0).unwrap();
        g.give_up(0);
        g.end(unfinished);
        g.saw(0, u32::MAX);
        assert!(g.begin(0).is_none());
        assert_eq!(
            g.expected(0),
            ExpectedContent::default(),
            "its content is unknown from then on"
        );
    }

    #[test]
    fn it_is_saved_and_loaded_with_its_doubts() {
        let g = Generations::new(3);
        let a = g.begin(0).unwrap();
        g.end(a);
        let _in_flight = g.begin(1).unwrap();
        let mut bytes = Vec::new();
        g.save(|entry| bytes.extend(entry));
        let loaded = Generations::load(&bytes);
        assert_eq!(loaded.units(), 3);
        assert_eq!(loaded.expected(0), expected(1, 0, false, false));
        assert_eq!(loaded.expected(1), expected(1, 1, false, false));
        assert_eq!(loaded.expected(2), expected(0, 0, false, false));
    }

    #[test]
    fn threads_count_every_write() {
        let g = Generations::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..10_000u64 {
                        let ticket = g.begin(i % 4).unwrap();
                        g.end(ticket);
                    }
                });
            }
        });
        for unit in 0..4 {
            assert_eq!(g.expected(unit).generation, 10_000);
            assert!(!g.expected(unit).in_flight);
        }
    }
}
