//! When operations start: intended start times in whole nanoseconds from the beginning of a stream.
//!
//! [`Arrivals`] is an endless (or, recorded, finite) iterator. What it gives never depends on when it is
//! asked, so a driver that falls behind knows by how much. [`Schedule::part`] divides a stream among
//! clients or threads, whose starts together are those of the whole ([`MergedArrivals`] puts them back
//! together).

mod exponential;
mod merge;
mod rate;
mod recorded;
mod schedule;
mod steady;
mod warp;

pub use exponential::Exponential;
pub use merge::MergedArrivals;
pub use rate::{Rate, RateError};
pub use recorded::{RecordedError, Recording};
pub use schedule::{Arrivals, Schedule};
pub use steady::SteadyArrivals;
pub use warp::Warp;
