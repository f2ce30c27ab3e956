//! The simulation core: an event queue in integer nanoseconds, stations, I/O programs and the loop
//! that runs them. It knows nothing of storage; blocks and systems are built on it.

pub mod queue;
pub mod rng;

mod program;
mod sim;
mod station;

pub use program::{Program, StationId};
pub use sim::{Happening, Sim, Traced};
pub use station::{Order, StationStats};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
