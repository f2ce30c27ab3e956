//! The I/O matrix: streams of reads, writes and metadata operations. All clients of a stream behave
//! the same. This module generates the operations but does no I/O.
//!
//! | part | determines |
//! |---|---|
//! | [`StreamConfig`] | parameters of a stream |
//! | [`FileSet`] | the files of a stream, and the regions in them that operations access |
//! | [`Choice`] | the next of several alternatives, so that shares are exact and the order is random |
//! | [`Names`] | the small files that are created, renamed and removed |
//! | [`StreamPart`] | the operations of some of the stream's clients |
//! | [`Tracker`] | the content of writes, and whether reads return this content |
//! | [`Sampler`] | the same for a [`Sample`] of all blocks, in every run |
//!
//! A client's operations depend only on the seed and on its number, not on the distribution of
//! clients over threads. (The exception is a sequential stream with mixed sizes, whose clients
//! share one cursor.) A driver has one [`StreamPart`] for each stream and thread, and requests
//! operations from it. Each thread has one [`Tracker`]; all trackers share the
//! [`crate::stamp::Generations`] of all files.

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
