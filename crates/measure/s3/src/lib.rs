//! Client of S3-compatible object stores for a load generator: one thread has many requests in
//! flight.
//!
//! `rusty-s3` builds the URLs, `signature` signs headers (AWS Signature Version 4, without the
//! payload), `httparse` parses heads, and `rustls` implements TLS. The other parts of HTTP/1.1 (RFC
//! 9112) are implemented here: non-blocking sockets with epoll, one request at a time on each
//! connection, and size limits for all data that a server sends. Bodies are sent from the caller's
//! arena and received into it. Other client libraries start threads of their own, or block a thread
//! for each request. Either would change the measured figures.
//!
//! - [`Target`]: address of the store, and its credentials.
//! - [`Op`], [`Completion`]: an operation and its result. The operations are PUT (in parts if the
//!   object is large), GET of an object or a range, HEAD, DELETE and LIST.
//! - [`Client`]: connections, requests in flight, retries.
//! - [`head`], [`body`]: parsers of responses, with limits on the size of a response.
//!
//! If a connection is lost, or if the store answers 429, 500, 502, 503 or 504, the client repeats
//! the request until it succeeds or its time limit is reached. The latency is measured from the
//! first attempt. The latency of the first request on a connection includes the time for the TCP
//! connection and the TLS handshake.

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
