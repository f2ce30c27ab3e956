//! The loop: runs the programs of I/Os through the stations, event by event.
//!
//! The state is flat: tokens (a flow of control within an I/O), joins, and I/O slots live in
//! vectors with free lists, queues are links between tokens, and programs keep their memory from one
//! I/O to the next, so a run allocates nothing once it is warm. The caller asks for the next
//! [`Happening`] and answers it by submitting more I/Os; nothing here calls back.

use crate::core::StationId;
use crate::core::program::{Program, Step, StepKind};
use crate::core::queue::EventQueue;
use crate::core::station::{Discipline, NONE, Order, Station, StationStats};

const EVENT_STATION: u32 = 1 << 30;
const EVENT_TIMER: u32 = 2 << 30;
const EVENT_INDEX: u32 = (1 << 30) - 1;

/// When a token that waits for its branches entered the station it will visit next: not yet.
const OUTSIDE: u64 = u64::MAX;

/// Something that the caller must know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An I/O ended (its detached branches may still run).
    Done {
        /// The tag it was submitted with.
        tag: u64,
        /// When it was submitted.
        submitted_ns: u64,
    },
    /// A program reached a notice for a block.
    Notice {
        /// The block.
        block: u32,
        /// The value in the program.
        value: u64,
    },
    /// A timer went off.
    Timer {
        /// The tag it was set with.
        tag: u32,
    },
}

/// What one traced I/O, or the sum of several, spent at a station on its critical path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Visits on the critical path.
    pub visits: u64,
    /// Time queued.
    pub waited_ns: u64,
    /// Time in service.
    pub served_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    io: u32,
    pc: u32,
    join: u32,
    next: u32,
    enter_ns: u64,
    start_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Join {
    parent: u32,
    need: u16,
    left: u16,
    fork: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    enter_ns: u64,
    start_ns: u64,
    end_ns: u64,
}

#[derive(Debug)]
struct Slot {
    tag: u64,
    submitted_ns: u64,
    references: u32,
    class: u16,
    traced: bool,
    steps: Vec<Step>,
    marks: Vec<Mark>,
}

/// A simulation: stations, events, and the I/Os in flight.
#[derive(Debug)]
pub struct Sim {
    now_ns: u64,
    seed: u64,
    events: EventQueue,
    stations: Vec<Station>,
    names: Vec<String>,
    tokens: Vec<Token>,
    tokens_free: Vec<u32>,
    joins: Vec<Join>,
    joins_free: Vec<u32>,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    ready: Vec<u32>,
    out: Vec<Happening>,
    out_read: usize,
    timers: Vec<(u32, bool)>,
    timers_free: Vec<u32>,
    events_done: u64,
    trace_every: u32,
    trace_count: u32,
    traced: Vec<Traced>,
    traced_ios: Vec<(u64, u64)>,
}

impl Sim {
    /// An empty simulation. Random order draws from streams of this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            now_ns: 0,
            seed,
            events: EventQueue::with_capacity(1024),
            stations: Vec::new(),
            names: Vec::new(),
            tokens: Vec::new(),
            tokens_free: Vec::new(),
            joins: Vec::new(),
            joins_free: Vec::new(),
            slots: Vec::new(),
            slots_free: Vec::new(),
            ready: Vec::new(),
            out: Vec::new(),
            out_read: 0,
            timers: Vec::new(),
            timers_free: Vec::new(),
            events_done: 0,
            trace_every: 0,
            trace_count: 0,
            traced: Vec::new(),
            traced_ios: Vec::new(),
        }
    }

    /// Adds a station with `servers` servers (ignored by gates, buckets and delays).
    pub fn add_station(&mut self, name: &str, servers: u32, order: Order) -> StationId {
        self.stations.push(Station::new(servers, order, self.seed, name));
        self.names.push(name.to_owned());
        StationId(self.stations.len() as u32 - 1)
    }

    /// Virtual time.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// A station's name.
    pub fn name(&self, station: StationId) -> &str {
        &self.names[station.0 as usize]
    }

    /// A station's number of servers.
    pub fn servers(&self, station: StationId) -> u32 {
        self.stations[station.0 as usize].servers
    }

    /// Customers at a station now, waiting or in service.
    pub fn customers(&self, station: StationId) -> u32 {
        self.stations[station.0 as usize].customers
    }

    /// The service time that a visit asks for on average, without simulating it: the demand itself
    /// at a queue, a lone random command at a disk, nothing at a gate or bucket.
    pub fn demand_ns(&self, station: StationId, amount: u64, address: u64) -> f64 {
        match &self.stations[station.0 as usize].discipline {
            Discipline::Disk(arm) => {
                arm.mean_service_ns(amount as f64, address & crate::core::program::DISK_WRITE != 0)
            }
            Discipline::Gate { .. } | Discipline::Doors { .. } | Discipline::Bucket { .. } => 0.0,
            _ => amount as f64,
        }
    }

    /// True if a station has no queue (a pure delay, a gate or a bucket).
    pub fn is_delay(&self, station: StationId) -> bool {
        matches!(
            self.stations[station.0 as usize].discipline,
            Discipline::Delay
                | Discipline::Gate { .. }
                | Discipline::Doors { .. }
                | Discipline::Bucket { .. }
        )
    }

    /// Events processed so far.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// I/Os in flight, those with only detached branches left included.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.slots_free.len()
    }

    /// Follows the critical path of one I/O in `every` (0: none), over `classes` classes.
    pub fn trace_one_in(&mut self, every: u32, classes: usize) {
        self.trace_every = every;
        self.traced = vec![Traced::default(); classes * self.stations.len()];
        self.traced_ios = vec![(0, 0); classes];
    }

    /// Sums over the traced I/Os of a class: their number, their latencies, and per station what
    /// they spent there. The sum over stations is the sum of the latencies, exactly.
    pub fn traced(&self, class: usize) -> (u64, u64, &[Traced]) {
        let n = self.stations.len();
        let (ios, latency_ns) = self.traced_ios.get(class).copied().unwrap_or_default();
        (ios, latency_ns, self.traced.get(class * n..(class + 1) * n).unwrap_or(&[]))
    }

    /// Starts an I/O now. `program` is emptied and keeps its memory.
    pub fn submit(&mut self, tag: u64, class: u16, program: &mut Program) {
        program.finish();
        let io = match self.slots_free.pop() {
            Some(io) => io,
            None => {
                self.slots.push(Slot {
                    tag: 0,
                    submitted_ns: 0,
                    references: 0,
                    class: 0,
                    traced: false,
                    steps: Vec::new(),
                    marks: Vec::new(),
                });
                self.slots.len() as u32 - 1
            }
        };
        let slot = &mut self.slots[io as usize];
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
        self.advance(token);
        if !self.ready.is_empty() {
            self.run_ready();
        }
    }

    /// Sets a timer; its [`Happening`] carries `tag`. Gives a handle with which to cancel it.
    pub fn set_timer(&mut self, at_ns: u64, tag: u32) -> u32 {
        let timer = match self.timers_free.pop() {
            Some(timer) => timer,
            None => {
                self.timers.push((0, false));
                self.timers.len() as u32 - 1
            }
        };
        self.timers[timer as usize] = (tag, true);
        self.events.push(at_ns.max(self.now_ns), EVENT_TIMER | timer);
        timer
    }

    /// Cancels a timer that has not gone off.
    pub fn cancel_timer(&mut self, timer: u32) {
        self.timers[timer as usize].1 = false;
    }

    /// Runs until something happens that the caller must know of, or nothing is left.
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
                self.timers_free.push(timer);
                let (tag, armed) = self.timers[timer as usize];
                if armed {
                    return Some(Happening::Timer { tag });
                }
            }
        }
    }

    /// Starts a measured window: counters and traces restart, what is in flight stays.
    pub fn open_window(&mut self) {
        for station in &mut self.stations {
            station.open_window(self.now_ns);
        }
        self.traced.iter_mut().for_each(|t| *t = Traced::default());
        self.traced_ios.iter_mut().for_each(|t| *t = (0, 0));
    }

    /// A station's counters now, without the customers that are still inside (for time series).
    pub fn read(&mut self, station: StationId) -> StationStats {
        let station = &mut self.stations[station.0 as usize];
        station.account(self.now_ns);
        station.stats
    }

    /// Every station's counters of the window up to now, those still inside counted for their part.
    pub fn close_window(&mut self) -> Vec<StationStats> {
        let before: Vec<StationStats> = self.stations.iter().map(|s| s.stats).collect();
        let mut live = vec![true; self.tokens.len()];
        for &free in &self.tokens_free {
            live[free as usize] = false;
        }
        for station in &mut self.stations {
            station.account(self.now_ns);
        }
        for (token, _) in self.tokens.iter().zip(&live).filter(|(_, live)| **live) {
            let step = self.slots[token.io as usize].steps[token.pc as usize];
            if step.kind == StepKind::Visit && token.enter_ns != OUTSIDE {
                self.stations[step.target as usize].count_resident(self.now_ns, token.enter_ns);
            }
        }
        let closed = self.stations.iter().map(|s| s.stats).collect();
        for (station, before) in self.stations.iter_mut().zip(before) {
            station.stats.sojourn_ns = before.sojourn_ns;
        }
        closed
    }

    fn new_token(&mut self, io: u32, pc: u32, join: u32) -> u32 {
        let token = Token { io, pc, join, next: NONE, enter_ns: 0, start_ns: 0 };
        match self.tokens_free.pop() {
            Some(index) => {
                self.tokens[index as usize] = token;
                index
            }
            None => {
                self.tokens.push(token);
                self.tokens.len() as u32 - 1
            }
        }
    }

    #[inline]
    fn run_ready(&mut self) {
        while let Some(token) = self.ready.pop() {
            self.advance(token);
        }
    }

    /// Interprets a token's program until it has to wait.
    #[inline]
    fn advance(&mut self, index: u32) {
        loop {
            let Token { io, pc, .. } = self.tokens[index as usize];
            let step = self.slots[io as usize].steps[pc as usize];
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
                    self.tokens[index as usize].pc += 1;
                }
                StepKind::Notice => {
                    self.out.push(Happening::Notice { block: step.target, value: step.amount });
                    self.tokens[index as usize].pc += 1;
                }
                StepKind::Branch => {
                    // Only reached by falling past the end of a branch, which `split` prevents.
                    self.tokens[index as usize].pc += u32::from(step.count) + 1;
                }
            }
        }
    }

    /// Starts the branches of a fork. True if the parent has to wait for them.
    fn split(&mut self, parent: u32, fork: Step) -> bool {
        let Token { io, pc, .. } = self.tokens[parent as usize];
        let join = if fork.extra == 0 {
            NONE
        } else {
            let join = Join { parent, need: fork.extra as u16, left: fork.count, fork: pc };
            match self.joins_free.pop() {
                Some(index) => {
                    self.joins[index as usize] = join;
                    index
                }
                None => {
                    self.joins.push(join);
                    self.joins.len() as u32 - 1
                }
            }
        };
        let first = self.ready.len();
        let mut head = pc + 1;
        for _ in 0..fork.count {
            let length = self.slots[io as usize].steps[head as usize].count;
            let child = self.new_token(io, head + 1, join);
            self.ready.push(child);
            head += u32::from(length) + 1;
        }
        // The stack is popped from the end: the first branch has to start first.
        self.ready[first..].reverse();
        self.slots[io as usize].references += u32::from(fork.count);
        let parent = &mut self.tokens[parent as usize];
        parent.pc = head;
        parent.enter_ns = OUTSIDE;
        join != NONE
    }

    /// A token reached the end of its branch or program.
    fn end(&mut self, index: u32) {
        let Token { io, join, pc, .. } = self.tokens[index as usize];
        self.tokens_free.push(index);
        if join != NONE {
            let waiting = &mut self.joins[join as usize];
            waiting.left -= 1;
            if waiting.need > 0 {
                waiting.need -= 1;
                if waiting.need == 0 {
                    self.ready.push(waiting.parent);
                    let fork = waiting.fork as usize;
                    let slot = &mut self.slots[io as usize];
                    if slot.traced {
                        slot.marks[fork].enter_ns = u64::from(pc);
                    }
                }
            }
            if self.joins[join as usize].left == 0 {
                self.joins_free.push(join);
            }
        } else if pc as usize + 1 == self.slots[io as usize].steps.len() {
            let slot = &self.slots[io as usize];
            self.out.push(Happening::Done { tag: slot.tag, submitted_ns: slot.submitted_ns });
            if slot.traced {
                self.add_trace(io);
            }
        }
        let slot = &mut self.slots[io as usize];
        slot.references -= 1;
        if slot.references == 0 {
            self.slots_free.push(io);
        }
    }

    /// A token arrives at a station.
    #[inline]
    fn enter(&mut self, index: u32, step: Step) {
        let now_ns = self.now_ns;
        let token = &mut self.tokens[index as usize];
        token.enter_ns = now_ns;
        let station = &mut self.stations[step.target as usize];
        station.account(now_ns);
        station.count_arrival();
        match &mut station.discipline {
            Discipline::Fcfs { .. } | Discipline::Disordered { .. } => {
                if station.busy < station.servers {
                    station.busy += 1;
                    token.start_ns = now_ns;
                    self.events.push(now_ns + step.amount, index);
                } else {
                    self.queue(index, step);
                }
            }
            Discipline::Disk(arm) => {
                let write = step.extra & crate::core::program::DISK_WRITE != 0;
                let address = step.extra & !crate::core::program::DISK_WRITE;
                arm.queue(index, address, step.amount, write, step.background, now_ns);
                if station.busy == 0 {
                    station.busy = 1;
                    self.start_disk(step.target);
                }
            }
            Discipline::Sharing(sharing) => {
                token.start_ns = now_ns;
                sharing.enter(now_ns, station.servers, index, step.amount);
                self.plan_shared(step.target);
            }
            Discipline::Delay => {
                token.start_ns = now_ns;
                station.busy += 1;
                self.events.push(now_ns + step.amount, index);
            }
            Discipline::Bucket { ns_per_token, burst_ns, theoretical_ns } => {
                let cost_ns = step.amount as f64 * *ns_per_token;
                let pass_ns = (*theoretical_ns - (*burst_ns - cost_ns)).max(now_ns as f64);
                *theoretical_ns = theoretical_ns.max(pass_ns) + cost_ns;
                let at_ns = libm::ceil(pass_ns) as u64;
                token.start_ns = at_ns;
                self.events.push(at_ns, index);
            }
            Discipline::Doors { closed } => match closed.get_mut(&step.amount) {
                Some(waiting) => waiting.push(index),
                None => {
                    token.start_ns = now_ns;
                    self.leave(index, step);
                    self.ready.push(index);
                }
            },
            Discipline::Gate { free, waiting, .. } => {
                if waiting.is_empty() && *free >= step.amount {
                    *free -= step.amount;
                    token.start_ns = now_ns;
                    self.leave(index, step);
                    self.ready.push(index);
                } else {
                    waiting.push_back((index, step.amount));
                }
            }
        }
    }

    /// Puts a token that found every server busy into the queue.
    #[inline]
    fn queue(&mut self, index: u32, step: Step) {
        let station = &mut self.stations[step.target as usize];
        if let Discipline::Disordered { waiting, .. } = &mut station.discipline {
            waiting.push_back(index);
            return;
        }
        self.tokens[index as usize].next = NONE;
        let fifo = if step.background { &mut station.background } else { &mut station.foreground };
        if fifo.tail == NONE {
            fifo.head = index;
        } else {
            self.tokens[fifo.tail as usize].next = index;
        }
        fifo.tail = index;
    }

    /// The next token to serve, taken from the queue.
    #[inline]
    fn dequeue(&mut self, target: u32) -> Option<u32> {
        let station = &mut self.stations[target as usize];
        let background_every = match &mut station.discipline {
            Discipline::Disordered { waiting, random_share, stream } => {
                if waiting.len() > 1 && stream.chance(*random_share) {
                    let at = stream.below(waiting.len() as u64) as usize;
                    return waiting.remove(at);
                }
                return waiting.pop_front();
            }
            Discipline::Fcfs { background_every } => *background_every,
            _ => return None,
        };
        let due = background_every != 0 && station.since_background >= background_every;
        let take_background =
            station.background.head != NONE && (due || station.foreground.head == NONE);
        let fifo = if take_background {
            station.since_background = 0;
            &mut station.background
        } else {
            station.since_background = station.since_background.saturating_add(1);
            &mut station.foreground
        };
        let index = fifo.head;
        if index == NONE {
            return None;
        }
        fifo.head = self.tokens[index as usize].next;
        if fifo.head == NONE {
            fifo.tail = NONE;
        }
        Some(index)
    }

    /// A service (or a wait at a delay or bucket) ended.
    #[inline]
    fn served(&mut self, index: u32) {
        let Token { io, pc, .. } = self.tokens[index as usize];
        let step = self.slots[io as usize].steps[pc as usize];
        let now_ns = self.now_ns;
        self.leave(index, step);
        let station = &mut self.stations[step.target as usize];
        match station.discipline {
            Discipline::Fcfs { .. } | Discipline::Disordered { .. } => {
                match self.dequeue(step.target) {
                    Some(next) => {
                        let Token { io, pc, .. } = self.tokens[next as usize];
                        let demand_ns = self.slots[io as usize].steps[pc as usize].amount;
                        self.tokens[next as usize].start_ns = now_ns;
                        self.events.push(now_ns + demand_ns, next);
                    }
                    None => self.stations[step.target as usize].busy -= 1,
                }
            }
            Discipline::Disk(_) => self.start_disk(step.target),
            Discipline::Delay => station.busy -= 1,
            _ => {}
        }
    }

    /// Lets the disk choose its next command, or rest.
    fn start_disk(&mut self, target: u32) {
        let station = &mut self.stations[target as usize];
        let Discipline::Disk(arm) = &mut station.discipline else { return };
        match arm.start_next(self.now_ns) {
            Some((index, service_ns)) => {
                self.tokens[index as usize].start_ns = self.now_ns;
                self.events.push(self.now_ns + service_ns, index);
            }
            None => station.busy = 0,
        }
    }

    /// A departure from a processor-sharing station may be due.
    fn shared(&mut self, target: u32) {
        let now_ns = self.now_ns;
        let station = &mut self.stations[target as usize];
        let Discipline::Sharing(sharing) = &mut station.discipline else { return };
        // An arrival since this event was set has moved the departure: then another event is due.
        if sharing.next_ns(station.servers).is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        if let Some(index) = sharing.leave(now_ns, station.servers) {
            let Token { io, pc, .. } = self.tokens[index as usize];
            let step = self.slots[io as usize].steps[pc as usize];
            self.leave(index, step);
            self.ready.push(index);
        }
        self.plan_shared(target);
    }

    fn plan_shared(&mut self, target: u32) {
        let station = &mut self.stations[target as usize];
        let Discipline::Sharing(sharing) = &station.discipline else { return };
        station.busy = station.servers.min(station.customers);
        if let Some(due_ns) = sharing.next_ns(station.servers) {
            self.events.push(due_ns, EVENT_STATION | target);
        }
    }

    /// Accounts for a token's departure and moves its program on.
    #[inline]
    fn leave(&mut self, index: u32, step: Step) {
        let now_ns = self.now_ns;
        let token = &mut self.tokens[index as usize];
        let station = &mut self.stations[step.target as usize];
        station.account(now_ns);
        station.count_departure(now_ns, token.enter_ns, token.start_ns, step.background);
        let slot = &mut self.slots[token.io as usize];
        if slot.traced {
            slot.marks[token.pc as usize] =
                Mark { enter_ns: token.enter_ns, start_ns: token.start_ns, end_ns: now_ns };
        }
        token.pc += 1;
    }

    /// Returns tokens to a gate and lets in those that wait, in order.
    fn give(&mut self, target: u32, amount: u64) {
        let now_ns = self.now_ns;
        let mut back = amount;
        loop {
            let station = &mut self.stations[target as usize];
            let index = match &mut station.discipline {
                Discipline::Gate { free, waiting, random } => {
                    *free += std::mem::take(&mut back);
                    let at = match random {
                        Some(stream) => stream.below(waiting.len() as u64) as usize,
                        None => 0,
                    };
                    match waiting.get(at) {
                        Some(&(index, need)) if need <= *free => {
                            *free -= need;
                            waiting.remove(at);
                            index
                        }
                        _ => return,
                    }
                }
                Discipline::Doors { closed } => match closed.get_mut(&amount).and_then(Vec::pop) {
                    Some(index) => index,
                    None => {
                        closed.remove(&amount);
                        return;
                    }
                },
                _ => return,
            };
            self.tokens[index as usize].start_ns = now_ns;
            let Token { io, pc, .. } = self.tokens[index as usize];
            let step = self.slots[io as usize].steps[pc as usize];
            self.leave(index, step);
            self.ready.push(index);
        }
    }

    /// Closes a door: whoever comes to it waits until a program gives its number.
    pub fn close(&mut self, doors: StationId, door: u64) {
        if let Discipline::Doors { closed } = &mut self.stations[doors.0 as usize].discipline {
            closed.insert(door, Vec::new());
        }
    }

    /// Adds the critical path of a finished I/O to the sums of its class.
    fn add_trace(&mut self, io: u32) {
        let slot = &self.slots[io as usize];
        let n = self.stations.len();
        let base = usize::from(slot.class) * n;
        let Some(sums) = self.traced.get_mut(base..base + n) else { return };
        let total = &mut self.traced_ios[usize::from(slot.class)];
        total.0 += 1;
        total.1 += self.now_ns - slot.submitted_ns;
        // Programs to walk: the main one, and at each fork the branch that completed it, found by the
        // end step that the join noted.
        let mut walks = vec![(0usize, slot.steps.len() - 1)];
        while let Some((mut pc, end)) = walks.pop() {
            while pc < end {
                let step = &slot.steps[pc];
                match step.kind {
                    StepKind::Visit => {
                        let mark = slot.marks[pc];
                        let sum = &mut sums[step.target as usize];
                        sum.visits += 1;
                        sum.waited_ns += mark.start_ns - mark.enter_ns;
                        sum.served_ns += mark.end_ns - mark.start_ns;
                        pc += 1;
                    }
                    StepKind::Fork => {
                        let last_end = slot.marks[pc].enter_ns as usize;
                        let mut head = pc + 1;
                        for _ in 0..step.count {
                            let length = usize::from(slot.steps[head].count);
                            if step.extra > 0 && head + length == last_end {
                                walks.push((head + 1, last_end));
                            }
                            head += length + 1;
                        }
                        pc = head;
                    }
                    _ => pc += 1,
                }
            }
        }
    }
}
