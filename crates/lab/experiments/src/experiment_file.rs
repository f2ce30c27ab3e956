//! Contents of `experiment.toml`, before they are resolved.

use std::collections::BTreeMap;

use plimsoll_judge::VerdictKind;
use serde::Deserialize;
use toml::{Table, Value};

use crate::analysis::{Claim, Goal, Panel, Question, Role};

/// `experiment.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    pub(crate) version: u32,
    /// Descriptive title.
    pub title: String,
    /// Description of the experiment, as a paragraph.
    pub about: String,
    /// Source of the publication.
    #[serde(default)]
    pub source: String,
    /// Number of servers; reports show the achieved rate per server.
    #[serde(default = "one")]
    pub servers: u32,
    /// Number of runs of each arm of the experiment.
    #[serde(default = "three")]
    pub repeats: u32,
    /// Maximum relative deviation from a published figure, such as 0.15.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Keys of the judged figures. The first figure also determines the order of the experiment's
    /// arms.
    #[serde(default)]
    pub judged: Vec<String>,
    /// Name of the experiment's arm that is the denominator of ratios between arms.
    pub reference: Option<String>,
    /// True if each arm of the experiment inherits the changes of the previous arms.
    #[serde(default)]
    pub cumulative: bool,
    /// Lessons from the published experiment.
    #[serde(default)]
    pub taught: Vec<String>,
    /// Sentences about inputs that were fitted, or that were chosen when results were already
    /// known. Published figures are not listed.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Notes on the figures.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Description of the run on real storage.
    #[serde(default)]
    pub real_about: String,
    /// Questions that the analysis answers.
    #[serde(default)]
    pub question: Vec<Question>,
    /// Published arithmetic.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Published tables of those arms of the experiment that are sweeps.
    #[serde(default)]
    pub table: Vec<TableText>,
    /// Fit of parameters to one of the tables, made before the experiment's arms run.
    pub fit: Option<FitText>,
    /// Goals for the model's errors on whole tables.
    #[serde(default)]
    pub goal: Vec<Goal>,
    /// Panels: groups of arms of the experiment that are shown together.
    #[serde(default)]
    pub panel: Vec<Panel>,
    /// Arms of the experiment that run on a model.
    pub arm: Vec<Arm>,
    /// Arms of the experiment that run on real storage.
    #[serde(default)]
    pub real: Vec<Arm>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Short name.
    pub name: String,
    /// Descriptive title.
    #[serde(default)]
    pub title: String,
    /// Plan file on which the experiment's arm is based.
    pub plan: String,
    /// Name of the table to which the experiment's arm belongs.
    #[serde(default)]
    pub group: String,
    /// If present, it replaces the experiment's number of servers.
    pub servers: Option<u32>,
    /// If present, it replaces the experiment's number of runs.
    pub repeats: Option<u32>,
    /// Names of the arm's places on real storage, which users set with `--path NAME=DIRECTORY`.
    #[serde(default)]
    pub places: Vec<String>,
    pub expects: Option<VerdictKind>,
    /// Rules that must detect the trick of the experiment's arm.
    #[serde(default)]
    pub caught_by: Vec<String>,
    /// Changes to the plan. In a cumulative experiment, the changes apply to the plan of the
    /// previous arm. Later arms do not inherit the changes of a search.
    #[serde(default)]
    pub change: Table,
    /// If present, the experiment's arm is a search for the load line and for the smallest number
    /// of threads.
    pub search: Option<SearchText>,
}

/// Options of an arm of the experiment that is a search.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchText {
    /// Smallest load that the search tries.
    #[serde(default = "least")]
    pub min: u64,
    /// Largest load that the search tries.
    pub max: u64,
    /// Maximum number of steps of the search.
    pub steps: Option<usize>,
    /// Unit of the load, such as `threads`, if it differs from the unit in the plan.
    pub load: Option<String>,
}

fn least() -> u64 {
    1
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    3
}

fn tolerance() -> f64 {
    0.15
}

/// A published table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableText {
    pub arm: String,
    /// File name, in the directory of `experiment.toml`.
    pub file: String,
    /// Role of the table's figures in the fit.
    pub role: Role,
    /// Maximum number of operations in flight that the load allows, over all clients.
    pub outstanding: Option<f64>,
    /// Bandwidth of the array's ports in one direction, in bytes per second.
    pub ports_bytes_per_s: Option<f64>,
    pub drives: Option<u32>,
    /// Bandwidth of a drive's port in one direction, in bytes per second.
    pub drive_port_bytes_per_s: Option<f64>,
    /// Bytes that the drives write for each byte of data: the number of copies, or the ratio of
    /// data and parity to data.
    pub written_per_byte: Option<f64>,
    /// Record size in bytes. A write that is smaller than a record rewrites the whole record.
    pub record_bytes: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitText {
    /// Model whose free parameters are fitted.
    pub model: String,
    /// Arm to whose table the parameters are fitted.
    pub arm: String,
    /// Start values for the search of parameter values, from an earlier fit.
    #[serde(default)]
    pub from: BTreeMap<String, f64>,
    /// Plan fields that are set to a parameter's value, if the plan contains them.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
}

/// Merges tables field by field. A value that is not a table replaces the earlier value.
pub(crate) fn merge(base: &mut Table, changes: Table) {
    for (name, change) in changes {
        match (base.get_mut(&name), change) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, change) => {
                base.insert(name, change);
            }
        }
    }
}
