//! Executable files that a process has mapped.

use serde::{Deserialize, Serialize};

/// An executable file that a process has mapped: its program, or a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// Path as the kernel shows it.
    pub path: String,
    /// Why it is not the distribution's; `None` for the program, and for the distribution's libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}
