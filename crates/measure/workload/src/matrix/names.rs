//! Determines which small files exist.
//!
//! A client creates names with ascending numbers. It removes or renames the oldest name. Two
//! counters are therefore sufficient to record which names exist. A remove or a rename must not use
//! one of the newest names, whose creation may still be in flight. If only such names exist, the
//! client creates a file instead. These replacements are counted.

/// The small files that one client has created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    oldest: u64,
    next: u64,
    /// Minimum number of names that must exist. It is the maximum number of operations in flight.
    keep: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChange {
    /// Creates the file with this number.
    Create(u64),
    Remove(u64),
    /// Renames a file. The first number is the old name, and the second number is the new name.
    Rename(u64, u64),
}

impl Names {
    /// Creates the names `0..initial`. At any time, up to `in_flight` changes may be in progress.
    #[must_use]
    pub fn new(initial: u32, in_flight: u32) -> Self {
        Self { oldest: 0, next: initial.into(), keep: in_flight.into() }
    }

    /// Returns the number of names that exist.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next - self.oldest
    }

    /// Returns a change that creates the next name.
    pub fn create(&mut self) -> NameChange {
        self.next += 1;
        NameChange::Create(self.next - 1)
    }

    /// Returns a change that removes the oldest name.
    pub fn remove(&mut self) -> NameChange {
        match self.take_oldest() {
            Some(oldest) => NameChange::Remove(oldest),
            None => self.create(),
        }
    }

    /// Returns a change that renames the oldest name to the next number.
    pub fn rename(&mut self) -> NameChange {
        match self.take_oldest() {
            Some(oldest) => {
                self.next += 1;
                NameChange::Rename(oldest, self.next - 1)
            }
            None => self.create(),
        }
    }

    fn take_oldest(&mut self) -> Option<u64> {
        if self.count() <= self.keep {
            return None;
        }
        self.oldest += 1;
        Some(self.oldest - 1)
    }
}

/// Returns the text of a small file's name. The name contains the number of the client.
#[must_use]
pub fn name_text(client: u32, number: u64) -> String {
    format!("m{client:05}-{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Applies the changes to a set of names. The most recent changes may still be in flight.
        /// No change may create a name that exists, or use a name that does not exist.
        #[test]
        fn changes_never_collide_even_with_those_in_flight(
            initial in 0u32..20,
            depth in 1u32..8,
            steps in prop::collection::vec(0u8..3, 0..400),
        ) {
            let mut names = Names::new(initial, depth);
            let mut there: HashSet<u64> = (0..u64::from(initial)).collect();
            let mut touched: Vec<u64> = Vec::new();
            for step in steps {
                let change = match step {
                    0 => names.create(),
                    1 => names.remove(),
                    _ => names.rename(),
                };
                let old = match change {
                    NameChange::Create(new) => {
                        prop_assert!(there.insert(new));
                        touched.push(new);
                        None
                    }
                    NameChange::Remove(old) => Some(old),
                    NameChange::Rename(old, new) => {
                        prop_assert!(there.insert(new));
                        touched.push(new);
                        Some(old)
                    }
                };
                if let Some(old) = old {
                    prop_assert!(there.remove(&old));
                    let young = &touched[touched.len().saturating_sub(depth as usize)..];
                    prop_assert!(!young.contains(&old) || young.len() < depth as usize);
                }
                prop_assert_eq!(there.len() as u64, names.count());
            }
        }
    }

    #[test]
    fn too_few_names_become_creates() {
        let mut names = Names::new(0, 2);
        assert_eq!(names.remove(), NameChange::Create(0));
        assert_eq!(names.rename(), NameChange::Create(1));
        assert_eq!(names.create(), NameChange::Create(2));
        assert_eq!(names.rename(), NameChange::Rename(0, 3));
        assert_eq!(name_text(3, 17), "m00003-0000000017");
    }
}
