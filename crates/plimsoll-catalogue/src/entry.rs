//! What the catalogue knows of one run, and of one experiment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::fleet::{Class, Fleet, Host, HostEnd};
use plimsoll_evidence::run::{ClassTotals, Run};
use plimsoll_plan::Target;
use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::scan::{FLEET, ScannedDirectory};

/// A run: from the ledger, from its bundle, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Connection of the ledger that holds its start: the number that it is asked for by. `None`: this machine's
    /// ledger does not know it.
    pub position: Option<u64>,
    /// Its name.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// Whose it is in the team's catalogue; `None`: this user's on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// When it was started.
    pub started_unix_ns: u64,
    /// What it ran on: the places that the plan names, and the file systems and devices below them.
    #[serde(default)]
    pub target: Option<String>,
    /// How it ended; `None`: it never did, or is under way.
    pub end: Option<String>,
    /// Whether it is under way: a process holds what its bundle will take. One that was killed holds nothing.
    #[serde(default)]
    pub is_under_way: bool,
    /// The verdict in capitals.
    pub verdict: Option<String>,
    /// The one sentence why.
    pub reason: Option<String>,
    /// The experiment that it belongs to; `None`: it stands alone.
    pub experiment: Option<String>,
    /// Where the bundle lies; `None`: it was removed, or never made.
    pub bundle: Option<String>,
    /// Transactional I/Os per second.
    pub achieved_iops_per_s: Option<f64>,
    /// What was required of it.
    pub required_iops_per_s: Option<f64>,
    /// Achieved over required, less one.
    pub headroom: Option<f64>,
    /// Mean latency of transactional reads.
    pub read_latency_ns_avg: Option<u64>,
    /// Mean latency of transactional writes.
    pub write_latency_ns_avg: Option<u64>,
    /// How long it was measured.
    pub measured_ns: Option<u64>,
    /// The host.
    pub host: Option<String>,
    /// The hosts of a fleet's run; empty: it is that of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Words to find it by.
    pub tags: BTreeSet<String>,
    /// What somebody noted.
    pub note: String,
}

/// An experiment: runs that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentEntry {
    /// Its name.
    pub id: String,
    /// Where it lies.
    pub directory: PathBuf,
}

/// Of `verdict.json` what is shown in a list. It is derived, and read as it lies there: whoever wants to know
/// whether it holds asks `judge` or `verify`.
#[derive(Deserialize)]
struct StoredVerdict {
    verdict: String,
    reason: String,
    achieved_iops_per_s: Option<f64>,
    required_iops_per_s: Option<f64>,
    headroom: Option<f64>,
}

/// Of `environment.json` what runs are found by.
#[derive(Default, Deserialize)]
struct Environment {
    host: Option<String>,
    #[serde(default)]
    mounts: Vec<Mount>,
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Mount {
    file_system: String,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    model: Option<String>,
}

/// Of `resolved.toml` what runs are found by.
#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    targets: Vec<Target>,
}

/// Places first, then what lies below them: `/mnt/test (ext4, nvme0n1 PM9A3)`.
fn target_summary(plan: &Plan, environment: &Environment) -> Option<String> {
    let places: Vec<String> = plan.targets.iter().flat_map(Target::places).collect();
    let mounts = environment.mounts.iter().map(|mount| mount.file_system.clone());
    let devices = environment.devices.iter().map(|device| match device.model.as_deref() {
        Some(model) => format!("{} {}", device.name, model.trim()),
        None => device.name.clone(),
    });
    let mut below: Vec<String> = Vec::new();
    for one in mounts.chain(devices) {
        if !below.contains(&one) {
            below.push(one);
        }
    }
    match (places.is_empty(), below.is_empty()) {
        (true, true) => None,
        (false, true) => Some(places.join(", ")),
        (true, false) => Some(below.join(", ")),
        (false, false) => Some(format!("{} ({})", places.join(", "), below.join(", "))),
    }
}

/// How a fleet's run ended in the ledger that an agent refused.
const REFUSED: &str = "refused";

impl Entry {
    /// Whether its bundle can be read: here, or once it was fetched from the team's catalogue.
    pub fn has_bundle(&self) -> bool {
        self.bundle.is_some() || self.origin.is_some()
    }

    /// Whether a model was run: every reason of a verdict on one begins so.
    pub fn is_modelled(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with("modelled:"))
    }

    /// What has to be known of it in a list, beside its figures.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = match self.end.as_deref() {
            Some("completed") => Vec::new(),
            Some(REFUSED) => vec!["refused by an agent: nothing ran".to_owned()],
            Some(end) => vec![end.to_owned()],
            None if self.is_under_way => vec!["running".to_owned()],
            None => vec!["did not finish: the process was killed or the host went down".to_owned()],
        };
        if self.origin.is_some() {
            remarks.push(format!("from {}", self.host.as_deref().unwrap_or("another host")));
        } else if self.bundle.is_none() && self.end.as_deref().is_some_and(|end| end != REFUSED) {
            remarks.push("bundle removed".to_owned());
        }
        match &self.hosts[..] {
            [] => {}
            [one] => remarks.push(format!("fleet of one host: {one}")),
            hosts => remarks.push(format!("{} hosts: {}", hosts.len(), hosts.join(", "))),
        }
        remarks.extend(self.experiment.as_ref().map(|experiment| format!("in {experiment}")));
        if !self.tags.is_empty() {
            let tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
            remarks.push(format!("tags: {}", tags.join(", ")));
        }
        remarks.extend(Some(self.note.clone()).filter(|note| !note.is_empty()));
        remarks
    }

    /// What the files of a bundle, or of a fleet's run, say; `None`: it is none that can be read.
    pub(crate) fn read(scanned: &ScannedDirectory) -> Option<Self> {
        if scanned.directory.join(FLEET).is_file() {
            return Self::read_fleet(scanned);
        }
        let file = |name: &str| fs::read(scanned.directory.join(name)).ok();
        let run: Run = serde_json::from_slice(&file("run.json")?).ok()?;
        let verdict = file("verdict.json")
            .and_then(|bytes| serde_json::from_slice::<StoredVerdict>(&bytes).ok());
        let environment: Environment = file("environment.json")
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        // A plan of a later version is not searched by its target; the run is listed.
        let plan = file("resolved.toml").and_then(|bytes| toml::from_slice::<Plan>(&bytes).ok());
        // Labels that can't be read are told where they are asked for.
        let labels = Labels::of(&scanned.directory).unwrap_or_default();
        let id = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut entry = Self {
            position: None,
            name: run.name.clone(),
            started_unix_ns: run.started_unix_ns,
            target: plan.and_then(|plan| target_summary(&plan, &environment)),
            end: Some(run.end.kind.word().to_owned()),
            experiment: scanned.experiment.as_deref().and_then(id),
            bundle: Some(scanned.directory.display().to_string()),
            read_latency_ns_avg: mean_ns(&run, true),
            write_latency_ns_avg: mean_ns(&run, false),
            measured_ns: run.measure().map(|phase| phase.duration_ns),
            host: environment.host,
            tags: labels.tags,
            note: labels.note,
            run_id: run.run_id,
            ..Self::default()
        };
        if let Some(verdict) = verdict {
            entry.verdict = Some(verdict.verdict);
            entry.reason = Some(verdict.reason);
            entry.achieved_iops_per_s = verdict.achieved_iops_per_s;
            entry.required_iops_per_s = verdict.required_iops_per_s;
            entry.headroom = verdict.headroom;
        }
        Some(entry)
    }
}

impl Entry {
    /// What the files of a fleet's run say: the sum of its hosts.
    fn read_fleet(scanned: &ScannedDirectory) -> Option<Self> {
        let file = |name: &str| fs::read(scanned.directory.join(name)).ok();
        let fleet: Fleet = serde_json::from_slice(&file(FLEET)?).ok()?;
        let verdict = file("verdict.json")
            .and_then(|bytes| serde_json::from_slice::<StoredVerdict>(&bytes).ok());
        let plan =
            file("all/resolved.toml").and_then(|bytes| toml::from_slice::<Plan>(&bytes).ok());
        let labels = Labels::of(&scanned.directory).unwrap_or_default();
        let id = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let hosts: Vec<String> = fleet.hosts.iter().map(|host| host.name.clone()).collect();
        let is_whole = fleet.ended_early.is_empty()
            && fleet.hosts.iter().all(|host| host.end == HostEnd::Reported);
        let mean_ns = |is_read: bool| {
            let pick = |class: &&Class| class.group == "transactional" && class.is_read == is_read;
            let classes = || fleet.classes.iter().filter(pick);
            let sum_ns: u64 = classes().map(|class| class.latency_ns_sum).sum();
            sum_ns.checked_div(classes().map(|class| class.latency_count).sum())
        };
        let achieved_iops_per_s = fleet.window.and_then(|_| {
            let rate = |host: &Host| {
                let run = host.run.as_ref().filter(|run| run.measured_ns > 0)?;
                let pick = |class: &&Class| class.group == "transactional";
                let count: u64 = run.classes.iter().filter(pick).map(|class| class.count).sum();
                Some(count as f64 * 1e9 / run.measured_ns as f64)
            };
            fleet.hosts.iter().map(rate).sum::<Option<f64>>()
        });
        Some(Self {
            target: plan.and_then(|plan| target_summary(&plan, &Environment::default())),
            end: Some(if is_whole { "completed" } else { "interrupted" }.to_owned()),
            verdict: verdict.as_ref().map(|verdict| verdict.verdict.clone()),
            reason: verdict.map(|verdict| verdict.reason),
            experiment: scanned.experiment.as_deref().and_then(id),
            bundle: Some(scanned.directory.display().to_string()),
            achieved_iops_per_s,
            read_latency_ns_avg: mean_ns(true),
            write_latency_ns_avg: mean_ns(false),
            measured_ns: fleet.window.map(|window| window.duration_ns),
            host: Some(hosts.join(", ")),
            hosts,
            tags: labels.tags,
            note: labels.note,
            started_unix_ns: fleet.started_unix_ns,
            name: fleet.name,
            run_id: fleet.run_id,
            ..Self::default()
        })
    }
}

fn mean_ns(run: &Run, is_read: bool) -> Option<u64> {
    let pick = |class: &ClassTotals| class.group == "transactional" && class.is_read == is_read;
    let sum_ns = run.sum(pick, |class| class.latency_ns_sum);
    sum_ns.checked_div(run.sum(pick, |class| class.count))
}
