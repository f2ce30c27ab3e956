//! What is known of a run while it goes on: its events, added up, for whoever looks.
//!
//! - [`state`]: the sums, a pure function of events, bounded whatever comes.
//! - [`told`]: a listener that keeps them.
//! - [`counters`]: them of a system that is served, which has counters and no phases.
//! - [`metrics`]: them as text for Prometheus.
//! - [`door`]: where they are asked for: a thread that answers over HTTP.
//! - [`feed`]: a door for each of a user's processes, and what is heard at those of others.

pub mod counters;
pub mod door;
pub mod feed;
pub mod gauges;
pub mod metrics;
pub mod state;
pub mod told;
