//! `experiment.toml`: the method, the arms with their settings, and the questions. The plan of an
//! arm is one of the experiment's plan files, merged with the changes of the arm. Each difference
//! between arms is therefore specified only once, and each arm can run separately.

use std::collections::BTreeMap;

use plimsoll_plan::{Change, Plan, ResolvedPlan, merge_plans, overlay};
use plimsoll_runner::error::RunnerError;
use toml::{Table, Value};

use crate::analysis::{Panel, PublishedFigure, Role};
use crate::experiment_file::{Arm, ExperimentFile, merge};
use crate::files::Files;
use crate::published_figures::parse_figures;

/// Version of `experiment.toml` that this build reads.
const VERSION: u32 = 1;

/// Kind of storage (a model or real storage) on which the experiment's arms run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageKind {
    /// The arms run on the experiment's model, in virtual time.
    #[default]
    Model,
    Real,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Files of the experiment.
    pub files: Files,
    /// Parsed `experiment.toml`.
    pub text: ExperimentFile,
    pub given: Vec<PublishedFigure>,
}

/// Changes that the user makes to an experiment for this run.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Fields that are set in every arm's plan, as dotted names and TOML values.
    pub set: Vec<(String, String)>,
    /// Directories, devices or exports, with the names of the places as keys.
    pub places: BTreeMap<String, String>,
    /// True if the places are on the hosts of a fleet. The hosts then check the places.
    pub on_hosts: bool,
    /// Number of runs of each arm; `None` for the number in the experiment.
    pub repeats: Option<u32>,
    /// Names of the arms of the experiment that are run; empty for all arms.
    pub arms: Vec<String>,
    /// Fitted values of model parameters, with the paths of the parameters as keys.
    pub fitted: BTreeMap<String, f64>,
}

/// An arm of the experiment, or one point of an arm that is a sweep, ready to run.
#[derive(Clone, Debug)]
pub struct PlannedArm {
    /// Name of the experiment's arm, or of the point of a sweep, in the analysis.
    pub name: String,
    /// Arm to which the point belongs.
    pub of: Arm,
    /// Plan as written in the file.
    pub plan: Plan,
    /// Resolved plan, as executed.
    pub resolved: ResolvedPlan,
    /// Names and values of the settings that differ from the previous arm.
    pub changes: Vec<(String, String)>,
    /// Number of runs.
    pub repeats: u32,
    /// Number of servers; reports show the achieved rate per server.
    pub servers: u32,
}

impl Definition {
    /// Reads an experiment's files.
    ///
    /// # Errors
    /// The first error in the files, with the file's name.
    pub fn read(files: Files) -> Result<Self, RunnerError> {
        let name = files.name.clone();
        let wrong = |says: String| RunnerError::usage(format!("{name}/experiment.toml: {says}"));
        let text = files.texts.get("experiment.toml").map_or("", String::as_str);
        let text: ExperimentFile =
            toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if text.version != VERSION {
            return Err(wrong(format!(
                "version {} is not supported; this build reads version {VERSION}",
                text.version
            )));
        }
        let given = match files.texts.get("published.csv") {
            Some(text) => parse_figures(&format!("{name}/published.csv"), text, Role::Given)?,
            None => Vec::new(),
        };
        let definition = Self { files, text, given };
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let text = &self.text;
        self.check_tables()?;
        let mut of_arms = text.arm.iter().chain(&text.real).filter_map(|arm| arm.repeats);
        if text.repeats == 0 || of_arms.any(|repeats| repeats == 0) {
            return Err("repeats must be at least 1".to_owned());
        }
        if text.arm.iter().all(|arm| arm.search.is_some()) {
            return Err("the experiment has no [[arm]]".to_owned());
        }
        for arms in [&text.arm, &text.real] {
            for (at, arm) in arms.iter().enumerate() {
                if arms[..at].iter().any(|other| other.name == arm.name) {
                    return Err(format!("two arms of the experiment have the name {}", arm.name));
                }
                if !self.files.texts.contains_key(&arm.plan) {
                    return Err(format!(
                        "arm {}: the plan file {} is not in the same directory",
                        arm.name, arm.plan
                    ));
                }
            }
        }
        // Returns true if the name is that of an arm of the experiment, or of a point of an arm
        // that is a sweep.
        let named = |name: &String| {
            let is = |arm: &Arm| {
                let rest = name.strip_prefix(&arm.name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            text.arm.iter().chain(&text.real).any(is)
        };
        let requested =
            text.question.iter().flat_map(|q| q.arm.iter().chain(&q.over).chain(&q.among));
        let requested = requested.chain(text.panel.iter().flat_map(|panel| &panel.arms));
        if let Some(unknown) = requested.chain(&text.reference).find(|name| !named(name)) {
            return Err(format!("the experiment has no arm {unknown}"));
        }
        let uneven = |p: &&Panel| !p.along.is_empty() && p.at.len() != p.arms.len();
        if let Some(panel) = text.panel.iter().find(uneven) {
            let (at, arms) = (panel.at.len(), panel.arms.len());
            return Err(format!(
                "[[panel]] {}: `at` must have one value for each arm, but has {at} values for \
                 {arms} arms",
                panel.title
            ));
        }
        if !(text.tolerance > 0.0 && text.tolerance < 1.0) {
            return Err("`tolerance` must be a share between 0 and 1".to_owned());
        }
        Ok(())
    }

    /// Returns the experiment's arms that are runs, each with its plan.
    ///
    /// # Errors
    /// The experiment has no arms of this kind, an arm or place is unknown, or a plan is invalid.
    pub fn arms(
        &self,
        on: StorageKind,
        overrides: &Overrides,
    ) -> Result<Vec<PlannedArm>, RunnerError> {
        let mut all = self.planned(on, overrides)?;
        all.retain(|arm| arm.of.search.is_none());
        Ok(all)
    }

    /// Returns the experiment's arms that are load searches, each with its plan.
    ///
    /// # Errors
    /// The errors of [`Self::arms`].
    pub fn searches(
        &self,
        on: StorageKind,
        overrides: &Overrides,
    ) -> Result<Vec<PlannedArm>, RunnerError> {
        let mut all = self.planned(on, overrides)?;
        all.retain(|arm| arm.of.search.is_some());
        Ok(all)
    }

    fn planned(
        &self,
        on: StorageKind,
        overrides: &Overrides,
    ) -> Result<Vec<PlannedArm>, RunnerError> {
        let arms = match on {
            StorageKind::Model => &self.text.arm,
            StorageKind::Real => &self.text.real,
        };
        if arms.is_empty() {
            let says =
                format!("experiment {} has no arms that run on real storage", self.files.name);
            return Err(
                RunnerError::usage(says).hint("omit --on to run the experiment on its model")
            );
        }
        if let Some(unknown) =
            overrides.arms.iter().find(|name| !arms.iter().any(|a| a.name == **name))
        {
            let known: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(RunnerError::usage(format!("the experiment has no arm {unknown}"))
                .hint(format!("arms: {}", known.join(", "))));
        }
        self.check_places(arms, overrides)?;
        let mut kept = Table::new();
        let mut planned: Vec<PlannedArm> = Vec::new();
        for arm in arms {
            let changes = if self.text.cumulative {
                let mut changes = kept.clone();
                merge(&mut changes, arm.change.clone());
                if arm.search.is_none() {
                    kept = changes.clone();
                }
                changes
            } else {
                arm.change.clone()
            };
            planned.extend(self.plan_arm(arm, on, changes, overrides)?);
        }
        if !overrides.arms.is_empty() {
            planned.retain(|one| overrides.arms.contains(&one.of.name));
        }
        Ok(planned)
    }

    fn check_places(&self, arms: &[Arm], overrides: &Overrides) -> Result<(), RunnerError> {
        let required = |name: &str| arms.iter().any(|arm| arm.places.iter().any(|p| p == name));
        let mut names: Vec<&str> =
            arms.iter().flat_map(|a| &a.places).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let known = format!("places: {}", names.join(", "));
        if let Some(unknown) = overrides.places.keys().find(|name| !required(name)) {
            return Err(RunnerError::usage(format!("there is no place {unknown}")).hint(known));
        }
        let needed = |arm: &&Arm| overrides.arms.is_empty() || overrides.arms.contains(&arm.name);
        let mut needed = arms.iter().filter(needed).flat_map(|arm| &arm.places);
        if let Some(missing) = needed.find(|name| !overrides.places.contains_key(*name)) {
            let says = format!("no path was given for the place {missing}");
            return Err(RunnerError::usage(says).hint(format!(
                "pass --path {missing}=DIRECTORY (or a device, or an NFS export); {known}"
            )));
        }
        Ok(())
    }

    /// Returns the plan of an arm of the experiment, or the plans of its points.
    fn plan_arm(
        &self,
        arm: &Arm,
        on: StorageKind,
        mut changes: Table,
        overrides: &Overrides,
    ) -> Result<Vec<PlannedArm>, RunnerError> {
        let experiment = &self.files.name;
        let wrong = |error: &dyn std::fmt::Display| {
            RunnerError::usage(format!("{experiment}, arm {}: {error}", arm.name))
        };
        if let Some(target) = target(&arm.places, overrides) {
            changes.insert("target".to_owned(), Value::Table(target));
        }
        for (field, value) in &overrides.set {
            // As in `plimsoll run`, the quotes around a text are optional.
            let invalid = |error: &dyn std::fmt::Display| {
                RunnerError::usage(format!("--set {field}={value}: {error}"))
                    .hint("write for example --set phases.measure=60s")
            };
            let change =
                Change::parse(&format!("{field}={value}")).map_err(|error| invalid(&error))?;
            let text = overlay("", experiment, &[change]).map_err(|error| invalid(&error))?;
            merge(&mut changes, text.parse().map_err(|error: toml::de::Error| invalid(&error))?);
        }
        changes.insert("name".to_owned(), Value::String(format!("{experiment}-{}", arm.name)));
        let base = (self.files.texts.get(&arm.plan).map_or("", String::as_str), arm.plan.as_str());
        if on == StorageKind::Model {
            changes = self.with_fitted(base.0, changes, &overrides.fitted);
        }
        let text = toml::to_string(&changes).map_err(|error| wrong(&error))?;
        let merged =
            merge_plans(base, (&text, "experiment.toml")).map_err(|error| wrong(&error))?;
        let source = format!("{experiment}/{} with the changes of arm {}", arm.plan, arm.name);
        let plan = Plan::parse(&merged, &source).map_err(|error| wrong(&error))?;
        let resolved = plan.resolve();
        // On real storage, the published number of servers does not apply, unless an arm of the
        // experiment states it.
        let servers = if on == StorageKind::Model { self.text.servers } else { 1 };
        if arm.search.is_some() && resolved.points().len() > 1 {
            return Err(wrong(
                &"a search requires a plan with a single point, but this plan is a sweep with \
                  several points",
            ));
        }
        let one = |name: String, resolved: ResolvedPlan| PlannedArm {
            name,
            of: arm.clone(),
            plan: plan.clone(),
            resolved,
            changes: leaves(&arm.change),
            repeats: overrides.repeats.or(arm.repeats).unwrap_or(self.text.repeats),
            servers: arm.servers.unwrap_or(servers).max(1),
        };
        let points = resolved.points();
        if points.len() < 2 {
            return Ok(vec![one(arm.name.clone(), resolved)]);
        }
        Ok(points.into_iter().map(|p| one(format!("{} {}", arm.name, p.label), p.plan)).collect())
    }
}

/// Returns the target that consists of the operator's places.
fn target(places: &[String], overrides: &Overrides) -> Option<Table> {
    let mut of: Vec<String> = Vec::new();
    for place in places {
        of.push(overrides.places.get(place)?.clone());
    }
    let first = of.first()?;
    let list = |all: &[String]| Value::Array(all.iter().cloned().map(Value::String).collect());
    let mut table = Table::new();
    if first.starts_with("nfs://") {
        table.insert("nfs".to_owned(), list(&of));
    } else if first.starts_with("/dev/") {
        table.insert("device".to_owned(), Value::String(first.clone()));
    } else if of.len() > 1 {
        table.insert("databases".to_owned(), list(&of));
        table.insert("logs".to_owned(), list(&of));
    } else {
        table.insert("path".to_owned(), Value::String(first.clone()));
    }
    Some(table)
}

/// Returns dotted names and values; model parameters have no `target.set` prefix.
fn leaves(changes: &Table) -> Vec<(String, String)> {
    fn gather(at: &str, value: &Value, all: &mut Vec<(String, String)>) {
        match value {
            Value::Table(table) => {
                for (name, value) in table {
                    let dotted = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                    gather(&dotted, value, all);
                }
            }
            other => all.push((at.to_owned(), other.to_string())),
        }
    }
    let mut all = Vec::new();
    gather("", &Value::Table(changes.clone()), &mut all);
    for (name, _) in &mut all {
        for prefix in ["target.set.", "workload.mailbox.", "workload.matrix."] {
            if let Some(rest) = name.strip_prefix(prefix) {
                *name = rest.to_owned();
            }
        }
    }
    all
}
