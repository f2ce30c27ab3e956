//! The program of one I/O: a short list of steps.
//!
//! Blocks decide the route of an I/O when the I/O is issued. They express the route as steps:
//! visits to stations in series, and forks. The branches of a fork run in parallel. The program
//! continues when enough branches have finished: a quorum of replicas, or all columns of a stripe.
//! It does not wait for the branches of detached work. The event loop only interprets steps: it
//! allocates no memory and calls no blocks. Programs are the series-parallel form of a fork-join
//! queueing network (F. Baccelli, W. A. Massey and D. Towsley, "Acyclic fork-join queueing
//! networks", JACM 36(3), 1989).

/// Index of a station in its [`Sim`](crate::core::Sim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StationId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Waits for station `target`, and is served by it. For a queue, `amount` is the service time
    /// in nanoseconds. For a disk, `amount` is the number of bytes to transfer, and `extra` is the
    /// address. For a gate or bucket, `amount` is the number of tokens.
    Visit,
    /// Starts `count` branches. The program continues when `extra` of the branches have finished.
    Fork,
    /// First step of a branch. The next `count` steps belong to the branch; the last of them is
    /// `End`.
    Branch,
    /// Ends a branch or the whole program.
    End,
    /// Returns `amount` tokens to gate `target`.
    Give,
    /// Notifies block `target`, and passes `amount` to it.
    Notice,
}

/// One step. A step has 24 bytes, so that the program of a typical I/O fits in one or two cache
/// lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) background: bool,
    pub(crate) count: u16,
    pub(crate) target: u32,
    pub(crate) amount: u64,
    pub(crate) extra: u64,
}

/// The top bit of a disk visit's address. It is set if the visit is a write.
pub(crate) const DISK_WRITE: u64 = 1 << 63;

/// A program under construction.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(crate) steps: Vec<Step>,
    open: Vec<OpenFork>,
    background: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenFork {
    fork: u32,
    branch: u32,
    branches: u16,
}

impl Program {
    /// Creates an empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the program for reuse, without freeing its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.steps.clear();
        self.open.clear();
        self.background = false;
    }

    /// Returns true if the program has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Sets whether the following visits are background work. Returns the previous value, so that
    /// the caller can restore it.
    #[inline]
    pub fn set_background(&mut self, background: bool) -> bool {
        std::mem::replace(&mut self.background, background)
    }

    /// Adds a visit to a station for `demand_ns` of service.
    #[inline]
    pub fn visit(&mut self, station: StationId, demand_ns: u64) {
        self.push(StepKind::Visit, 0, station.0, demand_ns, 0);
    }

    /// Adds a transfer of `size_bytes` at `address_bytes` of a disk.
    #[inline]
    pub fn visit_disk(
        &mut self,
        disk: StationId,
        address_bytes: u64,
        size_bytes: u64,
        write: bool,
    ) {
        let address = if write { address_bytes | DISK_WRITE } else { address_bytes };
        self.push(StepKind::Visit, 0, disk.0, size_bytes, address);
    }

    /// Adds a step that waits until a gate has `tokens` free tokens, or until a bucket releases
    /// this number of tokens.
    #[inline]
    pub fn take(&mut self, gate: StationId, tokens: u64) {
        self.push(StepKind::Visit, 0, gate.0, tokens, 0);
    }

    /// Adds a step that returns tokens to a gate.
    #[inline]
    pub fn give(&mut self, gate: StationId, tokens: u64) {
        self.push(StepKind::Give, 0, gate.0, tokens, 0);
    }

    /// Adds a step that notifies block `block`.
    #[inline]
    pub fn notice(&mut self, block: u32, value: u64) {
        self.push(StepKind::Notice, 0, block, value, 0);
    }

    /// Opens a fork. The caller then adds each branch between [`branch`](Self::branch) and
    /// [`end_branch`](Self::end_branch), and closes the fork with [`join`](Self::join) or
    /// [`detach`](Self::detach).
    #[inline]
    pub fn fork(&mut self) {
        let fork = self.steps.len() as u32;
        self.push(StepKind::Fork, 0, 0, 0, 0);
        self.open.push(OpenFork { fork, branch: 0, branches: 0 });
    }

    /// Starts a branch of the innermost fork.
    #[inline]
    pub fn branch(&mut self) {
        let at = self.steps.len() as u32;
        self.push(StepKind::Branch, 0, 0, 0, 0);
        if let Some(open) = self.open.last_mut() {
            open.branch = at;
            open.branches += 1;
        }
    }

    /// Ends the most recently started branch.
    #[inline]
    pub fn end_branch(&mut self) {
        self.push(StepKind::End, 0, 0, 0, 0);
        if let Some(open) = self.open.last() {
            let head = open.branch as usize;
            self.steps[head].count = (self.steps.len() - head - 1) as u16;
        }
    }

    /// Closes the innermost fork. The program continues when `need` of the fork's branches have
    /// finished, or all branches if the fork has fewer than `need`.
    pub fn join(&mut self, need: usize) {
        let Some(open) = self.open.pop() else { return };
        let fork = open.fork as usize;
        match (open.branches, need) {
            (0, _) => {
                self.steps.remove(fork);
            }
            // A fork with a single branch that is joined is a series of steps, so no fork is
            // needed.
            (1, 1..) => {
                self.steps.pop();
                self.steps.drain(fork..fork + 2);
            }
            (branches, need) => {
                self.steps[fork].count = branches;
                self.steps[fork].extra = need.min(usize::from(branches)) as u64;
            }
        }
    }

    /// Closes the innermost fork. The program does not wait for the fork's branches: they are
    /// detached work.
    pub fn detach(&mut self) {
        self.join(0);
    }

    /// Iterates over the station visits in program order. Each item contains (station, amount,
    /// address, background). Demand analysis uses this iterator: it needs only the amounts of work,
    /// and does not simulate queueing.
    pub(crate) fn visits(&self) -> impl Iterator<Item = (StationId, u64, u64, bool)> + '_ {
        self.steps
            .iter()
            .filter(|step| step.kind == StepKind::Visit)
            .map(|step| (StationId(step.target), step.amount, step.extra, step.background))
    }

    #[inline]
    pub(crate) fn finish(&mut self) {
        debug_assert!(self.open.is_empty(), "a fork was left open");
        self.push(StepKind::End, 0, 0, 0, 0);
    }

    #[inline]
    fn push(&mut self, kind: StepKind, count: u16, target: u32, amount: u64, extra: u64) {
        let background = self.background;
        self.steps.push(Step { kind, background, count, target, amount, extra });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_single_forks_vanish() {
        let mut program = Program::new();
        program.fork();
        program.join(1);
        program.fork();
        program.branch();
        program.visit(StationId(3), 5);
        program.end_branch();
        program.join(1);
        program.finish();
        let kinds: Vec<StepKind> = program.steps.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [StepKind::Visit, StepKind::End]);
    }

    #[test]
    fn nested_branches_know_their_lengths() {
        let mut program = Program::new();
        program.fork();
        program.branch();
        program.visit(StationId(0), 1);
        program.fork();
        for _ in 0..2 {
            program.branch();
            program.visit(StationId(1), 1);
            program.end_branch();
        }
        program.join(2);
        program.end_branch();
        program.branch();
        program.end_branch();
        program.join(2);
        program.finish();
        let s = &program.steps;
        assert_eq!((s[0].kind, s[0].count, s[0].extra), (StepKind::Fork, 2, 2));
        assert_eq!((s[1].kind, s[1].count), (StepKind::Branch, 9));
        assert_eq!((s[1 + 1 + 9].kind, s[1 + 1 + 9].count), (StepKind::Branch, 1));
    }
}
