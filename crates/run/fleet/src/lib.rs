//! Generates load from many hosts at the same time. Agents run the plan on their hosts. The
//! coordinator starts them together and adds up the results. Agents and coordinator communicate
//! through a NATS server with JetStream, which is not part of the data path.
//!
//! - [`broker`]: connection to the server, with its subjects, streams and buckets.
//! - [`card`]: description of an agent. [`message`]: messages between agents and coordinator.
//! - [`order`]: a signed plan, and the checks before an agent accepts it.
//!   [`plimsoll_runner::allow`]: targets that the operator allows.
//! - [`agent`]: the agent. [`coordinator`]: the coordinator. [`offset`]: offsets between their
//!   clocks.
//! - [`setup`]: keys, certificates and server configuration of a fleet. [`permissions`]: rights of
//!   each user on the server. [`access`]: the file with a host's address and credentials;
//!   [`credential`]: one credential.
//! - [`driver`]: runs experiments on a fleet.
//! - `evidence`: writes the evidence of a fleet run; [`plimsoll_runner::fleet`] reads it.
//!   [`local`]: a private server with agents, for trials.
//!
//! Only this crate uses the asynchronous runtime: agents run `plimsoll-runner` on separate threads.
//!
//! # Where to change what
//!
//! - common start: `agent/gate.rs` and `coordinator.rs`; server liveness: `server_health.rs`
//! - agent selection: `coordinator/selection.rs`
//! - permissions: `permissions.rs`, subjects `broker.rs`, setup `setup.rs`, users `users.rs`,
//!   certificates `authority.rs`, `access.rs`, `credential.rs`, `unit.rs`; tests:
//!   `tests/protocol/isolation.rs`, `run/cli/tests/fleet/fleet_secure.rs`; host templates:
//!   `contrib/fleet`
//! - acceptance of a plan by an agent: `order.rs` (signature, time, replay)
//! - storage system's counters: `coordinator/system.rs`

pub mod access;
pub mod agent;
mod authority;
pub mod broker;
pub mod card;
pub mod coordinator;
pub mod credential;
pub mod driver;
mod evidence;
mod files;
pub mod local;
pub mod message;
pub mod offset;
pub mod order;
pub mod permissions;
mod server_health;
pub mod setup;
pub mod unit;
mod users;

use std::future::Future;

use plimsoll_runner::error::RunnerError;

/// Runs a future on a new runtime, on the calling thread.
fn block_on_runtime<T>(
    work: impl Future<Output = Result<T, RunnerError>>,
) -> Result<T, RunnerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        RunnerError::environment(format!("cannot start an asynchronous runtime: {error}"))
            .hint("raise the limit of open files (ulimit -n)")
    })?;
    runtime.block_on(work)
}

/// Aborts a task of the runtime when dropped.
struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
