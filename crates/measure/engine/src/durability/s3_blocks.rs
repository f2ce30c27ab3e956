//! Tested blocks in a bucket of an S3 store. Each block is one object. A PUT is durable when the
//! store acknowledges it, because S3 has no flush operation. If a connection is lost, the client
//! repeats the request until the store responds.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_s3::{CallError, Client, Config, Op, Target};

use super::blocks::{BlockTarget, BucketAddress, OpenBlocks, Reopened, TestedBlocks};
use super::per_thread::PerThread;
use super::{BLOCK_BYTES, BlockFile};
use crate::s3::{S3DataSet, S3DataSetRequest, call_each};
use crate::{EngineError, stop_request};

/// Number of requests in flight while the test writes or reads all blocks.
const CONNECTIONS: u32 = 8;

impl BucketAddress {
    fn request<'a>(&'a self, name: &'a str, timeout: Duration) -> S3DataSetRequest<'a> {
        S3DataSetRequest {
            name,
            url: &self.url,
            endpoint: &self.endpoint,
            region: &self.region,
            outage_max_ns: nanoseconds(timeout),
        }
    }
}

/// Tested objects.
struct S3Blocks {
    address: BucketAddress,
    /// Name of the test. The name is part of the prefix.
    name: String,
    bucket: Target,
    /// Prefix with which the names of all objects start.
    prefix: String,
    timeout: Duration,
    connections: PerThread<Connection>,
}

impl fmt::Debug for S3Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3Blocks({} of {})", self.prefix, self.address.url)
    }
}

/// S3 client that one thread uses.
struct Connection {
    client: Client,
    arena: Vec<u8>,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn opened(
    data_set: &S3DataSet,
    target: &BlockTarget,
    address: &BucketAddress,
    name: String,
) -> OpenBlocks {
    let (bucket, prefix) = data_set.bucket();
    let blocks = S3Blocks {
        address: address.clone(),
        name,
        bucket,
        prefix,
        timeout: target.timeout,
        connections: PerThread::new(),
    };
    OpenBlocks { blocks: Arc::new(blocks), file_system: None }
}

/// Reserves a prefix in the bucket, which only this test then uses.
pub(super) fn create(
    target: &BlockTarget,
    address: &BucketAddress,
) -> Result<OpenBlocks, EngineError> {
    let name = target.server_name();
    let data_set = S3DataSet::create(&address.request(&name, target.timeout))?;
    Ok(opened(&data_set, target, address, name))
}

/// Looks up the objects of the test after a power cut. If the object that contains the owner's name
/// is missing, the store has lost an acknowledged PUT. If the bucket is missing, the store is not
/// the store that was tested.
pub(super) fn reopen(
    target: &BlockTarget,
    address: &BucketAddress,
) -> Result<Reopened, EngineError> {
    let name = target.server_name();
    let data_set = S3DataSet::reopen(&address.request(&name, target.timeout))?;
    Ok(match data_set {
        Some(data_set) => Reopened::Open(opened(&data_set, target, address, name)),
        None => Reopened::FileLost,
    })
}

impl S3Blocks {
    fn connect(&self) -> Result<Connection, EngineError> {
        let config = Config {
            connections: CONNECTIONS,
            give_up_after_ns: nanoseconds(self.timeout),
            ..Config::default()
        };
        let mut client = Client::new(self.bucket.clone(), config)
            .map_err(|error| EngineError::Config(error.to_string()))?;
        client.fail_requests_when(stop_request::has_timed_out);
        Ok(Connection { client, arena: Vec::new() })
    }

    /// Returns the names of the objects that store a range of blocks.
    fn keys(&self, offset_bytes: u64, size_bytes: usize) -> Vec<String> {
        let first = offset_bytes / u64::from(BLOCK_BYTES);
        let count = size_bytes as u64 / u64::from(BLOCK_BYTES);
        (first..first + count).map(|block| format!("{}block-{block:08x}", self.prefix)).collect()
    }
}

/// Returns the offset in the arena at which the block of request `number` is stored.
fn in_arena(number: usize) -> u64 {
    number as u64 * u64::from(BLOCK_BYTES)
}

impl BlockFile for S3Blocks {
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let keys = self.keys(offset_bytes, bytes.len());
        let put = |number, key| Op::Put {
            key,
            size_bytes: BLOCK_BYTES,
            buffer_offset_bytes: in_arena(number),
        };
        self.connections.with(
            || self.connect(),
            |Connection { client, arena }| {
                arena.clear();
                arena.extend_from_slice(bytes);
                call_each(client, &keys, arena, put, |_, result| result.map(drop))
                    .map_err(io::Error::other)
            },
        )
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// A missing object is read as zeros. If an object is too short, its missing end is read as
    /// zeros.
    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        let keys = self.keys(offset_bytes, bytes.len());
        let get = |number, key| Op::Get {
            key,
            offset_bytes: 0,
            size_bytes: BLOCK_BYTES,
            whole: true,
            buffer_offset_bytes: in_arena(number),
        };
        let mut read_bytes = vec![0; keys.len()];
        self.connections.with(
            || self.connect(),
            |Connection { client, arena }| {
                arena.resize(bytes.len(), 0);
                let done = |number: usize, result| {
                    read_bytes[number] = match result {
                        Err(CallError::Status { status: 404, code }) if code != "NoSuchBucket" => 0,
                        other => other?,
                    };
                    Ok(())
                };
                call_each(client, &keys, arena, get, done).map_err(io::Error::other)?;
                bytes.copy_from_slice(&arena[..bytes.len()]);
                Ok(())
            },
        )?;
        for (block, read) in bytes.chunks_mut(BLOCK_BYTES as usize).zip(read_bytes) {
            block[read as usize..].fill(0);
        }
        Ok(())
    }

    fn batch_max(&self) -> usize {
        1
    }
}

impl TestedBlocks for S3Blocks {
    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    /// Always returns true, because the client has no cache. The store may still read the data from
    /// its own cache.
    fn drop_cache(&self) -> bool {
        true
    }

    fn remove(&self) -> Result<(), EngineError> {
        let request = self.address.request(&self.name, self.timeout);
        S3DataSet::connect(&request)?.remove(nanoseconds(self.timeout))
    }
}
