//! The question of a run consists of its workload and its system. Questions are compared
//! approximately. Two runs can have the same question even if their names differ, if their
//! directories on the same file system differ, or if their sizes differ by a few KiB.

use std::collections::BTreeMap;

use plimsoll_plan::{
    Mailbox, Matrix, Requirement, ResolvedPlan, SizeShare, Target, TargetKind, Workload,
};
use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Mount};

/// Two numbers are similar if their relative difference is not greater than this value.
const TOLERANCE: f64 = 0.1;
/// Two percentages are similar if their difference is not greater than this number of percentage
/// points.
const TOLERANCE_PERCENT: f64 = 10.0;

/// Workload of a run, and the system to which the run applies the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// System under test. It is a file system with its device, an export, a bucket, or a model.
    pub target: String,
    /// Kind of workload: `mailbox` or `matrix`.
    pub workload: String,
    /// True if the plan has a requirement.
    pub required: bool,
    /// Other numbers that distinguish questions. The name of a number contains its unit. If the
    /// plan has no requirement, the load (clients, threads, rate) is included. Otherwise it is
    /// excluded, because users may tune the load until the run meets the requirement.
    pub numbers: BTreeMap<String, f64>,
    /// SHA-256 of the resolved plan, from which the requirement, the claims, the names and the seed
    /// were removed. Absent in lines that earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_sha256: Option<String>,
    /// SHA-256 of the requirement. Absent if the plan has no requirement. Also absent in lines that
    /// earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement_sha256: Option<String>,
}

impl Question {
    /// Derives the question from a plan that is run on this host.
    #[must_use]
    pub fn from_plan(plan: &ResolvedPlan, environment: &Environment) -> Self {
        let mut targets: Vec<String> =
            plan.targets.iter().map(|target| system(target, environment)).collect();
        targets.sort();
        targets.dedup();
        let mut numbers = BTreeMap::new();
        match &plan.workload {
            Workload::Mailbox(store) => add_mailbox_numbers(store, &mut numbers),
            Workload::Matrix(matrix) => add_matrix_numbers(matrix, &mut numbers),
        }
        let required = plan.requirement.as_ref();
        if let Some(requirement) = required {
            numbers.retain(|name, _| !name.starts_with("load_"));
            let bytes = |value: Option<u64>| value.map(|bytes| bytes as f64);
            let stated = [
                ("required_iops_per_s", requirement.iops_per_s),
                ("required_bandwidth_bytes_per_s", bytes(requirement.bandwidth_bytes_per_s)),
                ("required_capacity_bytes", bytes(requirement.capacity_bytes)),
            ];
            let stated = stated.into_iter().filter_map(|(name, value)| Some((name, value?)));
            numbers.extend(stated.map(|(name, value)| (name.to_owned(), value)));
        }
        Self {
            target: targets.join("; "),
            workload: match &plan.workload {
                Workload::Mailbox(_) => "mailbox".to_owned(),
                Workload::Matrix(_) => "matrix".to_owned(),
            },
            required: required.is_some(),
            numbers,
            workload_sha256: without_requirement(plan).sha256_hex().ok(),
            requirement_sha256: required.and_then(hash_of),
        }
    }

    /// Returns true if another run applied the same workload to the same system with a different
    /// requirement.
    #[must_use]
    pub fn has_other_requirement(&self, other: &Self) -> bool {
        let (Some(own), Some(others)) = (&self.requirement_sha256, &other.requirement_sha256)
        else {
            return false;
        };
        let workload = |question: &Self| Self {
            numbers: question
                .numbers
                .iter()
                .filter(|(name, _)| !name.starts_with("required_"))
                .map(|(name, value)| (name.clone(), *value))
                .collect(),
            ..question.clone()
        };
        let same_plan = self.workload_sha256.is_some()
            && self.workload_sha256 == other.workload_sha256
            && self.target == other.target;
        own != others && (same_plan || workload(self).is_alike(&workload(other)))
    }

    /// Returns true if both questions have the same system and kind of workload, and if all numbers
    /// that are in both of them are similar.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        let near = |(name, a): (&String, &f64)| {
            let Some(b) = other.numbers.get(name) else { return true };
            let apart = (a - b).abs();
            apart <= TOLERANCE * a.abs().max(b.abs())
                || name.ends_with("_percent") && apart <= TOLERANCE_PERCENT
        };
        self.target == other.target
            && self.workload == other.workload
            && self.required == other.required
            && self.numbers.iter().all(near)
    }
}

/// Returns a copy of the plan. The copy lacks the requirement, the claims, the names and the seed.
fn without_requirement(plan: &ResolvedPlan) -> ResolvedPlan {
    ResolvedPlan {
        name: String::new(),
        description: String::new(),
        owner: None,
        requirement: None,
        claims: Vec::new(),
        claims_assumed: false,
        seed: 0,
        ..plan.clone()
    }
}

fn hash_of(requirement: &Requirement) -> Option<String> {
    let text = serde_json::to_vec(requirement).ok()?;
    Some(super::sha256_hex(&text))
}

/// Returns a text that identifies the system of a target. The text does not depend on the path that
/// the plan uses.
fn system(target: &Target, environment: &Environment) -> String {
    match &target.kind {
        TargetKind::Directories { databases, logs } => {
            identify_paths(databases.iter().chain(logs), environment)
        }
        TargetKind::Path { path } => identify_paths(std::iter::once(path), environment),
        TargetKind::Device { device } => identify_paths(std::iter::once(device), environment),
        TargetKind::Nfs { exports, .. } => {
            let mut exports = exports.clone();
            exports.sort();
            exports.join(", ")
        }
        TargetKind::S3 { url, endpoint, .. } => {
            let bucket = url.trim_start_matches("s3://").split('/').next().unwrap_or_default();
            format!("{endpoint} {bucket}")
        }
        TargetKind::Model { model, set } => {
            let set: Vec<String> =
                set.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("model {model} {}", set.join(" ")).trim_end().to_owned()
        }
        TargetKind::Null => "null".to_owned(),
    }
}

/// Returns a text that identifies the file systems on which the paths are. If the file system of a
/// path is unknown, the text contains the path.
fn identify_paths<'a>(
    paths: impl Iterator<Item = &'a String>,
    environment: &Environment,
) -> String {
    let below = |path: &String| {
        let known = environment.mounts.iter().find(|mount| mount_of(mount, path));
        known.and_then(identify_mount).unwrap_or_else(|| path.clone())
    };
    let mut systems: Vec<String> = paths.map(below).collect();
    systems.sort();
    systems.dedup();
    systems.join(", ")
}

/// Returns true if the mount belongs to this path of the plan. Plimsoll observes mounts at its own
/// subdirectory of the path, so the mount's path may be longer.
fn mount_of(mount: &Mount, path: &str) -> bool {
    let below = mount.path.strip_prefix(path.trim_end_matches('/'));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns a text with the file system, its source and its devices. A file system without a device
/// is identified by its mount point. Examples are overlays and file systems in memory.
fn identify_mount(mount: &Mount) -> Option<String> {
    let kind = mount.file_system.as_deref().unwrap_or("no file system");
    let source = mount.source.as_deref().unwrap_or_default();
    let own = match (&mount.devices[..], source.contains(['/', ':'])) {
        ([], false) => mount.mount_point.clone()?,
        ([], true) => source.to_owned(),
        (devices, _) => format!("{source} {}", devices.join(" ")),
    };
    Some(format!("{kind} on {}", own.trim()))
}

fn add_mailbox_numbers(store: &Mailbox, numbers: &mut BTreeMap<String, f64>) {
    let capacity = store.database_initial_bytes.saturating_mul(u64::from(store.databases));
    let named = [
        ("mailboxes", store.mailboxes as f64),
        ("iops_per_mailbox_per_s", store.iops_per_mailbox_per_s),
        ("data_bytes", capacity as f64),
        ("load_threads", f64::from(store.threads)),
    ];
    numbers.extend(named.map(|(name, value)| (name.to_owned(), value)));
}

/// Adds numbers that are totals or means over all streams. If a user divides a stream into two,
/// these numbers do not change.
fn add_matrix_numbers(matrix: &Matrix, numbers: &mut BTreeMap<String, f64>) {
    let streams = &matrix.streams;
    let clients = |at: usize| f64::from(streams[at].clients.max(1));
    let all: f64 = (0..streams.len()).map(clients).sum::<f64>().max(1.0);
    let mean = |of: &dyn Fn(usize) -> f64| {
        (0..streams.len()).map(|at| clients(at) * of(at)).sum::<f64>() / all
    };
    let sizes = |at: usize| mean_size(&streams[at].sizes);
    let sequential = |at: usize| f64::from(u8::from(streams[at].pattern.is_sequential())) * 100.0;
    let set = |at: usize| {
        let files = &streams[at].files;
        files.working_set_bytes.or(files.total_bytes()).unwrap_or(0) as f64
    };
    let in_flight = |at: usize| f64::from(streams[at].queue_depth);
    let named = [
        ("size_bytes_avg", mean(&sizes)),
        ("read_percent", mean(&|at| streams[at].read_percent)),
        ("metadata_percent", mean(&|at| streams[at].metadata_percent)),
        ("sequential_percent", mean(&sequential)),
        ("data_bytes", (0..streams.len()).map(set).sum()),
        ("load_operations", (0..streams.len()).map(|at| clients(at) * in_flight(at)).sum()),
    ];
    numbers.extend(named.map(|(name, value)| (name.to_owned(), value)));
}

fn mean_size(sizes: &[SizeShare]) -> f64 {
    let all: f64 = sizes.iter().map(|size| size.share_percent).sum();
    let sum: f64 = sizes.iter().map(|size| size.size_bytes as f64 * size.share_percent).sum();
    if all > 0.0 { sum / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;

    fn question(plan: &str, mounts: &[(&str, &str, &str)]) -> Question {
        let plan = Plan::parse(plan, "plan.toml").unwrap().resolve();
        let mount = |(path, source, device): &(&str, &str, &str)| Mount {
            path: (*path).to_owned(),
            file_system: Some("ext4".to_owned()),
            mount_point: Some("/mnt".to_owned()),
            source: Some((*source).to_owned()),
            devices: vec![(*device).to_owned()],
            ..Mount::default()
        };
        let mounts = mounts.iter().map(mount).collect();
        Question::from_plan(&plan, &Environment { mounts, ..Environment::default() })
    }

    fn matrix(name: &str, path: &str, more: &str) -> String {
        format!(
            "version = 1\nname = \"{name}\"\n[requirement]\niops = 1000\n[target]\npath = \
             \"{path}\"\n[workload.matrix]\nsizes = [\"4KiB\"]\nreads = [70]\n{more}"
        )
    }

    const BELOW: [(&str, &str, &str); 2] =
        [("/mnt/a/plimsoll-p", "/dev/sda1", "sda"), ("/mnt/b/plimsoll-q", "/dev/sda1", "sda")];

    #[test]
    fn name_directory_and_4_kib_do_not_change_the_question() {
        let first = question(&matrix("p", "/mnt/a", "file_size = \"1GiB\""), &BELOW);
        let named = question(&matrix("q", "/mnt/b", "file_size = \"1048580KiB\""), &BELOW);
        assert_eq!(first.target, "ext4 on /dev/sda1 sda");
        assert_ne!(first.numbers, named.numbers);
        assert!(first.is_alike(&named) && named.is_alike(&first));
        // If the plan has a requirement, a different load does not change the question.
        let deeper = matrix("p", "/mnt/a", "file_size = \"1GiB\"\nqueue_depth = 32");
        assert!(first.is_alike(&question(&deeper, &BELOW)));
    }

    #[test]
    fn system_requirement_or_workload_change_the_question() {
        let plan = matrix("p", "/mnt/a", "file_size = \"1GiB\"");
        let first = question(&plan, &BELOW);
        let other = [("/mnt/a", "/dev/sdb1", "sdb")];
        assert!(!first.is_alike(&question(&plan, &other)));
        for (from, to) in [("iops = 1000", "iops = 2000"), ("4KiB", "64KiB"), ("[70]", "[0]")] {
            assert!(!first.is_alike(&question(&plan.replace(from, to), &BELOW)), "{to}");
        }
        let measured = plan.replace("[requirement]\niops = 1000\n", "");
        assert!(!first.is_alike(&question(&measured, &BELOW)));
        // If the plan has no requirement, the load is part of the question.
        let deeper = format!("{measured}\nqueue_depth = 32");
        assert!(!question(&measured, &BELOW).is_alike(&question(&deeper, &BELOW)));
    }

    #[test]
    fn distinguishes_a_changed_requirement() {
        let plan = matrix("p", "/mnt/a", "file_size = \"1GiB\"");
        let first = question(&plan, &BELOW);
        assert!(first.workload_sha256.is_some() && first.requirement_sha256.is_some());
        for other in [
            plan.replace("iops = 1000", "iops = 900"),
            plan.replace("iops = 1000", "iops = 10"),
            plan.replace("iops = 1000", "read_latency_p99 = \"20ms\""),
            plan.replace("iops = 1000", "iops = 1000\nread_latency_p99 = \"20ms\""),
            // If the amount of data is slightly larger, the workload counts as the same.
            plan.replace("iops = 1000", "iops = 900").replace("1GiB", "1048580KiB"),
        ] {
            let other = question(&other, &BELOW);
            assert!(first.has_other_requirement(&other) && other.has_other_requirement(&first));
        }
        for same in [
            plan.clone(),
            plan.replace("\"p\"", "\"q\""),
            plan.replace("[requirement]\niops = 1000\n", ""),
            plan.replace("iops = 1000", "iops = 900").replace("4KiB", "64KiB"),
            plan.replace("iops = 1000", "iops = 900").replace("[70]", "[0]"),
        ] {
            assert!(!first.has_other_requirement(&question(&same, &BELOW)), "{same}");
        }
        let elsewhere = [("/mnt/a", "/dev/sdb1", "sdb")];
        let other = plan.replace("iops = 1000", "iops = 900");
        assert!(!first.has_other_requirement(&question(&other, &elsewhere)), "another disk");
        let earlier = Question { requirement_sha256: None, ..question(&other, &BELOW) };
        assert!(!first.has_other_requirement(&earlier), "an earlier version recorded none");
    }
}
