//! Conditions under which each side of the comparison was measured, and the differences between
//! them.
//!
//! A condition consists of a name and one value for each run, as text. If the values differ between
//! the runs of one side, all values are shown. The target is the subject of the comparison, so it
//! is not a condition. If a plan names several targets, their file systems and mount options are
//! not conditions either, unless the user compares these.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, ExperimentKind};
use plimsoll_plan::ResolvedPlan;
use serde_json::Value;

use super::Side;
use crate::verdict::VerdictKind;

/// Name of the condition that some runs are INVALID.
pub(super) const INVALID_RUNS: &str = "invalid-runs";

/// Name of the condition for file systems and their mount options.
const MOUNT_OPTIONS: &str = "mount-options";

/// Fields of a resolved plan that are not conditions of the measurement: names, owner, compared
/// targets, requirement and number of runs.
const NOT_CONDITIONS: [&str; 11] = [
    "resolved_version",
    "name",
    "description",
    "owner",
    "demonstration",
    "practice",
    "claims",
    "targets",
    "repeat",
    "compare_factors",
    "durability",
];

/// Fields that are settings and not part of the workload. If two plans each follow the best
/// practice for their system, they may differ in these settings.
const SETTINGS: [&str; 14] = [
    "engine.",
    "workload.mailbox.threads",
    "workload.mailbox.cache_",
    "workload.mailbox.writes_in_flight",
    "workload.mailbox.log_writes_in_flight",
    "workload.mailbox.log_buffer_bytes",
    "workload.mailbox.log_file",
    "workload.mailbox.coalesce_max_bytes",
    "workload.mailbox.checkpoint_",
    "workload.mailbox.databases",
    "workload.mailbox.bias",
    "workload.mailbox.database_",
    "workload.matrix.streams.0.queue_depth",
    "workload.matrix.streams.0.clients",
];

/// A condition that differs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ConditionDifference {
    /// Name that accepts it: `--accept kernel`.
    pub name: String,
    /// Value on each side of the comparison.
    pub values: Vec<String>,
    /// True if the user accepted the difference. Also true if the condition is a setting and both
    /// plans follow best practice.
    pub accepted: bool,
    /// True if this condition is the subject of the comparison.
    #[serde(default)]
    pub factor: bool,
}

/// Returns true if the word is the name of the condition or the first part of its name, such as
/// `kernel` or `plan`.
pub(super) fn covers(word: &str, name: &str) -> bool {
    name == word || name.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
}

pub(super) fn factors_of_plans(sides: &[Side<'_>]) -> Vec<String> {
    let mut plans = sides.iter().flat_map(|side| &side.runs).map(|(bundle, _)| &bundle.plan);
    let Some(first) = plans.next() else { return Vec::new() };
    let others: Vec<&ResolvedPlan> = plans.collect();
    let all = |factor: &&String| others.iter().all(|plan| plan.compare_factors.contains(factor));
    first.compare_factors.iter().filter(all).cloned().collect()
}

/// Returns the conditions that differ between the sides of the comparison, including accepted ones
/// and factors.
///
/// `accepted` and `factors` contain names of conditions, or the part of such names before a dot:
/// for example, `plan` accepts every difference between the plans.
pub fn differing_conditions(
    sides: &[Side<'_>],
    accepted: &[String],
    factors: &[String],
) -> Vec<ConditionDifference> {
    let mounts = factors.iter().any(|word| word == MOUNT_OPTIONS);
    // Virtual time does not depend on a host.
    let mut runs = sides.iter().flat_map(|side| &side.runs);
    let host = runs.all(|(bundle, _)| bundle.run.driver != Driver::Model);
    let described: Vec<BTreeMap<String, String>> =
        sides.iter().map(|side| describe(side, mounts, host)).collect();
    let names: BTreeSet<&String> = described.iter().flat_map(BTreeMap::keys).collect();
    let practice = best_practice(sides);
    let mut differences = Vec::new();
    for name in names {
        let value =
            |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or("none".to_owned());
        let values: Vec<String> = described.iter().map(value).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            continue;
        }
        let factor = factors.iter().any(|word| covers(word, name));
        let taken = factor || accepted.iter().any(|word| covers(word, name));
        let setting = practice && is_setting(name);
        differences.push(ConditionDifference {
            name: name.clone(),
            values,
            accepted: taken || setting,
            factor,
        });
    }
    differences
}

/// Returns true if every side's plan claims to follow best practice.
pub fn best_practice(sides: &[Side<'_>]) -> bool {
    let says = |side: &Side<'_>| {
        side.runs.iter().all(|(bundle, _)| {
            bundle.plan.practice.as_deref().is_some_and(|p| p.eq_ignore_ascii_case("best practice"))
        })
    };
    sides.iter().all(says)
}

fn is_setting(name: &str) -> bool {
    name == MOUNT_OPTIONS
        || name
            .strip_prefix("plan.")
            .is_some_and(|field| SETTINGS.iter().any(|setting| field.starts_with(setting)))
}

/// Returns a side's conditions. If the value of a condition differs between the runs of the side,
/// the condition lists all these values. If `mounts` is true, mount options are conditions. If
/// `host` is true, properties of the host are conditions.
fn describe(side: &Side<'_>, mounts: bool, host: bool) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (bundle, verdict) in &side.runs {
        let mut one = plan_leaves(&bundle.plan);
        one.extend(conditions_of_run(bundle));
        if host {
            one.extend(conditions_of_host(bundle, mounts));
        }
        if verdict.verdict == VerdictKind::Invalid {
            one.insert(INVALID_RUNS.to_owned(), "some runs are INVALID".to_owned());
        }
        for (name, value) in one {
            all.entry(name).or_default().insert(value);
        }
    }
    let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
    all.into_iter().map(|(name, values)| (name, joined(values))).collect()
}

/// Returns all numbers and words of a plan that are conditions, with their dotted names.
fn plan_leaves(plan: &ResolvedPlan) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(plan) else { return leaves };
    for (name, value) in fields {
        if !NOT_CONDITIONS.contains(&name.as_str()) {
            gather(&format!("plan.{name}"), &value, &mut leaves);
        }
    }
    leaves
}

fn gather(name: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                gather(&format!("{name}.{field}"), value, leaves);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, value) in items.iter().enumerate() {
                gather(&format!("{name}.{index}"), value, leaves);
            }
        }
        Value::String(text) => {
            leaves.insert(name.to_owned(), text.clone());
        }
        other => {
            leaves.insert(name.to_owned(), other.to_string());
        }
    }
}

/// Returns the conditions outside the plan that do not depend on the host.
fn conditions_of_run(bundle: &Bundle) -> [(String, String); 4] {
    [
        ("version", bundle.run.tool_version.clone()),
        ("driver", driver(bundle.run.driver).to_owned()),
        ("tier", format!("{:?}", bundle.run.tier)),
        ("data", data(bundle).to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Returns the conditions that describe the host that issued the load.
fn conditions_of_host(bundle: &Bundle, mounts: bool) -> BTreeMap<String, String> {
    let host = &bundle.environment;
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut put = |name: &str, value: String| {
        all.insert(name.to_owned(), value);
    };
    put("cpu", known(host.cpu_model.clone()));
    put("cpus", known(host.cpus.map(|count| count.to_string())));
    put("memory", known(host.memory_bytes.map(gibibytes)));
    put("kernel", known(host.kernel.clone()));
    put("virtualisation", host.virtualisation.clone().unwrap_or_else(|| "none seen".to_owned()));
    put("interface", interface(bundle));
    put("cache-state", cache_state(bundle));
    put("working-set", working_set(bundle));
    for (name, value) in limits(bundle) {
        put(&name, value);
    }
    let place = bundle.run.experiment.as_ref();
    if mounts || !place.is_some_and(|place| place.kind == ExperimentKind::Compare) {
        put(MOUNT_OPTIONS, mount_options(bundle));
    }
    all
}

/// Process limits that are ignored, because their defaults depend on the host's memory and they do
/// not affect I/O.
const NOT_LIMITING: [&str; 4] = ["pending signals", "processes", "msgqueue size", "core file size"];

/// Returns the limits and priorities of the processes that issue the load. Limits that are not set
/// have no entry.
fn limits(bundle: &Bundle) -> Vec<(String, String)> {
    if bundle.run.driver != Driver::Real {
        return Vec::new();
    }
    let recorded = |value: &str| ("limits-recorded".to_owned(), value.to_owned());
    let Some(limits) = &bundle.observed.limits else { return vec![recorded("no")] };
    let groups = if limits.groups_read { "yes" } else { "not those of control groups" };
    let mut all = vec![recorded(groups)];
    let mut put = |name: &str, value: Option<String>| {
        all.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("memory-limit", limits.memory_bytes.map(|bytes| format!("{bytes} bytes")));
    put("cpu-limit", limits.cpus.map(|cpus| format!("{cpus} CPUs")));
    put("io-limit", Some(limits.io.join("; ")).filter(|text| !text.is_empty()));
    put("io-priority", limits.io_priority.clone());
    put("nice", limits.nice.map(|nice| nice.to_string()));
    for (name, weight) in &limits.weights {
        put(&format!("{name}-weight"), Some(weight.clone()));
    }
    let process = limits.process.iter().filter(|(name, _)| !NOT_LIMITING.contains(&name.as_str()));
    for (name, limit) in process {
        put(&format!("ulimit.{}", name.replace(' ', "-")), Some(limit.clone()));
    }
    all
}

fn driver(driver: Driver) -> &'static str {
    match driver {
        Driver::Real => "real storage",
        Driver::Model => "a model",
        Driver::Foreign => "a foreign tool",
    }
}

fn gibibytes(bytes: u64) -> String {
    // Rounded to 0.1 GiB, because the memory used by the firmware differs slightly from boot to
    // boot.
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Describes the interface that issued I/O, and whether it bypassed the page cache.
fn interface(bundle: &Bundle) -> String {
    let engine = &bundle.run.engine;
    let direct = engine.paths.iter().all(|path| path.direct);
    format!("{}, {}", engine.kind, if direct { "direct" } else { "buffered" })
}

/// Describes whether the data of an earlier run was reused.
fn data(bundle: &Bundle) -> &'static str {
    match bundle.run.experiment.as_ref().and_then(|place| place.data_of_run.as_ref()) {
        Some(_) => "reused from the previous run",
        None => "newly created",
    }
}

/// Files count as not cached if the share in the page cache is smaller than this constant. They
/// count as fully cached if it is larger than the next constant.
const NONE_RESIDENT: f64 = 0.05;
const ALL_RESIDENT: f64 = 0.95;

/// Describes the caches that were visible to the host at the start of the measurement. An array's
/// own caches are unknown.
fn cache_state(bundle: &Bundle) -> String {
    let cache = &bundle.observed.page_cache;
    let resident = match (cache.resident_bytes_before, cache.files_bytes) {
        (Some(resident), Some(files)) if files > 0 => match resident as f64 / files as f64 {
            share if share < NONE_RESIDENT => "no data in the page cache",
            share if share > ALL_RESIDENT => "all data in the page cache",
            _ => "some data in the page cache",
        },
        _ => "page cache unknown",
    };
    let dropped = match cache.system_dropped {
        Some(true) => ", system's caches dropped",
        Some(false) => ", system's caches not dropped",
        None => "",
    };
    format!("{resident}{dropped}")
}

/// Describes whether the data fits in the known caches: the host's memory and the caches that the
/// plan declares.
fn working_set(bundle: &Bundle) -> String {
    let bytes: u64 = bundle.run.instances.iter().map(|i| i.size_bytes_initial).sum();
    let against = |cache_bytes: Option<u64>, what: &str| match cache_bytes {
        _ if bytes == 0 => format!("size compared with {what}: unknown"),
        Some(cache) if bytes <= cache => format!("fits into {what}"),
        Some(_) => format!("larger than {what}"),
        None => format!("size compared with {what}: unknown"),
    };
    let memory = against(bundle.environment.memory_bytes, "the host's memory");
    let array = against(bundle.plan.observe.array_cache_bytes, "the array's cache");
    format!("{memory}, {array}")
}

/// For each mount, returns the file system and its mount options.
fn mount_options(bundle: &Bundle) -> String {
    let mounts = bundle.environment.mounts.iter().map(|mount| {
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("{} {}", known(&mount.file_system), known(&mount.options))
    });
    let all: BTreeSet<String> = mounts.collect();
    if all.is_empty() { "none".to_owned() } else { all.into_iter().collect::<Vec<_>>().join("; ") }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::Limits;

    use super::*;
    use crate::rules::fixtures;

    fn differ(own: Option<Limits>, other: Option<Limits>) -> Vec<String> {
        let side = |limits| {
            let mut bundle = fixtures::reads();
            bundle.observed.limits = limits;
            conditions_of_host(&bundle, false)
        };
        let (own, other) = (side(own), side(other));
        let names: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        let apart = |name: &&String| own.get(*name) != other.get(*name);
        names.into_iter().filter(apart).cloned().collect()
    }

    #[test]
    fn limits_and_priorities_that_differ_are_named() {
        let plain = || Limits { groups_read: true, nice: Some(0), ..Limits::default() };
        let other: [(&str, Limits); 8] = [
            ("memory-limit", Limits { memory_bytes: Some(1 << 30), ..plain() }),
            ("cpu-limit", Limits { cpus: Some(0.5), ..plain() }),
            ("io-limit", Limits { io: vec!["8:0 reads-per-s 100".into()], ..plain() }),
            ("io-priority", Limits { io_priority: Some("idle".into()), ..plain() }),
            ("nice", Limits { nice: Some(19), ..plain() }),
            ("io-weight", Limits { weights: one("io", "10"), ..plain() }),
            ("ulimit.open-files", Limits { process: one("open files", "64/64"), ..plain() }),
            ("limits-recorded", Limits { groups_read: false, ..plain() }),
        ];
        for (name, limits) in other {
            assert_eq!(differ(Some(plain()), Some(limits.clone())), [name]);
            assert!(differ(Some(limits.clone()), Some(limits)).is_empty(), "{name}");
        }
        assert!(differ(None, None).is_empty(), "two bundles of earlier versions");
        assert!(differ(Some(plain()), None).contains(&"limits-recorded".to_owned()));
        let signals = Limits { process: one("pending signals", "1/1"), ..plain() };
        assert!(differ(Some(plain()), Some(signals)).is_empty(), "follows from the memory");
    }

    #[test]
    fn a_model_has_no_conditions_of_a_host() {
        let measured = fixtures::reads();
        let mut predicted = fixtures::reads();
        predicted.run.driver = Driver::Model;
        predicted.run.engine.kind = "model".to_owned();
        predicted.environment.kernel = Some("another".to_owned());
        predicted.plan.seed += 1;
        let verdicts = [crate::judge(&measured), crate::judge(&predicted)];
        let side = |name: &str, bundle, verdict| Side {
            name: name.to_owned(),
            runs: vec![(bundle, verdict)],
        };
        let sides =
            [side("here", &measured, &verdicts[0]), side("model", &predicted, &verdicts[1])];
        let differences = differing_conditions(&sides, &[], &[]);
        let names: Vec<&str> = differences.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["driver", "plan.seed"]);
    }

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }
}
