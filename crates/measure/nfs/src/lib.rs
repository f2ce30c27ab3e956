//! An NFS version 3 client (RFC 1813) in user space, for load generation.
//!
//! There is no mount, and the client does not cache. Every operation is a remote procedure call
//! (RFC 5531, over TCP with record marking). A client has one or more connections, and many calls
//! can be outstanding on each. A [`Client`] belongs to one thread, which drives the connections
//! with epoll and non-blocking sockets. The client uses no locks, and after a warm-up it does not
//! allocate memory for an operation. It sends several calls with one `sendmsg`, and parses replies
//! in the receive buffer. Payloads are sent from the caller's arena and received into it.
//!
//! The client has these layers. Each layer can be used without the layers listed after it:
//!
//! - [`xdr`], [`rpc`] and [`inbound`] parse received data in bounded memory. They check each length
//!   against the available data and the request.
//! - [`Core`] manages calls in flight, matches replies by XID, and keeps uncommitted writes and
//!   timers. It has no sockets and no clock. The caller passes bytes and times to it.
//! - [`Client`] adds sockets, reconnection, epoll and the clock.
//! - [`mount`] and [`setup`] perform blocking steps before a run. These are MOUNT, path lookup, and
//!   the creation of directories and files.
//!
//! If a call receives no reply, the client sends the call again, first on the same connection and
//! then on a new connection. The latency is measured from the first transmission, so the figures
//! include outages. A changed write verifier means that the server restarted and may have lost
//! unstable writes. The client then sends copies of these writes before it completes their COMMIT,
//! and reports an [`Event`].

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
