//! `experiment.toml` as it is written.

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
    /// Description, as a paragraph.
    pub about: String,
    /// Where it was published.
    #[serde(default)]
    pub source: String,
    /// Number of servers; reports show the achieved rate per server.
    #[serde(default = "one")]
    pub servers: u32,
    /// Runs of each arm.
    #[serde(default = "three")]
    pub repeats: u32,
    /// How far a ratio to a published figure may be from 1.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Figures by which the whole is judged; the first is the order's.
    #[serde(default)]
    pub judged: Vec<String>,
    /// The arm that ratios between arms are formed over.
    pub reference: Option<String>,
    /// True where each arm keeps the changes of those before.
    #[serde(default)]
    pub cumulative: bool,
    /// Lessons from the experiment.
    #[serde(default)]
    pub taught: Vec<String>,
    /// Inputs besides published figures that were fitted, or chosen after looking at results, as
    /// sentences.
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
    /// Published tables of arms that sweep.
    #[serde(default)]
    pub table: Vec<TableText>,
    /// Parameters to fit to one of the tables before the arms run.
    pub fit: Option<FitText>,
    /// Goals for a model on whole tables.
    #[serde(default)]
    pub goal: Vec<Goal>,
    /// Arms that are shown together.
    #[serde(default)]
    pub panel: Vec<Panel>,
    /// The arms on a model.
    pub arm: Vec<Arm>,
    /// The arms on real storage.
    #[serde(default)]
    pub real: Vec<Arm>,
}

/// An arm.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Short name.
    pub name: String,
    /// Descriptive title.
    #[serde(default)]
    pub title: String,
    /// The plan file that it begins with.
    pub plan: String,
    /// The table that it belongs to.
    #[serde(default)]
    pub group: String,
    /// As the experiment's, where it differs.
    pub servers: Option<u32>,
    /// As the experiment's, where it differs.
    pub repeats: Option<u32>,
    /// Names of the places that it runs at, on real storage: `--path NAME=DIRECTORY`.
    #[serde(default)]
    pub places: Vec<String>,
    /// The verdict that it is made for.
    pub expects: Option<VerdictKind>,
    /// Rules that have to find its trick.
    #[serde(default)]
    pub caught_by: Vec<String>,
    /// Changes to the plan, relative to the previous arm if the experiment is cumulative. The
    /// changes of a search are not inherited.
    #[serde(default)]
    pub change: Table,
    /// The arm is a search for the load line and the fewest threads.
    pub search: Option<SearchText>,
}

/// How an arm is searched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchText {
    /// The smallest load.
    #[serde(default = "least")]
    pub min: u64,
    /// The largest load.
    pub max: u64,
    /// Most steps.
    pub steps: Option<usize>,
    /// Unit of load, if it differs from the plan's name for it: `threads`.
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
    /// The arm that it is of.
    pub arm: String,
    /// File name, in the directory of `experiment.toml`.
    pub file: String,
    /// Role of its figures in the fit.
    pub role: Role,
    /// Operations that the load allows in flight, all clients together.
    pub outstanding: Option<f64>,
    /// Bandwidth of the array's ports in one direction, in bytes per second.
    pub ports_bytes_per_s: Option<f64>,
    /// Drives, and what the port of each carries.
    pub drives: Option<u32>,
    /// Bandwidth of a drive's port in one direction, in bytes per second.
    pub drive_port_bytes_per_s: Option<f64>,
    /// Bytes that drives write for each byte of data: copies, or data and parity over data.
    pub written_per_byte: Option<f64>,
    /// Record size: what a smaller write rewrites.
    pub record_bytes: Option<f64>,
}

/// A fit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitText {
    /// The model whose free parameters are fitted.
    pub model: String,
    /// The arm whose table they are fitted to.
    pub arm: String,
    /// Values that the search begins from: what an earlier fit found.
    #[serde(default)]
    pub from: BTreeMap<String, f64>,
    /// Fields of plans that take a parameter's value, where their plan states them.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
}

/// Tables field by field, everything else replaced.
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
