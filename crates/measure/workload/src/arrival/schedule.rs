//! Schedule of a stream, and the iterator over its start times.

use super::{Exponential, Rate, Recording, SteadyArrivals, Warp};
use crate::address::{Indices, mix};

/// Start times of a stream's operations. A rate applies to the whole stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Evenly spaced.
    Constant {
        /// Full rate.
        rate: Rate,
        /// Change of the rate over time.
        warp: Warp,
    },
    /// Exponential gaps.
    Poisson {
        /// Full rate.
        rate: Rate,
        /// Change of the rate over time.
        warp: Warp,
    },
    /// Operations start at recorded times.
    Recorded(Recording),
}

impl Schedule {
    /// Returns the start times of one of `parts` clients or threads. For evenly spaced and recorded
    /// streams, the starts are distributed in rotation. A Poisson stream is divided into
    /// independent streams with a fraction of the rate. 0 parts count as 1.
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

/// Intended start times in nanoseconds from the beginning of the stream, never decreasing.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant {
        /// Start times of the process at the full rate.
        steady: SteadyArrivals,
        /// Change of the rate over time.
        warp: Warp,
    },
    /// Exponential gaps.
    Poisson {
        /// Start times of the process at the full rate.
        process: Exponential,
        /// Change of the rate over time.
        warp: Warp,
    },
    /// Operations start at recorded times. The stream ends after the last of them.
    Recorded {
        recording: Recording,
        /// Indices, in the recording, of the start times of this client.
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
