//! Determines which databases of a group have work in a step.
//!
//! Write-back, log and background reads of a database can continue only after an event. An event is
//! the completion of an I/O of the database, work of a session on the database, or the end of a
//! timer. A step skips all databases without an event. The CPU time of a step therefore does not
//! depend on the size of the group.

/// Value for a timer that is not set.
const NEVER: u64 = u64::MAX;

/// State of the databases in a group. The index is the position of the database in the group.
#[derive(Debug)]
pub(crate) struct Attention {
    /// One bit for each database. The bit is set if the database had an event since the last step
    /// in which it did its work, or if it has more work for the next step. Usually only one bit is
    /// set, and all other databases need no CPU time.
    stirred: Vec<u64>,
    /// For each database: the time at which its next timer ends. Timers do not depend on
    /// completions.
    due_ns: Vec<u64>,
    /// Earliest of the times in `due_ns`.
    next_ns: u64,
}

impl Attention {
    /// Creates the state for this number of databases. All databases are marked as having work.
    pub fn new(databases: usize) -> Self {
        let stirred = vec![0; databases.div_ceil(64)];
        let mut all = Self { stirred, due_ns: vec![NEVER; databases], next_ns: NEVER };
        all.stir_all();
        all
    }

    /// Records that a database had an event.
    #[inline]
    pub fn stir(&mut self, place: usize) {
        if place < self.due_ns.len() {
            self.stirred[place / 64] |= 1 << (place % 64);
        }
    }

    /// Records that every database had an event.
    pub fn stir_all(&mut self) {
        (0..self.due_ns.len()).for_each(|place| self.stir(place));
    }

    /// Marks the databases whose timers have ended.
    #[inline]
    pub fn look(&mut self, now_ns: u64) {
        if self.next_ns <= now_ns {
            for place in 0..self.due_ns.len() {
                if self.due_ns[place] <= now_ns {
                    self.stir(place);
                }
            }
        }
    }

    /// Returns the first database that has work. The search starts at position `from`.
    #[inline]
    pub fn first(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.stirred.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.stirred.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Records that a database has done its work in this step. `rests` is true if it has no more
    /// work, and `due_ns` is the time at which its next timer ends.
    #[inline]
    pub fn settle(&mut self, place: usize, rests: bool, due_ns: Option<u64>) {
        let word = &mut self.stirred[place / 64];
        *word = *word & !(1 << (place % 64)) | u64::from(!rests) << (place % 64);
        let due_ns = due_ns.unwrap_or(NEVER);
        let before_ns = std::mem::replace(&mut self.due_ns[place], due_ns);
        if due_ns <= self.next_ns {
            self.next_ns = due_ns;
        } else if before_ns == self.next_ns {
            self.next_ns = self.due_ns.iter().fold(NEVER, |first, &at| first.min(at));
        }
    }

    /// Returns the earliest time at which a timer of any database ends.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        (self.next_ns != NEVER).then_some(self.next_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanting(attention: &mut Attention, now_ns: u64) -> Vec<usize> {
        attention.look(now_ns);
        std::iter::successors(attention.first(0), |&place| attention.first(place + 1)).collect()
    }

    #[test]
    fn a_database_is_left_alone_until_something_happens_or_is_due() {
        let mut attention = Attention::new(2);
        assert_eq!(wanting(&mut attention, 0), [0, 1]);
        attention.settle(0, true, None);
        attention.settle(1, true, Some(10));
        assert_eq!(attention.next_ns(), Some(10));
        assert_eq!(wanting(&mut attention, 9), []);
        assert_eq!(wanting(&mut attention, 10), [1]);
        attention.stir(0);
        attention.settle(1, false, None);
        assert_eq!(wanting(&mut attention, 11), [0, 1]);
        assert_eq!(attention.next_ns(), None);
        attention.settle(0, true, None);
        attention.settle(1, true, None);
        attention.stir(2);
        assert_eq!(wanting(&mut attention, 1 << 60), []);
    }

    proptest! {
        /// The state behaves like two plain lists. The test uses more databases than a word has
        /// bits.
        #[test]
        fn attention_is_two_lists(
            acts in prop::collection::vec((0u8..3, 0usize..130, any::<bool>(), 0u64..40), 0..300),
        ) {
            let mut attention = Attention::new(130);
            let (mut stirred, mut due, mut now_ns) = ([true; 130], [NEVER; 130], 0);
            for (act, place, rests, time_ns) in acts {
                match act {
                    0 => {
                        attention.stir(place);
                        stirred[place] = true;
                    }
                    1 => now_ns += time_ns / 8,
                    _ => {
                        let at = (time_ns % 3 > 0).then_some(now_ns + time_ns);
                        attention.settle(place, rests, at);
                        (stirred[place], due[place]) = (!rests, at.unwrap_or(NEVER));
                    }
                }
                for place in 0..130 {
                    stirred[place] |= due[place] <= now_ns;
                }
                let expected: Vec<usize> = (0..130).filter(|&place| stirred[place]).collect();
                prop_assert_eq!(wanting(&mut attention, now_ns), expected);
                let next = due.iter().copied().min().filter(|&at| at != NEVER);
                prop_assert_eq!(attention.next_ns(), next);
            }
        }
    }
}
