//! Robust statistics: steady state, comparison, and confidence intervals that account for
//! autocorrelation.
//!
//! Pure functions of numbers. No function here reads a clock, a file or a random device; callers
//! pass seeds. If the data does not support a figure, the function returns a [`Refusal`] with the
//! reason.

pub mod autocorrelation;
pub mod batch;
pub mod bootstrap;
pub mod change;
pub mod exceedance;
pub mod interval;
pub mod knee;
pub mod little;
pub mod moments;
pub mod omission;
pub mod percentile;
pub mod repeats;
pub mod snia;
pub mod special;
pub mod steady_state;
pub mod student;
pub mod tune;
pub mod warm_up;
pub mod welch;

pub use autocorrelation::{Persistence, autocorrelation, effective_sample};
pub use batch::{
    Parts, batch_means, batch_means_at, ratio_of_totals, ten_batch_means, ten_batch_ratios,
};
pub use bootstrap::block_bootstrap;
pub use change::{Segment, segments};
pub use exceedance::{Span, effective_sample_beyond};
pub use interval::{Interval, Refusal};
pub use little::{Little, little};
pub use moments::Moments;
pub use percentile::{percentile_gate, quantile_ranks};
pub use repeats::{Repeats, repeats};
pub use steady_state::{Progress, SteadyStateDetector};
pub use warm_up::settled_from;
pub use welch::{Comparison, compare_at};
