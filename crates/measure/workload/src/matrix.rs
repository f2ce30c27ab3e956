//! The I/O matrix: streams of reads, writes and metadata operations. All clients of a stream have
//! the same mix of operations. This module generates the operations. It does no I/O.
//!
//! | part | what it determines |
//! |---|---|
//! | [`StreamConfig`] | the parameters of a stream |
//! | [`FileSet`] | the files of a stream, and the regions of the files that operations access |
//! | [`Choice`] | which of several alternatives is next; the shares are exact and the order is random |
//! | [`Names`] | which small files are created, renamed and removed |
//! | [`StreamPart`] | the operations of those clients that one thread drives |
//! | [`Tracker`] | the content of all writes, and whether reads return this content |
//! | [`Sampler`] | the content of the writes in a [`Sample`] of the blocks, and whether reads return it; used in every run |
//!
//! The operations of a client depend only on the seed and on the client's number, not on the
//! distribution of clients over threads. (There is one exception: the clients of a sequential
//! stream with several transfer sizes share one cursor.) A driver has one [`StreamPart`] for each
//! stream and thread, from which it gets operations. Each thread has one [`Tracker`]. All trackers
//! share the [`crate::stamp::Generations`] of all files.

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
