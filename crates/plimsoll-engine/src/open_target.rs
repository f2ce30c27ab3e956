//! A target's directories and its device, held open for as long as a run uses them.
//!
//! - `follow`: opens a path that the operator named.
//! - `held`: the open directories and the device.
//! - `beneath`: opens files in an open directory of ours, and nothing outside it.

pub(crate) mod beneath;
pub(crate) mod follow;
pub(crate) mod held;

use std::path::Path;

use plimsoll_sys::SysError;

pub use self::held::HeldTarget;

/// Opened in place of a missing file; nothing is read from it.
pub(crate) const NOTHING: &str = "/dev/null";

pub(crate) fn sys(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}
