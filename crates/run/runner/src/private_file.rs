//! Access rights of files with keys and tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::RunnerError;

/// Access rights that are not allowed on a secret file: any right for other users, and write
/// permission for the group.
const FORBIDDEN: u32 = 0o027;

/// Rejects a key or token file that other users of this host can read or change.
///
/// # Errors
/// Other users can read or change the file. If it does not exist, the caller reports this.
pub fn check(path: &Path) -> Result<(), RunnerError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    // A pipe (`--sign <(pass show key)`) has the rights of its creator.
    if !metadata.is_file() || metadata.permissions().mode() & FORBIDDEN == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(RunnerError::usage(format!(
        "cannot use {path}: other users of this host can read or change it"
    ))
    .hint(format!("chmod 600 {path}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_rejected() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("key");
        fs::write(&path, "secret").unwrap();
        for (mode, is_private) in [
            (0o600, true),
            (0o400, true),
            (0o640, true),
            (0o644, false),
            (0o660, false),
            (0o601, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&path).is_ok(), is_private, "{mode:o}");
        }
        assert!(check(&root.path().join("missing")).is_ok());
    }
}
