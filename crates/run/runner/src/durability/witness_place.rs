//! Location of a witness: a directory on this host or on another host.

use std::fmt::{Display, Formatter};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_engine::durability::{LocalFiles, TargetPlace, WitnessFiles};

use super::remote_witness::RemoteFiles;
use crate::error::RunnerError;

/// Location of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessPlace {
    /// Directory of this host.
    Directory(PathBuf),
    /// Directory of another host, reached with `ssh HOST plimsoll`.
    Remote {
        /// Name or address, with a user if needed: `root@node4`.
        host: String,
        /// Directory on that host.
        directory: PathBuf,
    },
}

impl WitnessPlace {
    /// Parses `DIR` or `HOST:DIR`. As with scp, a colon after the first slash belongs to a directory.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((host, directory)) if !host.is_empty() && !host.contains('/') => {
                Self::Remote { host: host.to_owned(), directory: directory.into() }
            }
            _ => Self::Directory(text.into()),
        }
    }

    /// Returns the location of a file or directory inside this location.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self {
            Self::Directory(directory) => Self::Directory(directory.join(name)),
            Self::Remote { host, directory } => {
                Self::Remote { host: host.clone(), directory: directory.join(name) }
            }
        }
    }

    /// Creates the directory if it is missing, and opens it. Also returns whether the directory is
    /// new.
    ///
    /// # Errors
    /// The witness is on the target, its parent does not exist, or the other host does not answer.
    pub(super) fn open(
        &self,
        target: &TargetPlace,
    ) -> Result<(Arc<dyn WitnessFiles>, bool), RunnerError> {
        self.check(target)?;
        let opened: io::Result<(Arc<dyn WitnessFiles>, bool)> = match self {
            Self::Directory(directory) => {
                LocalFiles::create(directory).map(|(files, is_new)| (Arc::new(files) as _, is_new))
            }
            Self::Remote { host, directory } => {
                let opened = RemoteFiles::connect(host, directory)?;
                if let Ok((files, is_new)) = &opened
                    && let Some(path) = &files.local_path
                    && let Err(error) = Self::Directory(path.clone()).check(target)
                {
                    // If the empty directory cannot be removed, it does no harm.
                    let _ = is_new.then(|| files.remove_all());
                    return Err(error);
                }
                opened.map(|(files, is_new)| (Arc::new(files) as _, is_new))
            }
        };
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                RunnerError::environment(format!("cannot create {self}: {error}"))
                    .hint("free some space on the disk of the witness")
            }
            _ => self.not_created(&error),
        })
    }

    fn not_created(&self, error: &dyn Display) -> RunnerError {
        RunnerError::usage(format!("cannot create {self}: {error}"))
            .hint("specify a directory, not a file; its parent must exist")
    }

    /// Rejects a directory of this host that is a file or has no parent. Creates nothing.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(super) fn check_parent(&self) -> Result<(), RunnerError> {
        let Self::Directory(directory) = self else { return Ok(()) };
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        match (directory.metadata(), parent.unwrap_or(Path::new(".")).is_dir()) {
            (Ok(found), _) if !found.is_dir() => Err(self.not_created(&"it is not a directory")),
            (Err(_), false) => Err(self.not_created(&"its parent directory does not exist")),
            _ => Ok(()),
        }
    }

    /// Rejects a witness on the target: a cut would also disconnect the witness.
    ///
    /// # Errors
    /// The directory is on the file system or on the server under test.
    pub(super) fn check(&self, target: &TargetPlace) -> Result<(), RunnerError> {
        let (holder, is_on_target) = match (self, target) {
            (Self::Directory(witness), TargetPlace::Directory(target)) => {
                let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
                let existing = witness.ancestors().find(|path| path.exists());
                let own = device(existing.unwrap_or(Path::new(".")));
                let is_same = matches!((own, device(target)), (Ok(own), Ok(of)) if own == of);
                ("the file system", is_same)
            }
            (Self::Remote { host, .. }, TargetPlace::Nfs(url)) => {
                ("the server", is_host_of(host, url))
            }
            (Self::Remote { host, .. }, TargetPlace::S3(bucket)) => {
                ("the server", is_host_of(host, &bucket.endpoint))
            }
            _ => return Ok(()),
        };
        if !is_on_target {
            return Ok(());
        }
        let says = format!(
            "the witness {self} is on {holder} under test: a cut of the target would also \
                disconnect the witness"
        );
        Err(RunnerError::usage(says)
            .hint("specify a directory on another disk or host, with --witness or in the plan"))
    }
}

impl Display for WitnessPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "{}", directory.display()),
            Self::Remote { host, directory } => write!(f, "{host}:{}", directory.display()),
        }
    }
}

/// Returns true if the URL's host is `host`. A user name in `host` is ignored.
fn is_host_of(host: &str, url: &str) -> bool {
    let name = host.rsplit('@').next().unwrap_or(host);
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(':');
    authority.strip_prefix(name).is_some_and(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_before_the_first_slash_names_a_host() {
        for local in ["w", "/a:b", "./a:b", ":w", "a/b:c"] {
            let place = WitnessPlace::parse(local);
            assert_eq!(place, WitnessPlace::Directory(local.into()));
            assert_eq!(place.to_string(), local);
        }
        let remote = WitnessPlace::parse("root@node4:/var/w");
        assert!(matches!(&remote, WitnessPlace::Remote { host, .. } if host == "root@node4"));
        assert_eq!(remote.child("run").to_string(), "root@node4:/var/w/run");
    }

    #[test]
    fn the_server_under_test_may_not_have_the_witness() {
        for (host, url, is_same) in [
            ("server", "nfs://server/export", true),
            ("root@server", "nfs://server:2049/export", true),
            ("server", "nfs://server2/export", false),
            ("store", "https://store:9000", true),
            ("node4", "https://store:9000", false),
        ] {
            assert_eq!(is_host_of(host, url), is_same, "{host} {url}");
        }
    }
}
