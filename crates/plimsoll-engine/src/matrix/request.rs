//! What a data set is made from, and in which pieces.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Target};

use crate::allowed::AllowedPlaces;

/// Bytes of one transfer.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// What a data set is made from.
#[derive(Clone, Copy, Debug)]
pub struct HomeRequest<'a> {
    /// The plan. With a sweep, the whole of it: its points share the data.
    pub plan: &'a ResolvedPlan,
    /// The target.
    pub target: &'a Target,
    /// The plan's matrix.
    pub matrix: &'a Matrix,
    /// Directory in which what the data should hold is kept.
    pub state_directory: &'a Path,
    /// The data set's number.
    pub data_id: u64,
    /// Whether what each unit holds is followed, so that it can be checked.
    pub follow: bool,
    /// Devices that may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Places that the target must be in; `None` if it may be anywhere.
    pub allowed: Option<&'a AllowedPlaces>,
}
