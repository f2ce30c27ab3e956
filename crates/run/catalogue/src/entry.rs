//! Catalogue entries of runs and experiments. They are read from the files of a bundle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::fleet::{BY_OPERATOR, Class, Fleet, Host, HostEnd};
use plimsoll_evidence::run::{ClassTotals, Driver, EndKind, Run};
use plimsoll_plan::Target;
use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::scan::{FLEET, ScannedDirectory};
use crate::verification::{LedgerRecord, UNVERIFIED};

/// A run in the catalogue. It is known from the ledger, from its bundle, or from both of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Line of the ledger that records the start of the run. Users refer to the run by this number.
    /// `None` if the run is not in this machine's ledger.
    pub position: Option<u64>,
    pub run_id: String,
    pub name: String,
    /// Owner of the run in the team's catalogue. `None` for runs of this user on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    pub started_unix_ns: u64,
    /// Storage under test: the targets of the plan, with the underlying file systems and devices.
    #[serde(default)]
    pub target: Option<String>,
    /// How the run ended. `None` if the run is still running or was killed.
    pub end: Option<String>,
    /// True while the run's process exists, which locks the directory of its bundle. If the process
    /// is killed, the lock is released.
    #[serde(default)]
    pub is_under_way: bool,
    /// True if the coordinator of this fleet run was killed. The hosts may still run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_resumable: bool,
    /// The verdict in the ledger, in capitals; [`UNVERIFIED`] if the ledger does not confirm the
    /// run.
    pub verdict: Option<String>,
    /// Verdict that the bundle or another user states, but that the ledger does not confirm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_verdict: Option<String>,
    /// Description of how the bundle differs from the ledger; `None` if they match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// One sentence that explains the verdict.
    pub reason: Option<String>,
    pub experiment: Option<String>,
    /// Directory of the bundle. `None` if it was removed or never written.
    pub bundle: Option<String>,
    /// Transactional I/Os per second.
    pub achieved_iops_per_s: Option<f64>,
    /// Required transactional I/Os per second, from the plan.
    pub required_iops_per_s: Option<f64>,
    /// Achieved rate divided by the required rate, minus one.
    pub headroom: Option<f64>,
    /// Mean latency of transactional reads.
    pub read_latency_ns_avg: Option<u64>,
    /// Mean latency of transactional writes.
    pub write_latency_ns_avg: Option<u64>,
    /// Duration of the measurement, in nanoseconds.
    pub measured_ns: Option<u64>,
    pub host: Option<String>,
    /// Hosts of a fleet run; empty if the run used one host without a fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    pub tags: BTreeSet<String>,
    pub note: String,
}

/// A directory of related runs, such as a sweep or a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentEntry {
    pub id: String,
    pub directory: PathBuf,
}

/// Fields of `verdict.json` that are shown in lists of runs.
#[derive(Deserialize)]
struct StoredVerdict {
    verdict: String,
    reason: String,
    achieved_iops_per_s: Option<f64>,
    required_iops_per_s: Option<f64>,
    headroom: Option<f64>,
}

impl StoredVerdict {
    fn parse(bytes: Option<&[u8]>) -> Option<Self> {
        serde_json::from_slice(bytes?).ok()
    }
}

/// Fields of `environment.json` by which the catalogue is searched for runs.
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

/// Fields of `resolved.toml` by which the catalogue is searched for runs.
#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    targets: Vec<Target>,
}

/// Formats the targets with the underlying file systems and devices: `/mnt/test (ext4, nvme0n1
/// PM9A3)`.
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

/// Outcome that the ledger records for a fleet run that an agent refused.
const REFUSED: &str = "refused";

impl Entry {
    /// Returns true if the bundle can be read on this host, or after a download from the team's
    /// catalogue.
    pub fn has_bundle(&self) -> bool {
        self.bundle.is_some() || self.origin.is_some()
    }

    /// Returns true if the run used a model: the reason of every verdict on a model starts with
    /// `modelled:`.
    pub fn is_modelled(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with("modelled:"))
    }

    /// Returns the verdict as lists show it: `MODELLED PASS`, `UNVERIFIED (PASS)`, `none`.
    pub fn verdict_label(&self) -> String {
        let verdict = self.verdict.as_deref().unwrap_or("none");
        let modelled = if self.is_modelled() { "MODELLED " } else { "" };
        match &self.claimed_verdict {
            Some(claimed) => format!("{verdict} ({modelled}{claimed})"),
            None => format!("{modelled}{verdict}"),
        }
    }

    /// Marks the bundle as not readable.
    pub(crate) fn mark_damaged(&mut self, directory: &Path) {
        self.bundle = Some(directory.display().to_string());
        self.doubt = Some("the bundle is damaged: its evidence cannot be read".to_owned());
    }

    /// Marks the verdict as not confirmed by the ledger.
    pub(crate) fn mark_unverified(&mut self) {
        if self.verdict.as_deref().is_some_and(|verdict| verdict != UNVERIFIED) {
            self.claimed_verdict = self.verdict.replace(UNVERIFIED.to_owned());
        }
    }

    /// Sets the verdict and the figures from files that the ledger confirms. `sealed` contains the
    /// evidence files in `directory` from which this entry was read.
    fn verify(
        &mut self,
        record: Option<&LedgerRecord<'_>>,
        directory: &Path,
        sealed: &[(&str, &[u8])],
        verdict_file: Option<(&[u8], &str)>,
    ) {
        let Some(record) = record else { return self.mark_unverified() };
        if !record.confirms_files(directory, sealed) {
            self.doubt = Some("the evidence differs from the ledger".to_owned());
            self.verdict = Some(UNVERIFIED.to_owned());
            self.drop_figures();
            (self.read_latency_ns_avg, self.write_latency_ns_avg) = (None, None);
            self.measured_ns = None;
            return;
        }
        let confirms = |(bytes, verdict)| record.confirms_verdict_file(bytes, verdict);
        if !verdict_file.is_some_and(confirms) && record.verdict != "none" {
            let state =
                if verdict_file.is_some() { "differs from the ledger" } else { "is missing" };
            self.doubt = Some(format!("verdict.json {state}"));
            self.drop_figures();
        }
        self.verdict = Some(record.verdict).filter(|verdict| *verdict != "none").map(str::to_owned);
    }

    /// Removes all values that came from `verdict.json`, except the fact that the run used a model.
    fn drop_figures(&mut self) {
        self.reason = self.is_modelled().then(|| "modelled: the verdict's file differs".to_owned());
        (self.achieved_iops_per_s, self.required_iops_per_s) = (None, None);
        self.headroom = None;
    }

    /// Describes a run that has no end in the ledger and is not running.
    fn interruption(&self) -> String {
        match self.is_resumable {
            true => format!(
                "its coordinator was killed, and the hosts may still run: continue with `plimsoll \
                 run --resume {} --fleet FLEET`",
                self.run_id
            ),
            false => "did not finish: the process was killed or the host went down".to_owned(),
        }
    }

    /// Returns the reason why this run has no bundle, for a command that needs the bundle.
    pub fn missing_bundle(&self) -> String {
        let (run, removed) = (&self.run_id, format!("the bundle of {} was removed", self.run_id));
        match self.end.as_deref() {
            Some(REFUSED) => {
                format!("run {run} has no bundle: an agent refused the plan, so no load was run")
            }
            Some(_) => removed,
            None if self.is_under_way => format!("run {run} has no bundle yet: it is running"),
            None => format!("run {run} has no bundle: {}", self.interruption()),
        }
    }

    /// Returns the remarks that a list shows next to the figures of the run.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = match self.end.as_deref() {
            Some("completed") => Vec::new(),
            Some(REFUSED) => vec!["an agent refused the plan, so no load was run".to_owned()],
            Some(end) => vec![end.to_owned()],
            None if self.is_under_way => vec!["running".to_owned()],
            None => vec![self.interruption()],
        };
        if self.origin.is_some() {
            remarks.push(format!("from {}", self.host.as_deref().unwrap_or("another host")));
        } else if self.bundle.is_none() && self.end.as_deref().is_some_and(|end| end != REFUSED) {
            remarks.push("bundle removed".to_owned());
        }
        match &self.hosts[..] {
            [] => {}
            [one] => remarks.push(format!("fleet with one host: {one}")),
            hosts => remarks.push(format!("{} hosts: {}", hosts.len(), hosts.join(", "))),
        }
        remarks.extend(self.doubt.clone());
        remarks.extend(self.experiment.as_ref().map(|experiment| format!("in {experiment}")));
        if !self.tags.is_empty() {
            let tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
            remarks.push(format!("tags: {}", tags.join(", ")));
        }
        remarks.extend(Some(self.note.clone()).filter(|note| !note.is_empty()));
        remarks
    }

    /// Reads the entry of a bundle or fleet run. `None` if its files cannot be read.
    pub(crate) fn read(
        scanned: &ScannedDirectory,
        record: Option<&LedgerRecord<'_>>,
    ) -> Option<Self> {
        if scanned.directory.join(FLEET).is_file() {
            return Self::read_fleet(scanned, record);
        }
        let file = |name: &str| fs::read(scanned.directory.join(name)).ok();
        let run_file = file("run.json")?;
        let run: Run = serde_json::from_slice(&run_file).ok()?;
        let verdict_file = file("verdict.json");
        let verdict = StoredVerdict::parse(verdict_file.as_deref());
        let (environment_file, plan_file) = (file("environment.json"), file("resolved.toml"));
        let environment: Environment = environment_file
            .as_deref()
            .and_then(|bytes| serde_json::from_slice(bytes).ok())
            .unwrap_or_default();
        // If a newer version wrote the plan, the run is still listed, but a search for its target
        // does not find it.
        let plan = plan_file.as_deref().and_then(|bytes| toml::from_slice::<Plan>(bytes).ok());
        // Unreadable labels are ignored here, because commands that show labels report them.
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
            run_id: run.run_id.clone(),
            ..Self::default()
        };
        let word = verdict.as_ref().map(|verdict| verdict.verdict.clone()).unwrap_or_default();
        if let Some(verdict) = verdict {
            entry.verdict = Some(verdict.verdict);
            entry.reason = Some(verdict.reason);
            entry.achieved_iops_per_s = verdict.achieved_iops_per_s;
            entry.required_iops_per_s = verdict.required_iops_per_s;
            entry.headroom = verdict.headroom;
        }
        if run.driver == Driver::Model && !entry.is_modelled() {
            entry.reason = Some("modelled: the verdict's file differs".to_owned());
        }
        let verdict_file = verdict_file.as_deref().map(|bytes| (bytes, word.as_str()));
        let mut sealed = vec![("run.json", &run_file[..])];
        sealed.extend(environment_file.as_deref().map(|bytes| ("environment.json", bytes)));
        sealed.extend(plan_file.as_deref().map(|bytes| ("resolved.toml", bytes)));
        entry.verify(record, &scanned.directory, &sealed, verdict_file);
        Some(entry)
    }
}

impl Entry {
    /// Reads the entry of a fleet run. Its figures are sums over all hosts.
    fn read_fleet(scanned: &ScannedDirectory, record: Option<&LedgerRecord<'_>>) -> Option<Self> {
        let file = |name: &str| fs::read(scanned.directory.join(name)).ok();
        let fleet_file = file(FLEET)?;
        let fleet: Fleet = serde_json::from_slice(&fleet_file).ok()?;
        let verdict_file = file("verdict.json");
        let verdict = StoredVerdict::parse(verdict_file.as_deref());
        let word = verdict.as_ref().map(|verdict| verdict.verdict.clone()).unwrap_or_default();
        let plan_file = file("all/resolved.toml");
        let plan = plan_file.as_deref().and_then(|bytes| toml::from_slice::<Plan>(bytes).ok());
        let labels = Labels::of(&scanned.directory).unwrap_or_default();
        let id = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let hosts: Vec<String> = fleet.hosts.iter().map(|host| host.name.clone()).collect();
        let is_whole = fleet.ended_early.is_empty()
            && fleet.counted().all(|host| host.end == HostEnd::Reported);
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
            fleet.counted().map(rate).sum::<Option<f64>>()
        });
        let mut entry = Self {
            target: plan.and_then(|plan| target_summary(&plan, &Environment::default())),
            end: Some(match record {
                Some(record) => record.end.to_owned(),
                None => end_of_fleet(is_whole, &fleet.ended_early).word().to_owned(),
            }),
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
        };
        let verdict_file = verdict_file.as_deref().map(|bytes| (bytes, word.as_str()));
        let mut sealed = vec![("fleet.json", &fleet_file[..])];
        sealed.extend(plan_file.as_deref().map(|bytes| ("resolved.toml", bytes)));
        entry.verify(record, &scanned.directory.join("all"), &sealed, verdict_file);
        Some(entry)
    }
}

/// Returns the mean latency of reads or writes. A write that waits for a flush counts as completed
/// when the flush completes.
fn mean_ns(run: &Run, is_read: bool) -> Option<u64> {
    // A mail store that flushes nothing still has this class, but the class has no operations.
    let has_durable = run.classes.iter().any(|class| class.group == "durable" && class.count > 0);
    let group = if has_durable && !is_read { "durable" } else { "transactional" };
    let pick = |class: &ClassTotals| class.group == group && class.is_read == is_read;
    let sum_ns = run.sum(pick, |class| class.latency_ns_sum);
    sum_ns.checked_div(run.sum(pick, |class| class.count))
}

/// Returns how a fleet run ended that is not in the ledger. `is_whole`: all hosts sent complete
/// evidence. Only an operator interrupts a run.
fn end_of_fleet(is_whole: bool, ended_early: &str) -> EndKind {
    match ended_early {
        "" if is_whole => EndKind::Completed,
        BY_OPERATOR => EndKind::Interrupted,
        _ => EndKind::Environment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_operator_interrupts_a_fleet() {
        assert_eq!(end_of_fleet(true, ""), EndKind::Completed);
        assert_eq!(end_of_fleet(false, ""), EndKind::Environment);
        assert_eq!(end_of_fleet(false, "b was lost"), EndKind::Environment);
        assert_eq!(end_of_fleet(false, BY_OPERATOR), EndKind::Interrupted);
    }
}
