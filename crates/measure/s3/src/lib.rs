//! A client for S3-compatible object stores, for load: many concurrent requests from one thread.
//!
//! `rusty-s3` builds and signs the addresses (AWS Signature Version 4 in the query, the payload
//! unsigned), `httparse` parses heads, and `rustls` provides TLS. This crate implements the rest of
//! HTTP/1.1 (RFC 9112): non-blocking sockets with epoll, one request at a time on each connection,
//! and limits for everything that a server sends. Bodies are sent from and received into the
//! caller's arena. Ready-made clients start a runtime with its own threads, or block a thread per
//! request; both would affect the figures.
//!
//! - [`Target`]: address and credentials of a bucket.
//! - [`Op`], [`Completion`]: operations and their results: PUT (in parts if large), GET of an
//!   object or a range, HEAD, DELETE, LIST.
//! - [`Client`]: connections, requests in flight, retries.
//! - [`head`], [`body`]: parsing of responses, with limits.
//!
//! The client retries a request after a lost connection or a status of 429, 500, 502, 503 or 504,
//! until the time limit. The latency counts from the first try. The latency of a connection's first
//! request includes opening the connection and the TLS handshake.

pub mod body;
pub mod client;
pub mod error;
pub mod head;
pub mod op;
pub mod target;

mod authorities;
mod connection;
mod request;
mod steps;
mod wire;

pub use client::{Client, Config, Stats, Timeout};
pub use error::{CallError, SubmitError, TargetError, Violation};
pub use op::{Completion, Kind, Op};
pub use target::Target;
