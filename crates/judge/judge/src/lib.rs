//! Judgement: statistics, steady state, audit rules, checks, claims, verdict and comparison.
//!
//! This crate consists of pure functions of the evidence. It does no I/O, reads no clock and
//! generates no random numbers except from seeds that callers pass. The same evidence therefore
//! yields the same verdict, byte for byte, on any machine and at any later time.
//!
//! # Where to change what
//!
//! - a rule: a file in `rules`, its module and line in `rules.rs`, and a new `RULES_VERSION`
//!   (`verdict.rs`). Its tests modify the evidence of `rules/fixtures.rs`
//! - a rule over several runs: `rules/experiment`, called by `experiment::summarise` and for each
//!   side of a comparison
//! - a rule about the figures of another tool's result: `conservation/rules` and its line in
//!   `rules.rs`; a rule about a whole study: `conservation/study` and `study.rs`; repeats and their
//!   spread: `conservation/repeats.rs`
//! - a limit's check: `checks.rs`
//! - network use: `links.rs`, the load's bytes: `rules/balance/wire.rs`
//! - sweeps: `sweep.rs`; two sweeps: `compare/cells.rs`
//! - fleets: `fleet.rs`, slow hosts `fleet/slow.rs` and `fleet/link.rs`, mounts and interfaces
//!   `fleet/network.rs`, storage counters `fleet/system.rs`; comparison of fleets:
//!   `compare/fleets.rs`
//! - a comparison: figures in `metrics.rs`, conditions in `compare/conditions.rs`, doubtful runs in
//!   `compare/doubt.rs`, the decision in `compare/decide.rs`, causes in `compare/explanation.rs`
//! - a search's conclusion: `tuning.rs`, order of loads `stats/tune`
//! - users that a quickstart sustains: `mailbox_capacity.rs`
//! - stages: `stages.rs`; replays: `rules/replay`; contradictory evidence:
//!   `rules/evidence_consistent`

// Only other crates of this workspace use this crate. Most items have no documentation except their
// names and types.

mod capacity_use;
pub mod checks;
pub mod claim;
pub mod compare;
pub mod conservation;
pub mod durability;
pub mod events;
pub mod experiment;
pub mod figures;
pub mod finding;
pub mod fleet;
mod hidden_latency;
pub mod judge;
mod links;
pub mod location;
pub mod mailbox_capacity;
pub mod metrics;
pub mod model_figures;
pub mod rules;
pub mod stages;
pub mod stats;
pub mod steady;
pub mod sweep;
pub mod tail;
pub mod tuning;
pub mod verdict;
mod words;

pub use judge::{judge, judge_host};
pub use verdict::{Verdict, VerdictKind};
