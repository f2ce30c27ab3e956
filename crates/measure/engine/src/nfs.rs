//! Target that consists of NFS exports. `plimsoll-nfs` implements the protocol in user space, so no
//! mount and no cache of this host is involved.
//!
//! - [`NfsDataSet`]: the directory that the run created on each export, with its files and their
//!   content.
//! - [`NfsQueue`]: queue for the stream engine, which contains the calls that one thread has in
//!   flight.
//! - [`UnverifiedWindow`]: record of the writes that a restarted server may have lost.
//! - [`Calls`]: counters of calls, and of server restarts and outages during the run.
//!
//! Each share is on one export. One thread drives all clients of a share. The writes to a file
//! therefore have a fixed order, and after a restart of the server they are sent again in this
//! order.

mod calls;
mod data_set;
mod probe;
mod queue;
mod unverified_window;

pub use calls::{Calls, Outage};
pub use data_set::{NfsDataSet, NfsDataSetRequest, Share};
pub(crate) use data_set::{data_name, has_status};
pub use probe::{ExportProbe, probe_export};
pub use queue::{NfsQueue, NfsTarget};
pub use unverified_window::UnverifiedWindow;

use crate::EngineError;

/// Converts an error that the NFS client reports during set-up to an engine error.
pub(crate) fn failed(doing: impl Into<String>, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Remote { doing: doing.into(), says: error.to_string(), errno: None }
}
