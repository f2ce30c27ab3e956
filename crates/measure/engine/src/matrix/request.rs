//! Parameters of a new data set.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Target};

use crate::allow_list::AllowList;

/// Size of one transfer in a pass over the data.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// Parameters from which a new data set is created.
#[derive(Clone, Copy, Debug)]
pub struct DataSetRequest<'a> {
    /// Plan of the run. For a sweep, this is the plan with all points of the sweep, because these
    /// points share the data.
    pub plan: &'a ResolvedPlan,
    pub target: &'a Target,
    /// Matrix of the plan.
    pub matrix: &'a Matrix,
    /// State directory, in which the expected generations are stored.
    pub state_directory: &'a Path,
    pub data_id: u64,
    /// True if the run tracks the generation of each unit. All data can then be verified.
    pub follow: bool,
    /// Paths of the devices whose data the operator allows the run to overwrite.
    pub destroy: &'a [PathBuf],
    /// List of allowed targets. The target must be in this list; `None` allows any target.
    pub allowed: Option<&'a AllowList>,
}
