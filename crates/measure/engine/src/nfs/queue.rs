//! Queue for the stream engine. It contains the NFS calls that one thread has in flight.
//!
//! | operation | calls |
//! |---|---|
//! | read | READ |
//! | write | WRITE; UNSTABLE by default, and for durable writes DATA_SYNC or FILE_SYNC, as the plan requests |
//! | sync | COMMIT of the whole file |
//! | getattr, access, setattr | GETATTR, ACCESS, SETATTR of a data file |
//! | lookup | LOOKUP of a data file's name |
//! | readdir | READDIR of the directory that contains the share's small files, from its start, up to 32 KiB |
//! | create, remove, rename | CREATE, REMOVE, RENAME of a small file |

use std::collections::VecDeque;
use std::io::Write as _;

use nfs3_types::nfs3::sattr3;
use plimsoll_nfs::setup::mode;
use plimsoll_nfs::{
    CallError, Client, Completion, Config, CreateHow, Event, Monotonic, ObjectId, Op, Stability,
    SubmitError, Timeout,
};
use plimsoll_sys::SysError;
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_sys::op::{OpKind, PushError, RingOp};
use plimsoll_workload::matrix::MetadataKind;

use super::data_set::{MODE, Share, data_name};
use super::{Calls, UnverifiedWindow, failed};
use crate::backend::NameOp;
use crate::backend::{Queue, bytes_of};
use crate::{EngineError, stop_request};

/// Maximum number of COMMITs that this queue itself has in flight. The COMMITs of its operations
/// are not counted.
const OWN_COMMITS: u32 = 16;
/// Bit that is set in the token of a COMMIT which the queue itself sends. The other bits of the
/// token contain the file number.
const OWN: u64 = 1 << 63;
/// Maximum size of the response to a READDIR, in bytes.
const DIR_BYTES: u32 = 32 * 1024;
/// Access rights that an ACCESS request asks for: read, lookup, modify, extend, delete, execute
/// (RFC 1813, 3.3.4).
const ACCESS_ALL: u32 = 0x3f;
/// Maximum number of bytes in one send. If a send were longer, its first calls would wait for its
/// last calls. The maximum is the size of one segment on a local link (RFC 9293: the window and the
/// largest IP packet limit a segment to 64 KiB).
const SEND_BYTES: u32 = 64 * 1024;
/// Maximum number of calls in one send. Building a call takes about a microsecond, and parsing its
/// reply takes as long.
const SEND_CALLS: usize = 16;
/// Default interval at which a wait without a timeout wakes up, in ns.
const TICK_NS: u64 = 100_000_000;

/// Part of a target that one thread drives.
#[derive(Clone, Debug)]
pub struct NfsTarget {
    /// Shares of all streams. An entry is `None` if another thread drives the share.
    pub shares: Vec<Option<Share>>,
    /// Number of files in each share. The numbers of a share's files follow the numbers of the
    /// previous share's files.
    pub files: Vec<u32>,
    /// Number of the stream's first share. Operations on names count shares from this number.
    pub first_share: u32,
    /// Number of connections to each export, like the mount option `nconnect`.
    pub connections: u32,
    /// Stability level of durable writes.
    pub durable: Stability,
    /// Time limit for a call in ns. If the server sends no reply in this time, the call fails and
    /// ends the run.
    pub give_up_after_ns: u64,
    /// First XID that the client uses. It is different for each client of a run.
    pub xid_seed: u32,
}

/// A share. Its directories are referenced by their ids in the NFS client of this queue.
#[derive(Clone, Copy, Debug)]
struct Directories {
    data: ObjectId,
    small: ObjectId,
}

/// Queue that contains NFS calls. See the module documentation.
pub struct NfsQueue {
    client: Client<Monotonic>,
    arena: AlignedBuffer,
    capacity: usize,
    together: usize,
    in_flight: usize,
    tick_ns: u64,
    durable: Stability,
    first_share: u32,
    /// For each file: its id in the NFS client, and its number in the share. An entry is `None` if
    /// another thread drives the file.
    files: Vec<Option<(ObjectId, u32)>>,
    shares: Vec<Option<Directories>>,
    attributes: sattr3,
    /// Completions that the client has reported. The queue empties this list after each poll.
    out: Vec<Completion>,
    /// Operations that have completed, in order of completion.
    ready: VecDeque<Completion>,
    window: UnverifiedWindow,
    /// For each slot: true if the data of the last read in this slot can be checked.
    verifiable: Vec<bool>,
    calls: Calls,
    first_error: Option<String>,
}

impl std::fmt::Debug for NfsQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NfsQueue({} in flight of {})", self.in_flight, self.capacity)
    }
}

impl NfsQueue {
    /// Connects to the exports.
    ///
    /// # Errors
    /// Fails if a server can't be reached.
    pub fn open(
        target: &NfsTarget,
        depth: u32,
        arena: AlignedBuffer,
        size_bytes_max: u32,
    ) -> Result<Self, EngineError> {
        let config = Config {
            depth_max: depth.max(1) + OWN_COMMITS,
            size_bytes_max,
            give_up_after_ns: target.give_up_after_ns,
            histograms: false,
            xid_seed: target.xid_seed,
            ..Config::default()
        };
        let mut client = Client::new(config, Monotonic).map_err(|error| {
            let source = SysError::new("epoll_create1", error.raw_os_error());
            EngineError::system("creating an NFS client", source)
        })?;
        let mut files = Vec::new();
        let mut shares = Vec::with_capacity(target.shares.len());
        for (share, count) in target.shares.iter().zip(&target.files) {
            let first = files.len();
            files.resize(first + *count as usize, None);
            let Some(share) = share else {
                shares.push(None);
                continue;
            };
            let server = client
                .add_server(&share.export.server(target.connections))
                .map_err(|error| failed("connecting", &error))?;
            shares.push(Some(Directories {
                data: client.register(server, share.data),
                small: client.register(server, share.small),
            }));
            let places = files[first..].iter_mut().zip(0..);
            for (handle, (place, number)) in share.files.iter().zip(places) {
                *place = Some((client.register(server, *handle), number));
            }
        }
        let capacity = depth.max(1) as usize;
        Ok(Self {
            client,
            arena,
            capacity,
            together: calls_per_send(size_bytes_max),
            in_flight: 0,
            tick_ns: TICK_NS,
            durable: target.durable,
            first_share: target.first_share,
            window: UnverifiedWindow::new(files.len()),
            files,
            shares,
            attributes: mode(MODE),
            out: Vec::with_capacity(capacity + OWN_COMMITS as usize),
            ready: VecDeque::with_capacity(capacity),
            verifiable: vec![true; capacity],
            calls: Calls::default(),
            first_error: None,
        })
    }

    /// Ends the queue and commits unstable writes. Returns the counters of the calls, the error of
    /// the first failed call, and the error of this function. If a COMMIT fails, acknowledged
    /// writes may be lost. If a server is disconnected or has not responded, the wait for it is
    /// short. If `abort` is true, the queue sends no more requests.
    #[must_use]
    pub fn close(mut self, abort: bool) -> (Calls, Option<String>, Option<EngineError>) {
        self.client.fail_calls_when(stop_request::has_timed_out);
        if self.client.core().outstanding() > 0 || self.client.connections_down() > 0 {
            self.client.give_up_after(stop_request::FINAL_REPLY_NS);
        }
        let mut dirty: Vec<u32> = Vec::new();
        if !abort {
            self.wait_for_outstanding();
            dirty.extend(self.window.dirty());
        }
        let mut error = None;
        for file in dirty {
            let Some((object, number)) = self.files[file as usize] else { continue };
            let commit = Op::Commit { file: object, offset_bytes: 0, size_bytes: 0 };
            let name = data_name(number);
            if let Err(why) = self.client.call(&commit, name.as_bytes()) {
                error = Some(failed("committing the last writes", &why));
                break;
            }
        }
        self.take_events();
        self.calls.count(self.client.core().stats());
        (self.calls, self.first_error, error)
    }

    /// Waits for operations that are still in flight after the drain. The time limit of a call also
    /// limits this wait.
    fn wait_for_outstanding(&mut self) {
        while self.client.core().outstanding() > 0 {
            let polled =
                self.client.poll(self.arena.as_mut_slice(), Timeout::Completion, &mut self.out);
            self.out.clear();
            if polled.is_err() {
                break;
            }
        }
    }

    fn take_events(&mut self) {
        let mut restarted = false;
        for event in self.client.stats_mut().take_events() {
            restarted |=
                matches!(event, Event::Disconnected { .. } | Event::VerifierChanged { .. });
            self.calls.note(&event);
        }
        if restarted {
            self.window.open();
        }
    }

    /// Sends COMMITs for the files that may have lost writes, until the maximum number of COMMITs
    /// is in flight.
    fn submit_doubt_commits(&mut self) {
        while let Some(file) = self.window.next_commit() {
            let Some(Some((object, _))) = self.files.get(file as usize).copied() else {
                self.window.commit_submitted();
                self.window.commit_finished();
                continue;
            };
            let commit = Op::Commit { file: object, offset_bytes: 0, size_bytes: 0 };
            if self.client.submit(OWN | u64::from(file), &commit).is_err() {
                return;
            }
            self.window.commit_submitted();
            self.calls.doubt_commits += 1;
        }
    }

    /// Separates the completions of operations from the completions of COMMITs that this queue
    /// itself sent.
    fn sort_completions(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for completion in out.drain(..) {
            if completion.token & OWN == 0 {
                self.ready.push_back(completion);
                continue;
            }
            if let Err(error) = completion.result {
                self.note_error(&completion, error);
            }
            self.window.commit_finished();
        }
        self.out = out;
    }

    fn file(&self, number: u32) -> Result<ObjectId, PushError> {
        self.file_entry(number).map(|(object, _)| object)
    }

    fn file_entry(&self, number: u32) -> Result<(ObjectId, u32), PushError> {
        self.files.get(number as usize).copied().flatten().ok_or(PushError::UnknownFile(number))
    }

    fn note_error(&mut self, completion: &Completion, error: CallError) {
        if self.first_error.is_none() {
            self.first_error = Some(format!("{}: {error}", completion.procedure.name()));
        }
    }
}

/// Returns how many calls should be sent together if their slots became free together. One send of
/// many small calls costs as much as the send of one call. If each call were sent separately, the
/// last call would wait for all earlier sends.
fn calls_per_send(size_bytes_max: u32) -> usize {
    ((SEND_BYTES / size_bytes_max.max(1)) as usize).clamp(1, SEND_CALLS)
}

/// Converts the error of a failed wait for the sockets. The cause of such an error is never a
/// server.
fn poll_error(_: plimsoll_nfs::PollError) -> SysError {
    SysError::new("epoll_wait", libc::EIO)
}

/// Converts the error with which the client rejects an operation to an error of the queue.
fn push_error(error: SubmitError, op: &RingOp) -> PushError {
    let (offset_bytes, size_bytes) = (op.buffer_offset_bytes, op.size_bytes);
    match error {
        SubmitError::Full => PushError::Full,
        SubmitError::NoHandle | SubmitError::Name { .. } => PushError::UnknownFile(op.file),
        SubmitError::Size { .. } => PushError::OutsideArena { offset_bytes, size_bytes },
    }
}

/// Writes the name of a small file. The name is the same as from
/// [`plimsoll_workload::matrix::name_text`], but this function allocates no memory.
fn small_name(client: u32, number: u64, into: &mut [u8; 32]) -> &[u8] {
    let mut rest = &mut into[..];
    // The name contains a number of at most 10 digits, a number of at most 20 digits and two
    // letters. It therefore has at most 32 bytes.
    let _ = write!(rest, "m{client:05}-{number:010}");
    let used = 32 - rest.len();
    &into[..used]
}

impl Queue for NfsQueue {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.in_flight >= self.capacity {
            return Err(PushError::Full);
        }
        let file = self.file(op.file)?;
        let RingOp { offset_bytes, size_bytes, buffer_offset_bytes, .. } = *op;
        let call = match op.kind {
            OpKind::Read => Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes },
            OpKind::Write | OpKind::WriteDurable => {
                let stability = match op.kind {
                    OpKind::Write => Stability::Unstable,
                    _ => self.durable,
                };
                if stability == Stability::Unstable {
                    self.window.note_write(op.file);
                }
                Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability }
            }
            OpKind::Flush | OpKind::Sync => Op::Commit { file, offset_bytes: 0, size_bytes: 0 },
            OpKind::Nop => Op::GetAttr { object: file },
        };
        self.client.submit(op.user_data, &call).map_err(|error| push_error(error, op))?;
        self.in_flight += 1;
        Ok(())
    }

    fn push_names(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        if self.in_flight >= self.capacity {
            return Err(PushError::Full);
        }
        let unknown = PushError::UnknownFile(op.file);
        let share = (self.first_share + op.share) as usize;
        let share = self.shares.get(share).copied().flatten().ok_or(unknown)?;
        let (mut old, mut new) = ([0; 32], [0; 32]);
        let name = small_name(op.client, op.name, &mut old);
        let dir = share.small;
        let data;
        let call = match op.kind {
            MetadataKind::Getattr => Op::GetAttr { object: self.file(op.file)? },
            MetadataKind::Access => Op::Access { object: self.file(op.file)?, mask: ACCESS_ALL },
            MetadataKind::Setattr => {
                Op::SetAttr { object: self.file(op.file)?, change: &self.attributes }
            }
            MetadataKind::Lookup => {
                data = data_name(self.file_entry(op.file)?.1);
                Op::Lookup { dir: share.data, name: data.as_bytes(), into: None }
            }
            MetadataKind::Readdir => {
                Op::ReadDir { dir, cookie: 0, verifier: [0; 8], size_bytes: DIR_BYTES }
            }
            MetadataKind::Create => {
                Op::Create { dir, name, how: CreateHow::Guarded(&self.attributes), into: None }
            }
            MetadataKind::Remove => Op::Remove { dir, name },
            MetadataKind::Rename => {
                let to = small_name(op.client, op.new_name, &mut new);
                Op::Rename { from_dir: dir, from: name, to_dir: dir, to }
            }
        };
        self.client.submit(user_data, &call).map_err(|error| match error {
            SubmitError::Full => PushError::Full,
            _ => unknown,
        })?;
        self.in_flight += 1;
        Ok(())
    }

    fn is_verifiable(&self, user_data: u64) -> bool {
        self.verifiable.get(user_data as usize).copied().unwrap_or(false)
    }

    fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        let now_ns = self.client.now_ns();
        let until_ns = now_ns.saturating_add(timeout_ns.unwrap_or(self.tick_ns));
        let enough = min_complete as usize;
        loop {
            self.submit_doubt_commits();
            let timeout = match self.ready.len() >= enough {
                true => Timeout::Now,
                false => Timeout::Until(until_ns),
            };
            self.client
                .poll(self.arena.as_mut_slice(), timeout, &mut self.out)
                .map_err(poll_error)?;
            self.take_events();
            self.sort_completions();
            if self.ready.len() >= enough || self.client.now_ns() >= until_ns {
                return Ok(());
            }
        }
    }

    fn hand_over(&mut self) -> Result<(), SysError> {
        self.submit_doubt_commits();
        self.client.flush(self.arena.as_mut_slice()).map_err(poll_error)
    }

    fn submit_batch_len(&self) -> usize {
        self.together
    }

    #[inline]
    fn arrived(&mut self) -> usize {
        self.ready.len()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let mut reaped = 0;
        while reaped < most {
            let Some(completion) = self.ready.pop_front() else { break };
            if let Err(error) = completion.result {
                self.note_error(&completion, error);
            }
            let is_data = matches!(
                completion.procedure,
                plimsoll_nfs::Procedure::Read | plimsoll_nfs::Procedure::Write
            );
            let verifiable = self.window.is_verifiable(completion.submitted_ns);
            if let Some(place) = self.verifiable.get_mut(completion.token as usize) {
                *place = verifiable;
            }
            if !verifiable && completion.procedure == plimsoll_nfs::Procedure::Read {
                self.calls.reads_unsure += 1;
            }
            self.in_flight = self.in_flight.saturating_sub(1);
            reaped += 1;
            let bytes = |value: u32| if is_data { value } else { 0 };
            each(completion.token, completion.result.map(bytes).map_err(CallError::errno));
        }
        if self.ready.is_empty() {
            self.window.close_if_committed(self.client.now_ns(), self.client.connections_down());
        }
        reaped
    }

    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        bytes_of(&mut self.arena, offset_bytes, size_bytes)
    }

    fn tick_every(&mut self, every_ns: u64) {
        self.tick_ns = every_ns.min(TICK_NS);
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_names_are_those_of_the_workload() {
        for (client, number) in [(0, 0), (7, 12), (99_999, 9_999_999_999), (u32::MAX, u64::MAX)] {
            let expected = plimsoll_workload::matrix::name_text(client, number);
            assert_eq!(small_name(client, number, &mut [0; 32]), expected.as_bytes());
        }
    }
}
