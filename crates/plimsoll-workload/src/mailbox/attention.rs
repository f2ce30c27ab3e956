//! Which databases of a group have to be looked after in a step.
//!
//! Write-back, log and background reads of a database go on only when something happened to it: one of
//! its I/Os ended, a session worked on it, or a time has come. The others are left alone, so that a step
//! costs what it does and not what the group holds.

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// What is known of each database, by its place in the group.
#[derive(Debug)]
pub(crate) struct Attention {
    /// Something happened since it was last looked after, or more would be done the next time.
    stirred: Vec<bool>,
    /// When something of it is due without any of its I/Os ending.
    due_ns: Vec<u64>,
}

impl Attention {
    /// Of so many databases, none of which has been looked after.
    pub fn new(databases: usize) -> Self {
        Self { stirred: vec![true; databases], due_ns: vec![NEVER; databases] }
    }

    /// Something happened to a database.
    #[inline]
    pub fn stir(&mut self, place: usize) {
        if let Some(stirred) = self.stirred.get_mut(place) {
            *stirred = true;
        }
    }

    /// Something happened to all of them.
    pub fn stir_all(&mut self) {
        self.stirred.fill(true);
    }

    /// Whether a database has to be looked after at this time.
    #[inline]
    pub fn wants(&self, place: usize, now_ns: u64) -> bool {
        self.stirred[place] || self.due_ns[place] <= now_ns
    }

    /// A database has been looked after: whether it is at rest, and when it is due.
    #[inline]
    pub fn settle(&mut self, place: usize, rests: bool, due_ns: Option<u64>) {
        self.stirred[place] = !rests;
        self.due_ns[place] = due_ns.unwrap_or(NEVER);
    }

    /// The earliest time at which any is due.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        let first = self.due_ns.iter().fold(NEVER, |first, &at| first.min(at));
        (first != NEVER).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_left_alone_until_something_happens_or_is_due() {
        let mut attention = Attention::new(2);
        assert!(attention.wants(0, 0) && attention.wants(1, 0));
        attention.settle(0, true, None);
        attention.settle(1, true, Some(10));
        assert_eq!(attention.next_ns(), Some(10));
        assert!(!attention.wants(0, 1 << 60) && !attention.wants(1, 9) && attention.wants(1, 10));
        attention.stir(0);
        attention.settle(1, false, None);
        assert!(attention.wants(0, 0) && attention.wants(1, 0));
        assert_eq!(attention.next_ns(), None);
    }
}
