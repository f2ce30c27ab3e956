//! What an agent's operator allows plans to be run on. Without it every write is refused.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_plan::{Arrival, ResolvedPlan, TargetKind};
use plimsoll_runner::error::RunnerError;

/// What is allowed, every path without links in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    paths: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    exports: Vec<String>,
}

impl Allow {
    /// Directories below which, devices on which, and exports below which plans may work.
    ///
    /// # Errors
    /// A directory or device that is not there.
    pub fn new(
        paths: &[PathBuf],
        devices: &[PathBuf],
        exports: &[String],
    ) -> Result<Self, RunnerError> {
        let real = |option: &str, path: &PathBuf| {
            path.canonicalize().map_err(|error| {
                RunnerError::usage(format!("{option} {}: {error}", path.display()))
            })
        };
        let all = |option: &str, given: &[PathBuf]| {
            given.iter().map(|path| real(option, path)).collect::<Result<Vec<_>, _>>()
        };
        let (paths, devices) = (all("--allow-path", paths)?, all("--allow-device", devices)?);
        if let Some(file) = paths.iter().find(|path| !path.is_dir()) {
            let says = format!("--allow-path {}: it is no directory", file.display());
            return Err(RunnerError::usage(says));
        }
        if let Some(export) = exports.iter().find(|export| !export.starts_with("nfs://")) {
            let says = format!("--allow-nfs {export}: it is no export");
            return Err(RunnerError::usage(says).hint("write nfs://host/export"));
        }
        let exports = exports.iter().map(|export| export.trim_end_matches('/').to_owned());
        Ok(Self { paths, devices, exports: exports.collect() })
    }

    /// In words, for the agent's card.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let paths = self.paths.iter().map(|path| format!("path {}", path.display()));
        let devices = self.devices.iter().map(|path| format!("device {}", path.display()));
        let exports = self.exports.iter().map(|export| format!("nfs {export}"));
        paths.chain(devices).chain(exports).collect()
    }

    /// Whether a plan stays within what is allowed, and asks for what an agent can do.
    ///
    /// # Errors
    /// A sentence that says what does not.
    pub fn check(&self, plan: &ResolvedPlan) -> Result<(), String> {
        let [target] = &plan.targets[..] else {
            return Err("the plan names several targets: a fleet runs one".to_owned());
        };
        if !plan.observe.metrics.is_empty() {
            return Err("[observe.metrics] would have this host ask other servers".to_owned());
        }
        if let Some(file) = files_read(plan).next() {
            return Err(format!("the plan reads {file}, which a fleet does not carry"));
        }
        match &target.kind {
            TargetKind::Null => Ok(()),
            TargetKind::Path { path } => self.path(path),
            TargetKind::Directories { databases, logs } => {
                databases.iter().chain(logs).try_for_each(|path| self.path(path))
            }
            TargetKind::Device { device } => self.device(device),
            TargetKind::Nfs { exports, .. } => exports.iter().try_for_each(|e| self.export(e)),
            TargetKind::S3 { .. } => Err("a fleet does not drive S3 yet".to_owned()),
            TargetKind::Model { .. } => Err("a fleet does not drive models".to_owned()),
        }
    }

    /// The directory that a plan names, its links followed.
    fn path(&self, path: &str) -> Result<(), String> {
        let found = Path::new(path);
        let real = found.canonicalize().or_else(|error| self.make(found).ok_or(error));
        let real = real.map_err(|error| format!("{path}: {error}"))?;
        if self.paths.iter().any(|allowed| real.starts_with(allowed)) {
            return Ok(());
        }
        let shown =
            if real == found { path.to_owned() } else { format!("{path} ({})", real.display()) };
        Err(match self.paths.is_empty() {
            true => format!("{shown} is not allowed: this agent was started without --allow-path"),
            false => format!("{shown} lies outside of every --allow-path of this agent"),
        })
    }

    /// Makes a directory that is missing in one that is allowed, as a host's own may be.
    fn make(&self, path: &Path) -> Option<PathBuf> {
        let parent = path.parent()?.canonicalize().ok()?;
        let real = parent.join(path.file_name()?);
        let is_allowed = self.paths.iter().any(|allowed| parent.starts_with(allowed));
        (is_allowed && fs::create_dir(&real).is_ok()).then_some(real)
    }

    fn device(&self, device: &str) -> Result<(), String> {
        let real =
            Path::new(device).canonicalize().map_err(|error| format!("{device}: {error}"))?;
        match self.devices.contains(&real) {
            true => Ok(()),
            false => {
                Err(format!("{device} is not allowed: no --allow-device of this agent names it"))
            }
        }
    }

    fn export(&self, export: &str) -> Result<(), String> {
        let is_below = |allowed: &String| {
            let rest = export.strip_prefix(allowed.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let climbs = export.split('/').any(|part| part == "..");
        match self.exports.iter().any(is_below) && !climbs {
            true => Ok(()),
            false => Err(format!("{export} is not allowed: no --allow-nfs of this agent names it")),
        }
    }
}

/// Files that a plan's arrivals are read from.
fn files_read(plan: &ResolvedPlan) -> impl Iterator<Item = &str> {
    let streams = plan.workload.matrix().into_iter().flat_map(|matrix| &matrix.streams);
    streams.filter_map(|stream| match &stream.arrival {
        Arrival::Recorded { file } => Some(file.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_plan::Plan;

    use super::*;

    fn plan(target: &str) -> ResolvedPlan {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{target}\n[workload.matrix]\nfile_size = \"1MiB\"\n\
             [phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n"
        );
        Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}")).resolve()
    }

    fn at(path: &Path) -> ResolvedPlan {
        plan(&format!("path = {:?}", path.display().to_string()))
    }

    #[test]
    fn without_a_list_every_write_is_refused_and_with_one_all_but_what_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let (in_it, beside) = (root.path().join("in"), root.path().join("in-not"));
        fs::create_dir_all(in_it.join("deep")).unwrap();
        fs::create_dir(&beside).unwrap();
        let error = Allow::default().check(&at(&in_it)).unwrap_err();
        assert!(error.contains("without --allow-path"), "{error}");
        let allow = Allow::new(std::slice::from_ref(&in_it), &[], &[]).unwrap();
        allow.check(&at(&in_it)).unwrap();
        allow.check(&at(&in_it.join("deep"))).unwrap();
        allow.check(&at(&in_it.join("made"))).unwrap();
        assert!(in_it.join("made").is_dir(), "a host's own directory is made");
        for outside in [beside.clone(), in_it.join("../in-not"), root.path().into(), "/".into()] {
            let error = allow.check(&at(&outside)).unwrap_err();
            assert!(error.contains("outside of every --allow-path"), "{error}");
        }
        assert!(allow.check(&at(&beside.join("made"))).is_err());
        assert!(!beside.join("made").exists());
        assert!(Allow::new(&[root.path().join("gone")], &[], &[]).is_err());
    }

    #[test]
    fn a_link_out_of_what_is_allowed_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (in_it, secret) = (root.path().join("in"), root.path().join("secret"));
        fs::create_dir(&in_it).unwrap();
        fs::create_dir_all(secret.join("deep")).unwrap();
        std::os::unix::fs::symlink(&secret, in_it.join("way")).unwrap();
        let allow = Allow::new(std::slice::from_ref(&in_it), &[], &[]).unwrap();
        for way in ["way", "way/deep", "way/made", "way/.."] {
            let error = allow.check(&at(&in_it.join(way))).unwrap_err();
            assert!(error.contains("outside") || error.contains("No such"), "{way}: {error}");
        }
        assert!(!secret.join("made").exists());
        let both = format!("databases = [{in_it:?}]\nlogs = [{:?}]", in_it.join("way"));
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{both}\n[workload.mailbox]\nmailboxes = 4\nmailbox_size = \"4MiB\"\n\
             [phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n"
        );
        let plan = Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"));
        assert!(allow.check(&plan.resolve()).is_err(), "logs count too");
    }

    #[test]
    fn devices_exports_and_what_a_fleet_does_not_drive() {
        let exports = ["nfs://filer/vol1/".to_owned()];
        let allow = Allow::new(&[], &["/dev/null".into()], &exports).unwrap();
        allow.check(&plan("device = \"/dev/null\"")).unwrap();
        assert!(allow.check(&plan("device = \"/dev/zero\"")).is_err());
        allow.check(&plan("nfs = [\"nfs://filer/vol1\", \"nfs://filer/vol1/deep\"]")).unwrap();
        for export in ["nfs://filer/vol10", "nfs://filer/vol1/../vol2", "nfs://other/vol1"] {
            assert!(allow.check(&plan(&format!("nfs = [{export:?}]"))).is_err(), "{export}");
        }
        allow.check(&plan("null = true")).unwrap();
        for target in ["s3 = \"s3://b/p\"\nendpoint = \"http://h:1\"", "model = \"adsf-hybrid\""] {
            assert!(allow.check(&plan(target)).is_err(), "{target}");
        }
        assert!(Allow::new(&[], &[], &["filer:/vol1".to_owned()]).is_err());
    }
}
