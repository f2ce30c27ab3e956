//! S3-compatible object stores, as a load generator needs them: many requests at once from one thread.
//!
//! `rusty-s3` makes the addresses, `signature` signs headers (AWS Signature Version 4, the payload unsigned),
//! `httparse` reads heads, and `rustls` speaks TLS. The rest of HTTP/1.1 (RFC 9112) is ours: non-blocking sockets under epoll, one request at a time on each
//! connection, bodies sent from and received into the caller's arena, everything that a server
//! sends bounded. Ready-made clients bring a runtime with threads of its own, or block a thread per
//! request; either would be in the figures.
//!
//! - [`Target`]: where the store is, and whose it is.
//! - [`Op`], [`Completion`]: what can be asked: PUT (in parts where it is large), GET of an object or a
//!   range, HEAD, DELETE, LIST.
//! - [`Client`]: connections, requests in flight, retries.
//! - [`head`], [`body`]: bounded reading of responses.
//!
//! A request that meets a lost connection, or one of 429, 500, 502, 503 and 504, is made again until it
//! is given up; its latency counts from the first time. The first request of a connection carries the time that
//! connecting takes, TLS included.

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
