//! Plans: what must be carried, by what, with which I/O. Units, the plan as written with errors
//! that name line and field, fio job import, and the resolved plan with its hash. No I/O on a
//! target happens here.

mod error;
mod plan;
mod raw;
mod read;
mod resolve;
mod resolved;
mod units;

pub use error::{PlanError, PlanErrors};
pub use plan::Plan;
pub use resolve::JobText;
pub use resolved::*;
pub use units::{BytesPerS, DurationNs, OpsPerS, Percent, Share, SizeBytes, UnitError};
