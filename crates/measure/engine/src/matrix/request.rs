//! Parameters of a new data set.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Target};

use crate::allow_list::AllowList;

/// Size of one transfer.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// Parameters of a new data set.
#[derive(Clone, Copy, Debug)]
pub struct DataSetRequest<'a> {
    /// Plan. For a sweep, this is the whole plan, because the points of the sweep share the data.
    pub plan: &'a ResolvedPlan,
    pub target: &'a Target,
    /// Matrix of the plan.
    pub matrix: &'a Matrix,
    /// State directory, which stores the expected generations.
    pub state_directory: &'a Path,
    pub data_id: u64,
    /// True if the run tracks the generation of each unit, so that all data can be verified.
    pub follow: bool,
    /// Devices that may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Allow-list that must contain the target; `None` if any target is allowed.
    pub allowed: Option<&'a AllowList>,
}
