//! The operator of a host can restrict the targets of runs to the entries of an allow-list.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

pub use plimsoll_nfs::NfsUrl;

use rustix::fs::{AtFlags, statat};

use crate::EngineError;
use crate::open_target::handles::TargetDirectory;
use crate::open_target::openat::new_directory;
use crate::open_target::resolve::split;

/// Directories, devices and NFS exports that runs may use. The engine first opens a directory and
/// then checks it, so that the run uses exactly the directory that was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Resolved paths (without links) of the allowed directories. Their subdirectories are also
    /// allowed.
    pub directories: Vec<PathBuf>,
    /// Resolved paths (without links) of the allowed block devices.
    pub devices: Vec<PathBuf>,
    /// Allowed exports, with the options that calls to them must have. Subdirectories of an allowed
    /// export are also allowed.
    pub exports: Vec<NfsUrl>,
}

impl AllowList {
    /// Checks that the run may use a directory. `named` is the directory's path in the plan, and
    /// `real` is its resolved path.
    ///
    /// # Errors
    /// Fails if the directory is not inside an allowed directory.
    pub fn check_directory(&self, named: &str, real: &Path) -> Result<(), EngineError> {
        if self.directories.iter().any(|allowed| real.starts_with(allowed)) {
            return Ok(());
        }
        // The author of a plan must not learn where links point outside the allowed directories.
        Err(self.not_allowed(named))
    }

    fn not_allowed(&self, shown: &str) -> EngineError {
        EngineError::Config(match self.directories.is_empty() {
            true => format!("{shown} is not allowed: no --allow-path was given"),
            false => format!("{shown} is not in any --allow-path"),
        })
    }

    /// Checks that the run may use a directory of the plan. A missing directory is accepted if it
    /// would be inside an allowed directory. If `makes` is true, this function creates the missing
    /// directory.
    ///
    /// # Errors
    /// Fails if the directory is not inside an allowed directory, or if it can't be opened or
    /// created.
    pub fn admit_directory(&self, named: &str, makes: bool) -> Result<(), EngineError> {
        let path = Path::new(named);
        // The message does not reveal whether a path outside the allowed directories exists.
        let failed = |error: &io::Error| match self.is_within_without_links(path) {
            true => EngineError::Config(format!("{named}: {error}")),
            false => self.not_allowed(named),
        };
        match TargetDirectory::open(path) {
            Ok(open) => self.check_directory(named, &open.path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (above, name) = split(path).map_err(|_| failed(&error))?;
                let above = TargetDirectory::open(above).map_err(|_| failed(&error))?;
                self.check_directory(named, &above.path.join(name))?;
                // The new directory must be inside an allowed directory. If the name is a link to a
                // missing target, the name exists, so the check fails.
                let is_within = self.directories.iter().any(|d| above.path.starts_with(d));
                let is_missing = statat(&above.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_err();
                if !is_within || !is_missing {
                    return Err(failed(&error));
                }
                let make = || new_directory(above.fd.as_fd(), Path::new(name));
                if makes { make().map_err(|error| failed(&error)) } else { Ok(()) }
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Returns true if the path is inside an allowed directory. Links in the path are not resolved.
    fn is_named_within(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
        !climbs && self.directories.iter().any(|allowed| path.starts_with(allowed))
    }

    /// Returns true if the path is inside an allowed directory and contains no link. A link in an
    /// allowed directory may lead out of it, so an error behind the link would reveal which files
    /// exist there.
    fn is_within_without_links(&self, path: &Path) -> bool {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|of| of.is_symlink());
        let is_inside = |path: &&Path| self.directories.iter().any(|d| path.starts_with(d));
        self.is_named_within(path) && !path.ancestors().take_while(is_inside).any(is_link)
    }

    /// Checks that the run may use a device. `named` is the device's path in the plan, and `real`
    /// is the resolved path of its device node.
    ///
    /// # Errors
    /// Fails if the device is not allowed.
    pub fn check_device(&self, named: &Path, real: &Path) -> Result<(), EngineError> {
        if self.devices.iter().any(|allowed| real == allowed) {
            return Ok(());
        }
        let named = named.display();
        Err(EngineError::Config(format!(
            "{named} is not allowed: it is not listed in any --allow-device"
        )))
    }

    /// Checks that the run may use an export. Returns its address, with the port, user and group
    /// that the allow-list states. `uid` and `gid` come from the plan; they are 0 if the plan does
    /// not set them.
    ///
    /// # Errors
    /// Fails if the export is not allowed, or if its options differ from the options in the
    /// allow-list.
    pub fn export(&self, export: &str, uid: u32, gid: u32) -> Result<String, EngineError> {
        let requested =
            NfsUrl::parse(export).map_err(|error| EngineError::Config(error.to_string()))?;
        let mut differs = None;
        for allowed in self.exports.iter().filter(|allowed| is_below(&requested, allowed)) {
            match differing_option(&requested, (uid, gid), allowed) {
                None => return Ok(address(&requested, allowed)),
                Some(option) => differs = Some(option),
            }
        }
        Err(EngineError::Config(match differs {
            None => format!("{export} is not allowed: it is not listed in any --allow-nfs"),
            Some(option) => format!(
                "{export} is not allowed with this {option}: port, uid and gid must be the same as \
                 in --allow-nfs"
            ),
        }))
    }
}

/// Returns true if the requested export is `allowed`, or a subdirectory of `allowed` on the same
/// host.
fn is_below(requested: &NfsUrl, allowed: &NfsUrl) -> bool {
    let path = requested.export.trim_end_matches('/');
    let rest = path.strip_prefix(allowed.export.trim_end_matches('/'));
    requested.host.eq_ignore_ascii_case(&allowed.host)
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && path.split('/').all(|part| part != ".." && part != ".")
}

/// Returns the name of an option for which the plan and the allow-list set different values.
fn differing_option(
    requested: &NfsUrl,
    (uid, gid): (u32, u32),
    allowed: &NfsUrl,
) -> Option<&'static str> {
    let port =
        |requested: Option<u16>, allowed: Option<u16>| requested.is_some() && requested != allowed;
    let id = |requested: Option<u32>, plan: u32, allowed: Option<u32>| {
        let allowed = allowed.unwrap_or(0);
        requested.is_some_and(|id| id != allowed) || (plan != 0 && plan != allowed)
    };
    let options = [
        ("port", port(requested.nfs_port, allowed.nfs_port)),
        ("mountport", port(requested.mount_port, allowed.mount_port)),
        ("uid", id(requested.uid, uid, allowed.uid)),
        ("gid", id(requested.gid, gid, allowed.gid)),
    ];
    options.into_iter().find(|(_, differs)| *differs).map(|(name, _)| name)
}

/// Returns the address of the requested export. The options in this address are the options of the
/// allowed export.
fn address(requested: &NfsUrl, allowed: &NfsUrl) -> String {
    let host = match requested.host.contains(':') {
        true => format!("[{}]", requested.host),
        false => requested.host.clone(),
    };
    let port = |name, port: Option<u16>| port.map(|port| format!("{name}={port}"));
    let options = [
        port("nfsport", allowed.nfs_port),
        port("mountport", allowed.mount_port),
        Some(format!("uid={}", allowed.uid.unwrap_or(0))),
        Some(format!("gid={}", allowed.gid.unwrap_or(0))),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    format!("nfs://{host}{}?{}", requested.export, options.join("&"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn allowed(exports: &[&str]) -> AllowList {
        let exports = exports.iter().map(|export| NfsUrl::parse(export).unwrap()).collect();
        AllowList { exports, ..AllowList::default() }
    }

    #[test]
    fn an_export_is_matched_by_host_and_path_and_takes_its_options_from_the_list() {
        let list = allowed(&["nfs://filer/vol1?uid=1000&gid=100", "nfs://[::1]:2050/vol2/"]);
        let address = |export: &str| list.export(export, 0, 0).map_err(|error| error.to_string());
        let own = "nfs://filer/vol1/deep?uid=1000&gid=100";
        assert_eq!(address("nfs://filer/vol1/deep").as_deref(), Ok(own));
        assert_eq!(address("nfs://filer/vol1/deep?uid=1000").as_deref(), Ok(own));
        let by_port = "nfs://[::1]/vol2?nfsport=2050&uid=0&gid=0";
        assert_eq!(address("nfs://[::1]/vol2").as_deref(), Ok(by_port));
        assert_eq!(address("nfs://[::1]:2050/vol2").as_deref(), Ok(by_port));
        for outside in [
            "nfs://filer/vol10",
            "nfs://filer/vol1/../vol2",
            "nfs://filer/vol1/..?uid=1000",
            "nfs://filer/",
            "nfs://other/vol1",
        ] {
            assert!(address(outside).is_err(), "{outside}");
        }
        for (export, option) in [
            ("nfs://filer/vol1/deep?uid=0", "uid"),
            ("nfs://filer/vol1?gid=0", "gid"),
            ("nfs://filer:2049/vol1", "port"),
            ("nfs://filer/vol1/deep?nfsport=111", "port"),
            ("nfs://filer/vol1/deep?mountport=9", "mountport"),
        ] {
            let error = address(export).unwrap_err();
            assert!(error.contains(&format!("this {option}:")), "{export}: {error}");
        }
        assert!(list.export("nfs://filer/vol1", 7, 0).is_err(), "the plan's own uid counts too");
        assert!(list.export("nfs://filer/vol1", 1000, 100).is_ok());
    }
}
