//! Observes the underlying system: block devices, page cache, CPU and host. This crate only reads
//! values and counts events; it does not judge them. A value that it cannot read is reported as
//! unknown, never as zero.
//!
//! # Where to change what
//!
//! - to add an observation, add one file for its source, and call it from `observer.rs`.
//!   `judge/evidence/src/observed` defines the format of the observation in a bundle.
//! - network interfaces and TCP: `links.rs`

pub mod access_profile;
pub mod command;
pub mod completion;
pub mod cpu;
pub mod device;
pub mod environment;
pub mod files;
pub mod host;
pub mod interposition;
pub mod kernel;
pub mod kernel_log;
pub mod limits;
pub mod links;
mod local;
pub mod mapped_files;
pub mod metrics;
pub mod mount;
mod namespace;
pub mod neighbours;
pub mod network;
pub mod observer;
pub mod outside_devices;
mod pause_detector;
pub mod process;
pub mod raid;
pub mod servers;
pub mod stack;
pub mod sysfs;
pub mod workload;

pub use access_profile::{AccessProfiler, LiveAccess};
pub use observer::{Observer, TargetFacts};
