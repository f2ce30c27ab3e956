//! The simulation core: an event queue in integer nanoseconds, stations, I/O programs and the loop
//! that runs them. The core contains nothing about storage; blocks and systems use it.

pub mod hdd;
pub mod queue;
pub mod rng;

mod places;
mod program;
mod serve;
mod sim;
mod station;
mod trace;
mod window;

pub(crate) use places::Places;
pub use program::{Program, StationId};
pub use sim::{Happening, Sim};
pub use station::{Order, StationStats};
pub use trace::TracedTime;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
