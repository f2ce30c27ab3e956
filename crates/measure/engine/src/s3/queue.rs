//! Queue for the stream engine. It contains the S3 requests that one thread has in flight.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use plimsoll_s3::{Client, Completion, Config, Kind, Op, Stats, SubmitError, Target, Timeout};
use plimsoll_sys::SysError;
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::op::{OpKind, PushError, RingOp};
use plimsoll_workload::matrix::{MetadataKind, name_text};

use crate::EngineError;
use crate::backend::NameOp;
use crate::backend::{Queue, bytes_of};

/// Default interval at which a wait without a timeout wakes up, in ns.
const TICK_NS: u64 = 100_000_000;
/// Maximum number of names that one LIST request returns.
const NAMES_MAX: u16 = 1000;

/// Target of one thread.
#[derive(Clone, Debug)]
pub struct S3Target {
    /// Bucket.
    pub target: Target,
    /// Prefix with which the names of all objects start.
    pub prefix: String,
    /// Number of files in each share. File `f` of share `s` has the number `s * files + f`.
    pub files_per_share: u32,
    /// Size of an object in bytes.
    pub object_bytes: u32,
    /// Time limit for a request in ns. If the store sends no response in this time, the request
    /// fails and ends the run.
    pub give_up_after_ns: u64,
}

/// Sums of the counters of requests, over all clients of a run.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    sums: BTreeMap<String, u64>,
}

impl Calls {
    /// Adds the counters that a client had at its end.
    pub fn count(&mut self, stats: &Stats) {
        let mut add = |name: String, value: u64| *self.sums.entry(name).or_default() += value;
        for (kind, operations) in &stats.operations {
            add(format!("operations.{}", kind.name()), *operations);
        }
        for (name, value) in [
            ("requests", stats.requests),
            ("retries", stats.retries),
            ("slow_downs", stats.slow_downs),
            ("connects", stats.connects),
            ("disconnects", stats.disconnects),
            ("multipart_uploads", stats.multipart_uploads),
        ] {
            add(name.to_owned(), value);
        }
    }

    /// Adds the counters of `other` to these counters.
    pub fn merge(&mut self, other: &Self) {
        for (name, value) in &other.sums {
            *self.sums.entry(name.clone()).or_default() += value;
        }
    }

    /// Subtracts the counters that the same client had earlier.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        for (name, value) in &mut self.sums {
            *value = value.saturating_sub(earlier.sums.get(name).copied().unwrap_or(0));
        }
        self
    }

    /// Adds the sums to the counters of a run, with names such as `s3.operations.get` and
    /// `s3.retries`.
    pub fn counters(&self, into: &mut BTreeMap<String, u64>) {
        into.extend(self.sums.iter().map(|(name, value)| (format!("s3.{name}"), *value)));
    }
}

/// Queue of S3 requests. See the documentation of the module `s3`.
#[derive(Debug)]
pub struct S3Queue {
    client: Client,
    arena: AlignedBuffer,
    capacity: usize,
    tick_ns: u64,
    target: S3Target,
    key: String,
    /// Completions that the client has reported. The queue empties this list after each poll.
    out: Vec<Completion>,
    /// Requests that have completed, in order of completion.
    ready: VecDeque<Completion>,
    in_flight: usize,
    /// For each slot: the time at which the first byte of the slot's last completed read arrived.
    first_bytes_ns: Vec<Option<u64>>,
    first_error: Option<String>,
}

impl S3Queue {
    /// Creates a queue for up to `depth` requests in flight, with buffers in `arena`. The client
    /// opens connections when it needs them.
    ///
    /// # Errors
    /// Fails if the kernel provides no epoll instance.
    pub fn open(target: S3Target, depth: u32, arena: AlignedBuffer) -> Result<Self, EngineError> {
        let config = Config {
            connections: depth.max(1),
            give_up_after_ns: target.give_up_after_ns,
            ..Config::default()
        };
        let client = Client::new(target.target.clone(), config)
            .map_err(|error| EngineError::Config(error.to_string()))?;
        Ok(Self {
            client,
            arena,
            capacity: depth.max(1) as usize,
            tick_ns: TICK_NS,
            target,
            key: String::with_capacity(128),
            out: Vec::with_capacity(depth as usize),
            ready: VecDeque::with_capacity(depth as usize),
            in_flight: 0,
            first_bytes_ns: vec![None; depth.max(1) as usize],
            first_error: None,
        })
    }

    /// Returns the counters of the requests, and the error of the first failed request.
    #[must_use]
    pub fn close(self) -> (Calls, Option<String>) {
        let mut calls = Calls::default();
        calls.count(self.client.stats());
        (calls, self.first_error)
    }

    /// Returns the name of an object that belongs to a data file.
    fn data_key(&mut self, file: u32, object: u64) {
        let per_share = self.target.files_per_share.max(1);
        let (share, within) = (file / per_share, file % per_share);
        self.key.clear();
        // Writing to a string cannot fail.
        let prefix = &self.target.prefix;
        let _ = write!(self.key, "{prefix}s{share:03}/f{within:05}/{object:010}");
    }

    fn small_key(&mut self, op: &NameOp, name: bool) {
        let small = small_prefix(op.share);
        let name = if name { name_text(op.client, op.name) } else { String::new() };
        self.key.clear();
        let _ = write!(self.key, "{}{small}{name}", self.target.prefix);
    }

    /// Moves the completions that the client reports to the lists of this queue.
    fn take_completions(&mut self) {
        for completion in self.out.drain(..) {
            if let Some(first_ns) = self.first_bytes_ns.get_mut(completion.token as usize) {
                *first_ns = completion.first_byte_ns;
            }
            self.ready.push_back(completion);
        }
    }

    fn submit(&mut self, user_data: u64, op: &Op<'_>) -> Result<(), PushError> {
        self.client.submit(user_data, op).map_err(|error| match error {
            SubmitError::Full => PushError::Full,
            SubmitError::Size { .. } => PushError::OutsideArena { offset_bytes: 0, size_bytes: 0 },
        })?;
        self.in_flight += 1;
        if let Some(first_ns) = self.first_bytes_ns.get_mut(user_data as usize) {
            *first_ns = None;
        }
        Ok(())
    }
}

impl Queue for S3Queue {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        let RingOp { file, offset_bytes, size_bytes, buffer_offset_bytes, .. } = *op;
        let object_bytes = u64::from(self.target.object_bytes.max(1));
        self.data_key(file, offset_bytes / object_bytes);
        let key = std::mem::take(&mut self.key);
        let request = match op.kind {
            OpKind::Read => Op::Get {
                key: &key,
                offset_bytes: offset_bytes % object_bytes,
                size_bytes,
                whole: u64::from(size_bytes) == object_bytes,
                buffer_offset_bytes,
            },
            OpKind::Write | OpKind::WriteDurable => {
                Op::Put { key: &key, size_bytes, buffer_offset_bytes }
            }
            OpKind::Flush | OpKind::Sync | OpKind::Nop => Op::Head { key: &key },
        };
        let result = self.submit(op.user_data, &request);
        self.key = key;
        result
    }

    fn push_names(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        match op.kind {
            MetadataKind::Readdir => self.small_key(op, false),
            MetadataKind::Create | MetadataKind::Remove => self.small_key(op, true),
            _ => self.data_key(op.file, 0),
        }
        let key = std::mem::take(&mut self.key);
        let request = match op.kind {
            MetadataKind::Getattr | MetadataKind::Lookup | MetadataKind::Access => {
                Op::Head { key: &key }
            }
            MetadataKind::Readdir => Op::List { prefix: &key, names_max: NAMES_MAX },
            MetadataKind::Create => Op::Put { key: &key, size_bytes: 0, buffer_offset_bytes: 0 },
            MetadataKind::Remove => Op::Delete { key: &key },
            MetadataKind::Rename | MetadataKind::Setattr => return Err(PushError::NoNames),
        };
        let result = self.submit(user_data, &request);
        self.key = key;
        result
    }

    fn first_byte_ns(&self, user_data: u64) -> Option<u64> {
        let completed = self.first_bytes_ns.get(user_data as usize).copied().flatten();
        completed.or_else(|| self.client.first_byte_ns(user_data))
    }

    fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        let until_ns = monotonic_ns().saturating_add(timeout_ns.unwrap_or(self.tick_ns));
        let enough = min_complete as usize;
        loop {
            let timeout = match self.ready.len() >= enough {
                true => Timeout::Now,
                false => Timeout::Until(until_ns),
            };
            self.client.poll(self.arena.as_mut_slice(), timeout, &mut self.out);
            self.take_completions();
            if self.ready.len() >= enough || monotonic_ns() >= until_ns {
                return Ok(());
            }
        }
    }

    fn hand_over(&mut self) -> Result<(), SysError> {
        self.client.flush(self.arena.as_mut_slice(), &mut self.out);
        self.take_completions();
        Ok(())
    }

    #[inline]
    fn arrived(&mut self) -> usize {
        self.ready.len()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let reaped = self.ready.len().min(most);
        for completion in self.ready.drain(..reaped) {
            self.in_flight = self.in_flight.saturating_sub(1);
            let is_data = matches!(completion.kind, Kind::Get | Kind::Put);
            each(
                completion.token,
                match completion.result {
                    Ok(value) => Ok(if is_data { value } else { 0 }),
                    Err(error) => {
                        let errno = error.errno();
                        self.first_error
                            .get_or_insert_with(|| format!("{}: {error}", completion.kind.name()));
                        Err(errno)
                    }
                },
            );
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

/// Returns the part of an object's name that follows the prefix, for a small object of a share.
pub(super) fn small_prefix(share: u32) -> String {
    format!("s{share:03}/small/")
}
