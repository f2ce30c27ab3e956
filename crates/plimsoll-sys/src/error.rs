//! What a failed system call says: which call, on what, with which `errno`.

use std::path::{Path, PathBuf};

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}{}: {}", on(.path), describe(*.errno))]
pub struct SysError {
    /// The call, such as `open` or `io_uring_setup`.
    pub call: &'static str,
    /// The file it was about, where there is one.
    pub path: Option<PathBuf>,
    /// The positive `errno`.
    pub errno: i32,
}

impl SysError {
    /// An error of `call` with a known `errno`.
    #[must_use]
    pub fn new(call: &'static str, errno: i32) -> Self {
        Self { call, path: None, errno }
    }

    /// The error that the calling thread's last failed system call left.
    #[must_use]
    pub fn last(call: &'static str) -> Self {
        Self::from_io(call, &std::io::Error::last_os_error())
    }

    /// The error in an [`std::io::Error`]; `EIO` where it carries no `errno`.
    #[must_use]
    pub fn from_io(call: &'static str, error: &std::io::Error) -> Self {
        Self::new(call, error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The same error, about `path`.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_path_buf());
        self
    }
}

fn on(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!(" of {}", path.display())).unwrap_or_default()
}

/// The system's text for a positive `errno`, with its number.
#[must_use]
pub fn describe(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_call_path_and_reason() {
        let error = SysError::new("open", libc::ENOSPC).at(Path::new("/mnt/db1/a.edb"));
        let text = error.to_string();
        assert!(text.starts_with("open of /mnt/db1/a.edb: No space left on device"), "{text}");
    }
}
