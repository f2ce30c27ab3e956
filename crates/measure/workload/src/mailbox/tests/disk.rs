//! Simulated disk that works in virtual time. In a crash, it loses its volatile cache.
//!
//! A read returns the data of every completed write. A write is durable if it was issued as a
//! durable write, or if a flush was issued after its completion and has completed. All other writes
//! may be lost in a crash, and so may writes in flight. The disk may then contain any sectors of
//! such a write: all sectors, no sector, the first sectors, or any subset.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::mailbox::geometry::mix;
use crate::mailbox::rng::{Choices, below};
use crate::step::{
    Arena, Class, ClassGroup, Completion, FileSpec, HeapArena, Io, IoKind, NoBytes, StepWorkload,
    Wait,
};

const SECTOR: usize = 512;

/// Mean latency of each kind of I/O in ns. The latency of a single I/O is 0.5 to 1.5 times this
/// value.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    pub read_ns: u64,
    pub write_ns: u64,
    pub durable_ns: u64,
    pub flush_ns: u64,
}

/// Write that may be lost in a crash.
#[derive(Clone, Debug)]
struct Volatile {
    offset: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct File {
    visible: Vec<u8>,
    durable: Vec<u8>,
    volatile: Vec<Volatile>,
}

/// Number of I/Os in a class, and number of bytes that these I/Os transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub count: u64,
    pub bytes: u64,
}

/// Simulated disk, together with a driver that runs machines on it.
#[derive(Clone, Debug)]
pub struct Disk {
    files: Vec<File>,
    names: Vec<(u32, String)>,
    pub latency: Latency,
    choices: Choices,
    pub now_ns: u64,
    /// Counts by class name. The class names do not contain the database, so the counts are sums
    /// over all databases.
    pub tallies: BTreeMap<String, Tally>,
    pub groups: BTreeMap<ClassGroup, Tally>,
    /// Hash of all issued I/Os. With it, tests check whether two runs issued the same I/Os.
    pub trace: u64,
    /// Results that a test injects: an `errno`, or fewer bytes than requested. The key is the
    /// number of the I/O.
    pub failures: BTreeMap<u64, Result<u32, i32>>,
    /// Faults of writes that the disk acknowledges nevertheless. The key is the number of the I/O.
    pub lies: BTreeMap<u64, WriteFault>,
    /// Numbers of the I/Os that were log writes.
    pub log_writes: Vec<u64>,
    /// Kind of the I/O that failed last.
    pub failed: Option<IoKind>,
    /// Longest time between the intended start and the actual start of an I/O.
    pub intended_lag_max_ns: u64,
    pub issued: u64,
}

/// Fault of a write that the disk acknowledges but does not execute correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// No data is written.
    Dropped,
    /// All sectors except the last sector are written.
    Torn,
    /// The data is written with one flipped bit.
    Flipped,
    /// The data is written to a wrong position. The position is one block later, or the start of
    /// the file.
    Misdirected,
}

/// What the driver does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    On,
    Stop,
    /// The driver stops and discards all I/Os in flight.
    Crash,
}

/// I/O in flight. For a write, it contains the bytes. For a flush, it contains the number of
/// volatile writes that the flush makes durable.
#[derive(Clone, Debug)]
struct InFlight {
    io: Io,
    file: usize,
    bytes: Vec<u8>,
    covers: usize,
    submitted_ns: u64,
}

impl Disk {
    pub fn new(seed: u64, latency: Latency) -> Self {
        Self {
            files: Vec::new(),
            names: Vec::new(),
            latency,
            choices: Choices::new(seed, 1 << 40),
            now_ns: 0,
            tallies: BTreeMap::new(),
            groups: BTreeMap::new(),
            trace: 0,
            failures: BTreeMap::new(),
            lies: BTreeMap::new(),
            log_writes: Vec::new(),
            failed: None,
            intended_lag_max_ns: 0,
            issued: 0,
        }
    }

    pub fn reseed(&mut self, seed: u64) {
        self.choices = Choices::new(seed, 1 << 40);
    }

    /// Returns the index of a file. Creates the file if it does not exist.
    fn open(&mut self, spec: &FileSpec, with_bytes: bool) -> usize {
        let name = (spec.directory, spec.name.clone());
        if let Some(at) = self.names.iter().position(|n| *n == name) {
            return at;
        }
        self.names.push(name);
        let size = if with_bytes { spec.size_bytes as usize } else { 0 };
        self.files.push(File { visible: vec![0; size], durable: vec![0; size], ..File::default() });
        self.files.len() - 1
    }

    /// Returns the bytes of a file. A test can inspect and change them.
    pub fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        let at = self.names.iter().position(|(_, n)| n == name).expect("file");
        &mut self.files[at].visible
    }

    fn duration(&mut self, kind: IoKind) -> u64 {
        let mean = match kind {
            IoKind::Read => self.latency.read_ns,
            IoKind::Write => self.latency.write_ns,
            IoKind::WriteDurable => self.latency.durable_ns,
            IoKind::Flush => self.latency.flush_ns,
        };
        mean / 2 + below(self.choices.bits(), mean.max(1))
    }

    /// Runs a machine with data until the machine ends or `each` stops it. Calls `each` after every
    /// step, with the machine and the number of steps so far.
    pub fn run<M: StepWorkload>(
        &mut self,
        machine: &mut M,
        each: impl FnMut(&mut M, u64) -> NextStep,
    ) {
        let mut arena = HeapArena(vec![0; machine.arena_size_bytes() as usize]);
        self.drive(machine, &mut arena, true, each);
    }

    /// Runs a machine like `run`, but without data. `each` is called with the time instead of the
    /// number of steps.
    pub fn run_dry<M: StepWorkload>(
        &mut self,
        machine: &mut M,
        each: impl FnMut(&mut M, u64) -> NextStep,
    ) {
        self.drive(machine, &mut NoBytes, false, each);
    }

    fn drive<M: StepWorkload>(
        &mut self,
        machine: &mut M,
        arena: &mut dyn Arena,
        with_bytes: bool,
        mut each: impl FnMut(&mut M, u64) -> NextStep,
    ) {
        let specs = machine.files().to_vec();
        let table: Vec<usize> = specs.iter().map(|spec| self.open(spec, with_bytes)).collect();
        let classes = machine.classes().to_vec();
        let mut in_flight: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
        let mut by_number: BTreeMap<u64, InFlight> = BTreeMap::new();
        let (mut out, mut completions) = (Vec::new(), Vec::new());
        let mut steps = 0;
        let mut tallies = vec![Tally::default(); classes.len()];
        loop {
            out.clear();
            let wait = machine.step(self.now_ns, &completions, arena, &mut out);
            completions.clear();
            steps += 1;
            assert!(by_number.len() + out.len() <= machine.depth_max(), "more I/Os than promised");
            for io in &out {
                let tally = &mut tallies[io.class as usize];
                tally.count += 1;
                tally.bytes += u64::from(io.size_bytes);
                let lag_ns = self.now_ns.saturating_sub(io.intended_ns);
                self.intended_lag_max_ns = self.intended_lag_max_ns.max(lag_ns);
                let what = u64::from(io.file) << 40 ^ io.offset_bytes ^ u64::from(io.size_bytes);
                self.trace = mix(self.trace ^ what ^ (io.kind as u64) << 60 ^ mix(self.now_ns));
                let file = table[io.file as usize];
                let done = self.now_ns + self.duration(io.kind);
                let bytes = match io.kind {
                    IoKind::Write | IoKind::WriteDurable if with_bytes => {
                        let range = arena.bytes(io.buffer_offset_bytes, io.size_bytes);
                        range.expect("buffer in the arena").to_vec()
                    }
                    _ => Vec::new(),
                };
                let covers = self.files[file].volatile.len();
                let submitted_ns = self.now_ns;
                let flying_now = InFlight { io: *io, file, bytes, covers, submitted_ns };
                by_number.insert(self.issued, flying_now);
                if classes[io.class as usize].name.ends_with(".log_write") {
                    self.log_writes.push(self.issued);
                }
                in_flight.push(Reverse((done, self.issued)));
                self.issued += 1;
            }
            match each(machine, if with_bytes { steps } else { self.now_ns }) {
                NextStep::On => {}
                NextStep::Stop => machine.stop(),
                NextStep::Crash => {
                    for (_, lost) in by_number {
                        if !lost.bytes.is_empty() {
                            let offset = lost.io.offset_bytes as usize;
                            self.files[lost.file]
                                .volatile
                                .push(Volatile { offset, bytes: lost.bytes });
                        }
                    }
                    return self.count(&classes, &tallies);
                }
            }
            let next = in_flight.peek().map(|Reverse((at, _))| *at);
            self.now_ns = match (wait, next) {
                (Wait::Done, None) => return self.count(&classes, &tallies),
                (Wait::Done, Some(_)) => panic!("done with I/O in flight"),
                (Wait::Completion, next) => next.expect("waits for a completion of nothing"),
                (Wait::Until(at), Some(next)) => at.min(next).max(self.now_ns),
                (Wait::Until(at), None) => at.max(self.now_ns),
            };
            while let Some(&Reverse((at, number))) = in_flight.peek() {
                if at > self.now_ns {
                    break;
                }
                in_flight.pop();
                let landed = by_number.remove(&number).expect("in flight");
                let result = match self.failures.get(&number) {
                    Some(&failure) => {
                        self.failed = Some(landed.io.kind);
                        failure
                    }
                    None => match self.lies.get(&number) {
                        Some(&lie) => Ok(self.land_otherwise(&landed, lie)),
                        None => Ok(self.land(&landed, arena, with_bytes)),
                    },
                };
                completions.push(Completion {
                    token: landed.io.token,
                    result,
                    submitted_ns: landed.submitted_ns,
                    completed_ns: at,
                });
            }
        }
    }

    fn count(&mut self, classes: &[Class], tallies: &[Tally]) {
        for (class, tally) in classes.iter().zip(tallies) {
            let name = class.name.split_once('.').map_or("", |(_, name)| name).to_owned();
            for sum in
                [self.tallies.entry(name).or_default(), self.groups.entry(class.group).or_default()]
            {
                sum.count += tally.count;
                sum.bytes += tally.bytes;
            }
        }
    }

    /// Executes a write with a fault. The disk acknowledges the write nevertheless.
    fn land_otherwise(&mut self, landed: &InFlight, lie: WriteFault) -> u32 {
        let (mut at, mut bytes) = (landed.io.offset_bytes as usize, landed.bytes.clone());
        let file_bytes = self.files[landed.file].visible.len();
        match lie {
            WriteFault::Dropped => bytes.clear(),
            WriteFault::Torn => bytes.truncate(bytes.len() - SECTOR),
            WriteFault::Flipped => {
                let bit = below(self.choices.clone().bits(), 8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            WriteFault::Misdirected => {
                at = (at + 4096) % (file_bytes - bytes.len() + 1) / 4096 * 4096
            }
        }
        let file = &mut self.files[landed.file];
        file.visible[at..at + bytes.len()].copy_from_slice(&bytes);
        file.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        landed.io.size_bytes
    }

    fn land(&mut self, landed: &InFlight, arena: &mut dyn Arena, with_bytes: bool) -> u32 {
        let Io { kind, offset_bytes, size_bytes, buffer_offset_bytes, .. } = landed.io;
        if !with_bytes {
            return size_bytes;
        }
        let file = &mut self.files[landed.file];
        let start = offset_bytes as usize;
        let end = start + size_bytes as usize;
        match kind {
            IoKind::Read => {
                let buffer = arena.bytes(buffer_offset_bytes, size_bytes).expect("in the arena");
                buffer.copy_from_slice(&file.visible[start..end]);
            }
            IoKind::Write => {
                file.visible[start..end].copy_from_slice(&landed.bytes);
                file.volatile.push(Volatile { offset: start, bytes: landed.bytes.clone() });
            }
            IoKind::WriteDurable => {
                file.visible[start..end].copy_from_slice(&landed.bytes);
                file.durable[start..end].copy_from_slice(&landed.bytes);
            }
            IoKind::Flush => {
                // Several flushes of a file may be in flight at the same time. An earlier flush may
                // therefore have already made some of these writes durable.
                let covers = landed.covers.min(file.volatile.len());
                for write in file.volatile.drain(..covers) {
                    let end = write.offset + write.bytes.len();
                    file.durable[write.offset..end].copy_from_slice(&write.bytes);
                }
            }
        }
        size_bytes
    }

    /// Simulates a crash. Data that was not durable is lost, truncated or torn.
    pub fn crash(&mut self) {
        let choices = &mut self.choices;
        for file in &mut self.files {
            for write in file.volatile.drain(..) {
                let sectors = write.bytes.len() / SECTOR;
                let way = below(choices.bits(), 4);
                let front = below(choices.bits(), sectors as u64 + 1) as usize;
                for sector in 0..sectors {
                    let survives = match way {
                        0 => true,
                        1 => false,
                        2 => sector < front,
                        _ => choices.bits() & 1 == 1,
                    };
                    if survives {
                        let (from, to) = (sector * SECTOR, write.offset + sector * SECTOR);
                        file.durable[to..to + SECTOR]
                            .copy_from_slice(&write.bytes[from..from + SECTOR]);
                    }
                }
            }
            file.visible.copy_from_slice(&file.durable);
        }
    }
}
