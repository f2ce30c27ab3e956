//! An NFS version 3 client (RFC 1813) in user space, for load generation.
//!
//! There is no mount, and the client does not cache. Every operation is one remote procedure call
//! (RFC 5531, over TCP with record marking), and each of several connections has many calls
//! outstanding. One thread owns a [`Client`] and drives its connections with epoll and non-blocking
//! sockets. It uses no locks, and after a warm-up it does not allocate memory for an operation. One
//! `sendmsg` sends a batch of calls. Replies are parsed in the receive buffer. Payloads are sent
//! from and received into the caller's arena.
//!
//! The client has these layers. Each layer can be used without the layers listed after it:
//!
//! - [`xdr`], [`rpc`], [`inbound`]: bounded parsing of received data. Each length is checked
//!   against the available data and against the request.
//! - [`Core`]: calls in flight, matching by XID, uncommitted writes, timers. It has no sockets and
//!   no clock: the caller passes bytes and times.
//! - [`Client`]: sockets, reconnection, epoll, the clock.
//! - [`mount`], [`setup`]: blocking steps before a run: MOUNT, path lookup, creation of directories
//!   and files.
//!
//! If a call gets no reply, the client sends it again, first on the same connection, then on a new
//! connection. Its latency counts from the first transmission, so the figures include an outage. A
//! changed write verifier means that the server restarted and may have lost unstable writes. The
//! client then sends these writes again from a copy before it completes their COMMIT, and reports
//! an [`Event`].

#![deny(missing_docs)]

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
