//! Directories and device of a target, kept open while a run uses them.
//!
//! - `follow`: opens a path that the operator named.
//! - `held`: the open directories and the device.
//! - `beneath`: opens files, restricted to Plimsoll's open directories.

pub(crate) mod beneath;
pub(crate) mod follow;
pub(crate) mod held;

use std::path::Path;

use plimsoll_sys::SysError;

pub use self::held::HeldTarget;

/// File to open in place of a missing one. Nothing is read from it.
pub(crate) const NOTHING: &str = "/dev/null";

pub(crate) fn sys(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}
