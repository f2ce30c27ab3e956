//! Tested file on an NFS export. Plimsoll's own client accesses the file, so this host has no mount
//! and no cache of the export. As on a hard mount, the client repeats calls until the server
//! responds. If a server restarts and loses unstable writes, the client sends these writes again
//! before their COMMIT completes. An acknowledged COMMIT therefore always includes the whole batch.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nfs3_types::nfs3::nfsstat3;
use plimsoll_nfs::mount::{Export, mount};
use plimsoll_nfs::setup::SetupError;
use plimsoll_nfs::{Client, Config, Handle, Monotonic, NfsUrl, ObjectId, Op, Stability, Timeout};
use plimsoll_plan::SyncMethod;
use plimsoll_sys::SysError;
use plimsoll_workload::matrix::FileSet;

use super::BlockFile;
use super::blocks::{BlockTarget, FileSystemId, OpenBlocks, Reopened, TestedBlocks, batch_max};
use super::per_thread::PerThread;
use crate::nfs::{NfsDataSet, NfsDataSetRequest, data_name, failed, has_status};
use crate::{EngineError, stop_request};

/// Maximum number of bytes in a READ or WRITE call.
const TRANSFER_BYTES: usize = 64 * 1024;
/// Maximum number of calls in flight on a connection: one call of the thread, and calls that send
/// lost writes again.
const DEPTH: u32 = 16;

/// XID of the first call on the next connection. A server may treat a repeated XID as a
/// retransmission.
static NEXT_XID: AtomicU32 = AtomicU32::new(1);

/// Tested file on an NFS export.
pub struct NfsBlocks {
    export: Export,
    file: Handle,
    sync: SyncMethod,
    timeout: Duration,
    /// Name of the test's directory in the export. The test removes this directory at the end.
    own_name: String,
    /// One connection for each thread. A COMMIT on a connection includes the writes of that thread.
    connections: PerThread<Connection>,
}

impl fmt::Debug for NfsBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NfsBlocks({} of {}:{})", self.own_name, self.export.nfs, self.export.path)
    }
}

/// NFS client that one thread uses.
struct Connection {
    client: Client<Monotonic>,
    root: ObjectId,
    file: ObjectId,
    arena: Vec<u8>,
}

impl Connection {
    fn open(export: &Export, file: Handle, timeout: Duration) -> Result<Self, EngineError> {
        let config = Config {
            depth_max: DEPTH,
            size_bytes_max: TRANSFER_BYTES as u32,
            give_up_after_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            histograms: false,
            xid_seed: NEXT_XID.fetch_add(1 << 20, Ordering::Relaxed),
            ..Config::default()
        };
        let mut client = Client::new(config, Monotonic).map_err(|error| {
            let source = SysError::new("epoll_create1", error.raw_os_error());
            EngineError::system("creating an NFS client", source)
        })?;
        client.fail_calls_when(stop_request::has_timed_out);
        let server =
            client.add_server(&export.server(1)).map_err(|error| failed("connecting", &error))?;
        let root = client.register(server, export.root);
        let file = client.register(server, file);
        Ok(Self { client, root, file, arena: vec![0; TRANSFER_BYTES] })
    }

    /// Executes one operation and returns the number of transferred bytes.
    fn call(&mut self, op: &Op<'_>) -> io::Result<usize> {
        self.client.submit(0, op).map_err(io::Error::other)?;
        let mut out = Vec::with_capacity(1);
        while out.is_empty() {
            let polled = self.client.poll(&mut self.arena, Timeout::Completion, &mut out);
            polled.map_err(io::Error::other)?;
        }
        let result = out.pop().map_or(Ok(0), |completion| completion.result);
        result.map(|bytes| bytes as usize).map_err(io::Error::other)
    }
}

impl NfsBlocks {
    /// Returns access to a file on an export. `own_name` is the name of the directory that the test
    /// removes at the end.
    #[must_use]
    pub fn new(
        export: Export,
        file: Handle,
        sync: SyncMethod,
        timeout: Duration,
        own_name: String,
    ) -> Self {
        Self { export, file, sync, timeout, own_name, connections: PerThread::new() }
    }

    /// Creates the file in a directory that only this test uses.
    pub(super) fn create(target: &BlockTarget, url: &str) -> Result<OpenBlocks, EngineError> {
        let name = target.server_name();
        let files = FileSet {
            first_file: 0,
            shares: 1,
            files_per_share: 1,
            file_size_bytes: target.size_bytes,
            offset_bytes: 0,
            working_set_bytes: None,
        };
        let request = NfsDataSetRequest {
            name: &name,
            exports: &[url.to_owned()],
            uid: 0,
            gid: 0,
            files: &[files],
            xid_seed: NEXT_XID.fetch_add(1 << 20, Ordering::Relaxed),
            outage_max_ns: u64::try_from(target.timeout.as_nanos()).unwrap_or(u64::MAX),
        };
        let mut data_set = NfsDataSet::create(&request)?;
        data_set.truncate()?;
        let shares = data_set.shares();
        let Some((export, file)) =
            shares.first().and_then(|share| Some((&share.export, *share.files.first()?)))
        else {
            let says = "the test's file was not created on the export";
            return Err(EngineError::Defect(says.to_owned()));
        };
        let own_name = format!("plimsoll-{name}");
        let blocks = Self::new(export.clone(), file, target.sync, target.timeout, own_name);
        let file_system = Some(file_system_of(&mut blocks.connect()?)?);
        Ok(OpenBlocks { blocks: Arc::new(blocks), file_system })
    }

    /// Mounts the export again and looks up the tested file.
    pub(super) fn reopen(
        target: &BlockTarget,
        url: &str,
        file_system: Option<&FileSystemId>,
    ) -> Result<Reopened, EngineError> {
        let parsed = NfsUrl::parse(url).map_err(|error| EngineError::Config(error.to_string()))?;
        let export = mount(&parsed).map_err(|error| failed(format!("mounting {url}"), &error))?;
        let own_name = format!("plimsoll-{}", target.server_name());
        let mut connection = Connection::open(&export, Handle::EMPTY, target.timeout)?;
        let finding = |error: SetupError| failed(format!("reading {own_name} on {url}"), &error);
        let path = format!("{own_name}/s000/{}", data_name(0));
        let root = connection.root;
        let found = connection.client.lookup_path(root, path.as_bytes());
        let now = file_system_of(&mut connection)?;
        let file = match found {
            Ok(file) => file,
            Err(error) if has_status(&error, nfsstat3::NFS3ERR_NOENT) => {
                return target.missing(file_system.is_none_or(|before| *before == now));
            }
            Err(error) => return Err(finding(error)),
        };
        let size_bytes = connection.client.attributes(file).map_err(finding)?.size;
        if size_bytes < target.size_bytes {
            return Ok(Reopened::FileLost);
        }
        let file = connection.client.core().handle(file);
        let blocks = Self::new(export, file, target.sync, target.timeout, own_name);
        Ok(Reopened::Open(OpenBlocks { blocks: Arc::new(blocks), file_system: Some(now) }))
    }

    fn connect(&self) -> Result<Connection, EngineError> {
        Connection::open(&self.export, self.file, self.timeout)
    }

    /// Executes one operation on the connection of this thread.
    fn with_connection<T>(
        &self,
        carry_out: impl FnOnce(&mut Connection) -> io::Result<T>,
    ) -> io::Result<T> {
        self.connections.with(|| self.connect(), carry_out)
    }
}

fn file_system_of(connection: &mut Connection) -> Result<FileSystemId, EngineError> {
    let root = connection.client.attributes(connection.root);
    let root = root.map_err(|error| failed("reading the attributes of the export", &error))?;
    Ok((0, root.fsid.to_string()))
}

impl BlockFile for NfsBlocks {
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let stability = match self.sync {
            SyncMethod::Fsync | SyncMethod::Fdatasync | SyncMethod::DirectOnly => {
                Stability::Unstable
            }
            SyncMethod::Dsync => Stability::DataSync,
        };
        self.with_connection(|connection| {
            let mut at = offset_bytes;
            for part in bytes.chunks(TRANSFER_BYTES) {
                connection.arena[..part.len()].copy_from_slice(part);
                connection.call(&Op::Write {
                    file: connection.file,
                    offset_bytes: at,
                    size_bytes: part.len() as u32,
                    buffer_offset_bytes: 0,
                    stability,
                })?;
                at += part.len() as u64;
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        match self.sync {
            SyncMethod::Fsync | SyncMethod::Fdatasync => self.sync_all(),
            SyncMethod::Dsync | SyncMethod::DirectOnly => Ok(()),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        self.with_connection(|connection| {
            let mut at = offset_bytes;
            for part in bytes.chunks_mut(TRANSFER_BYTES) {
                let read = connection.call(&Op::Read {
                    file: connection.file,
                    offset_bytes: at,
                    size_bytes: part.len() as u32,
                    buffer_offset_bytes: 0,
                })?;
                if read < part.len() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                part.copy_from_slice(&connection.arena[..part.len()]);
                at += part.len() as u64;
            }
            Ok(())
        })
    }

    fn batch_max(&self) -> usize {
        batch_max(self.sync)
    }
}

impl TestedBlocks for NfsBlocks {
    fn sync_all(&self) -> io::Result<()> {
        self.with_connection(|connection| {
            let op = Op::Commit { file: connection.file, offset_bytes: 0, size_bytes: 0 };
            connection.call(&op).map(drop)
        })
    }

    /// Always returns true, because the client has no cache. The server may still read the data
    /// from its own cache.
    fn drop_cache(&self) -> bool {
        true
    }

    fn remove(&self) -> Result<(), EngineError> {
        let mut connection = self.connect()?;
        let root = connection.root;
        connection
            .client
            .remove_tree(root, self.own_name.as_bytes())
            .map_err(|error| failed(format!("removing {}", self.own_name), &error))
    }
}
