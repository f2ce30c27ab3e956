//! The bundle: the directory that a run leaves. Write, read, seal, merge, version. It holds what
//! was measured and has no opinion on it.
//!
//! | file | module |
//! |---|---|
//! | `run.json` | [`run`] |
//! | `environment.json` | [`environment`] |
//! | `latency.hlog` | [`latency`] |
//! | `series.csv` | [`series`] |
//! | `observed.json` | [`observed`], with [`inside`] where the system is a model |
//! | `SHA256SUMS` | [`seal`] |
//!
//! [`fleet`] holds what several hosts did together, beside the bundle of each. [`foreign`] says what is known of results that were made elsewhere; [`reported`] holds one as its tool reports it,
//! figure by figure; [`cells`] reads tables that people write.
//! Beside the bundles lies the [`ledger`]: every run in the order started, each entry holding the
//! hash of the one before, so that the best of N is seen as such.
//!
//! # Where to change what
//!
//! - observations in a bundle: `observed`, network in `observed/links.rs`, replays in
//!   `observed/replay.rs`
//! - the seal: `seal.rs`; a ledger position: `ledger/place.rs`, its last line `ledger/head.rs`,
//!   cached parsing `ledger/kept.rs`
//! - merged evidence of hosts: `fleet` (`fleet.json`, sums, histograms, common clock)
//! - bundles of foreign results: `foreign.rs`; directories of bundles: `elsewhere.rs`

pub mod bundle;
pub mod cells;
pub mod elsewhere;
pub mod environment;
pub mod error;
pub mod fleet;
pub mod foreign;
pub mod inside;
pub mod latency;
pub mod ledger;
pub mod observed;
pub mod reported;
pub mod reserve;
pub mod run;
pub mod seal;
pub mod series;
pub mod signature;
pub mod strict;

pub use bundle::{Bundle, BundleWriter, JOB};
pub use error::EvidenceError;
