//! Generates the operations of the clients that one thread drives.

use std::ops::Range;

use plimsoll_plan::{SizeShare, SyncKind};

use super::op::class_of;
use super::{
    Choice, MatrixError, MetadataKind, NameChange, Names, Op, OpKind, StreamConfig, metadata,
};
use crate::address::{AddressWalks, Walk, mix};
use crate::trace::{Cursor, Event, TraceOperation};

/// Clients of a stream that one thread drives.
#[derive(Clone, Debug)]
pub struct StreamPart {
    config: StreamConfig,
    clients: Range<u32>,
    /// For each share: the addresses in the share. An entry is `None` if none of these clients uses
    /// the share.
    walks: Vec<Option<AddressWalks>>,
    each: Vec<Client>,
    read_sizes: Vec<u32>,
    write_sizes: Vec<u32>,
    /// Position in the trace; `None` if the stream replays no trace.
    cursor: Option<Cursor>,
}

/// Random choices of one client.
#[derive(Clone, Debug)]
struct Client {
    share: u32,
    walk: Walk,
    is_metadata: Choice,
    is_read: Choice,
    read_size: Choice,
    write_size: Choice,
    metadata: Choice,
    files: u64,
    files_seed: u64,
    names: Names,
    writes_until_sync: u32,
    sync_due: Option<u32>,
}

fn chosen(sizes: &[SizeShare]) -> (Vec<u32>, Vec<f64>) {
    let bytes = |size: &SizeShare| u32::try_from(size.size_bytes).unwrap_or(u32::MAX);
    sizes.iter().map(|size| (bytes(size), size.share_percent)).unzip()
}

impl StreamPart {
    /// Creates the clients whose numbers are in `clients`. Numbers that are not less than
    /// [`StreamConfig::clients`] are ignored.
    ///
    /// # Errors
    /// [`MatrixError`].
    pub fn new(config: StreamConfig, clients: Range<u32>) -> Result<Self, MatrixError> {
        config.check()?;
        let clients = clients.start..clients.end.min(config.clients);
        let shares = config.files.shares.max(1);
        let mut walks = vec![None; shares as usize];
        for share in clients.clone().map(|client| client % shares) {
            let space = &mut walks[share as usize];
            if space.is_none() {
                *space = Some(Self::space(&config, share)?);
            }
        }
        let (read_sizes, read_weights) = chosen(&config.sizes);
        let (write_sizes, write_weights) = if config.write_sizes.is_empty() {
            (read_sizes.clone(), read_weights.clone())
        } else {
            chosen(&config.write_sizes)
        };
        let cursor = config.trace.as_ref().map(crate::trace::Replay::cursor);
        let each = Vec::new();
        let mut part = Self { clients, walks, each, read_sizes, write_sizes, cursor, config };
        for client in part.clients.clone() {
            part.each.extend(part.client(client, &read_weights, &write_weights));
        }
        Ok(part)
    }

    fn space(config: &StreamConfig, share: u32) -> Result<AddressWalks, MatrixError> {
        let sizes = config.all_sizes_bytes();
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let grid = if config.align_bytes == 0 { largest } else { config.align_bytes };
        let regions = config.files.regions(share, largest, grid);
        let seed = mix(config.seed, u64::from(share));
        AddressWalks::new(&config.pattern, &regions, &sizes, config.align_bytes, seed)
            .map_err(|source| MatrixError::Address { stream: config.name.clone(), source })
    }

    fn client(&self, client: u32, reads: &[f64], writes: &[f64]) -> Option<Client> {
        let config = &self.config;
        let shares = config.files.shares.max(1);
        let share = client % shares;
        // A share is used by the clients with the numbers share, share + shares, share + 2 *
        // shares…
        let on_share = (config.clients - share).div_ceil(shares);
        let walk = self.walks[share as usize]
            .as_ref()?
            .walk(u64::from(client / shares), u64::from(on_share));
        let seed = |of: u64| mix(mix(!config.seed, u64::from(client)), of);
        Some(Client {
            share,
            walk,
            is_metadata: Choice::percent(config.metadata_percent, seed(0)),
            is_read: Choice::percent(config.read_percent, seed(1)),
            read_size: Choice::new(reads, seed(2)),
            write_size: Choice::new(writes, seed(3)),
            metadata: Choice::new(&metadata::weights(&config.metadata_mix), seed(4)),
            files: 0,
            files_seed: seed(5),
            names: Names::new(config.names_per_client, config.queue_depth),
            writes_until_sync: config.sync.every_writes.max(1),
            sync_due: None,
        })
    }

    /// Returns the configuration of the stream.
    #[must_use]
    pub fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// Returns true if the part replays a trace and has issued all operations of the trace.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::is_at_end)
    }

    /// Returns the next operation of a client. `client` is the number of the client in the stream.
    /// Returns `None` if the client does not belong to this part.
    #[inline]
    pub fn next(&mut self, client: u32) -> Option<Op> {
        if let Some(cursor) = &mut self.cursor {
            return cursor.take().map(|event| replayed(&self.config, event));
        }
        let at = client.checked_sub(self.clients.start)? as usize;
        let client = self.each.get_mut(at)?;
        if let Some(file) = client.sync_due.take() {
            let fdatasync = self.config.sync.kind == SyncKind::Fdatasync;
            let kind = if fdatasync { OpKind::Fdatasync } else { OpKind::Fsync };
            return Some(Op::bare(kind, client.share, file));
        }
        if client.is_metadata.next_is() {
            return Some(client.metadata_op(&self.config));
        }
        let is_read = client.is_read.next_is();
        let (sizes, choice) = if is_read {
            (&self.read_sizes, &mut client.read_size)
        } else {
            (&self.write_sizes, &mut client.write_size)
        };
        let size_bytes = *sizes.get(choice.take())?;
        let walks = self.walks[client.share as usize].as_mut()?;
        let place = walks.next(&mut client.walk, size_bytes.into());
        let kind = if is_read { OpKind::Read } else { client.write_kind(&self.config, place.file) };
        Some(Op {
            kind,
            class: class_of(kind),
            share: client.share,
            file: place.file,
            offset_bytes: place.offset_bytes,
            size_bytes,
            name: 0,
            new_name: 0,
        })
    }
}

/// Converts an operation of a trace to an operation on the data file of the stream.
fn replayed(config: &StreamConfig, event: Event) -> Op {
    let file = config.files.first_file;
    let kind = match event.requested {
        TraceOperation::Read => OpKind::Read,
        TraceOperation::Write => OpKind::Write,
        TraceOperation::WriteDurable => OpKind::WriteDurable,
        TraceOperation::Sync => return Op::bare(OpKind::Fsync, 0, file),
        TraceOperation::DataSync => return Op::bare(OpKind::Fdatasync, 0, file),
    };
    Op {
        offset_bytes: config.files.offset_bytes + event.offset_bytes,
        size_bytes: event.size_bytes,
        ..Op::bare(kind, 0, file)
    }
}

impl Client {
    /// Counts a write. Decides whether a sync follows the write.
    fn write_kind(&mut self, config: &StreamConfig, file: u32) -> OpKind {
        match config.sync.kind {
            SyncKind::None => OpKind::Write,
            SyncKind::Dsync | SyncKind::FileSync => OpKind::WriteDurable,
            SyncKind::Fsync | SyncKind::Fdatasync => {
                self.writes_until_sync -= 1;
                if self.writes_until_sync == 0 {
                    self.writes_until_sync = config.sync.every_writes.max(1);
                    self.sync_due = Some(file);
                }
                OpKind::Write
            }
        }
    }

    fn metadata_op(&mut self, config: &StreamConfig) -> Op {
        let requested = MetadataKind::ALL[self.metadata.take().min(MetadataKind::ALL.len() - 1)];
        let change = match requested {
            MetadataKind::Create => self.names.create(),
            MetadataKind::Remove => self.names.remove(),
            MetadataKind::Rename => self.names.rename(),
            _ => {
                let bits = mix(self.files_seed, self.files);
                self.files += 1;
                let files = u64::from(config.files.files_per_share.max(1));
                let file = config.files.file(self.share, (bits % files) as u32);
                return Op::bare(OpKind::Metadata(requested), self.share, file);
            }
        };
        let (kind, name, new_name) = match change {
            NameChange::Create(name) => (MetadataKind::Create, name, 0),
            NameChange::Remove(name) => (MetadataKind::Remove, name, 0),
            NameChange::Rename(name, new) => (MetadataKind::Rename, name, new),
        };
        Op { name, new_name, ..Op::bare(OpKind::Metadata(kind), self.share, 0) }
    }
}

#[cfg(test)]
mod tests;
