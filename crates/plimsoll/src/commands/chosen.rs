//! The plan that a command line names: a file or a plan of the gallery, on other places, with other values.

use std::path::Path;

use clap::Args;
use plimsoll_import::fio_job::read_job;
use plimsoll_plan::{Change, Plan, PlanErrors, nearest_ready, overlay, ready};
use plimsoll_runner::run::check_accepted;
use toml::Value;

use crate::error::CliError;

/// What is changed of a plan.
#[derive(Clone, Debug, Default, Args)]
pub struct Changes {
    /// Directory to work in, in place of the plan's target. With several, databases are dealt to them in turn.
    #[arg(long, value_name = "DIR")]
    pub path: Vec<String>,
    /// Directory of a mail store's logs, in place of the plan's.
    #[arg(long, value_name = "DIR")]
    pub logs: Vec<String>,
    /// Block device to work on, in place of the plan's target.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["path", "logs"])]
    pub device: Option<String>,
    /// NFS export to work on, nfs://host/export, in place of the plan's target.
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["path", "logs", "device"])]
    pub nfs: Vec<String>,
    /// Model to run on, in place of the plan's target.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["path", "logs", "device", "nfs"])]
    pub model: Option<String>,
    /// A field of the plan with another value, as in `phases.measure=10m`. May be given several times.
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
        let plan = self.read(name)?.map_err(|errors| wrong(&errors))?;
        check_accepted(&plan.resolve().evidence.accept_unknown)?;
        Ok(plan)
    }

    /// A plan that was made from flags, with these fields set.
    ///
    /// # Errors
    /// A change that is none, and everything that is wrong with the plan then.
    pub fn set_on(plan: Plan, set: &[String]) -> Result<Plan, CliError> {
        let set = Self { set: set.to_vec(), ..Self::default() }.fields()?;
        if set.is_empty() {
            return Ok(plan);
        }
        let text = overlay(plan.text(), plan.source_name(), &set);
        let plan = text.and_then(|text| Plan::parse(&text, plan.source_name()));
        plan.map_err(|errors| wrong(&errors))
    }

    /// The same with the plan's own errors, for who shows them otherwise.
    ///
    /// # Errors
    /// A name that is none, a change that is none.
    pub fn read(&self, name: &str) -> Result<Result<Plan, PlanErrors>, CliError> {
        let changes = self.fields()?;
        let path = Path::new(name);
        if path.is_file() {
            return Ok(Plan::load_changed(path, &changes, &read_job));
        }
        if let Some(ready) = ready(name) {
            let text = overlay(ready.text, ready.name, &changes);
            return Ok(text.and_then(|text| Plan::parse(&text, ready.name)));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        if let Some(ready) = ready(stem).filter(|_| !path.exists()) {
            let says = format!("there is no file {name}");
            let hint = format!("a plan of this name is built in: write `{}`", ready.name);
            return Err(CliError::usage(says).hint(hint));
        }
        if name.contains('/') || name.contains('.') || path.exists() {
            return Ok(Plan::load(path, &read_job));
        }
        let error = CliError::usage(format!("there is no plan {name}: no file and none built in"));
        let error = match nearest_ready(name) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error,
        };
        Err(error.hint("`plimsoll plan list` lists the plans that are built in"))
    }
}

/// What is wrong with a plan, as what the operator is told.
pub fn wrong(errors: &PlanErrors) -> CliError {
    // The first begins with what every error begins with here.
    let text = errors.to_string();
    CliError::usage(text.trim_end().trim_start_matches("error: ").to_owned())
}
