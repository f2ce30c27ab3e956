//! Tests the client with a real S3 server, with and without TLS, and with hostile servers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/tls.rs"]
mod front;
#[path = "../support/mod.rs"]
mod support;

mod first_byte;
mod hostile;
mod operations;
mod tls;
