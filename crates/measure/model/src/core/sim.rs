//! The event loop: runs the programs of I/Os through the stations.
//!
//! The state is in flat arrays. Tokens, joins and I/O slots are stored in vectors with free lists.
//! A token is a flow of control within an I/O. Queues are linked lists of tokens, and the memory of
//! programs is reused for later I/Os. After a warm-up, a run therefore allocates no memory. The
//! caller requests the next [`Happening`] and responds by submitting more I/Os; there are no
//! callbacks.

use super::StationId;
use super::places::Places;
use super::program::{Program, Step, StepKind};
use super::queue::EventQueue;
use super::station::{Discipline, NONE, Order, Station};
use super::trace::{Mark, TracedTime};

pub(super) const EVENT_STATION: u32 = 1 << 30;
const EVENT_TIMER: u32 = 2 << 30;
const EVENT_INDEX: u32 = (1 << 30) - 1;

/// Entry time of a token that waits for its branches. Such a token is at no station.
pub(super) const OUTSIDE: u64 = u64::MAX;

/// An event for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An I/O ended. Its detached branches may still be running.
    Done {
        /// Tag with which the I/O was submitted.
        tag: u64,
        /// Time when the I/O was submitted.
        submitted_ns: u64,
    },
    /// A program reached a step that notifies a block.
    Notice {
        block: u32,
        /// Value that the step contains.
        value: u64,
    },
    /// A timer expired.
    Timer {
        /// Tag of the timer.
        tag: u32,
    },
}

/// A flow of control within an I/O, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Token {
    pub(super) io: u32,
    pub(super) pc: u32,
    pub(super) join: u32,
    pub(super) next: u32,
    pub(super) enter_ns: u64,
    pub(super) start_ns: u64,
    /// Data of the current visit. The data is copied here, so that the program need not be read
    /// again when the visit ends.
    pub(super) amount: u64,
    pub(super) target: u32,
    pub(super) background: bool,
    /// True if the I/O of this token is traced.
    pub(super) traced: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    pub(super) parent: u32,
    pub(super) need: u16,
    pub(super) left: u16,
    pub(super) fork: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) tag: u64,
    pub(super) submitted_ns: u64,
    pub(super) references: u32,
    pub(super) class: u16,
    pub(super) traced: bool,
    pub(super) steps: Vec<Step>,
    pub(super) marks: Vec<Mark>,
}

/// A simulation: stations, events, and the I/Os in flight.
#[derive(Clone, Debug)]
pub struct Sim {
    pub(super) now_ns: u64,
    pub(super) seed: u64,
    pub(super) events: EventQueue,
    pub(super) stations: Vec<Station>,
    pub(super) names: Vec<String>,
    pub(super) tokens: Places<Token>,
    pub(super) joins: Places<Join>,
    pub(super) slots: Places<Slot>,
    pub(super) ready: Vec<u32>,
    pub(super) out: Vec<Happening>,
    pub(super) out_read: usize,
    pub(super) timers: Places<(u32, bool)>,
    pub(super) events_done: u64,
    pub(super) trace_every: u32,
    pub(super) trace_count: u32,
    pub(super) traced: Vec<TracedTime>,
    pub(super) traced_ios: Vec<(u64, u64)>,
}

impl Sim {
    /// Creates an empty simulation. If a station serves in random order, its random stream is
    /// created from this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            now_ns: 0,
            seed,
            events: EventQueue::with_capacity(1024),
            stations: Vec::new(),
            names: Vec::new(),
            tokens: Places::default(),
            joins: Places::default(),
            slots: Places::default(),
            ready: Vec::new(),
            out: Vec::new(),
            out_read: 0,
            timers: Places::default(),
            events_done: 0,
            trace_every: 0,
            trace_count: 0,
            traced: Vec::new(),
            traced_ios: Vec::new(),
        }
    }

    /// Adds a station with `servers` servers. Gates, buckets and delays ignore the number of
    /// servers.
    pub fn add_station(&mut self, name: &str, servers: u32, order: Order) -> StationId {
        self.stations.push(Station::new(servers, order, self.seed, name));
        self.names.push(name.to_owned());
        StationId(self.stations.len() as u32 - 1)
    }

    /// Returns the virtual time.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// Returns a station's name.
    pub fn name(&self, station: StationId) -> &str {
        &self.names[station.0 as usize]
    }

    /// Returns a station's number of servers.
    pub fn servers(&self, station: StationId) -> u32 {
        self.stations[station.0 as usize].servers
    }

    /// Sets the speed of a station as a share of its normal speed. The new speed applies to
    /// services that start later.
    pub fn set_speed(&mut self, station: StationId, speed: f64) {
        self.stations[station.0 as usize].set_speed(speed);
    }

    /// Takes tokens of a gate or bucket before the run. The tokens of a bucket accumulate again; those
    /// of a gate come back when a program returns them. At most all tokens are taken.
    pub fn take_now(&mut self, station: StationId, amount: u64) {
        match &mut self.stations[station.0 as usize].discipline {
            Discipline::Gate { free, .. } => *free = free.saturating_sub(amount),
            Discipline::Bucket { ns_per_token, burst_ns, theoretical_ns } => {
                let empty_ns = self.now_ns as f64 + *burst_ns;
                let taken_ns =
                    theoretical_ns.max(self.now_ns as f64) + amount as f64 * *ns_per_token;
                *theoretical_ns = taken_ns.min(empty_ns);
            }
            _ => {}
        }
    }

    /// Returns the number of customers at a station, which either wait or are being served.
    pub fn customers(&self, station: StationId) -> u32 {
        self.stations[station.0 as usize].customers
    }

    /// Returns the mean service time of a visit, without simulation. For a queue, this time is the
    /// demand itself. For a disk, it is the time of a single random command. For a gate or bucket,
    /// it is 0.
    pub fn demand_ns(&self, station: StationId, amount: u64, address: u64) -> f64 {
        match &self.stations[station.0 as usize].discipline {
            Discipline::Disk(arm) => {
                arm.mean_service_ns(amount as f64, address & crate::core::program::DISK_WRITE != 0)
            }
            Discipline::Gate { .. } | Discipline::Doors { .. } => 0.0,
            Discipline::Bucket { ns_per_token, .. } => amount as f64 * ns_per_token,
            _ => amount as f64,
        }
    }

    /// Returns true if a station has no queue with servers, because it is a pure delay, a gate or a
    /// bucket.
    pub fn is_delay(&self, station: StationId) -> bool {
        matches!(
            self.stations[station.0 as usize].discipline,
            Discipline::Delay
                | Discipline::Gate { .. }
                | Discipline::Doors { .. }
                | Discipline::Bucket { .. }
        )
    }

    /// Returns true if a station has a utilisation: a queue with servers, or a bucket. The
    /// utilisation of a bucket is the used share of its rate; it is above 1 while credit is spent.
    pub fn has_utilisation(&self, station: StationId) -> bool {
        !self.is_delay(station) || self.is_limit(station)
    }

    /// Returns true if a station is a bucket, which limits the rate but is not a server.
    pub fn is_limit(&self, station: StationId) -> bool {
        matches!(self.stations[station.0 as usize].discipline, Discipline::Bucket { .. })
    }

    /// Returns the number of processed events.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// Returns the number of I/Os in flight. An I/O counts even if only detached branches of it are
    /// still running.
    pub fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// Starts an I/O with the steps of `program`, and empties `program` without freeing its memory.
    pub fn submit(&mut self, tag: u64, class: u16, program: &mut Program) {
        program.finish();
        let io = self.slots.reuse(Slot::default);
        let slot = &mut self.slots[io];
        slot.tag = tag;
        slot.class = class;
        slot.submitted_ns = self.now_ns;
        slot.references = 1;
        std::mem::swap(&mut slot.steps, &mut program.steps);
        program.clear();
        slot.traced = false;
        if self.trace_every != 0 {
            self.trace_count += 1;
            if self.trace_count >= self.trace_every {
                self.trace_count = 0;
                slot.traced = true;
                slot.marks.clear();
                slot.marks.resize(slot.steps.len(), Mark::default());
            }
        }
        let token = self.new_token(io, 0, NONE);
        self.go_on(token);
        if !self.ready.is_empty() {
            self.run_ready();
        }
    }

    /// Sets a timer. When the timer expires, the caller receives a [`Happening`] with `tag`.
    /// Returns a handle that can cancel the timer.
    pub fn set_timer(&mut self, at_ns: u64, tag: u32) -> u32 {
        let timer = self.timers.put((tag, true));
        self.events.push(at_ns.max(self.now_ns), EVENT_TIMER | timer);
        timer
    }

    /// Returns the time of the next event.
    pub fn due_ns(&mut self) -> Option<u64> {
        if self.out_read < self.out.len() { Some(self.now_ns) } else { self.events.next_ns() }
    }

    /// Cancels a timer that has not yet expired.
    pub fn cancel_timer(&mut self, timer: u32) {
        self.timers[timer].1 = false;
    }

    /// Runs until the next event for the caller, or until there are no more events.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An iterator could not be fed while it is read.
    pub fn next(&mut self) -> Option<Happening> {
        loop {
            if self.out_read < self.out.len() {
                let happening = self.out[self.out_read];
                self.out_read += 1;
                if self.out_read == self.out.len() {
                    self.out.clear();
                    self.out_read = 0;
                }
                return Some(happening);
            }
            let (time_ns, payload) = self.events.pop()?;
            self.now_ns = time_ns;
            self.events_done += 1;
            if payload < EVENT_STATION {
                self.served(payload);
                self.advance(payload);
                if !self.ready.is_empty() {
                    self.run_ready();
                }
            } else if payload < EVENT_TIMER {
                self.shared(payload & EVENT_INDEX);
                self.run_ready();
            } else {
                let timer = payload & EVENT_INDEX;
                self.timers.free(timer);
                let (tag, armed) = self.timers[timer];
                if armed {
                    return Some(Happening::Timer { tag });
                }
            }
        }
    }

    #[inline(always)]
    fn new_token(&mut self, io: u32, pc: u32, join: u32) -> u32 {
        let token = Token {
            io,
            pc,
            join,
            next: NONE,
            enter_ns: 0,
            start_ns: 0,
            amount: 0,
            target: 0,
            background: false,
            traced: self.slots[io].traced,
        };
        self.tokens.put(token)
    }

    #[inline]
    fn run_ready(&mut self) {
        while let Some(token) = self.ready.pop() {
            self.go_on(token);
        }
    }

    /// Like [`Sim::advance`], but called for a token that was not made ready by an event.
    #[inline(never)]
    fn go_on(&mut self, index: u32) {
        self.advance(index);
    }

    /// Interprets a token's program until it has to wait.
    #[inline(always)]
    fn advance(&mut self, index: u32) {
        loop {
            let Token { io, pc, .. } = self.tokens[index];
            let step = self.slots[io].steps[pc as usize];
            match step.kind {
                StepKind::Visit => {
                    self.enter(index, step);
                    return;
                }
                StepKind::End => {
                    self.end(index);
                    return;
                }
                StepKind::Fork => {
                    if self.split(index, step) {
                        return;
                    }
                }
                StepKind::Give => {
                    self.give(step.target, step.amount);
                    self.tokens[index].pc += 1;
                }
                StepKind::Notice => {
                    self.out.push(Happening::Notice { block: step.target, value: step.amount });
                    self.tokens[index].pc += 1;
                }
                StepKind::Branch => {
                    // No program reaches this step, because `split` skips the branches of a fork.
                    self.tokens[index].pc += u32::from(step.count) + 1;
                }
            }
        }
    }

    /// Starts the branches of a fork. Returns true if the parent has to wait for them.
    #[inline(always)]
    fn split(&mut self, parent: u32, fork: Step) -> bool {
        let Token { io, pc, .. } = self.tokens[parent];
        let join = if fork.extra == 0 {
            NONE
        } else {
            let join = Join { parent, need: fork.extra as u16, left: fork.count, fork: pc };
            self.joins.put(join)
        };
        let first = self.ready.len();
        let mut head = pc + 1;
        for _ in 0..fork.count {
            let length = self.slots[io].steps[head as usize].count;
            let child = self.new_token(io, head + 1, join);
            self.ready.push(child);
            head += u32::from(length) + 1;
        }
        // Tokens are popped from the end of the stack, and the first branch must start first.
        self.ready[first..].reverse();
        self.slots[io].references += u32::from(fork.count);
        let parent = &mut self.tokens[parent];
        parent.pc = head;
        parent.enter_ns = OUTSIDE;
        join != NONE
    }

    /// Handles the end of a branch of a token, or the end of its program.
    #[inline(always)]
    fn end(&mut self, index: u32) {
        let Token { io, join, pc, .. } = self.tokens[index];
        self.tokens.free(index);
        if join != NONE {
            let waiting = &mut self.joins[join];
            waiting.left -= 1;
            if waiting.need > 0 {
                waiting.need -= 1;
                if waiting.need == 0 {
                    self.ready.push(waiting.parent);
                    let fork = waiting.fork as usize;
                    let slot = &mut self.slots[io];
                    if slot.traced {
                        slot.marks[fork].enter_ns = u64::from(pc);
                    }
                }
            }
            if self.joins[join].left == 0 {
                self.joins.free(join);
            }
        } else if pc as usize + 1 == self.slots[io].steps.len() {
            let slot = &self.slots[io];
            self.out.push(Happening::Done { tag: slot.tag, submitted_ns: slot.submitted_ns });
            if slot.traced {
                self.add_trace(io);
            }
        }
        let slot = &mut self.slots[io];
        slot.references -= 1;
        if slot.references == 0 {
            self.slots.free(io);
        }
    }
}
