//! NFS exports as a target, spoken to in user space (`plimsoll-nfs`): no mount and no cache of this host
//! in the way.
//!
//! - [`Home`]: the run's own directory on each export, its files, what they hold.
//! - [`NfsQueue`]: a thread's calls in flight, driven as any other queue of the stream engine.
//! - [`UnverifiedWindow`]: what a restarted server may have forgotten.
//! - [`Calls`]: what was called, and what the servers did meanwhile.
//!
//! A share is an export. All clients of a share are driven by one thread: their writes to a file are
//! then kept, and after a restart of the server sent again, in one order.

mod calls;
mod home;
mod queue;
mod unverified;

pub use calls::{Calls, Outage};
pub use home::{Home, HomeRequest, Share};
pub use queue::{NfsQueue, NfsTarget};
pub use unverified::UnverifiedWindow;

use crate::EngineError;

/// An error of the protocol's set-up, as the engine's.
fn failed(doing: impl Into<String>, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Remote { doing: doing.into(), says: error.to_string(), errno: None }
}
