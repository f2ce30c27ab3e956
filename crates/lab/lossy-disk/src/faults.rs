//! Faults of single operations on the disk's file system. They are chosen at random from a seed.

use std::time::Duration;

use fuser::Errno;

use crate::random::Random;

/// Group of file-system operations that have the same faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read of a file.
    Read,
    /// Write to a file.
    Write,
    /// Flush of a file or a directory.
    Flush,
    /// Operation on names or attributes.
    Name,
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The operation fails. Contains the name of the error.
    Error(&'static str, Errno),
    /// A read or write transfers half of its bytes. Other operations have no fault.
    Short,
    /// The operation is delayed. All other operations of the disk wait during this time.
    Delay(Duration),
    /// The operation receives no reply.
    Never,
}

/// Errors from which a schedule chooses. All of them can be caused by storage or networks.
const ERRORS: [(&str, Errno); 6] = [
    ("EIO", Errno::EIO),
    ("ENOSPC", Errno::ENOSPC),
    ("EAGAIN", Errno::EAGAIN),
    ("EINTR", Errno::EINTR),
    ("ESTALE", Errno::ESTALE),
    ("EROFS", Errno::EROFS),
];

/// Schedule of the faults in a run. It contains either one kind of fault or all kinds. The first
/// operations have no faults. After that, a single operation, some operations or most operations
/// have faults.
#[derive(Clone, Debug)]
pub struct FaultSchedule {
    random: Random,
    kinds: Vec<Fault>,
    names_too: bool,
    only_names: bool,
    operations_before: u64,
    one_in: u64,
    faults_left: u64,
    injected: Vec<(Operation, Fault)>,
}

impl FaultSchedule {
    /// Creates a random schedule of errors, short transfers and delays below a second.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let errors = ERRORS.map(|(name, errno)| Fault::Error(name, errno));
        let delay = Fault::Delay(Duration::from_millis(1 + random.draw(300)));
        let mut kinds: Vec<Fault> = errors.into_iter().chain([Fault::Short, delay]).collect();
        if random.draw(4) > 0 {
            kinds = vec![kinds[random.draw(kinds.len() as u64) as usize]];
        }
        let before_max = 1 << random.draw(12);
        let one_in = [1, 2, 10, 100, 1000][random.draw(5) as usize];
        let is_slow = matches!(kinds[..], [Fault::Delay(_)]);
        let faults_left = if is_slow { 3 } else { [1, 3, u64::MAX][random.draw(3) as usize] };
        Self {
            kinds,
            names_too: random.draw(2) == 0,
            only_names: false,
            operations_before: random.draw(before_max),
            one_in,
            faults_left,
            injected: Vec::new(),
            random,
        }
    }

    /// Replaces the faults by a single fault of this kind.
    #[must_use]
    pub fn once(self, fault: Fault) -> Self {
        Self { kinds: vec![fault], faults_left: 1, names_too: false, one_in: 10, ..self }
    }

    /// Replaces the faults by a single one: after this number of operations on names or attributes,
    /// the next such operation receives no reply.
    #[must_use]
    pub fn unanswered_name(self, names_before: u64) -> Self {
        Self {
            only_names: true,
            names_too: true,
            one_in: 1,
            operations_before: names_before,
            ..self.once(Fault::Never)
        }
    }

    /// Returns all faults that have occurred so far, in order.
    #[must_use]
    pub fn injected(&self) -> &[(Operation, Fault)] {
        &self.injected
    }

    /// Returns the fault of the next operation; `None` if it has no fault.
    pub(crate) fn next(&mut self, operation: Operation) -> Option<Fault> {
        if self.only_names && operation != Operation::Name {
            return None;
        }
        if self.operations_before > 0 {
            self.operations_before -= 1;
            return None;
        }
        let is_spared = self.faults_left == 0 || operation == Operation::Name && !self.names_too;
        if is_spared || self.random.draw(self.one_in) > 0 {
            return None;
        }
        let fault = self.kinds[self.random.draw(self.kinds.len() as u64) as usize];
        let transfers = matches!(operation, Operation::Read | Operation::Write);
        if matches!(fault, Fault::Short) && !transfers {
            return None;
        }
        self.faults_left -= 1;
        self.injected.push((operation, fault));
        Some(fault)
    }
}
