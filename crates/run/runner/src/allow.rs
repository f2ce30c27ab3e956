//! Targets that an operator allows for other people's plans. Such plans arrive at a fleet's agent
//! or through the web page. If no target is allowed, every write is refused.

use std::path::{Path, PathBuf};

use plimsoll_engine::allow_list::{AllowList, NfsUrl};
use plimsoll_plan::{Arrival, ResolvedPlan, TargetKind};

use crate::error::RunnerError;

/// Allowed targets. Symbolic links in the paths have been resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    places: AllowList,
    /// NFS URLs of the exports, as the operator wrote them.
    exports: Vec<String>,
    buckets: Vec<Bucket>,
    /// Allowed commands of events. The arguments are separated by spaces.
    commands: Vec<String>,
}

/// A bucket of an object store, or all objects of a bucket whose names begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bucket {
    /// `https://host:port`, without a path.
    endpoint: String,
    path_prefix: String,
}

impl Bucket {
    /// Returns `None` if the endpoint or path is ambiguous (user name, `..`, empty part).
    fn new(endpoint: &str, path_prefix: &str) -> Option<Self> {
        let endpoint = endpoint.trim_end_matches('/');
        let scheme = ["https://", "http://"].into_iter().find(|s| endpoint.starts_with(s))?;
        let host = &endpoint[scheme.len()..];
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-.:[]_".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return None;
        }
        let path_prefix = path_prefix.trim_matches('/');
        let climbs = path_prefix.contains('\\')
            || path_prefix.split('/').any(|part| part.is_empty() || part == "." || part == "..");
        let endpoint = endpoint.to_ascii_lowercase();
        (!climbs).then(|| Self { endpoint, path_prefix: path_prefix.to_owned() })
    }

    /// Parses the value of `--allow-s3`: `https://host:port/bucket/prefix`.
    fn parse(text: &str) -> Option<Self> {
        let host = text.find("://")? + 3;
        let end = host + text[host..].find('/')?;
        Self::new(&text[..end], &text[end..])
    }

    fn contains(&self, other: &Self) -> bool {
        let rest = other.path_prefix.strip_prefix(&self.path_prefix);
        self.endpoint == other.endpoint
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Allow {
    /// Allows plans to work below these directories, on these devices and below these exports.
    ///
    /// # Errors
    /// A directory or device does not exist.
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
        let all = |option: &str, paths: &[PathBuf]| {
            paths.iter().map(|path| real(option, path)).collect::<Result<Vec<_>, _>>()
        };
        let (directories, devices) = (all("--allow-path", paths)?, all("--allow-device", devices)?);
        if let Some(file) = directories.iter().find(|path| !path.is_dir()) {
            let says = format!("--allow-path {}: not a directory", file.display());
            return Err(RunnerError::usage(says));
        }
        let parsed = |export: &String| {
            NfsUrl::parse(export).map_err(|error| {
                RunnerError::usage(format!("--allow-nfs {export}: not a valid export: {error}"))
                    .hint("write nfs://host/export")
            })
        };
        let urls = exports.iter().map(parsed).collect::<Result<_, _>>()?;
        let exports = exports.iter().map(|export| export.trim_end_matches('/').to_owned());
        let places = AllowList { directories, devices, exports: urls };
        Ok(Self { places, exports: exports.collect(), ..Self::default() })
    }

    /// Also allows these buckets or prefixes: `https://host:port/bucket/prefix`.
    ///
    /// # Errors
    /// A value is not a valid bucket.
    pub fn with_buckets(self, buckets: &[String]) -> Result<Self, RunnerError> {
        let parsed = |given: &String| {
            Bucket::parse(given).ok_or_else(|| {
                RunnerError::usage(format!("--allow-s3 {given}: not a valid bucket URL"))
                    .hint("use https://host:port/bucket or https://host:port/bucket/prefix")
            })
        };
        let buckets = buckets.iter().map(parsed).collect::<Result<_, _>>()?;
        Ok(Self { buckets, ..self })
    }

    /// Also allows the events of plans to run these commands. Each command consists of a program
    /// and its arguments, separated by single spaces.
    #[must_use]
    pub fn with_commands(self, commands: &[String]) -> Self {
        Self { commands: commands.to_vec(), ..self }
    }

    /// Returns true if no target is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places == AllowList::default() && self.buckets.is_empty()
    }

    /// Returns the allowed directories, devices and exports. The engine checks opened targets
    /// against them.
    #[must_use]
    pub fn places(&self) -> &AllowList {
        &self.places
    }

    /// Returns a description of each entry, such as `path /mnt/db`.
    #[must_use]
    pub fn descriptions(&self) -> Vec<String> {
        let paths = self.places.directories.iter().map(|path| format!("path {}", path.display()));
        let devices = self.places.devices.iter().map(|path| format!("device {}", path.display()));
        let exports = self.exports.iter().map(|export| format!("nfs {export}"));
        let bucket = |bucket: &Bucket| format!("s3 {}/{}", bucket.endpoint, bucket.path_prefix);
        let buckets = self.buckets.iter().map(bucket);
        let commands = self.commands.iter().map(|command| format!("event {command}"));
        paths.chain(devices).chain(exports).chain(buckets).chain(commands).collect()
    }

    /// Checks that a plan's only target is allowed and that the plan needs no other resource of
    /// this host. Creates the target directory if it is missing and inside an allowed directory.
    ///
    /// # Errors
    /// The reason for refusing the plan.
    pub fn check(&self, plan: &ResolvedPlan) -> Result<(), String> {
        let [_] = &plan.targets[..] else {
            return Err(
                "the plan has several targets, but only plans with one target are accepted here"
                    .to_owned(),
            );
        };
        self.check_plan(plan, true)
    }

    /// Like [`Self::check`], but allows several targets and creates no directory.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn check_without_creating(&self, plan: &ResolvedPlan) -> Result<(), String> {
        self.check_plan(plan, false)
    }

    /// Checks only that all targets and commands are allowed. A target that is a model needs no
    /// permission.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn check_targets(&self, plan: &ResolvedPlan) -> Result<(), String> {
        self.check_events(plan)?;
        let targets = plan.targets.iter().map(|target| &target.kind);
        targets
            .filter(|kind| !matches!(kind, TargetKind::Model { .. }))
            .try_for_each(|kind| self.check_target(kind, false))
    }

    /// Checks that the operator allows every command of an event, word for word, and that the plan
    /// has no [durability] table. The commands in that table would cut the target off.
    fn check_events(&self, plan: &ResolvedPlan) -> Result<(), String> {
        if plan.durability.is_some() {
            return Err(
                "[durability] is not accepted here: its commands disconnect or power off the \
                 target. Use `plimsoll run` on the host itself"
                    .to_owned(),
            );
        }
        for event in &plan.events {
            for command in
                [&event.run, &event.undo].into_iter().filter(|command| !command.is_empty())
            {
                let line = command.join(" ");
                // An argument that contains a space could be confused with two arguments.
                let is_plain = command.iter().all(|word| !word.contains(char::is_whitespace));
                if !is_plain || !self.commands.contains(&line) {
                    return Err(format!(
                        "event \"{}\" runs the command \"{line}\", which no --allow-event allows here",
                        event.name
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_plan(&self, plan: &ResolvedPlan, create: bool) -> Result<(), String> {
        self.check_all_but_targets(plan)?;
        plan.targets.iter().try_for_each(|target| self.check_target(&target.kind, create))
    }

    /// Checks the commands of events, and the servers and files that this host would read. Does not
    /// check the targets, because the hosts that use the targets check them.
    ///
    /// # Errors
    /// The errors of [`Self::check`].
    pub fn check_all_but_targets(&self, plan: &ResolvedPlan) -> Result<(), String> {
        self.check_events(plan)?;
        if !plan.observe.metrics.is_empty() {
            return Err("[observe.metrics] is not accepted here: this host would send requests to other servers".to_owned());
        }
        if let Some(file) = files_read(plan).next() {
            return Err(format!(
                "the plan reads {file}, but the plans accepted here must not read files of this \
                 host"
            ));
        }
        Ok(())
    }

    fn check_target(&self, kind: &TargetKind, create: bool) -> Result<(), String> {
        match kind {
            TargetKind::Null => Ok(()),
            TargetKind::Path { path } => self.check_path(path, create),
            TargetKind::Directories { databases, logs } => {
                databases.iter().chain(logs).try_for_each(|path| self.check_path(path, create))
            }
            TargetKind::Device { device } => self.check_device(device),
            TargetKind::Nfs { exports, uid, gid, .. } => exports.iter().try_for_each(|export| {
                self.places.export(export, *uid, *gid).map(drop).map_err(|e| e.to_string())
            }),
            TargetKind::S3 { url, endpoint, .. } => self.check_bucket(url, endpoint),
            TargetKind::Model { .. } => {
                Err("plans that run on a model are not accepted here".to_owned())
            }
        }
    }

    fn check_path(&self, path: &str, create: bool) -> Result<(), String> {
        self.places.admit_directory(path, create).map_err(|error| error.to_string())
    }

    fn check_device(&self, device: &str) -> Result<(), String> {
        // A device that does not exist results in the same message as a device that is not allowed.
        let real = Path::new(device).canonicalize().unwrap_or_default();
        let checked = self.places.check_device(Path::new(device), &real);
        checked.map_err(|error| error.to_string())
    }

    /// Checks a bucket with its prefix. Credentials are read from this host's environment.
    fn check_bucket(&self, url: &str, endpoint: &str) -> Result<(), String> {
        let requested = Bucket::new(endpoint, url.strip_prefix("s3://").unwrap_or_default());
        match requested.is_some_and(|requested| {
            self.buckets.iter().any(|allowed| allowed.contains(&requested))
        }) {
            true => Ok(()),
            false => Err(format!("{url} at {endpoint} is not allowed by any --allow-s3")),
        }
    }
}

/// Returns the files that a plan reads: recorded arrivals and traces.
fn files_read(plan: &ResolvedPlan) -> impl Iterator<Item = &str> {
    let streams = plan.workload.matrix().into_iter().flat_map(|matrix| &matrix.streams);
    streams.flat_map(|stream| {
        let arrivals = match &stream.arrival {
            Arrival::Recorded { file } => Some(file.as_str()),
            _ => None,
        };
        arrivals.into_iter().chain(stream.trace.as_ref().map(|trace| trace.file.as_str()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use plimsoll_plan::Plan;

    use super::*;

    fn parse(target: &str) -> Result<ResolvedPlan, String> {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{target}\n[workload.matrix]\nfile_size = \
             \"1MiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n"
        );
        Ok(Plan::parse(&text, "p.toml").map_err(|errors| errors.to_string())?.resolve())
    }

    fn plan(target: &str) -> ResolvedPlan {
        parse(target).unwrap()
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
        assert!(error.contains("no --allow-path was given"), "{error}");
        let allow = Allow::new(std::slice::from_ref(&in_it), &[], &[]).unwrap();
        allow.check(&at(&in_it)).unwrap();
        allow.check(&at(&in_it.join("deep"))).unwrap();
        allow.check_without_creating(&at(&in_it.join("made"))).unwrap();
        assert!(!in_it.join("made").exists(), "a check creates nothing");
        allow.check(&at(&in_it.join("made"))).unwrap();
        assert!(in_it.join("made").is_dir(), "a host's own directory is made");
        for outside in [beside.clone(), in_it.join("../in-not"), root.path().into(), "/".into()] {
            let error = allow.check(&at(&outside)).unwrap_err();
            assert!(error.contains("not in any --allow-path"), "{error}");
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
            assert!(allow.check_without_creating(&at(&in_it.join(way))).is_err(), "{way}");
            let error = allow.check(&at(&in_it.join(way))).unwrap_err();
            assert!(
                error.contains("not in any --allow-path") || error.contains("No such"),
                "{way}: {error}"
            );
        }
        assert!(!secret.join("made").exists());
        // The message is the same whether a file exists behind the link or not.
        fs::write(secret.join("file"), "").unwrap();
        std::os::unix::fs::symlink(secret.join("deep"), secret.join("link")).unwrap();
        let behind = ["way", "way/file", "way/file/x", "way/deep", "way/link", "way/a", "way/a/b"];
        for way in behind.map(|way| in_it.join(way)) {
            let error = allow.check_without_creating(&at(&way)).unwrap_err();
            assert_eq!(error, format!("{} is not in any --allow-path", way.display()));
        }
        let own = allow.check_without_creating(&at(&in_it.join("a/b"))).unwrap_err();
        assert!(own.contains("No such"), "{own}");
        let both = format!("databases = [{in_it:?}]\nlogs = [{:?}]", in_it.join("way"));
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{both}\n[workload.mailbox]\nmailboxes = \
             4\nmailbox_size = \"4MiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \
             \"10s\"\n"
        );
        let plan = Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"));
        assert!(allow.check(&plan.resolve()).is_err(), "logs count too");
    }

    #[test]
    fn a_command_of_an_event_is_run_for_others_only_if_it_is_allowed_word_for_word() {
        let event = |fields: &str| {
            let text = format!(
                "[target]\nnull = true\n[workload.matrix]\nfile_size = \"1MiB\"\n[[event]]\nname = \
                 \"e\"\nat = \"1m\"\n{fields}\n"
            );
            Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}")).resolve()
        };
        let allow = Allow::default().with_commands(&["kill 7".to_owned()]);
        let checks = [Allow::check, Allow::check_without_creating, Allow::check_targets];
        for (fields, accepted) in [
            ("run = [\"kill\", \"7\"]", true),
            ("run = [\"kill\", \"7\"]\nundo = [\"kill\", \"7\"]", true),
            ("run = [\"kill\", \"77\"]", false),
            ("run = [\"kill 7\"]", false),
            ("run = [\"kill\", \"7\"]\nundo = [\"reboot\"]", false),
        ] {
            let plan = event(fields);
            for check in checks {
                assert_eq!(check(&allow, &plan).is_ok(), accepted, "{fields}");
                let error = check(&Allow::default(), &plan).unwrap_err();
                assert!(error.contains("event \"e\""), "{error}");
            }
        }
    }

    #[test]
    fn a_trace_is_not_read_for_others_whatever_its_pace() {
        let root = tempfile::tempdir().unwrap();
        let allow = Allow::new(&[root.path().into()], &[], &[]).unwrap();
        for pace in ["recorded", "2x", "as-fast"] {
            let text = format!(
                "version = 1\nname = \"p\"\n[target]\npath = {:?}\n[workload.trace]\nfile = \
                 \"/etc/shadow\"\nsha256 = \"0\"\noperations = 9\nspan = \"20m\"\nreads = 50\npace \
                 = \"{pace}\"\nsize_mix = [{{ size = \"4KiB\", share = 100 }}]\nfile_size = \
                 \"1GiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n",
                root.path().display().to_string()
            );
            let plan = Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"));
            let error = allow.check(&plan.resolve()).unwrap_err();
            assert!(error.contains("reads /etc/shadow"), "{pace}: {error}");
        }
    }

    #[test]
    fn devices_exports_and_what_is_not_driven_for_others() {
        let exports = ["nfs://filer/vol1/".to_owned()];
        let allow = Allow::new(&[], &["/dev/null".into()], &exports).unwrap();
        allow.check(&plan("device = \"/dev/null\"")).unwrap();
        assert!(allow.check(&plan("device = \"/dev/zero\"")).is_err());
        allow.check(&plan("nfs = [\"nfs://filer/vol1\", \"nfs://filer/vol1/deep\"]")).unwrap();
        for export in [
            "nfs://filer/vol10",
            "nfs://filer/vol1/../vol2",
            "nfs://other/vol1",
            "nfs://filer/vol1/deep?uid=7",
            "nfs://filer/vol1/deep?nfsport=2050&mountport=2050",
        ] {
            assert!(allow.check(&plan(&format!("nfs = [{export:?}]"))).is_err(), "{export}");
        }
        allow.check(&plan("null = true")).unwrap();
        assert!(allow.check(&plan("model = \"adsf-hybrid\"")).is_err());
        assert!(Allow::new(&[], &[], &["filer:/vol1".to_owned()]).is_err());
    }

    #[test]
    fn a_bucket_is_one_of_a_store_and_nothing_that_only_looks_like_it() {
        let of = |text: &str| Allow::default().with_buckets(&[text.to_owned()]);
        let allow = of("https://Store.example:9000/load/unit/").unwrap();
        assert!(!allow.is_empty());
        assert_eq!(allow.descriptions(), ["s3 https://store.example:9000/load/unit"]);
        let check = |url: &str, endpoint: &str| {
            // A plan already rejects an endpoint with a user.
            allow.check(&parse(&format!("s3 = {url:?}\nendpoint = {endpoint:?}"))?)
        };
        let store = "https://store.example:9000";
        for url in ["s3://load/unit", "s3://load/unit/", "s3://load/unit/node1"] {
            check(url, store).unwrap();
        }
        check("s3://load/unit", "https://STORE.example:9000/").unwrap();
        for url in [
            "s3://load",
            "s3://load/united",
            "s3://load/unit/../other",
            "s3://load/unit/./..",
            "s3://load/unit//x",
            "s3://load/unit\\..\\..\\x",
            "s3://other/load/unit",
        ] {
            assert!(check(url, store).is_err(), "{url}");
        }
        for endpoint in [
            "http://store.example:9000",
            "https://store.example:9001",
            "https://store.example",
            "https://store.example:9000@evil",
            "https://store.example:9000/load/unit?",
            "https://store.example:9000/load/unit/#",
            "https://store.example:9000.evil",
            "https://user@store.example:9000",
        ] {
            let error = check("s3://load/unit", endpoint).unwrap_err();
            let says = ["not allowed by any --allow-s3", "contains a user or password"];
            assert!(says.iter().any(|says| error.contains(says)), "{error}");
        }
        for wrong in
            ["store/load", "https://store", "https://store/", "ftp://store/load", "s3://load"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let whole = of("http://h/load").unwrap();
        whole.check(&plan("s3 = \"s3://load\"\nendpoint = \"http://h\"")).unwrap();
        whole.check(&plan("s3 = \"s3://load/any\"\nendpoint = \"http://h\"")).unwrap();
    }
}
