//! Tests targets that answer one operation and then wait for the next before they answer again. A
//! driver that waits for more completions before it submits would hang. At the end of the
//! measurement the targets pause, so operations in flight must count with their whole wait. In
//! another case, one client gets no answer at all: its operation is abandoned and must count with
//! its wait.
//!
//! The tests do not depend on the speed of the machine; time limits only end failed runs. Tests in
//! virtual time (`src/simulated.rs`) check the stream driver with every queue, and the driver of
//! the mail store.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_engine::backend::{BackendConfig, Direct, FileSource, Prefer};
use plimsoll_engine::nfs::{NfsTarget, Share};
use plimsoll_engine::placement::Placement;
use plimsoll_engine::s3::S3Target;
use plimsoll_engine::stream::run::{Group, RunConfig, RunReport, Target, run_with_events};
use plimsoll_engine::stream::source::{Op, Source};
use plimsoll_nfs::mount::Export;
use plimsoll_nfs::{Credential, Handle, Stability};
use plimsoll_sys::op::OpKind;
use plimsoll_workload::planned::pace::Pace;

const SIZE: u32 = 4096;
/// Number of operations that are answered one by one.
const TURNS: usize = 200;
/// Maximum time to wait for the next operation. If none arrives, the driver waits for other
/// completions, and the test fails.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which the target does not answer, after it has requested the end of the run.
const SILENCE: Duration = Duration::from_millis(500);
/// Time that a run waits at its end for operations in flight, if one never completes.
const DRAIN_NS: u64 = 1_000_000_000;
/// Polling interval for the end of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Source of reads: each client reads its own file.
struct Reads;

impl Source for Reads {
    fn next(&mut self, client: u32) -> Option<Op> {
        let (kind, class, offset_bytes, tag) = (OpKind::Read, 0, 0, 0);
        Some(Op { kind, class, file: client, offset_bytes, size_bytes: SIZE, tag })
    }
}

/// Operation that waits for its answer from the target.
struct Call {
    answer: Box<dyn FnOnce() + Send>,
    received_at: Instant,
}

/// Figures that a target counted.
struct TargetReport {
    operations: u64,
    /// Number of operations that the target never answered.
    abandoned: u64,
    /// Longest wait of an operation for its answer. An operation without an answer waits until the
    /// end of the run.
    longest: Duration,
}

/// State that is shared by a run and its target: whether the run should end, and whether it has
/// ended.
#[derive(Default)]
struct RunFlags {
    /// Set to end the run.
    stop: AtomicBool,
    /// Set when the run has ended.
    over: AtomicBool,
}

/// Answers one operation at a time, and waits for the next operation before each answer. Then
/// requests the end of the run and pauses. If `starves` is true, one operation gets no answer at
/// all.
fn answer_one_by_one(
    calls: &Receiver<Call>,
    mut depth: usize,
    starves: bool,
    flags: &RunFlags,
) -> TargetReport {
    let mut waiting = VecDeque::new();
    let (mut operations, mut longest) = (0, Duration::ZERO);
    let starved = starves.then(|| calls.recv_timeout(TIMEOUT).expect("an operation"));
    depth -= usize::from(starves);
    let mut answer = |call: Call| {
        longest = longest.max(call.received_at.elapsed());
        (call.answer)();
        operations += 1;
    };
    for _ in 0..TURNS {
        while waiting.len() < depth {
            waiting.push_back(calls.recv_timeout(TIMEOUT).expect("the next operation"));
        }
        waiting.pop_front().into_iter().for_each(&mut answer);
    }
    let drain = Duration::from_nanos(DRAIN_NS);
    let abandoned_after = starved.as_ref().map(|call| call.received_at.elapsed() + drain);
    flags.stop.store(true, Ordering::Relaxed);
    std::thread::sleep(SILENCE);
    waiting.into_iter().for_each(&mut answer);
    // Until the run notices the request to end, it continues to send operations.
    while !flags.over.load(Ordering::Relaxed) {
        calls.recv_timeout(POLL_INTERVAL).into_iter().for_each(&mut answer);
    }
    // The operation is dropped only now, because its worker continues when no answer is possible
    // any more.
    drop(starved);
    let abandoned = u64::from(starves);
    TargetReport { operations, abandoned, longest: abandoned_after.unwrap_or(longest) }
}

/// Runs `depth` clients with one operation in flight each.
fn drive(target: Target, depth: u32, starves: bool, flags: &RunFlags) -> RunReport {
    let group = Group {
        name: "one".to_owned(),
        place: Placement::default(),
        target,
        source: Reads,
        clients: depth,
        pace: Pace::Closed { depth: 1 },
        cap: None,
        size_bytes_max: SIZE,
        operations_max: u64::MAX,
        spin_ns: 0,
    };
    // The run would take an hour, but the target ends it.
    let mut config = RunConfig::new(&["read"], 3_600_000_000_000);
    if starves {
        config.drain_ns = DRAIN_NS;
    }
    let (report, _) = run_with_events(&config, vec![group], &flags.stop, &mut |_| ()).unwrap();
    flags.over.store(true, Ordering::Relaxed);
    // A file that does not answer results in an error, in addition to the evidence. A network
    // client abandons the call itself.
    assert!(starves || report.error.is_none(), "{:?}", report.error);
    report
}

#[track_caller]
fn counts_all(report: &RunReport, target_report: &TargetReport) {
    let total = &report.collected.totals[0];
    assert!(target_report.operations >= TURNS as u64);
    assert_eq!((total.totals.operations, total.totals.errors), (target_report.operations, 0));
    assert_eq!(total.totals.abandoned, target_report.abandoned);
    assert_eq!(total.latency.count(), target_report.operations + target_report.abandoned);
    let longest_ns = target_report.longest.as_nanos() as u64;
    // The histogram has a precision of three digits.
    let reported_ns = total.latency.max_ns().unwrap();
    assert!(reported_ns >= longest_ns - longest_ns / 500, "{reported_ns} of {longest_ns}");
}

/// Runs a target at several depths. The target sends its operations to the sender.
fn check(target: impl Fn(Sender<Call>, u32) -> Target) {
    for (depth, starves) in [(1, false), (2, false), (8, false), (32, false), (8, true)] {
        let (out, calls) = channel();
        let flags = Arc::new(RunFlags::default());
        let target = target(out, depth);
        let peer_flags = Arc::clone(&flags);
        let peer: JoinHandle<TargetReport> = std::thread::spawn(move || {
            answer_one_by_one(&calls, depth as usize, starves, &peer_flags)
        });
        let report = drive(target, depth, starves, &flags);
        counts_all(&report, &peer.join().unwrap());
    }
}

/// Starts a server that accepts connections and calls `serve` for each of them.
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
    // If the test has failed, the channel has no receiver.
    drop(calls.send(Call { answer, received_at: Instant::now() }));
    Ok(())
}

/// Serves READ calls (RFC 1813 section 3.3.6). Each call is one record.
fn nfs(mut stream: TcpStream, calls: &Sender<Call>) -> std::io::Result<()> {
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark)?;
        let mut call = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        stream.read_exact(&mut call)?;
        let xid = u32::from_be_bytes([call[0], call[1], call[2], call[3]]);
        let mut answer = Vec::new();
        // Mark, XID, a reply, accepted, an empty verifier, success; NFS3_OK, no attributes, count,
        // not the end, length.
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

/// Serves GET requests for an object of [`SIZE`] bytes.
fn http(stream: TcpStream, calls: &Sender<Call>) -> std::io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            let mut answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n").into_bytes();
            answer.resize(answer.len() + SIZE as usize, 0);
            hand(calls, &stream, answer)?;
        }
    }
}

#[test]
fn over_s3_each_answer_brings_the_next_request() {
    check(|calls, depth| {
        let endpoint = format!("http://{}", listen(calls, depth, http));
        let key = ("key", "secret");
        let bucket = plimsoll_s3::Target::with_key("s3://bucket", &endpoint, "nowhere", key);
        Target::S3(Box::new(S3Target {
            target: bucket.unwrap(),
            prefix: String::new(),
            files_per_share: depth,
            object_bytes: SIZE,
            give_up_after_ns: 600_000_000_000,
        }))
    });
}

/// Returns a target of local files that are read through this interface.
fn files(files: Vec<FileSource>, prefer: Prefer) -> Target {
    let direct = Direct::Off;
    Target::Files(BackendConfig { files, prefer, direct, ..BackendConfig::default() })
}

/// A `pread` of a file cannot be delayed, so each worker waits for its answer before it calls
/// `pread`. The hook exists only in builds with debug assertions.
#[cfg(debug_assertions)]
#[test]
fn with_threads_each_completion_brings_the_next_operation() {
    check(|calls, depth| {
        plimsoll_sys::inject::on("pool-call", move || {
            let (answer, answered) = channel();
            let answer = Box::new(move || {
                let _ = answer.send(());
            });
            // After the end of the run, the channel has no receiver.
            if calls.send(Call { answer, received_at: Instant::now() }).is_ok() {
                let _ = answered.recv();
            }
        });
        let file = |_| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&[7; SIZE as usize]).unwrap();
            FileSource::Fd { path: "file".into(), fd: OwnedFd::from(file), direct: false }
        };
        files((0..depth).map(file).collect(), Prefer::Threads)
    });
}

/// Pipes that a run reads. Each read hangs until the test writes to the pipe. Once the data is
/// read, the driver has submitted the next read.
struct Pipes {
    ends: Vec<(PipeWriter, PipeReader)>,
    /// True if the test never writes to the first pipe.
    starves: bool,
}

impl Pipes {
    fn write(&mut self, number: usize) {
        self.ends[number].0.write_all(&[7; SIZE as usize]).unwrap();
    }

    fn is_taken(&self, number: usize) -> bool {
        rustix::io::ioctl_fionread(&self.ends[number].1).unwrap() == 0
    }

    /// Returns the pipe to which turn `turn` writes. Twenty successive turns write to one client's
    /// pipe, while all other reads hang.
    fn turn(&self, turn: usize) -> usize {
        let first = usize::from(self.starves);
        first + turn / 20 % (self.ends.len() - first)
    }

    /// Answers like [`answer_one_by_one`]. Returns the duration of the pause; for a starving
    /// client, the time since the start.
    fn fill_one_by_one(&mut self, flags: &RunFlags) -> Duration {
        let start = Instant::now();
        for turn in 0..TURNS {
            let number = self.turn(turn);
            self.write(number);
            let from = Instant::now();
            while !self.is_taken(number) {
                assert!(from.elapsed() < TIMEOUT, "turn {turn} of {} clients", self.ends.len());
                std::thread::yield_now();
            }
        }
        let from = if self.starves { start } else { Instant::now() };
        flags.stop.store(true, Ordering::Relaxed);
        std::thread::sleep(SILENCE);
        let longest = from.elapsed();
        while !flags.over.load(Ordering::Relaxed) {
            for number in usize::from(self.starves)..self.ends.len() {
                if self.is_taken(number) {
                    self.write(number);
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        longest
    }
}

#[test]
fn with_io_uring_each_completion_brings_the_next_operation() {
    for (depth, starves) in [(1, false), (2, false), (8, false), (32, false), (8, true)] {
        let mut pipes = Pipes { ends: Vec::new(), starves };
        let mut sources = Vec::new();
        for _ in 0..depth {
            let (reader, writer) = std::io::pipe().unwrap();
            pipes.ends.push((writer, reader.try_clone().unwrap()));
            let fd = OwnedFd::from(reader);
            sources.push(FileSource::Fd { path: "pipe".into(), fd, direct: false });
        }
        let flags = Arc::new(RunFlags::default());
        let peer_flags = Arc::clone(&flags);
        let peer = std::thread::spawn(move || pipes.fill_one_by_one(&peer_flags));
        let report = drive(files(sources, Prefer::Uring), depth, starves, &flags);
        let longest_ns = peer.join().unwrap().as_nanos() as u64;
        let total = &report.collected.totals[0];
        assert!(total.totals.operations >= TURNS as u64 + u64::from(depth) - u64::from(starves));
        assert_eq!((total.totals.errors, total.totals.abandoned), (0, u64::from(starves)));
        assert_eq!(total.latency.count(), total.totals.operations + total.totals.abandoned);
        let reported_ns = total.latency.max_ns().unwrap();
        // With one client, the last read may have started during the pause.
        assert!(reported_ns >= longest_ns / 2, "{reported_ns} of {longest_ns}");
    }
}
