//! Tests messages between the coordinator and agents over a real NATS server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../measure/nfs/tests/support/port.rs"]
mod port;

mod bounds;
mod coordination;
mod isolation;
mod order_rejection;
