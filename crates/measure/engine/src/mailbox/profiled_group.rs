//! Group of databases with a profiler, which counts the transactional I/Os when they are issued.
//! The profile shows the real load of the mail store. I/Os of maintenance, logs and upkeep are not
//! counted, so the profile shows the working set of the users.

use std::sync::Arc;

use plimsoll_observe::{AccessProfiler, LiveAccess};
use plimsoll_sys::inject;
use plimsoll_workload::mailbox::Group;
use plimsoll_workload::step::{
    Arena, Class, ClassGroup, Completion, FileSpec, Io, IoKind, StepWorkload, Wait,
};

use crate::step::Control;

/// Group of databases with a profiler. The profiler counts the I/Os that the group issues in the
/// measured phase.
pub(super) struct ProfiledGroup {
    pub(super) group: Group,
    profiler: AccessProfiler,
    /// Number of the group's first file. The files of all groups are numbered consecutively.
    first_file: u32,
    /// For each class: true if the class is transactional.
    counts: Vec<bool>,
    control: Arc<Control>,
    /// True if the measured phase has started. At its start, the counts of the warm-up are
    /// discarded.
    measures: bool,
}

impl ProfiledGroup {
    /// Adds a profiler to each group. Each profiler uses the file numbers of all groups, so that
    /// the profiles can be merged.
    pub(super) fn wrap_all(groups: Vec<Group>, control: &Arc<Control>, seed: u64) -> Vec<Self> {
        let files = || groups.iter().flat_map(|group| group.files());
        let files_bytes: Vec<u64> = files().map(|file| file.size_bytes).collect();
        let mut first_file = 0;
        groups
            .into_iter()
            .map(|group| {
                let counts = group.classes().iter();
                let counts = counts.map(|class| class.group == ClassGroup::Transactional).collect();
                let clients = group.files().len();
                // An I/O is sequential if it starts at the offset at which the previous I/O to the
                // same file ended. The two I/Os may come from different sessions.
                let profiler = AccessProfiler::new(&files_bytes, clients, seed);
                let own_first = first_file;
                first_file += clients as u32;
                let first_file = own_first;
                let control = Arc::clone(control);
                Self { group, profiler, first_file, counts, control, measures: false }
            })
            .collect()
    }

    /// Returns a handle with which another thread can read the profile.
    pub(super) fn live_access(&self) -> LiveAccess {
        self.profiler.live()
    }

    /// Merges the groups' profiles of the measured phase. Returns `None` if this phase never
    /// started.
    pub(super) fn merge_profiles<'s>(
        all: impl Iterator<Item = &'s Self>,
    ) -> Option<AccessProfiler> {
        let mut sum: Option<AccessProfiler> = None;
        for part in all.filter(|part| part.measures) {
            match &mut sum {
                Some(sum) => sum.merge(&part.profiler),
                None => sum = Some(part.profiler.clone()),
            }
        }
        sum
    }

    /// Counts the issued I/Os. I/Os that close the store are not counted.
    fn count(&mut self, now_ns: u64, out: &[Io]) {
        if self.control.closing(now_ns).is_some() {
            return;
        }
        if !self.measures && self.control.measured(now_ns).is_some() {
            self.measures = true;
            self.profiler.reset();
        }
        for io in out.iter().filter(|io| io.kind != IoKind::Flush) {
            if self.counts.get(usize::from(io.class)) == Some(&true) {
                let file = self.first_file + io.file;
                let is_read = io.kind == IoKind::Read;
                self.profiler.operation(io.file, file, is_read, io.offset_bytes, io.size_bytes);
            }
        }
    }
}

impl StepWorkload for ProfiledGroup {
    fn files(&self) -> &[FileSpec] {
        self.group.files()
    }

    fn classes(&self) -> &[Class] {
        self.group.classes()
    }

    fn arena_size_bytes(&self) -> u64 {
        self.group.arena_size_bytes()
    }

    fn depth_max(&self) -> usize {
        self.group.depth_max()
    }

    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait {
        inject::point("load-thread");
        let wait = self.group.step(now_ns, completions, arena, out);
        self.count(now_ns, out);
        wait
    }

    fn stop(&mut self) {
        self.group.stop();
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        self.group.never_started(each);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64)) {
        self.group.counters(each);
    }
}
