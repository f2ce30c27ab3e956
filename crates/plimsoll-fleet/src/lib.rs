//! One load from many hosts: agents that carry a plan out on theirs, and the coordinator that has them start together and
//! adds up what they measured. Both talk through a NATS server with JetStream; nothing of it is on the data path.
//!
//! - [`broker`]: how the server is reached; which subjects, streams and buckets there are.
//! - [`card`]: what an agent says of itself; [`message`]: what agents and coordinator tell each other.
//! - [`order`]: a plan that was signed, and what an agent asks before it takes one; what its operator allows
//!   is [`plimsoll_runner::allow`].
//! - [`agent`]: the agent. [`coordinator`]: the other end. [`offset`]: how far apart their clocks are.
//! - [`setup`]: keys, certificates and the server's configuration of a fleet; [`permissions`]: what each of its users may
//!   do there; [`access`]: the file that names all of it on a host.
//! - [`driver`]: a fleet as whoever carries out the runs of an experiment.
//! - `evidence`: what a fleet's run leaves, written; [`plimsoll_runner::fleet`] reads it. [`local`]: a private server and agents, to try it.
//!
//! An asynchronous runtime lives here and in no crate below: agents drive `plimsoll-runner` on threads of its own.
//!
//! # Where to change what
//!
//! - common start: `agent/gate.rs` and `coordinator.rs`; server liveness: `server_health.rs`
//! - agent selection: `coordinator/selection.rs`
//! - permissions: `permissions.rs`, subjects `broker.rs`, setup `setup.rs`, users `users.rs`,
//!   certificates `authority.rs`, `access.rs`; tests: `tests/isolation.rs`,
//!   `plimsoll/tests/fleet_secure.rs`; host templates: `contrib/fleet`
//! - acceptance of a plan by an agent: `order.rs` (signature, time, replay)
//! - storage system's counters: `coordinator/system.rs`

pub mod access;
pub mod agent;
mod authority;
pub mod broker;
pub mod card;
pub mod coordinator;
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
mod users;

use std::future::Future;

use plimsoll_runner::error::RunnerError;

/// Carries a future out on a runtime of its own, on the calling thread.
fn on_a_runtime<T>(work: impl Future<Output = Result<T, RunnerError>>) -> Result<T, RunnerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        RunnerError::environment(format!("cannot start an asynchronous runtime: {error}"))
            .hint("raise the limit of open files (ulimit -n)")
    })?;
    runtime.block_on(work)
}

/// Ends a task of the runtime when it is dropped.
struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
