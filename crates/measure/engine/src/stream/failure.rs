//! Converts a failed operation to an error that contains the path and the offset.

use std::path::PathBuf;

use plimsoll_sys::op::OpKind;

use super::source::Op;
use crate::EngineError;

/// Returns the error for an operation with this `result`. If `result` differs from the transfer
/// that `op` requested, the transfer failed. Otherwise, the transferred content failed its check.
#[must_use]
pub fn describe(path: PathBuf, op: &Op, result: Result<u32, i32>) -> EngineError {
    let (offset_bytes, size_bytes) = (op.offset_bytes, op.size_bytes);
    let doing = match op.kind {
        OpKind::Read => "reading",
        OpKind::Write | OpKind::WriteDurable => "writing",
        OpKind::Flush | OpKind::Sync | OpKind::Nop => "flushing",
    };
    match result {
        Err(errno) => EngineError::Transfer { doing, path, offset_bytes, errno },
        Ok(moved_bytes) if moved_bytes < size_bytes => {
            EngineError::Short { doing, path, offset_bytes, size_bytes, moved_bytes }
        }
        Ok(_) => EngineError::Content { path, offset_bytes, size_bytes },
    }
}
