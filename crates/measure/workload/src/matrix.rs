//! The I/O matrix: streams of reads, writes and metadata operations of equal clients. This module
//! generates the operations but does no I/O.
//!
//! | part | decides |
//! |---|---|
//! | [`StreamConfig`] | parameters of a stream |
//! | [`FileSet`] | which regions of which files it works on |
//! | [`Choice`] | which of several things comes next, so that shares are exact and the order is random |
//! | [`Names`] | which small files are created, renamed and removed |
//! | [`StreamPart`] | the operations of some of the stream's clients |
//! | [`Tracker`] | the content of writes, and the check of reads against it |
//! | [`Sampler`] | the same of a [`Sample`] of all blocks, in every run |
//!
//! A client's operations depend only on the seed and on its number, not on the distribution of
//! clients over threads. (Sequential streams that mix sizes and share one cursor are the
//! exception.) A driver has one [`StreamPart`] for each stream and thread, and requests operations
//! from it. Each thread has one [`Tracker`]; all trackers share the [`crate::stamp::Generations`]
//! of all files.

mod choice;
mod config;
mod files;
mod in_flight;
mod metadata;
mod names;
mod op;
mod part;
mod recorded;
mod sample;
mod tracker;

pub use choice::Choice;
pub use config::{MatrixError, StreamConfig};
pub use files::FileSet;
pub use in_flight::InFlight;
pub use names::{NameChange, Names, name_text};
pub use op::{Class, LatencyEnd, Op, OpKind, classes};
pub use part::StreamPart;
pub use plimsoll_sys::names::MetadataKind;
pub use recorded::stream_classes;
pub use sample::{Sample, SampleCounts, Sampler};
pub use tracker::Tracker;
