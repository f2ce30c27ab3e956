//! Runs a plan and writes a bundle. A run is a library call; no code here prints or uses a
//! terminal.
//!
//! - [`run`]: a run on its own thread, with typed events and a way to stop it.
//! - [`run_request`]: requests for runs. [`session`]: one run, from the lock on its target to its
//!   verdict. [`finished_run`]: its result. [`listener`]: listeners of its progress. [`model_run`]:
//!   runs on models.
//! - [`repeat`]: repeats of a plan. [`arms`]: alternating targets. [`search`]: searches for the
//!   load line. [`sweep`]: points of a sweep. [`stages`]: stages of a job. [`compare`]: comparisons
//!   of finished runs.
//! - [`observe`]: observes the command of another tool. [`audit`]: judges results of other tools.
//! - [`durability`]: tests that cut a target off and then verify its acknowledged writes.
//! - [`driver`]: drivers for this host. [`fleet`]: reads the bundle of a fleet's run.
//! - [`data_slot`]: data shared between runs. [`experiment`]: directories of related runs.
//! - [`custody`]: checks and judges evidence when it is read. [`verify`]: verifies stored data and
//!   evidence. [`ledger`]: signed statements about the ledger. [`render`]: report pages and JSON.
//! - [`trace`]: traces to replay.
//! - [`preflight`]: checks and estimates before a run. [`allow`]: targets that an operator allows.
//! - [`places`]: directories of Plimsoll's own files. [`bundle_location`]: directory of a bundle.
//! - [`error`], [`exit`]: errors and exit codes.
//!
//! # Where to change what
//!
//! - checks and estimates before a run: `preflight.rs`
//! - evidence checks of every reading command: `custody/reader.rs`
//! - a run's events: `run.rs` (`examples/events.rs` prints them), `listener.rs`
//! - a sweep: `sweep.rs`; search: `search.rs`; stages: `stages.rs`; traces: `trace.rs`
//! - `observe`: `observe/command.rs` (process), `result.rs` (its output), `evidence.rs` (bundle),
//!   `detection.rs` (results named on the command line)
//! - findings of `verify`, `ledger` and `audit`: `verify.rs`, `ledger.rs`, `audit.rs`
//! - execution of an experiment's runs: `run_request.rs` (`Driver`), `driver.rs` (this host),
//!   `run/fleet/src/driver.rs`
//! - allowed targets of requests: `allow.rs`; reading of fleet runs: `fleet`

pub mod allow;
pub mod arms;
pub mod audit;
pub mod bundle_location;
pub mod ceilings;
pub mod compare;
pub mod custody;
pub mod data_slot;
pub mod driver;
pub mod durability;
pub mod error;
pub mod events;
pub mod exit;
pub mod experiment;
pub mod finished_run;
pub mod fleet;
pub mod kubernetes;
pub mod ledger;
pub mod listener;
pub mod model_run;
pub mod observe;
pub mod places;
pub mod preflight;
pub mod private_file;
pub mod prompt;
pub mod render;
pub mod repeat;
pub mod run;
pub mod run_id;
pub mod run_request;
pub mod search;
pub mod session;
pub mod stages;
pub mod sweep;
pub mod trace;
pub mod until_steady;
pub mod verify;
