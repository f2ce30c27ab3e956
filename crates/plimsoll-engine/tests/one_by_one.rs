//! Targets that answer one operation and then nothing more until the next has come: a driver that waits for more
//! completions before it hands anything over gets none. Then they fall silent across the end of the measurement:
//! what was in flight then counts with all of its wait.
//!
//! Nothing here depends on how quick the machine is; time limits only end what has failed. What the stream
//! driver does with any queue at all, and what the mail store's driver does, is shown in virtual time
//! (`src/simulated.rs`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_engine::backend::{BackendConfig, Direct, FileSource, Prefer};
use plimsoll_engine::nfs::{NfsTarget, Share};
use plimsoll_engine::placement::Place;
use plimsoll_engine::stream::run::{Group, RunConfig, RunReport, Target, run};
use plimsoll_engine::stream::source::{Op, Source};
use plimsoll_nfs::mount::Export;
use plimsoll_nfs::{Credential, Handle, Stability};
use plimsoll_sys::op::OpKind;
use plimsoll_workload::planned::pace::Pace;

const SIZE: u32 = 4096;
/// Operations that are answered one by one.
const TURNS: usize = 200;
/// How long the next operation is waited for, before the driver is said to wait for others.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing is answered, from when the run is told to end.
const SILENCE: Duration = Duration::from_millis(500);
/// How often it is looked whether a run is over.
const LOOK: Duration = Duration::from_millis(5);

/// Each client reads its own file.
struct Reads;

impl Source for Reads {
    fn next(&mut self, client: u32) -> Option<Op> {
        let (kind, class, offset_bytes, tag) = (OpKind::Read, 0, 0, 0);
        Some(Op { kind, class, file: client, offset_bytes, size_bytes: SIZE, tag })
    }
}

/// An operation that is to be answered.
struct Call {
    answer: Box<dyn FnOnce() + Send>,
    came: Instant,
}

/// What a target did.
struct Answered {
    operations: u64,
    /// The longest that an operation waited for its answer.
    longest: Duration,
}

/// What a run and its target tell each other.
#[derive(Default)]
struct Told {
    /// The run is to end.
    stop: AtomicBool,
    /// It has.
    over: AtomicBool,
}

/// Answers one at a time, each when the one before has been replaced; then tells the run to end, and goes silent.
fn answer_one_by_one(calls: &Receiver<Call>, depth: usize, told: &Told) -> Answered {
    let mut waiting = VecDeque::new();
    let (mut operations, mut longest) = (0, Duration::ZERO);
    let mut answer = |call: Call| {
        longest = longest.max(call.came.elapsed());
        (call.answer)();
        operations += 1;
    };
    for _ in 0..TURNS {
        while waiting.len() < depth {
            waiting.push_back(calls.recv_timeout(PATIENCE).expect("the next operation"));
        }
        waiting.pop_front().into_iter().for_each(&mut answer);
    }
    told.stop.store(true, Ordering::Relaxed);
    std::thread::sleep(SILENCE);
    waiting.into_iter().for_each(&mut answer);
    // A run that has not heard of its end by now asks for more.
    while !told.over.load(Ordering::Relaxed) {
        calls.recv_timeout(LOOK).into_iter().for_each(&mut answer);
    }
    Answered { operations, longest }
}

/// Runs `depth` clients of one operation each.
fn drive(target: Target, depth: u32, told: &Told) -> RunReport {
    let group = Group {
        name: "one".to_owned(),
        place: Place::default(),
        target,
        source: Reads,
        clients: depth,
        pace: Pace::Closed { depth: 1 },
        cap: None,
        size_bytes_max: SIZE,
        operations_max: u64::MAX,
        spin_ns: 0,
    };
    // An hour that the target ends.
    let config = RunConfig::new(&["read"], 3_600_000_000_000);
    let report = run(&config, vec![group], &told.stop, &mut |_| ()).unwrap();
    told.over.store(true, Ordering::Relaxed);
    report
}

#[track_caller]
fn counts_all(report: &RunReport, answered: &Answered) {
    let total = &report.collected.totals[0];
    assert!(answered.operations >= TURNS as u64);
    assert_eq!((total.sums.operations, total.sums.errors), (answered.operations, 0));
    assert_eq!(total.latency.count(), answered.operations);
    let longest_ns = answered.longest.as_nanos() as u64;
    // A histogram of three digits.
    let reported_ns = total.latency.max_ns().unwrap();
    assert!(reported_ns >= longest_ns - longest_ns / 500, "{reported_ns} of {longest_ns}");
}

/// Runs against a target that hands its operations to the sender, at several depths.
fn check(target: impl Fn(Sender<Call>, u32) -> Target) {
    for depth in [1, 2, 8, 32] {
        let (out, calls) = channel();
        let told = Arc::new(Told::default());
        let target = target(out, depth);
        let told_too = Arc::clone(&told);
        let peer: JoinHandle<Answered> =
            std::thread::spawn(move || answer_one_by_one(&calls, depth as usize, &told_too));
        let report = drive(target, depth, &told);
        counts_all(&report, &peer.join().unwrap());
    }
}

/// A server that takes connections and hands each to `serve`.
fn listen(
    calls: Sender<Call>,
    connections: u32,
    serve: fn(TcpStream, &Sender<Call>) -> std::io::Result<()>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten().take(connections as usize) {
            stream.set_nodelay(true).unwrap();
            let calls = calls.clone();
            // A connection ends when the client closes it.
            std::thread::spawn(move || serve(stream, &calls).is_ok());
        }
    });
    address
}

fn hand(calls: &Sender<Call>, stream: &TcpStream, answer: Vec<u8>) -> std::io::Result<()> {
    let mut stream = stream.try_clone()?;
    let answer = Box::new(move || stream.write_all(&answer).unwrap());
    // Nobody is there any more once the test has failed.
    drop(calls.send(Call { answer, came: Instant::now() }));
    Ok(())
}

/// READ calls (RFC 1813 section 3.3.6), one record each.
fn nfs(mut stream: TcpStream, calls: &Sender<Call>) -> std::io::Result<()> {
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark)?;
        let mut call = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        stream.read_exact(&mut call)?;
        let xid = u32::from_be_bytes([call[0], call[1], call[2], call[3]]);
        let mut answer = Vec::new();
        // Mark, XID, a reply, accepted, an empty verifier, success; NFS3_OK, no attributes, count, not the end, length.
        let words = [0x8000_0000 | (11 * 4 + SIZE), xid, 1, 0, 0, 0, 0, 0, 0, SIZE, 0, SIZE];
        words.iter().for_each(|word: &u32| answer.extend_from_slice(&word.to_be_bytes()));
        answer.resize(answer.len() + SIZE as usize, 0);
        hand(calls, &stream, answer)?;
    }
}

#[test]
fn over_nfs_each_answer_brings_the_next_call() {
    check(|calls, depth| {
        let nfs = listen(calls, 1, nfs);
        let handle = |number: u32| Handle::new(&number.to_be_bytes()).unwrap();
        let (path, credential) = ("/".to_owned(), Credential::default());
        let export = Export { nfs, mount: nfs, path, root: handle(1), credential };
        let files = (10..10 + depth).map(handle).collect();
        let share = Share { export, data: handle(2), small: handle(3), files };
        Target::Nfs(NfsTarget {
            shares: vec![Some(share)],
            files: vec![depth],
            first_share: 0,
            connections: 1,
            durable: Stability::FileSync,
            give_up_after_ns: 600_000_000_000,
            xid_seed: 1,
        })
    });
}

/// Pipes: whoever reads one hangs until something is written to it. That what was written is gone shows that the
/// next read had been handed over.
struct Pipes {
    ends: Vec<(PipeWriter, PipeReader)>,
}

impl Pipes {
    fn write(&mut self, number: usize) {
        self.ends[number].0.write_all(&[7; SIZE as usize]).unwrap();
    }

    fn is_taken(&self, number: usize) -> bool {
        rustix::io::ioctl_fionread(&self.ends[number].1).unwrap() == 0
    }

    /// As [`answer_one_by_one`]. Returns how long nothing came.
    fn fill_one_by_one(&mut self, told: &Told) -> Duration {
        // One client's turns, while the others hang; then another's.
        for turn in 0..TURNS {
            let number = turn / 20 % self.ends.len();
            self.write(number);
            let from = Instant::now();
            while !self.is_taken(number) {
                assert!(from.elapsed() < PATIENCE, "turn {turn} of {} clients", self.ends.len());
                std::thread::yield_now();
            }
        }
        let from = Instant::now();
        told.stop.store(true, Ordering::Relaxed);
        std::thread::sleep(SILENCE);
        let longest = from.elapsed();
        while !told.over.load(Ordering::Relaxed) {
            for number in 0..self.ends.len() {
                if self.is_taken(number) {
                    self.write(number);
                }
            }
            std::thread::sleep(LOOK);
        }
        longest
    }
}

#[test]
fn with_io_uring_each_completion_brings_the_next_operation() {
    for depth in [1, 2, 8, 32] {
        let mut pipes = Pipes { ends: Vec::new() };
        let mut files = Vec::new();
        for _ in 0..depth {
            let (reader, writer) = std::io::pipe().unwrap();
            pipes.ends.push((writer, reader.try_clone().unwrap()));
            files.push(FileSource::Fd {
                path: "pipe".into(),
                fd: OwnedFd::from(reader),
                direct: false,
            });
        }
        let told = Arc::new(Told::default());
        let told_too = Arc::clone(&told);
        let peer = std::thread::spawn(move || pipes.fill_one_by_one(&told_too));
        let config = BackendConfig {
            files,
            prefer: Prefer::Uring,
            direct: Direct::Off,
            ..BackendConfig::default()
        };
        let report = drive(Target::Files(config), depth, &told);
        let longest_ns = peer.join().unwrap().as_nanos() as u64;
        let total = &report.collected.totals[0];
        assert!(total.sums.operations >= TURNS as u64 + u64::from(depth));
        assert_eq!((total.latency.count(), total.sums.errors), (total.sums.operations, 0));
        let reported_ns = total.latency.max_ns().unwrap();
        // A single client's last read may have begun within the silence.
        assert!(reported_ns >= longest_ns / 2, "{reported_ns} of {longest_ns}");
    }
}
