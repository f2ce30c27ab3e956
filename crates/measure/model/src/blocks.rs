//! Building blocks of storage systems. Each file contains one block: its model, and the sources of
//! the model.
//!
//! A block handles a [`Request`] at its level: it determines which units are cached, which tier and
//! which nodes store an extent, or which columns a stripe has. It adds steps to the I/O's program
//! (visits to the block's stations), and routes the remaining work to lower blocks. These decisions
//! are made when the I/O is issued; the simulation of the program then determines when each step
//! runs. A block that does background work (draining, moving, rebuilding) launches detached
//! programs and is notified of their progress.

mod cache;
mod compress;
mod context;
mod cpu;
mod detour;
mod disks;
mod drive;
mod inside;
mod keys;
mod limit;
mod link;
mod losses;
mod metadata;
mod oplog;
mod raid;
mod records;
mod replicate;
mod request;
pub mod ssd;
mod streams;
mod tier;

pub use context::{Block, Builder, Context, SteadyWrites};
pub use inside::{NodeCounters, Source, Tally};
pub use losses::{Change, Component};
pub use request::{Action, Request};

pub(crate) use context::{BlockRef, Blocks, Launch, NodeFailure};
pub(crate) use keys::Bits;
pub(crate) use losses::Losses;

use crate::spec::{ModelError, Reader};

type Make = fn(&Reader<'_>, &mut Builder<'_>) -> Result<Box<dyn Block>, ModelError>;

/// The block kinds. Each entry contains a name and the function that creates a block from its table
/// in the model file.
const KINDS: &[(&str, Make)] = &[
    ("cache", cache::make),
    ("compress", compress::make),
    ("cpu", cpu::make_cpu),
    ("drive", drive::make),
    ("hdd", disks::make),
    ("limit", limit::make),
    ("link", link::make),
    ("metadata", metadata::make),
    ("oplog", oplog::make),
    ("path", cpu::make_path),
    ("raid", raid::make),
    ("records", records::make),
    ("replicate", replicate::make),
    ("ssd", ssd::make),
    ("tier", tier::make),
];

/// Returns true if a kind has only one instance for all nodes, because it places the data of all
/// nodes.
pub(crate) fn shared(kind: Option<&str>) -> bool {
    kind == Some("replicate")
}

/// Returns true if blocks of this kind store data.
pub(crate) fn keeps_data(kind: Option<&str>) -> bool {
    matches!(kind, Some("cache" | "drive" | "hdd" | "oplog" | "raid" | "ssd" | "tier"))
}

/// Returns true if a block of this kind must be informed before the run where the data is placed.
pub(crate) fn keeps_layout(kind: Option<&str>) -> bool {
    matches!(kind, Some("metadata" | "oplog" | "raid" | "records" | "replicate" | "ssd" | "tier"))
}

/// Creates a block from its table in the model file.
pub(crate) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let kind = reader.text("kind")?.ok_or_else(|| {
        let kinds: Vec<&str> = KINDS.iter().map(|(k, _)| *k).collect();
        reader.bad("kind", &format!("is missing: set it to one of {}", kinds.join(", ")))
    })?;
    match KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, make)) => make(reader, builder),
        None => {
            let near = crate::spec::most_like(kind, KINDS.iter().map(|(k, _)| *k));
            let near = near.map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default();
            Err(reader.bad("kind", &format!("is \"{kind}\", which is not a kind of block{near}")))
        }
    }
}
