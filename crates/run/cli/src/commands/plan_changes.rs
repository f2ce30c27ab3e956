//! Loads a plan from a file or the built-in plans, and applies the changes of the flags.

use std::path::Path;

use clap::Args;
use plimsoll_import::fio_job::read_job;
use plimsoll_plan::{Change, Plan, PlanErrors, gallery_plan, nearest_gallery_plan, overlay};
use plimsoll_runner::run::check_accepted;
use toml::Value;

use super::job;
use crate::error::CliError;
pub use crate::error::plan_error;

/// Changes to a plan.
#[derive(Clone, Debug, Default, Args)]
pub struct Changes {
    /// Directory to use instead of the plan's target. A mail store can use several directories.
    #[arg(long, value_name = "DIR", visible_alias = "directory")]
    pub path: Vec<String>,
    /// Directory for the logs of a mail store, instead of the plan's log directory.
    #[arg(long, value_name = "DIR")]
    pub logs: Vec<String>,
    /// Block device to use instead of the plan's target.
    #[arg(long, value_name = "DEVICE", value_parser = crate::address::device, conflicts_with_all = ["path", "logs"])]
    pub device: Option<String>,
    /// NFS export to use instead of the plan's target: nfs://host/export.
    #[arg(long, value_name = "EXPORT", value_parser = crate::address::nfs_export, conflicts_with_all = ["path", "logs", "device"])]
    pub nfs: Vec<String>,
    /// Model to use instead of the plan's target.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["path", "logs", "device", "nfs"])]
    pub model: Option<String>,
    /// Change a field of the plan, such as `phases.measure=10m`. An empty value removes the field.
    /// May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
}

impl Changes {
    /// Returns true if the flags set a target.
    pub fn has_target(&self) -> bool {
        !self.path.is_empty()
            || self.device.is_some()
            || !self.nfs.is_empty()
            || self.model.is_some()
    }

    /// Returns the targets for a plan that is built from flags: one directory, device or model, or
    /// one or more NFS exports.
    ///
    /// # Errors
    /// Several directories or a log directory were given.
    pub fn places(&self) -> Result<Vec<String>, CliError> {
        if !self.logs.is_empty() || self.path.len() > 1 {
            return Err(CliError::usage(
                "only a mail store can use several directories or a log directory",
            )
            .hint("use only one --path, or a plan such as exchange-1000-heavy"));
        }
        let model = self.model.iter().map(|model| format!("model:{model}"));
        let all = self.path.iter().chain(&self.device).chain(&self.nfs).cloned();
        Ok(all.chain(model).collect())
    }

    /// Applies only the field changes (`--set`) to a plan that is built from flags.
    ///
    /// # Errors
    /// The plan is invalid. The error lists all problems.
    pub fn set_in(&self, plan: &Plan) -> Result<Plan, CliError> {
        Self { set: self.set.clone(), ..Self::default() }.apply(plan)
    }

    /// Applies all changes to a plan.
    ///
    /// # Errors
    /// The plan is invalid. The error lists all problems.
    pub fn apply(&self, plan: &Plan) -> Result<Plan, CliError> {
        let changes = self.fields()?;
        with_changes(plan, &changes).map_err(|errors| plan_error(&errors))
    }

    /// Converts the options to field changes.
    ///
    /// # Errors
    /// A `--set` argument is not FIELD=VALUE.
    pub fn fields(&self) -> Result<Vec<Change>, CliError> {
        let text = |text: &String| Value::String(text.clone());
        let list = |all: &[String]| Value::Array(all.iter().map(text).collect());
        let mut changes = Vec::new();
        match &self.path[..] {
            [] => {}
            [only] if self.logs.is_empty() => changes.push(Change::set("target.path", text(only))),
            several => changes.push(Change::set("target.databases", list(several))),
        }
        if !self.logs.is_empty() {
            changes.push(Change::set("target.logs", list(&self.logs)));
        }
        changes.extend(self.device.as_ref().map(|d| Change::set("target.device", text(d))));
        changes.extend(self.model.as_ref().map(|m| Change::set("target.model", text(m))));
        if !self.nfs.is_empty() {
            changes.push(Change::set("target.nfs", list(&self.nfs)));
        }
        for given in &self.set {
            let change = Change::parse(given)
                .map_err(|says| CliError::usage(format!("--set {given}: {says}")))?;
            changes.push(change);
        }
        Ok(changes)
    }

    /// Loads a plan from a file or the built-in plans, and applies the changes.
    ///
    /// # Errors
    /// The plan is invalid. The message lists all errors.
    pub fn plan(&self, name: &str) -> Result<Plan, CliError> {
        self.plan_with(name, Vec::new())
    }

    /// Like [`Self::plan`], but applies the changes in `first` before those of the flags.
    ///
    /// # Errors
    /// The errors of [`Self::plan`].
    pub fn plan_with(&self, name: &str, mut first: Vec<Change>) -> Result<Plan, CliError> {
        first.extend(self.fields()?);
        let plan = with_fields(name, &first)?.map_err(|errors| plan_error(&errors))?;
        check_accepted(&plan.resolve().evidence.accept_unknown)?;
        Ok(plan)
    }

    /// Like [`Self::plan`], but returns the errors of the plan as a separate type.
    ///
    /// # Errors
    /// The plan is unknown, or a change is invalid.
    pub fn read(&self, name: &str) -> Result<Result<Plan, PlanErrors>, CliError> {
        with_fields(name, &self.fields()?)
    }
}

/// Applies changes to a plan.
///
/// # Errors
/// The plan is invalid. The error lists all problems.
pub fn with_changes(plan: &Plan, changes: &[Change]) -> Result<Plan, PlanErrors> {
    if changes.is_empty() {
        return Ok(plan.clone());
    }
    let text = overlay(plan.text(), plan.source_name(), changes)?;
    Plan::parse(&text, plan.source_name())
}

/// Loads a plan or fio job from a file, or a built-in plan, and applies the changes.
fn with_fields(name: &str, changes: &[Change]) -> Result<Result<Plan, PlanErrors>, CliError> {
    let path = Path::new(name);
    if job::is_job(name) {
        return Ok(job::plan(path)?.and_then(|plan| with_changes(&plan, changes)));
    }
    if path.is_file() {
        return Ok(Plan::load_changed(path, changes, &read_job));
    }
    if let Some(ready) = gallery_plan(name) {
        let text = overlay(ready.text, ready.name, changes);
        return Ok(text.and_then(|text| Plan::parse(&text, ready.name)));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
    if let Some(ready) = gallery_plan(stem).filter(|_| !path.exists()) {
        let says = format!("there is no file {name}");
        let hint = format!("for the built-in plan of this name, use `{}`", ready.name);
        return Err(CliError::usage(says).hint(hint));
    }
    if name.contains('/') || name.contains('.') || path.exists() {
        return Ok(Plan::load(path, &read_job));
    }
    let error = CliError::usage(format!("{name} is neither a plan file nor a built-in plan"));
    let error = match nearest_gallery_plan(name) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    };
    Err(error.hint("`plimsoll plan list` lists the built-in plans"))
}
