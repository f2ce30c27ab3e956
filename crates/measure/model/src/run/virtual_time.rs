//! Runs stateful workloads (`plimsoll_workload::step`) on a modelled system in virtual time.
//!
//! One part of the workload runs on each node, like a virtual machine. All parts share one event
//! loop. I/Os contain no data. Latencies are recorded in the same way as in the driver for real
//! files: from the intended start to the completion, separately for each class and interval. The
//! first interval of a phase starts when the phase starts. Operations that are in flight or due at
//! the end of the measured phase count as operations of that phase (`plimsoll_record::drain`).

use plimsoll_record::recorder::Recorder;
use plimsoll_record::snapshot::{IntervalSnapshot, LateRecorder};
use plimsoll_workload::step::{
    Class, ClassGroup, Completion, FileSpec, Io, IoKind, NoBytes, StepWorkload, Wait,
};

use crate::blocks::{Action, Request};
use crate::core::Places;
use crate::system::{Event, System};

/// Tag of the timer that ends an interval.
const INTERVAL_END: u32 = (1 << 31) - 1;
/// Error number of a failed I/O (`EIO`).
const EIO: i32 = 5;
/// Due time that means that nothing is due.
const NEVER: u64 = u64::MAX;

/// The kinds of operations whose critical paths are traced.
pub const KINDS: [&str; 7] =
    ["read", "write", "log write", "maintenance read", "log read", "metadata", "other"];

/// Index of metadata operations in [`KINDS`].
const METADATA: u16 = 5;

/// Returns the index of an operation's kind in [`KINDS`].
fn kind_of(class: &Class) -> u16 {
    match (class.group, class.is_read) {
        (ClassGroup::Transactional, true) => 0,
        (ClassGroup::Transactional, false) => 1,
        (ClassGroup::Log, _) => 2,
        (ClassGroup::Maintenance, _) => 3,
        (ClassGroup::Replication, _) => 4,
        (ClassGroup::Metadata, _) => METADATA,
        (
            ClassGroup::Upkeep
            | ClassGroup::Sync
            | ClassGroup::Durable
            | ClassGroup::FirstByte
            | ClassGroup::Phase,
            _,
        ) => 6,
    }
}

/// Location of a workload's file in the system: the virtual disk, and the offset of the file on
/// this disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub disk: u32,
    /// Offset of the file on the virtual disk, in bytes.
    pub base_bytes: u64,
}

/// An I/O that was issued and has not completed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    token: u64,
    class: u16,
    size_bytes: u32,
    intended_ns: u64,
    issued_ns: u64,
    /// True if no component is left that could serve the I/O.
    is_refused: bool,
    /// True if the I/O was in flight or due at the end of the measured phase.
    is_late: bool,
}

/// One part of the workload. The part runs on one node.
struct Part<W> {
    workload: W,
    node: u16,
    places: Vec<Place>,
    classes: Vec<Class>,
    kinds: Vec<u16>,
    /// For each class: the disk and the offset at which its last I/O ended.
    ends: Vec<(u32, u64)>,
    in_flight: Places<InFlight>,
    due_ns: u64,
    timer: Option<u32>,
    ended: bool,
    recorder: Recorder,
    /// Records late operations of the measured phase; `None` until this phase ends.
    late: Option<LateRecorder>,
}

/// The parts of a workload that runs on a modelled system.
pub struct VirtualTime<'a, W> {
    system: &'a mut System,
    parts: Vec<Part<W>>,
    phase: u32,
    completions: Vec<Completion>,
    out: Vec<Io>,
    /// The first I/O that failed; `None` if no I/O failed.
    failure: Option<Failure>,
    ends_at_failure: bool,
    /// Number of events since virtual time last advanced.
    events_at_once: u64,
}

/// Number of events at the same virtual time after which the run ends. In such a model, an operation
/// takes no time, so a closed loop would never end. Larger loads start fewer operations at once.
const AT_ONCE_MAX: u64 = 1 << 23;

/// A failed I/O.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) class: String,
    /// Virtual time at which the failed I/O ended.
    pub(super) at_ns: u64,
}

impl<'a, W: StepWorkload> VirtualTime<'a, W> {
    /// Assigns each part to its node. The parts start at the system's current time, in the phase
    /// `phase`. `place` returns the location of each file.
    pub fn new(
        system: &'a mut System,
        parts: Vec<(W, u16)>,
        place: impl Fn(&FileSpec) -> Place,
        phase: u32,
        histogram_interval_ns: u64,
    ) -> Self {
        let now_ns = system.now_ns();
        let part = |(at, (workload, node)): (u32, (W, u16))| {
            let classes = workload.classes().to_vec();
            Part {
                places: workload.files().iter().map(&place).collect(),
                kinds: classes.iter().map(kind_of).collect(),
                ends: vec![(u32::MAX, 0); classes.len()],
                recorder: Recorder::new(at, classes.len(), now_ns, histogram_interval_ns),
                in_flight: Places::with_capacity(workload.depth_max()),
                due_ns: now_ns,
                timer: None,
                ended: false,
                late: None,
                workload,
                node,
                classes,
            }
        };
        let parts = (0..).zip(parts).map(part).collect();
        let (completions, out) = (Vec::new(), Vec::new());
        Self {
            system,
            parts,
            phase,
            completions,
            out,
            failure: None,
            ends_at_failure: false,
            events_at_once: 0,
        }
    }

    /// Sets whether virtual time stops at the first failed I/O.
    pub(super) fn ending_at_failure(self, ends_at_failure: bool) -> Self {
        Self { ends_at_failure, ..self }
    }

    /// Returns the failed I/O that stopped virtual time; `None` if no I/O failed.
    pub(super) fn fatal_failure(&self) -> Option<&Failure> {
        self.failure.as_ref().filter(|_| self.ends_at_failure)
    }

    pub fn system(&mut self) -> &mut System {
        self.system
    }

    pub fn now_ns(&self) -> u64 {
        self.system.now_ns()
    }

    /// Returns the parts.
    pub fn workloads(&self) -> impl Iterator<Item = &W> {
        self.parts.iter().map(|part| &part.workload)
    }

    /// Returns mutable references to the parts.
    pub fn workloads_mut(&mut self) -> impl Iterator<Item = &mut W> {
        self.parts.iter_mut().map(|part| &mut part.workload)
    }

    /// Returns the parts. Called after the parts have ended.
    pub fn into_workloads(self) -> Vec<W> {
        self.parts.into_iter().map(|part| part.workload).collect()
    }

    /// Returns true if every part has ended.
    pub fn has_ended(&self) -> bool {
        self.parts.iter().all(|part| part.ended)
    }

    /// Passes the recorded data to `take`, then starts another phase.
    pub fn begin(&mut self, phase: u32, take: &mut dyn FnMut(&IntervalSnapshot, &[Class])) {
        self.hand_over(true, take);
        self.phase = phase;
    }

    /// Ends the measured phase, and passes the last interval of the phase to `take`. Operations
    /// that are in flight or due still belong to the measured phase. The caller must then start the
    /// next phase.
    pub fn end_measured(&mut self, take: &mut dyn FnMut(&IntervalSnapshot, &[Class])) {
        let now_ns = self.system.now_ns();
        for part in &mut self.parts {
            let histogram_start_ns = part.recorder.histogram_start_ns();
            part.late = Some(LateRecorder::late(
                part.classes.len(),
                self.phase,
                now_ns,
                histogram_start_ns,
            ));
            part.in_flight.iter_mut().for_each(|io| io.is_late = true);
        }
        self.hand_over(true, take);
    }

    /// Passes the records of late operations of the measured phase to `take`. Abandons operations
    /// that have not completed by now.
    pub fn end_drain(&mut self, take: &mut dyn FnMut(&IntervalSnapshot, &[Class])) {
        let now_ns = self.system.now_ns();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let Some(mut late) = part.late.take() else { continue };
            for io in part.in_flight.iter_mut().filter(|io| io.is_late) {
                io.is_late = false;
                let waited_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
                late.abandon(io.class.into(), waited_ns(io.intended_ns), waited_ns(io.issued_ns));
            }
            part.workload.never_durable(&mut |class, intended_ns, submitted_ns| {
                if intended_ns < late.phase_end_ns() {
                    let waited_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
                    late.abandon(class.into(), waited_ns(intended_ns), waited_ns(submitted_ns));
                }
            });
            part.workload.never_started(&mut |class, intended_ns| {
                late.never_start(class.into(), now_ns.saturating_sub(intended_ns));
            });
            take(&late.into_snapshot(at as u32, now_ns), &part.classes);
        }
    }

    /// Asks every part to end.
    pub fn stop(&mut self) {
        for at in 0..self.parts.len() {
            self.parts[at].workload.stop();
            self.step(at);
        }
    }

    /// Advances virtual time to `until_ns`, or until every part has finished. Then passes the
    /// recorded data to `take`, including the histograms of finished intervals. Returns false if a
    /// part has not finished although no events remain; this is a defect of the model.
    pub fn run_until(
        &mut self,
        until_ns: u64,
        take: &mut dyn FnMut(&IntervalSnapshot, &[Class]),
    ) -> bool {
        let goes_on = self.advance(until_ns);
        let all = self.has_ended();
        self.hand_over(all, take);
        goes_on
    }

    /// Runs one step of every part after an event has changed the system.
    pub(super) fn wake(&mut self) {
        (0..self.parts.len()).for_each(|at| self.step(at));
    }

    /// Advances virtual time like [`VirtualTime::run_until`], but does not end the current
    /// interval.
    pub(super) fn advance(&mut self, until_ns: u64) -> bool {
        for at in 0..self.parts.len() {
            if self.parts[at].due_ns <= self.now_ns() {
                self.step(at);
            }
        }
        let end = self.system.set_timer(until_ns, INTERVAL_END);
        loop {
            if self.has_ended() || self.fatal_failure().is_some() {
                self.system.cancel_timer(end);
                break true;
            }
            let before_ns = self.now_ns();
            let event = self.system.next();
            let is_later = self.now_ns() > before_ns;
            self.events_at_once = if is_later { 0 } else { self.events_at_once + 1 };
            if self.events_at_once > AT_ONCE_MAX {
                self.system.cancel_timer(end);
                self.system.stand_still();
                break false;
            }
            match event {
                Some(Event::Done { tag, submitted_ns }) => {
                    let at = (tag >> 32) as usize;
                    self.complete(at, tag as u32, submitted_ns);
                    self.step(at);
                }
                Some(Event::Timer { tag: INTERVAL_END }) => break true,
                Some(Event::Timer { tag }) => {
                    let at = tag as usize;
                    self.parts[at].timer = None;
                    self.parts[at].due_ns = NEVER;
                    self.step(at);
                }
                None => break false,
            }
        }
    }

    #[inline(always)]
    fn complete(&mut self, at: usize, index: u32, submitted_ns: u64) {
        let completed_ns = self.system.now_ns();
        let part = &mut self.parts[at];
        let io = part.in_flight[index];
        part.in_flight.free(index);
        let latency_ns = completed_ns.saturating_sub(io.intended_ns);
        let service_ns = completed_ns - submitted_ns;
        let bytes = u64::from(io.size_bytes);
        if io.is_refused {
            self.fail(at, &io, submitted_ns);
            return;
        }
        match part.late.as_mut().filter(|_| io.is_late) {
            Some(late) => late.record(usize::from(io.class), bytes, latency_ns, service_ns),
            None => {
                part.recorder.interval.record(usize::from(io.class), bytes, latency_ns, service_ns)
            }
        }
        self.completions.push(Completion {
            token: io.token,
            result: Ok(io.size_bytes),
            submitted_ns,
            completed_ns,
        });
    }

    /// Records the end of an I/O that failed.
    #[cold]
    fn fail(&mut self, at: usize, io: &InFlight, submitted_ns: u64) {
        let completed_ns = self.system.now_ns();
        let part = &mut self.parts[at];
        let class = usize::from(io.class);
        match part.late.as_mut().filter(|_| io.is_late) {
            Some(late) => late.record_error(class),
            None => part.recorder.interval.record_error(class),
        }
        self.failure.get_or_insert_with(|| Failure {
            class: part.classes.get(class).map_or(String::new(), |class| class.name.to_string()),
            at_ns: completed_ns,
        });
        self.completions.push(Completion {
            token: io.token,
            result: Err(EIO),
            submitted_ns,
            completed_ns,
        });
    }

    #[inline(always)]
    fn step(&mut self, at: usize) {
        let now_ns = self.system.now_ns();
        let part = &mut self.parts[at];
        if part.ended {
            self.completions.clear();
            return;
        }
        if part.timer.is_none() {
            part.due_ns = NEVER;
        }
        self.out.clear();
        let wait = part.workload.step(now_ns, &self.completions, &mut NoBytes, &mut self.out);
        if !self.completions.is_empty() {
            part.record_durable(now_ns);
            self.completions.clear();
        }
        for io in &self.out {
            part.issue(at, io, self.system);
        }
        match wait {
            Wait::Done => part.ended = true,
            Wait::Completion => {}
            // If the timer expires too early, the resulting step finds no due work and sets the
            // next timer. This takes less time than a new timer for every step.
            Wait::Until(due_ns) if due_ns >= part.due_ns => {}
            Wait::Until(due_ns) => {
                if let Some(timer) = part.timer.take() {
                    self.system.cancel_timer(timer);
                }
                part.due_ns = due_ns;
                part.timer = Some(self.system.set_timer(due_ns, at as u32));
            }
        }
    }

    fn hand_over(&mut self, all: bool, take: &mut dyn FnMut(&IntervalSnapshot, &[Class])) {
        let now_ns = self.system.now_ns();
        for part in &mut self.parts {
            let mut snapshot = part.recorder.take(self.phase, now_ns, all);
            part.workload.counters(&mut |name, instance, value| {
                snapshot.counters.push((name, instance, value));
            });
            take(&snapshot, &part.classes);
        }
    }
}

impl<W: StepWorkload> Part<W> {
    /// Records the writes that a flush has made durable. The bytes of a write were already counted
    /// when the write completed.
    fn record_durable(&mut self, now_ns: u64) {
        let Self { workload, recorder, late, .. } = self;
        workload.durable(&mut |class, intended_ns, submitted_ns| {
            let took_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
            let (latency_ns, service_ns) = (took_ns(intended_ns), took_ns(submitted_ns));
            match late.as_mut().filter(|late| intended_ns < late.phase_end_ns()) {
                Some(late) => late.record(class.into(), 0, latency_ns, service_ns),
                None => recorder.interval.record(class.into(), 0, latency_ns, service_ns),
            }
        });
    }
}

impl<W> Part<W> {
    #[inline(always)]
    fn issue(&mut self, at: usize, io: &Io, system: &mut System) {
        let in_flight = InFlight {
            token: io.token,
            class: io.class,
            size_bytes: io.size_bytes,
            intended_ns: io.intended_ns,
            issued_ns: system.now_ns(),
            is_refused: false,
            is_late: self.late.as_ref().is_some_and(|late| io.intended_ns < late.phase_end_ns()),
        };
        let index = self.in_flight.put(in_flight);
        let kind = self.kinds[usize::from(io.class)];
        let action = match io.kind {
            _ if kind == METADATA => Action::Meta,
            IoKind::Read => Action::Read,
            IoKind::Write | IoKind::WriteDurable => Action::Write,
            IoKind::Flush => Action::Flush,
        };
        let Place { disk, base_bytes } = self.places[io.file as usize];
        let offset_bytes = base_bytes + io.offset_bytes;
        let mut request = Request::new(action, disk, offset_bytes, u64::from(io.size_bytes));
        request.node = self.node;
        request.client = at as u32;
        request.durable = io.kind == IoKind::WriteDurable;
        let end = &mut self.ends[usize::from(io.class)];
        request.sequential = *end == (disk, offset_bytes);
        *end = (disk, offset_bytes + u64::from(io.size_bytes));
        let tag = (at as u64) << 32 | u64::from(index);
        system.submit(tag, kind, &request);
        if system.last_refused() {
            self.in_flight[index].is_refused = true;
        }
    }
}
