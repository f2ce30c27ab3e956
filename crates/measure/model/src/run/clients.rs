//! Runs the streams of a plan as a stateful workload: the clients of one node, in the same closed
//! and open loops that the driver for real files uses. `plimsoll_workload::matrix` generates every
//! operation, so a plan causes the same operations on a model as on files.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_observe::AccessProfiler;
use plimsoll_plan::Matrix;
use plimsoll_record::durable::{DurableWrites, WriteTimes};
use plimsoll_record::replay::{LagTally, Lags};
use plimsoll_workload::matrix::{OpKind, StreamConfig, StreamPart, stream_classes};
use plimsoll_workload::planned::gate::StreamGate;
use plimsoll_workload::planned::pace::{CAP_CREDIT_NS, Pace, StartTimes};
use plimsoll_workload::planned::{PlannedError, StreamPace};
use plimsoll_workload::step::{
    Arena, BACKLOG_NS, Class, Completion, FileSpec, Io, IoKind, StepWorkload, Wait,
};

use super::events::MaybeGate;

/// The clients of one stream that run on this node.
struct Stream {
    part: StreamPart,
    clients: Range<u32>,
    /// Number of the stream's first client. The clients of all streams on this node are numbered
    /// consecutively.
    first: u32,
    first_class: u16,
    /// Class in which durable writes are recorded. Their latency includes the flush that the write
    /// waits for. `None` if the stream does not flush.
    durable_class: Option<u16>,
    depth: u32,
    batch: bool,
    think_ns: u64,
    /// For each client: its number of operations in flight.
    outstanding: Vec<u32>,
    /// For an open loop: the time of each client's next operation.
    arrivals: Option<Vec<StartTimes>>,
    places: u32,
    in_flight: u32,
    /// Rate limit of a closed loop.
    cap: Option<(StartTimes, u64)>,
    /// Clients that may start an operation. Each entry contains the client and the intended start
    /// time of the operation.
    waiting: VecDeque<(u32, u64)>,
    /// Gate of the stream; `None` if the stream does not start at an event.
    gate: Option<Arc<StreamGate>>,
    /// Time at which the stream started; `None` if the event that starts it has not happened yet.
    start_ns: Option<u64>,
    /// True if the undo action of the stream's event has ended the stream.
    is_closed: bool,
}

/// An operation that was issued and has not completed.
#[derive(Clone, Copy, Debug)]
struct Operation {
    stream: u32,
    client: u32,
    kind: OpKind,
    file: u32,
    intended_ns: u64,
}

/// The clients of all streams on one node.
pub struct Clients {
    streams: Vec<Stream>,
    classes: Vec<Class>,
    files: Vec<FileSpec>,
    /// Timers of clients that are in their think time or wait for an arrival. A timer is (time,
    /// stream, client).
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// For each token: its operation.
    operations: Vec<Operation>,
    /// Completed writes that wait for a flush.
    unflushed: DurableWrites,
    /// Writes that the last completions have made durable. Each entry contains the class of the
    /// durable write.
    durable: Vec<(u16, WriteTimes)>,
    free: Vec<u32>,
    start_ns: Option<u64>,
    stopping: bool,
    /// Time at which the load stops. Operations that were due before this time are still started,
    /// for a limited time.
    stop_ns: Option<u64>,
    in_flight: u32,
    /// True if at least one stream starts at an event.
    has_gates: bool,
    /// Access profile since the start of the measurement.
    profiler: AccessProfiler,
    /// Delay of each operation between its due time and its start. The delays are recorded only for
    /// a trace.
    lag: Option<Box<LagTally>>,
}

impl Clients {
    /// Creates the clients of the node with the number `part`. The clients of a plan are divided
    /// among `parts` nodes. `gates` contains an entry for each stream.
    ///
    /// # Errors
    /// A stream or a rate is invalid.
    pub fn new(
        matrix: &Matrix,
        configs: &[StreamConfig],
        gates: &[MaybeGate],
        part: u32,
        parts: u32,
    ) -> Result<Self, PlannedError> {
        let mut streams = Vec::new();
        let (mut first_class, mut first) = (0, 0);
        for (number, (stream, config)) in matrix.streams.iter().zip(configs).enumerate() {
            let bound = |part: u32| {
                (u64::from(config.clients) * u64::from(part) / u64::from(parts.max(1))) as u32
            };
            let clients = bound(part)..bound(part + 1);
            let size_bytes_max = config.size_bytes_max();
            let pace = StreamPace::new(stream, size_bytes_max, config.seed, |path| {
                fs::read_to_string(path)
            })?
            .replaying(config.trace.as_ref());
            let (pace, cap) = pace.group(&clients.clone().collect::<Vec<u32>>());
            let of =
                StreamPart::new(config.clone(), clients.clone()).map_err(PlannedError::numbers)?;
            let mut one = Stream {
                part: of,
                outstanding: vec![0; clients.len()],
                first,
                clients,
                first_class,
                durable_class: config.durable_class().map(|class| first_class + class),
                depth: config.queue_depth.max(1),
                batch: false,
                think_ns: 0,
                arrivals: None,
                places: u32::MAX,
                in_flight: 0,
                cap: None,
                waiting: VecDeque::new(),
                gate: gates.get(number).cloned().flatten(),
                start_ns: None,
                is_closed: false,
            };
            match pace {
                Pace::Closed { depth } => one.depth = depth,
                Pace::Barrier { depth, think_ns } => {
                    (one.depth, one.batch, one.think_ns) = (depth, true, think_ns);
                }
                // A model run starts such streams through their gates instead.
                Pace::Gated { .. } => {}
                Pace::Thinking { depth, think_ns } => (one.depth, one.think_ns) = (depth, think_ns),
                Pace::Open { arrivals, places } => {
                    (one.arrivals, one.places) = (Some(arrivals), places);
                }
            }
            one.cap = cap.and_then(|mut turns| turns.0.next().map(|first| (turns.0, first)));
            first += one.clients.len() as u32;
            streams.push(one);
            first_class += config.classes().len() as u16;
        }
        let files = files(configs);
        let sizes: Vec<u64> = files.iter().map(|file| file.size_bytes).collect();
        let seed = configs.first().map_or(0, |config| config.seed) ^ u64::from(part);
        Ok(Self {
            streams,
            classes: stream_classes(configs),
            profiler: AccessProfiler::new(&sizes, first.max(1) as usize, seed),
            files,
            timers: BinaryHeap::new(),
            operations: Vec::new(),
            unflushed: DurableWrites::new(first as usize, 0, 0),
            durable: Vec::new(),
            free: Vec::new(),
            start_ns: None,
            stopping: false,
            stop_ns: None,
            in_flight: 0,
            has_gates: gates.iter().any(Option::is_some),
            lag: configs.iter().any(|config| config.trace.is_some()).then(Box::default),
        })
    }

    /// Returns how late the operations of a trace started, compared with their due times.
    pub fn lags(&mut self, now_ns: u64) -> Lags {
        self.lag.as_mut().map_or_else(Lags::default, |lag| lag.end(now_ns))
    }

    /// Resets the access profile at the start of the measurement.
    pub fn measure_begins(&mut self) {
        self.profiler.reset();
    }

    /// Returns the access profile since the start of the measurement. A model's operations have no
    /// content.
    pub fn profiler(&self) -> &AccessProfiler {
        &self.profiler
    }

    /// Returns true if no operation is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn begin(&mut self, now_ns: u64) {
        self.start_ns = Some(now_ns);
        for at in 0..self.streams.len() {
            if self.streams[at].gate.is_none() {
                self.begin_stream(at, now_ns);
            }
        }
    }

    fn begin_stream(&mut self, at: usize, now_ns: u64) {
        let stream = &mut self.streams[at];
        stream.start_ns = Some(now_ns);
        for client in 0..stream.clients.len() as u32 {
            match &mut stream.arrivals {
                None => (0..stream.depth).for_each(|_| stream.waiting.push_back((client, now_ns))),
                Some(arrivals) => {
                    if let Some(first) = arrivals[client as usize].next() {
                        self.timers.push(Reverse((now_ns + first, at as u32, client)));
                    }
                }
            }
        }
    }

    /// Starts the streams whose event has happened. Ends the streams whose event was undone.
    fn check_gates(&mut self, now_ns: u64) {
        for at in 0..self.streams.len() {
            let stream = &self.streams[at];
            let Some(gate) = stream.gate.clone() else { continue };
            let due = |ns: Option<u64>| ns.filter(|ns| *ns <= now_ns);
            if let (None, Some(from_ns)) = (stream.start_ns, due(gate.from_ns())) {
                self.begin_stream(at, from_ns);
            }
            let stream = &mut self.streams[at];
            if let (false, Some(to_ns)) = (stream.is_closed, due(gate.to_ns())) {
                stream.is_closed = true;
                let open = stream.arrivals.is_some();
                stream.waiting.retain(|(_, due_ns)| open && *due_ns < to_ns);
                self.timers.retain(|Reverse((_, stream, _))| *stream as usize != at);
            }
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let operation = self.operations[completion.token as usize];
        let Operation { stream: at, client, .. } = operation;
        self.note_flush(operation, completion);
        self.free.push(completion.token as u32);
        self.in_flight -= 1;
        let now_ns = completion.completed_ns;
        let stream = &mut self.streams[at as usize];
        stream.in_flight -= 1;
        let outstanding = &mut stream.outstanding[client as usize];
        *outstanding -= 1;
        let is_over = self.stopping || stream.is_closed;
        if is_over || stream.arrivals.is_some() || stream.batch && *outstanding > 0 {
            return;
        }
        let count = if stream.batch { stream.depth } else { 1 };
        for _ in 0..count {
            if stream.think_ns > 0 {
                self.timers.push(Reverse((now_ns + stream.think_ns, at, client)));
            } else {
                stream.waiting.push_back((client, now_ns));
            }
        }
    }

    /// Handles a completion. After its completion, a write waits for a flush. The completion of a
    /// flush makes the waiting writes durable.
    fn note_flush(&mut self, operation: Operation, completion: &Completion) {
        let Operation { stream, client, kind, file, intended_ns } = operation;
        if completion.result.is_err() {
            return;
        }
        let stream = &self.streams[stream as usize];
        let Some(class) = stream.durable_class else { return };
        let client = stream.first + client;
        match kind {
            OpKind::Write => {
                let at = WriteTimes {
                    intended_ns,
                    submitted_ns: completion.submitted_ns,
                    completed_ns: completion.completed_ns,
                };
                self.unflushed.written(client, file, at);
            }
            OpKind::Fsync | OpKind::Fdatasync => {
                let (token, durable) = (completion.token as u32, &mut self.durable);
                let due_ns = stream.arrivals.as_ref().map(|_| intended_ns);
                let place = (token, client, file);
                self.unflushed.flushed(place, due_ns, &mut |at| durable.push((class, at)));
            }
            _ => {}
        }
    }

    /// Moves due clients from the timers to their streams.
    fn wake(&mut self, now_ns: u64) {
        while let Some(&Reverse((due_ns, at, client))) = self.timers.peek() {
            if due_ns > now_ns {
                return;
            }
            self.timers.pop();
            let stream = &mut self.streams[at as usize];
            let start_ns = stream.start_ns.unwrap_or(now_ns);
            stream.waiting.push_back((client, due_ns));
            if let Some(arrivals) = &mut stream.arrivals
                && let Some(next) = arrivals[client as usize].next()
            {
                self.timers.push(Reverse((start_ns + next, at, client)));
            }
        }
    }

    /// Ends the load: discards arrivals that are due later, and prevents closed loops from starting
    /// further operations.
    fn begin_stop(&mut self, now_ns: u64) {
        self.stop_ns = Some(now_ns);
        self.wake(now_ns.saturating_sub(1));
        self.timers.clear();
        for stream in &mut self.streams {
            let open = stream.arrivals.is_some();
            stream.waiting.retain(|(_, due_ns)| open && *due_ns < now_ns);
        }
    }

    fn issue(&mut self, now_ns: u64, out: &mut Vec<Io>) {
        for (at, stream) in (0u32..).zip(&mut self.streams) {
            let start_ns = stream.start_ns.unwrap_or(now_ns);
            while let Some(&(client, intended_ns)) = stream.waiting.front() {
                if stream.in_flight >= stream.places {
                    break;
                }
                let mut intended_ns = intended_ns.min(now_ns);
                if let Some((turns, next)) = &mut stream.cap {
                    let mut advance = || turns.next().unwrap_or(u64::MAX - start_ns);
                    while (start_ns + *next).saturating_add(CAP_CREDIT_NS) < now_ns {
                        *next = advance();
                    }
                    if start_ns + *next > now_ns {
                        break;
                    }
                    // The wait for the cap is not a latency of the storage.
                    intended_ns = intended_ns.max(start_ns + *next);
                    *next = advance();
                }
                stream.waiting.pop_front();
                let Some(op) = stream.part.next(stream.clients.start + client) else { continue };
                let operation =
                    Operation { stream: at, client, kind: op.kind, file: op.file, intended_ns };
                let token = self.free.pop().unwrap_or_else(|| {
                    self.operations.push(operation);
                    self.operations.len() as u32 - 1
                });
                self.operations[token as usize] = operation;
                if stream.durable_class.is_some()
                    && matches!(op.kind, OpKind::Fsync | OpKind::Fdatasync)
                {
                    self.unflushed.flush_begins(token, stream.first + client);
                }
                stream.outstanding[client as usize] += 1;
                stream.in_flight += 1;
                self.in_flight += 1;
                let kind = match op.kind {
                    OpKind::Read => IoKind::Read,
                    OpKind::Write => IoKind::Write,
                    OpKind::WriteDurable => IoKind::WriteDurable,
                    OpKind::Fsync | OpKind::Fdatasync | OpKind::Metadata(_) => IoKind::Flush,
                };
                let number = stream.first + client;
                let is_read = kind == IoKind::Read;
                if let Some(lag) = &mut self.lag {
                    lag.begun(now_ns.saturating_sub(intended_ns));
                }
                self.profiler.operation(number, op.file, is_read, op.offset_bytes, op.size_bytes);
                out.push(Io {
                    token: token.into(),
                    kind,
                    file: op.file,
                    class: stream.first_class + op.class,
                    offset_bytes: op.offset_bytes,
                    size_bytes: op.size_bytes,
                    buffer_offset_bytes: 0,
                    intended_ns,
                });
            }
        }
    }

    /// Returns the time at which a client is due next, even if no operation completes.
    fn due_ns(&self) -> Option<u64> {
        let capped = self.streams.iter().filter(|stream| !stream.waiting.is_empty());
        let turn_ns = |s: &Stream| Some(s.start_ns.unwrap_or(0).saturating_add(s.cap.as_ref()?.1));
        let turn = capped.filter_map(turn_ns);
        let timer = self.timers.peek().map(|Reverse((due_ns, ..))| *due_ns);
        turn.chain(timer).min()
    }
}

fn files(configs: &[StreamConfig]) -> Vec<FileSpec> {
    let mut files = Vec::new();
    for config in configs {
        for number in 0..config.files.files() {
            files.push(FileSpec {
                name: format!("{}-{number}", config.name),
                directory: 0,
                size_bytes: config.files.file_size_bytes,
            });
        }
    }
    files
}

impl StepWorkload for Clients {
    fn files(&self) -> &[FileSpec] {
        &self.files
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn arena_size_bytes(&self) -> u64 {
        0
    }

    fn depth_max(&self) -> usize {
        let depth = |s: &Stream| s.clients.len() * s.depth as usize;
        self.streams.iter().map(depth).sum()
    }

    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        _arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait {
        if self.start_ns.is_none() {
            self.begin(now_ns);
        }
        for completion in completions {
            self.completed(completion);
        }
        if self.stopping {
            if self.stop_ns.is_none() {
                self.begin_stop(now_ns);
            }
            let backlog_ns =
                if self.lag.is_some() { plimsoll_record::replay::BACKLOG_NS } else { BACKLOG_NS };
            if self.stop_ns.is_some_and(|from_ns| now_ns < from_ns.saturating_add(backlog_ns)) {
                self.issue(now_ns, out);
            }
            return if self.is_idle() { Wait::Done } else { Wait::Completion };
        }
        if self.has_gates {
            self.check_gates(now_ns);
        }
        self.wake(now_ns);
        self.issue(now_ns, out);
        match self.due_ns() {
            Some(due_ns) => Wait::Until(due_ns.max(now_ns)),
            None if self.in_flight > 0 || self.has_gates => Wait::Completion,
            None => Wait::Done,
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        for stream in &mut self.streams {
            let Stream { part, waiting, clients, first_class, .. } = stream;
            for (client, due_ns) in waiting.drain(..) {
                if let Some(lag) = &mut self.lag {
                    lag.never(due_ns);
                }
                if let Some(op) = part.next(clients.start + client) {
                    each(*first_class + op.class, due_ns);
                }
            }
        }
    }

    fn durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        for (class, at) in self.durable.drain(..) {
            each(class, at.intended_ns, at.submitted_ns);
        }
    }

    fn never_durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let streams = &self.streams;
        self.unflushed.left(&mut |client, at| {
            let stream = streams.iter().rev().find(|stream| stream.first <= client);
            if let Some(class) = stream.and_then(|stream| stream.durable_class) {
                each(class, at.intended_ns, at.submitted_ns);
            }
        });
    }

    fn counters(&self, _each: &mut dyn FnMut(&'static str, u32, u64)) {}
}
