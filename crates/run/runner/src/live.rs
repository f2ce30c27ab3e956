//! Live status of a running plan: its events, aggregated for viewers.
//!
//! - [`state`]: aggregates events, in bounded memory.
//! - [`state_listener`]: a listener that updates the state.
//! - [`counters`]: the same for a served model, which has counters and no phases.
//! - [`metrics`]: the state as Prometheus text.
//! - [`status_server`]: an HTTP server on a thread.
//! - [`process_status`]: a status socket for each process of a user, and requests to the sockets of
//!   other processes.

pub mod counters;
pub mod gauges;
pub mod metrics;
pub mod process_status;
pub mod state;
pub mod state_listener;
pub mod status_server;
