//! Data of a run that is stored on servers: on NFS exports or in an S3 bucket.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_nfs::Stability;
use plimsoll_plan::{Stream, SyncKind, TargetKind};
use plimsoll_workload::matrix::{FileSet, StreamConfig};

use super::request::{CHUNK_BYTES, DataSetRequest};
use crate::nfs::{self, NfsTarget};
use crate::s3::{self, S3Target};
use crate::stream::run::{RemoteCalls, Target};
use crate::{EngineError, stop_request};

/// Returns the first XID that a client of a run uses. The values are scattered, so it is unlikely
/// that two clients use the same XIDs. A server is then also unlikely to confuse a call with a call
/// of an earlier run. The function is SplitMix64 (Steele, Lea and Flood, 2014).
fn xid_seed(run: u64, client: u32) -> u32 {
    let mut z = run.wrapping_add(u64::from(client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}

/// Data of a run that is stored on servers.
#[derive(Debug)]
pub struct RemoteData {
    data_set: RemoteDataSet,
    run: u64,
    /// Number of NFS clients that were created so far. With this number, each client gets different
    /// XIDs.
    clients: AtomicU32,
    /// Numbers and sizes of each stream's files.
    files: Vec<FileSet>,
    /// Stability level that each stream requests for its durable writes.
    durable: Vec<Stability>,
    connections: u32,
    /// Time after which the run gives up on a server that does not respond, in ns.
    outage_max_ns: u64,
    /// True if a server did not respond to a call in this time.
    silent: bool,
    nfs_calls: nfs::Calls,
    s3_calls: s3::Calls,
}

#[derive(Debug)]
enum RemoteDataSet {
    Nfs(Box<nfs::NfsDataSet>),
    S3(Box<s3::S3DataSet>),
}

impl RemoteData {
    /// Connects to the target of a plan. Creates everything that must exist before the data can be
    /// created.
    ///
    /// # Errors
    /// Fails if a server is unreachable or rejects a call. Also fails if the target does not
    /// support the plan.
    pub fn create(
        request: &DataSetRequest<'_>,
        configs: &[StreamConfig],
    ) -> Result<Self, EngineError> {
        let files: Vec<FileSet> = configs.iter().map(|config| config.files).collect();
        let name = &request.plan.name;
        let mut connections = 1;
        let outage_max_ns = request.target.outage_max_ns(request.plan.phases.measure_ns);
        let data_set = match &request.target.kind {
            TargetKind::Nfs { exports, connections: each, uid, gid } => {
                connections = *each;
                let own = |export: &String| match request.allowed {
                    Some(allowed) => allowed.export(export, *uid, *gid),
                    None => Ok(export.clone()),
                };
                let exports: Vec<String> = exports.iter().map(own).collect::<Result<_, _>>()?;
                RemoteDataSet::Nfs(Box::new(nfs::NfsDataSet::create(&nfs::NfsDataSetRequest {
                    name,
                    exports: &exports,
                    uid: *uid,
                    gid: *gid,
                    files: &files,
                    xid_seed: xid_seed(request.data_id, 0),
                    outage_max_ns,
                })?))
            }
            TargetKind::S3 { url, endpoint, region } => {
                s3::check_streams(configs).map_err(EngineError::Config)?;
                let request = s3::S3DataSetRequest { name, url, endpoint, region, outage_max_ns };
                RemoteDataSet::S3(Box::new(s3::S3DataSet::create(&request)?))
            }
            _ => {
                let kind = request.target.kind_word();
                let says = format!("a target of kind {kind} is not on a server");
                return Err(EngineError::Config(says));
            }
        };
        let durable = |stream: &Stream| match stream.sync.kind {
            SyncKind::FileSync => Stability::FileSync,
            _ => Stability::DataSync,
        };
        Ok(Self {
            data_set,
            run: request.data_id,
            clients: AtomicU32::new(1),
            files,
            durable: request.matrix.streams.iter().map(durable).collect(),
            connections,
            outage_max_ns,
            silent: false,
            nfs_calls: nfs::Calls::default(),
            s3_calls: s3::Calls::default(),
        })
    }

    /// Returns true if the data of an earlier run was removed before the new data was created.
    #[must_use]
    pub fn replaced(&self) -> bool {
        match &self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.replaced,
            RemoteDataSet::S3(data_set) => data_set.replaced,
        }
    }

    #[must_use]
    pub fn shares(&self, stream: usize) -> u32 {
        self.files.get(stream).map_or(1, |set| set.shares)
    }

    /// Returns the range of one stream's shares in the list of all shares.
    fn range(&self, stream: usize) -> Range<usize> {
        let before: usize = self.files.iter().take(stream).map(|set| set.shares as usize).sum();
        before..before + self.shares(stream) as usize
    }

    /// Returns the locations of the data. There is one location for each export or bucket.
    #[must_use]
    pub fn directories(&self) -> Vec<String> {
        match &self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.directories(),
            RemoteDataSet::S3(data_set) => vec![data_set.directory()],
        }
    }

    /// Returns the network addresses of the servers.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.addresses(),
            RemoteDataSet::S3(data_set) => vec![data_set.address()],
        }
    }

    /// Returns the name of a data file, which is used in messages.
    #[must_use]
    pub fn name_of(&self, file: u32) -> String {
        match &self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.name_of(file),
            RemoteDataSet::S3(data_set) => format!("{} file {file}", data_set.directory()),
        }
    }

    /// Returns the target for one thread. The thread drives those shares of the stream for which
    /// `mine` returns true.
    #[must_use]
    pub fn target(&self, stream: usize, mine: impl Fn(u32) -> bool) -> Target {
        let range = self.range(stream);
        let first = range.start;
        let durable = self.durable.get(stream).copied().unwrap_or(Stability::DataSync);
        let takes = |share: usize| range.contains(&share) && mine((share - first) as u32);
        self.target_of(first as u32, durable, takes)
    }

    /// Returns a target for one thread that drives all shares.
    #[must_use]
    pub fn whole(&self) -> Target {
        self.target_of(0, Stability::DataSync, |_| true)
    }

    fn target_of(
        &self,
        first_share: u32,
        durable: Stability,
        takes: impl Fn(usize) -> bool,
    ) -> Target {
        match &self.data_set {
            RemoteDataSet::Nfs(data_set) => {
                let client = self.clients.fetch_add(1, Ordering::Relaxed);
                let each = |set: &FileSet| vec![set.files_per_share; set.shares as usize];
                let shares = data_set.shares().into_iter().enumerate();
                Target::Nfs(NfsTarget {
                    shares: shares.map(|(n, share)| takes(n).then_some(share)).collect(),
                    files: self.files.iter().flat_map(each).collect(),
                    first_share,
                    connections: self.connections,
                    durable,
                    give_up_after_ns: self.outage_max_ns,
                    xid_seed: xid_seed(self.run, client),
                })
            }
            RemoteDataSet::S3(data_set) => {
                let (target, prefix) = data_set.bucket();
                Target::S3(Box::new(S3Target {
                    target,
                    prefix,
                    files_per_share: self.files.first().map_or(1, |set| set.files_per_share),
                    object_bytes: data_set.object_bytes.unwrap_or(1),
                    give_up_after_ns: self.outage_max_ns,
                }))
            }
        }
    }

    /// Returns the size of one transfer in a pass over all data.
    #[must_use]
    pub fn chunk_bytes(&self) -> u32 {
        match &self.data_set {
            RemoteDataSet::Nfs(_) => CHUNK_BYTES,
            RemoteDataSet::S3(data_set) => data_set.object_bytes.unwrap_or(1),
        }
    }

    /// Returns the size of the read that checks one sampled block. An object is always read
    /// completely.
    #[must_use]
    pub fn read_back_bytes(&self) -> u32 {
        match &self.data_set {
            RemoteDataSet::Nfs(_) => 4096,
            RemoteDataSet::S3(data_set) => data_set.object_bytes.unwrap_or(1),
        }
    }

    /// Returns true if a stream can use the existing data, and false if the data must be created
    /// again. If existing objects have another size, this function removes them.
    ///
    /// # Errors
    /// Fails if the target does not support the stream or if an object cannot be removed.
    pub fn fit(&mut self, config: &StreamConfig) -> Result<bool, EngineError> {
        let RemoteDataSet::S3(data_set) = &mut self.data_set else { return Ok(true) };
        let object_bytes = s3::object_bytes(config).map_err(EngineError::Config)?;
        if data_set.object_bytes == Some(object_bytes) {
            return Ok(true);
        }
        if data_set.object_bytes.is_some() {
            data_set.clear("s")?;
        }
        data_set.object_bytes = Some(object_bytes);
        Ok(false)
    }

    /// Sets the size of the files without writing data.
    ///
    /// # Errors
    /// Fails if a call fails, or if the files of this target have no size that can be set.
    pub fn lay_out(&mut self) -> Result<(), EngineError> {
        match &mut self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.truncate(),
            RemoteDataSet::S3(_) => {
                let says = "on S3 every object has to be written: set layout = \"written\"";
                Err(EngineError::Config(says.to_owned()))
            }
        }
    }

    /// Creates the small files that must exist when a stream's clients start.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub fn reset_small(&mut self, stream: usize, config: &StreamConfig) -> Result<(), EngineError> {
        let (clients, names) = (config.clients, config.names_per_client);
        let (range, shares) = (self.range(stream), self.shares(stream));
        match &mut self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.reset_small(range, clients, names),
            RemoteDataSet::S3(data_set) => data_set.reset_small(shares, clients, names),
        }
    }

    /// Adds a thread's call counters to the totals.
    pub fn add_calls(&mut self, reported: &RemoteCalls) {
        match reported {
            RemoteCalls::Nfs { calls, .. } => self.nfs_calls.merge(calls),
            RemoteCalls::S3 { calls, .. } => self.s3_calls.merge(calls),
        }
    }

    /// Records that a server did not respond to a call before the time limit.
    pub fn note_silence(&mut self) {
        self.silent = true;
    }

    /// Records the counters of all calls since the data was created, and the statistics of the
    /// servers for the same period. Then sets the counters to zero, so that no call is counted
    /// twice.
    pub fn counters(&mut self, into: &mut BTreeMap<String, u64>) {
        match &mut self.data_set {
            RemoteDataSet::Nfs(data_set) => {
                let mut calls = data_set.calls();
                calls.merge(&std::mem::take(&mut self.nfs_calls));
                calls.counters(into);
            }
            RemoteDataSet::S3(data_set) => {
                let mut calls = data_set.calls();
                calls.merge(&std::mem::take(&mut self.s3_calls));
                calls.counters(into);
            }
        }
    }

    /// Removes everything that the run created. If a server has already failed to respond in time,
    /// waits only a short time for this server.
    ///
    /// # Errors
    /// Fails if a call fails or if the operator interrupts it.
    pub fn remove(self) -> Result<(), EngineError> {
        let timeout_ns =
            if self.silent { stop_request::FINAL_REPLY_NS } else { self.outage_max_ns };
        match self.data_set {
            RemoteDataSet::Nfs(data_set) => data_set.remove(timeout_ns),
            RemoteDataSet::S3(data_set) => data_set.remove(timeout_ns),
        }
    }
}
