//! Open handles of a target's directories or device. They stay open while a run uses the target.
//!
//! - `resolve`: opens a path that the operator stated.
//! - `handles`: the open directories, or the open device.
//! - `openat`: opens files, but only inside directories that Plimsoll has opened.

pub(crate) mod handles;
pub(crate) mod openat;
pub(crate) mod resolve;

use std::path::Path;

use plimsoll_sys::SysError;

pub use self::handles::HeldTarget;

/// If a file is missing, this device is opened in its place. Nothing is read from it.
pub(crate) const DEV_NULL: &str = "/dev/null";

pub(crate) fn sys_error(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}
