//! Intended start times of operations. They are whole nanoseconds since the start of a stream.
//!
//! [`Arrivals`] is an iterator. It is endless, except for recorded arrivals. Its values do not
//! depend on when it is called, so a driver that falls behind can measure its lag.
//! [`Schedule::part`] divides a stream among clients or threads.

mod exponential;
mod rate;
mod recorded;
mod schedule;
mod steady;
mod warp;

pub use exponential::Exponential;
pub use rate::{Rate, RateError};
pub use recorded::{RecordedError, Recording};
pub use schedule::{Arrivals, Schedule};
pub use steady::SteadyArrivals;
pub use warp::Warp;
