//! The plan of a command line: a file or a built-in plan, with targets and fields changed.

use std::path::Path;

use clap::Args;
use plimsoll_import::fio_job::read_job;
use plimsoll_plan::{Change, Plan, PlanErrors, gallery_plan, nearest_gallery_plan, overlay};
use plimsoll_runner::run::check_accepted;
use toml::Value;

use super::job;
use crate::error::CliError;

/// What is changed of a plan.
#[derive(Clone, Debug, Default, Args)]
pub struct Changes {
    /// Directory to use, in place of the plan's target. Several directories share the databases.
    #[arg(long, value_name = "DIR")]
    pub path: Vec<String>,
    /// Directory of a mail store's logs, in place of the plan's.
    #[arg(long, value_name = "DIR")]
    pub logs: Vec<String>,
    /// Block device to use, in place of the plan's target.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["path", "logs"])]
    pub device: Option<String>,
    /// NFS export to use, nfs://host/export, in place of the plan's target.
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["path", "logs", "device"])]
    pub nfs: Vec<String>,
    /// Model to run on, in place of the plan's target.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["path", "logs", "device", "nfs"])]
    pub model: Option<String>,
    /// A field of the plan to change, such as `phases.measure=10m`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
}

impl Changes {
    /// Whether a place is named.
    pub fn names_a_place(&self) -> bool {
        !self.path.is_empty()
            || self.device.is_some()
            || !self.nfs.is_empty()
            || self.model.is_some()
    }

    /// The named targets for a plan made from flags: one directory, device or model, or exports.
    ///
    /// # Errors
    /// Several directories, and logs.
    pub fn places(&self) -> Result<Vec<String>, CliError> {
        if !self.logs.is_empty() || self.path.len() > 1 {
            return Err(CliError::usage(
                "several directories, and logs, go with a plan of a mail store",
            )
            .hint("name one --path, or a plan such as exchange-1000-heavy"));
        }
        let model = self.model.iter().map(|model| format!("model:{model}"));
        let all = self.path.iter().chain(&self.device).chain(&self.nfs).cloned();
        Ok(all.chain(model).collect())
    }

    /// A plan that was made from flags, with its fields set as is said beside them.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn set_in(&self, plan: &Plan) -> Result<Plan, CliError> {
        Self { set: self.set.clone(), ..Self::default() }.made(plan)
    }

    /// A plan that was made here, with all these changes.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn made(&self, plan: &Plan) -> Result<Plan, CliError> {
        let changes = self.fields()?;
        changed(plan, &changes).map_err(|errors| wrong(&errors))
    }

    /// As changes of fields.
    ///
    /// # Errors
    /// One that names no field.
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

    /// The plan of this file, or of this name in the gallery, with these changes.
    ///
    /// # Errors
    /// Everything that is wrong with it, as one message.
    pub fn plan(&self, name: &str) -> Result<Plan, CliError> {
        self.plan_with(name, Vec::new())
    }

    /// The same with changes of fields that come before these.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn plan_with(&self, name: &str, mut first: Vec<Change>) -> Result<Plan, CliError> {
        first.extend(self.fields()?);
        let plan = with_fields(name, &first)?.map_err(|errors| wrong(&errors))?;
        check_accepted(&plan.resolve().evidence.accept_unknown)?;
        Ok(plan)
    }

    /// The same with the plan's own errors, for who shows them otherwise.
    ///
    /// # Errors
    /// A name that is none, a change that is none.
    pub fn read(&self, name: &str) -> Result<Result<Plan, PlanErrors>, CliError> {
        with_fields(name, &self.fields()?)
    }
}

/// A plan with changes of fields, as it is where there are none.
fn changed(plan: &Plan, changes: &[Change]) -> Result<Plan, PlanErrors> {
    if changes.is_empty() {
        return Ok(plan.clone());
    }
    let text = overlay(plan.text(), plan.source_name(), changes)?;
    Plan::parse(&text, plan.source_name())
}

/// The plan of this file, which may be a fio job, or of this name in the gallery, with changes of
/// fields.
fn with_fields(name: &str, changes: &[Change]) -> Result<Result<Plan, PlanErrors>, CliError> {
    let path = Path::new(name);
    if job::is_one(name) {
        return Ok(job::plan(path)?.and_then(|plan| changed(&plan, changes)));
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
        let hint = format!("a plan of this name is built in: write `{}`", ready.name);
        return Err(CliError::usage(says).hint(hint));
    }
    if name.contains('/') || name.contains('.') || path.exists() {
        return Ok(Plan::load(path, &read_job));
    }
    let error = CliError::usage(format!("there is no plan {name}: no file and none built in"));
    let error = match nearest_gallery_plan(name) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    };
    Err(error.hint("`plimsoll plan list` lists the plans that are built in"))
}

/// What is wrong with a plan, as what the operator is told.
pub fn wrong(errors: &PlanErrors) -> CliError {
    // The first begins with what every error begins with here.
    let text = errors.to_string();
    CliError::usage(text.trim_end().trim_start_matches("error: ").to_owned())
}
