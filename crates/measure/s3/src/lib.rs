//! Client of S3-compatible object stores for a load generator: one thread has many requests in
//! flight.
//!
//! `rusty-s3` builds the URLs, `signature` signs headers (AWS Signature Version 4, without the
//! payload), `httparse` parses heads, and `rustls` implements TLS. The other parts of HTTP/1.1 (RFC
//! 9112) are implemented here: non-blocking sockets with epoll, one request at a time on each
//! connection, bodies sent from and received into the caller's arena, and size limits for all data
//! that a server sends. Existing clients have a runtime with its own threads, or block one thread
//! for each request. Either would change the measured figures.
//!
//! - [`Target`]: address of the store, and its credentials.
//! - [`Op`], [`Completion`]: the possible operations: PUT (in parts if the object is large), GET of
//!   an object or a range, HEAD, DELETE, LIST.
//! - [`Client`]: connections, requests in flight, retries.
//! - [`head`], [`body`]: reading of responses, with limits on their size.
//!
//! If a connection is lost, or if the store answers 429, 500, 502, 503 or 504, the client repeats
//! the request until it succeeds or its time limit is reached. The latency is measured from the
//! first attempt. The first request of a connection includes the time for connecting and for TLS.

pub mod body;
pub mod client;
pub mod error;
pub mod head;
pub mod op;
pub mod target;

mod authorities;
mod connection;
mod request;
mod signature;
mod steps;
mod wire;

pub use client::{Client, Config, Stats, Timeout};
pub use error::{CallError, SubmitError, TargetError, Violation};
pub use op::{Completion, Kind, Op};
pub use target::Target;
