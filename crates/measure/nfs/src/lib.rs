//! NFS version 3 (RFC 1813) spoken in user space, as a load generator needs it.
//!
//! There is no mount and no client cache: every operation is one remote procedure call (RFC
//! 5531, over TCP with record marking) on the wire, many of them outstanding on each of several
//! connections. One thread owns a [`Client`] and drives its connections by epoll with non-blocking
//! sockets; nothing is locked and, once warm, nothing is allocated per operation. Calls are batched
//! into one `sendmsg`, replies parsed where they were received, payloads go from and to the caller's
//! arena.
//!
//! The layers, each usable without the ones above:
//!
//! - [`xdr`], [`rpc`], [`inbound`]: bounded reading of what a peer sends. A length is believed only
//!   after it was checked against what there is and what was asked for.
//! - [`Core`]: calls in flight, matching by XID, uncommitted writes, timers. It has no sockets and
//!   no clock: bytes and times are passed in.
//! - [`Client`]: sockets, reconnecting, epoll, the clock.
//! - [`mount`], [`setup`]: the blocking steps before a run: MOUNT, walk a path, make directories and
//!   files.
//!
//! If the server is lost, calls without a reply are sent again, first on the same
//! connection, then on a new one; their latency counts from the first hand-over, so an outage is in
//! the figures. Writes that a restarted server may have forgotten (its write verifier changed) are
//! sent again from a copy before the COMMIT that covers them completes, and an [`Event`] says so.

pub mod client;
pub mod core;
pub mod credential;
pub mod error;
pub mod handle;
pub mod inbound;
pub mod mount;
pub mod op;
pub mod rpc;
pub mod setup;
pub mod stats;
pub mod url;
pub mod xdr;

mod call;
mod config;
mod connections;
mod deliver;
mod lifecycle;
pub mod outbound;
mod overdue;
mod recover;
mod reply;
mod retain;
mod slot;
mod socket;
mod submit;

pub use client::{Client, Clock, Monotonic, PollError, Timeout};
pub use config::Config;
pub use core::Core;
pub use credential::Credential;
pub use error::{CallError, RpcError, SubmitError, Violation};
pub use handle::{Handle, ObjectId, ServerId};
pub use op::{Completion, CreateHow, Op, Procedure, Stability};
pub use stats::{Event, ProcedureStats, Stats};
pub use url::NfsUrl;
