//! `experiment.toml` before it is resolved.

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
    /// Source of the publication.
    #[serde(default)]
    pub source: String,
    /// Number of servers; reports show the achieved rate per server.
    #[serde(default = "one")]
    pub servers: u32,
    /// Runs of each arm.
    #[serde(default = "three")]
    pub repeats: u32,
    /// Maximum deviation from 1 of a ratio to a published figure.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Judged figures; the first one also determines the order.
    #[serde(default)]
    pub judged: Vec<String>,
    /// Reference arm for the ratios between arms.
    pub reference: Option<String>,
    /// True if each arm inherits the changes of the previous arms.
    #[serde(default)]
    pub cumulative: bool,
    /// Lessons from the experiment.
    #[serde(default)]
    pub taught: Vec<String>,
    /// Inputs other than published figures that were fitted, or chosen after looking at results, as
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
    /// Groups of arms that are shown together.
    #[serde(default)]
    pub panel: Vec<Panel>,
    /// The arms on a model.
    pub arm: Vec<Arm>,
    /// The arms on real storage.
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
    /// Plan file on which the arm is based.
    pub plan: String,
    /// The table that it belongs to.
    #[serde(default)]
    pub group: String,
    /// Replaces the experiment's value, if present.
    pub servers: Option<u32>,
    /// Replaces the experiment's value, if present.
    pub repeats: Option<u32>,
    /// Names of its places on real storage: `--path NAME=DIRECTORY`.
    #[serde(default)]
    pub places: Vec<String>,
    pub expects: Option<VerdictKind>,
    /// Rules that must detect its trick.
    #[serde(default)]
    pub caught_by: Vec<String>,
    /// Changes to the plan, relative to the previous arm if the experiment is cumulative. The
    /// changes of a search are not inherited.
    #[serde(default)]
    pub change: Table,
    /// The arm is a search for the load line and the fewest threads.
    pub search: Option<SearchText>,
}

/// Options of a search.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchText {
    /// The smallest load.
    #[serde(default = "least")]
    pub min: u64,
    /// The largest load.
    pub max: u64,
    /// Maximum number of steps.
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
    pub arm: String,
    /// File name, in the directory of `experiment.toml`.
    pub file: String,
    /// Role of its figures in the fit.
    pub role: Role,
    /// Operations that the load allows in flight, all clients together.
    pub outstanding: Option<f64>,
    /// Bandwidth of the array's ports in one direction, in bytes per second.
    pub ports_bytes_per_s: Option<f64>,
    /// Drives, and the bandwidth of their ports.
    pub drives: Option<u32>,
    /// Bandwidth of a drive's port in one direction, in bytes per second.
    pub drive_port_bytes_per_s: Option<f64>,
    /// Bytes that drives write for each byte of data: copies, or data and parity over data.
    pub written_per_byte: Option<f64>,
    /// Record size: the amount that a smaller write rewrites.
    pub record_bytes: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitText {
    /// Model whose free parameters are fitted.
    pub model: String,
    /// Arm to whose table the parameters are fitted.
    pub arm: String,
    /// Start values of the search: the result of an earlier fit.
    #[serde(default)]
    pub from: BTreeMap<String, f64>,
    /// Plan fields that receive a parameter's value, if the plan states them.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
}

/// Tables that are merged field by field; all other values are replaced.
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
