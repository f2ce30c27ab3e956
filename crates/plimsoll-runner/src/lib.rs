//! Carries a plan out and leaves a bundle: a run is a library call. Nothing here prints or knows a terminal.
//!
//! - [`run`]: a run as a thread that tells typed events and can be asked to stop.
//! - [`live`]: what is known of a run under way, and where it is asked for.
//! - [`asked`]: what is to be run; [`session`]: one run from its lock to its verdict; [`finished`]: what it came to;
//!   [`listener`]: who is told meanwhile; [`modelled`]: runs on models.
//! - [`parameters`], [`sizing`], [`fitting`]: what a model is, what it says of sizes, and what is fitted of it.
//! - [`repeat`]: a plan's runs, as often as it says; [`arms`]: its targets in turns; [`search`]: its load line;
//!   [`sweep`]: its points; [`stages`]: those of a job, one after the other; [`compare`]: what was run, side by side.
//! - [`observe`]: the command of another tool, watched; [`audit`]: results made elsewhere, judged.
//! - [`driver`]: who carries runs out, this host or several; [`fleet`]: what several hosts did together, read back.
//! - [`kept_data`]: what a run leaves for the next; [`experiment`]: runs that belong together.
//! - [`custody`]: how evidence is read and judged; [`verify`]: what was left, held against what should be there;
//!   [`ledger`]: its signed statements; [`render`]: the forms that a bundle keeps it in.
//! - [`trace`]: traces that are replayed, read for a plan and for its run.
//! - [`before`]: what a run will take, said before it begins; [`allow`]: what an operator lets others run plans on.
//! - [`places`]: where Plimsoll keeps its own files; [`evidence_place`]: where a bundle goes.
//! - [`error`], [`exit`]: what went wrong, and what scripts act on.
//!
//! # Where to change what
//!
//! - checks and estimates before a run: `before.rs`
//! - evidence checks of every reading command: `custody/reader.rs`
//! - a run's events: `run.rs` (`examples/live.rs` prints them), `listener.rs`
//! - live view: `live`: totals `live/state.rs`, metrics `live/metrics.rs`, HTTP `live/door.rs`, other processes
//!   `live/feed.rs`
//! - a sweep: `sweep.rs`; search: `search.rs`; stages: `stages.rs`; traces: `trace.rs`
//! - `observe`: `observe/command.rs` (process), `result.rs` (its output), `evidence.rs` (bundle),
//!   `found.rs` (targets and results named on the command line)
//! - findings of `verify`, `ledger` and `audit`: `verify.rs`, `ledger.rs`, `audit.rs`
//! - model commands: `parameters.rs`, `sizing.rs`, `fitting.rs`
//! - who executes an experiment's runs: `asked.rs` (`Driver`), `driver.rs` (this host),
//!   `plimsoll-fleet/src/driver.rs`
//! - allowed targets of requests: `allow.rs`; fleet runs read back: `fleet`

pub mod allow;
pub mod arms;
pub mod asked;
pub mod audit;
pub mod before;
pub mod ceilings;
pub mod compare;
pub mod custody;
pub mod driver;
pub mod error;
pub mod evidence_place;
pub mod exit;
pub mod experiment;
pub mod finished;
pub mod fitting;
pub mod fleet;
pub mod kept_data;
pub mod ledger;
pub mod listener;
pub mod live;
pub mod modelled;
pub mod observe;
pub mod parameters;
pub mod places;
pub mod render;
pub mod repeat;
pub mod run;
pub mod run_id;
pub mod search;
pub mod session;
pub mod sizing;
pub mod stages;
pub mod sweep;
pub mod trace;
pub mod until_steady;
pub mod verify;
