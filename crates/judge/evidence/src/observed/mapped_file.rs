//! Executable files that a process has mapped.

use serde::{Deserialize, Serialize};

/// A mapped executable file: the program itself or a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// Path of the file, as the kernel shows it.
    pub path: String,
    /// Reason why the file is suspicious, namely why it is not a file of the distribution. `None`
    /// for the program itself and for the distribution's libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}
