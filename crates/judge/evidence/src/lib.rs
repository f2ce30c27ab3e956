//! The bundle: the directory that a run creates. This crate writes, reads, seals and merges
//! bundles, and defines the versions of their format. It stores measurements and does not judge
//! them.
//!
//! | file | module |
//! |---|---|
//! | `run.json` | [`run`] |
//! | `environment.json` | [`environment`] |
//! | `latency.hlog` | [`latency`] |
//! | `series.csv` | [`series`] |
//! | `observed.json` | [`observed`], with [`model_statistics`] if the system is a model |
//! | `SHA256SUMS` | [`seal`] |
//!
//! [`fleet`] contains the merged evidence of several hosts. It is stored in the directory that also
//! contains the bundles of the hosts. [`foreign`] contains the keys of imported results.
//! [`tool_result`] contains the results that another tool reported. [`cells`] reads tables that
//! people write. The [`ledger`] lists all runs in order of their start. Each entry contains the
//! hash of the previous entry, so that users cannot hide bad runs and publish only their best run.
//!
//! # Where to change what
//!
//! - observations in a bundle: `observed`; observations of the network: `observed/links.rs`;
//!   observations of replays: `observed/replay.rs`
//! - the seal: `seal.rs`; the position of a bundle in the ledger: `ledger/position.rs`; the
//!   ledger's last line: `ledger/head.rs`; cached parsing: `ledger/cached.rs`
//! - merged evidence of hosts: `fleet` (`fleet.json`, sums, histograms, common clock)
//! - keys of imported results: `foreign.rs`; directories outside the catalogue:
//!   `external_directories.rs`

#![deny(missing_docs)]

pub mod bundle;
pub mod cells;
pub mod durability;
pub mod environment;
pub mod error;
pub mod events;
pub mod external_directories;
pub mod fleet;
pub mod foreign;
pub mod latency;
pub mod ledger;
pub mod model_statistics;
pub mod observed;
pub mod reserve;
pub mod run;
pub mod seal;
pub mod series;
pub mod signature;
pub mod strict;
pub mod tool_result;

pub use bundle::{Bundle, BundleWriter, JOB};
pub use error::EvidenceError;
