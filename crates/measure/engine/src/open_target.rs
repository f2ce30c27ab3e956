//! The open directories or the open device of a target. They stay open while a run uses them.
//!
//! - `resolve`: opens a path that the operator gave.
//! - `handles`: the open directories and the device.
//! - `openat`: opens files, restricted to Plimsoll's open directories.

pub(crate) mod handles;
pub(crate) mod openat;
pub(crate) mod resolve;

use std::path::Path;

use plimsoll_sys::SysError;

pub use self::handles::HeldTarget;

/// This device is opened in place of a missing file. Nothing is read from it.
pub(crate) const DEV_NULL: &str = "/dev/null";

pub(crate) fn sys_error(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}
