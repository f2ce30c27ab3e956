//! Error of a system call: the call, its file and the `errno`.

use std::path::{Path, PathBuf};

/// Failed system call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}{}: {}", on(.path), describe(*.errno))]
pub struct SysError {
    /// Name of the call, such as `open` or `io_uring_setup`.
    pub call: &'static str,
    /// File of the call; `None` if it has no file.
    pub path: Option<PathBuf>,
    /// Positive `errno`.
    pub errno: i32,
}

impl SysError {
    /// Creates an error with the name of the call and a known `errno`.
    #[must_use]
    pub fn new(call: &'static str, errno: i32) -> Self {
        Self { call, path: None, errno }
    }

    /// Creates an error with the `errno` of the calling thread's last failed system call.
    #[must_use]
    pub fn last(call: &'static str) -> Self {
        Self::from_io(call, &std::io::Error::last_os_error())
    }

    /// Converts an [`std::io::Error`]. If it has no `errno`, the result has `EIO`.
    #[must_use]
    pub fn from_io(call: &'static str, error: &std::io::Error) -> Self {
        Self::new(call, error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Adds the file.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_path_buf());
        self
    }
}

fn on(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!(" of {}", path.display())).unwrap_or_default()
}

/// Returns the system's text for a positive `errno`, followed by the number.
#[must_use]
pub fn describe(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_call_path_and_reason() {
        let error = SysError::new("open", libc::ENOSPC).at(Path::new("/mnt/db1/a.edb"));
        let text = error.to_string();
        assert!(text.starts_with("open of /mnt/db1/a.edb: No space left on device"), "{text}");
    }
}
