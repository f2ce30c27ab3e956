//! Schedule of a stream, and an iterator over its start times.

use super::{Exponential, Rate, Recording, SteadyArrivals, Warp};
use crate::address::{Indices, mix};

/// Determines the start times of a stream's operations. A rate applies to the whole stream, not to
/// each client.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Evenly spaced.
    Constant {
        /// Full rate.
        rate: Rate,
        /// How the rate changes over time.
        warp: Warp,
    },
    /// Exponential gaps.
    Poisson {
        /// Full rate.
        rate: Rate,
        /// How the rate changes over time.
        warp: Warp,
    },
    /// Operations start at times that were recorded earlier.
    Recorded(Recording),
}

impl Schedule {
    /// Returns the start times for one of `parts` clients or threads. If the starts are evenly
    /// spaced or recorded, the clients get them in rotation. A Poisson stream is divided into
    /// independent streams, each with a fraction of the rate. A `parts` of 0 is treated as 1.
    #[must_use]
    pub fn part(&self, part: u64, parts: u64, seed: u64) -> Arrivals {
        match self {
            Self::Constant { rate, warp } => {
                Arrivals::Constant { steady: SteadyArrivals::new(*rate, part, parts), warp: *warp }
            }
            Self::Poisson { rate, warp } => Arrivals::Poisson {
                process: Exponential::new(*rate, parts, mix(seed, part)),
                warp: *warp,
            },
            Self::Recorded(recording) => Arrivals::Recorded {
                recording: recording.clone(),
                indices: Indices::new(part, parts),
            },
        }
    }

    /// Returns the start times of the whole stream.
    #[must_use]
    pub fn whole(&self, seed: u64) -> Arrivals {
        self.part(0, 1, seed)
    }
}

/// Intended start times in nanoseconds since the start of the stream. They never decrease.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant {
        /// Start times of a process that always has the full rate.
        steady: SteadyArrivals,
        /// How the rate changes over time.
        warp: Warp,
    },
    /// Exponential gaps.
    Poisson {
        /// Start times of a process that always has the full rate.
        process: Exponential,
        /// How the rate changes over time.
        warp: Warp,
    },
    /// Operations start at recorded times. The stream ends after the last recorded time.
    Recorded {
        recording: Recording,
        /// Indices of this client's start times in the recording.
        indices: Indices,
    },
}

impl Iterator for Arrivals {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Constant { steady, warp } => Some(warp.time_ns(steady.next()?)),
            Self::Poisson { process, warp } => Some(warp.time_ns(process.next()?)),
            Self::Recorded { recording, indices } => recording.get(indices.take()),
        }
    }
}

#[cfg(test)]
mod tests;
