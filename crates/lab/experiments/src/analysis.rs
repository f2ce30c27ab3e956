//! Analysis of a published experiment: compares the results of its arms with the published results.
//!
//! Published figures are part of the experiment's files ([`PublishedFigure`]). Measured and
//! modelled figures are taken only from bundles. Each published figure records whether a model was
//! fitted to it. A fitted figure shows only the quality of the fit. All other figures are
//! predictions. The predictions are compared with two alternatives that need no model: copying the
//! nearest row, and interpolating between rows.

mod answer;
mod arm;
mod comparison;
mod drives;
mod failure;
mod figure_check;
mod front;
mod inputs;
mod mechanism;
mod points;
mod score;
mod servers;
mod words;

pub use answer::{Answer, Claim, Question};
pub use arm::{ArmAnalysis, FigureAnalysis};
pub use failure::Failure;
pub use front::Front;
pub use points::{
    Goal, GoalAnalysis, Layout, LayoutRatio, TableAnalysis, TableHighlight, TableScore,
};
pub use score::{Score, ScoreLine};
pub use servers::Server;

use plimsoll_evidence::Bundle;
use plimsoll_judge::metrics;
use plimsoll_judge::tuning::Tuning;
use plimsoll_judge::verdict::{Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

/// Role of a published figure in the fit of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The figure was an input of the fit, so it is not a prediction.
    Input,
    /// The figure was published with the experiment, but not used for the fit.
    Given,
    /// The figure was published, but withheld until the model had predicted it. Neither the fit nor
    /// the naive alternatives used it.
    Blind,
    /// The operator added the figure. Neither the fit nor the naive alternatives used it.
    Kept,
}

impl Role {
    /// Text for reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Input => "fitted to",
            Self::Given => "not used in the fit",
            Self::Blind => "withheld until predicted",
            Self::Kept => "supplied by the user",
        }
    }

    /// Returns true if figures of this role were available to a naive alternative at the time of
    /// the prediction.
    pub fn was_known(self) -> bool {
        matches!(self, Self::Input | Self::Given)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    pub arm: String,
    /// Key of the figure, such as `db_read_latency_ns_avg`.
    pub figure: String,
    /// Value in the base unit of the key.
    pub value: f64,
    /// Role in the fit.
    pub role: Role,
    /// Source of the figure; may be empty.
    pub source: String,
}

/// A planned arm of the experiment, with its runs that have completed so far.
#[derive(Clone, Debug)]
pub struct Arm<'a> {
    /// Short name of the arm of the experiment, as in the published figures.
    pub name: String,
    /// Descriptive title.
    pub title: String,
    /// Name of the table to which the experiment's arm belongs; empty if there is only one table.
    pub group: String,
    /// Number of servers; reports show the achieved rate per server.
    pub servers: u32,
    /// Names and values of the settings that differ from those of the previous arm of the
    /// experiment.
    pub changes: Vec<(String, String)>,
    /// Expected verdict of the experiment's arm; `None` if any verdict is expected.
    pub expects: Option<VerdictKind>,
    /// Rules that must detect the trick of the experiment's arm; each of them must fail.
    pub caught_by: Vec<String>,
    /// Runs with their verdicts.
    pub runs: Vec<(&'a Bundle, &'a Verdict)>,
    /// Planned number of runs.
    pub planned: u32,
}

#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Short name of the experiment.
    pub name: String,
    /// Descriptive title.
    pub title: String,
    /// True if the arms of the experiment run on models.
    pub modelled: bool,
    /// Maximum relative deviation from a published figure, such as 0.15.
    pub tolerance: f64,
    /// Keys of the judged figures. The first figure also determines the order of the experiment's
    /// arms.
    pub judged: Vec<String>,
    /// Name of the experiment's arm that is the denominator of ratios between arms.
    pub reference: Option<String>,
    /// True if each arm of the experiment inherits the changes of the previous arms. Each arm then
    /// differs from the previous arm by one step.
    pub cumulative: bool,
    /// The arms of the experiment, in their order.
    pub arms: Vec<Arm<'a>>,
    pub given: Vec<PublishedFigure>,
    /// Questions that the analysis answers.
    pub questions: Vec<Question>,
    /// Published claims whose arithmetic is checked.
    pub claims: Vec<Claim>,
    /// Goals for the model's errors on whole tables. If the experiment has goals, the goals
    /// determine the result.
    pub goals: Vec<Goal>,
    /// Results of the checks for contradictions in the published tables.
    pub arithmetic: Vec<Arithmetic>,
    /// Model parameters that were fitted before the arms of the experiment ran.
    pub fitted: Vec<FittedParameter>,
    /// Sentences about other inputs that were fitted, or that were chosen when results were already
    /// known. Figures that depend on these inputs are not predictions.
    pub inputs: Vec<String>,
    /// Model parameters that the experiment sets for all of its arms, instead of the model's own
    /// values.
    pub own_parameters: Vec<OwnParameter>,
    /// Load searches, which determine the load line.
    pub searches: Vec<SearchAnalysis>,
    /// Panels: groups of arms of the experiment that are shown together.
    pub panels: Vec<Panel>,
}

/// A model parameter that an experiment sets for all arms on this model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnParameter {
    pub model: String,
    /// Path of the parameter in the model.
    pub path: String,
    /// Distinct values of the parameter, in the order of the experiment's arms.
    pub values: Vec<String>,
}

/// Result of checking whether a published table contradicts itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arithmetic {
    /// The table.
    pub group: String,
    /// Sentences that state whether the columns of the table agree with each other, and whether the
    /// hardware can reach the values.
    pub says: Vec<String>,
}

/// A model parameter that was fitted before the arms of the experiment ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedParameter {
    /// Path of the parameter in the model.
    pub path: String,
    pub table: String,
    pub value: f64,
    /// Range of values that the search allowed.
    pub bounds: (f64, f64),
}

/// A search for the load line, and for the minimum number of threads that meets the requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchAnalysis {
    /// Short name.
    pub name: String,
    /// Descriptive title.
    pub title: String,
    /// Number of servers; reports show rates per server.
    pub servers: u32,
    /// Unit of the load, if it differs from the unit in the plan.
    #[serde(default)]
    pub load_name: Option<String>,
    /// Result; `None` if the search has not run.
    pub found: Option<Tuning>,
}

/// Arms of the experiment that are shown together, either as a table of one figure or as a line
/// over an increasing quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Heading of the panel.
    pub title: String,
    pub figure: String,
    /// Arms of the experiment that the panel shows. If `along` is not set, no other table shows
    /// these arms.
    pub arms: Vec<String>,
    /// Name of a quantity that increases from arm to arm, such as `nodes`.
    #[serde(default)]
    pub along: String,
    /// Value of this quantity for each arm of the experiment.
    #[serde(default)]
    pub at: Vec<f64>,
}

impl SearchAnalysis {
    /// Returns the unit of the load.
    pub fn counted_in(&self) -> &str {
        let own = self.found.as_ref().map_or("threads", |found| found.knob.load_name());
        self.load_name.as_deref().unwrap_or(own)
    }
}

/// Result of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Every published figure is matched within the tolerance, but all figures were inputs of the
    /// fit. The fit is good, but nothing was predicted.
    #[serde(alias = "as-published")]
    Fitted,
    /// Every published figure is matched within the tolerance, and some figures were not inputs of
    /// the fit.
    Predicted,
    /// Some published figures are not matched within the tolerance.
    #[serde(alias = "not-as-published")]
    Missed,
    /// Every arm of the experiment has its expected verdict.
    Caught,
    /// An arm of the experiment does not have its expected verdict.
    #[serde(alias = "came-through")]
    NotCaught,
    /// There are no published figures to compare.
    #[serde(alias = "told")]
    Reported,
    /// Arms or runs of the experiment are missing, or a run did not complete.
    Incomplete,
}

impl Ending {
    /// Returns the result in capitals.
    pub fn label(self) -> &'static str {
        match self {
            Self::Fitted => "FITTED",
            Self::Predicted => "PREDICTED",
            Self::Missed => "MISSED",
            Self::Caught => "CAUGHT",
            Self::NotCaught => "NOT CAUGHT",
            Self::Reported => "REPORTED",
            Self::Incomplete => "INCOMPLETE",
        }
    }
}

/// Order of the experiment's arms by their results, compared with the published order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub figure: String,
    /// Arms of the experiment in the published order, ascending.
    pub published: Vec<String>,
    /// The same arms, in the order of their results.
    pub found: Vec<String>,
}

impl Order {
    /// Returns true if the two orders are equal.
    pub fn holds(&self) -> bool {
        self.published == self.found
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Short name of the experiment.
    pub name: String,
    /// Descriptive title.
    pub title: String,
    /// True if the arms of the experiment run on models.
    pub modelled: bool,
    /// Result.
    pub ending: Ending,
    /// Headline sentence.
    pub reason: String,
    /// Maximum relative deviation from a published figure, such as 0.15.
    pub tolerance: f64,
    /// Keys of the judged figures.
    pub judged: Vec<String>,
    /// Name of the experiment's arm that is the denominator of ratios between arms.
    pub reference: Option<String>,
    pub arms: Vec<ArmAnalysis>,
    /// Order of the experiment's arms, compared with the published order; `None` if there are fewer
    /// than two published figures.
    pub order: Option<Order>,
    /// Comparison of the predictions with naive alternatives; `None` if no published figure is a
    /// prediction.
    pub score: Option<Score>,
    /// Questions and their answers.
    pub answers: Vec<Answer>,
    /// Analyses of whole tables, if groups of arms of the experiment form tables.
    #[serde(default)]
    pub tables: Vec<TableAnalysis>,
    /// Compares tables that have the same load: the rates of each table, divided by the rates of
    /// the first of these tables.
    #[serde(default)]
    pub layouts_over: Vec<Layout>,
    /// Goals with their results.
    #[serde(default)]
    pub goals: Vec<GoalAnalysis>,
    /// Results of the checks for contradictions in the published tables.
    #[serde(default)]
    pub arithmetic: Vec<Arithmetic>,
    /// Model parameters that were fitted before the arms of the experiment ran.
    #[serde(default)]
    pub fitted: Vec<FittedParameter>,
    /// Sentences about other inputs that were fitted or chosen for this experiment.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Model parameters that the experiment sets.
    #[serde(default)]
    pub own_parameters: Vec<OwnParameter>,
    /// Load searches, which determine the load line.
    #[serde(default)]
    pub searches: Vec<SearchAnalysis>,
    /// Panels: groups of arms of the experiment that are shown together.
    #[serde(default)]
    pub panels: Vec<Panel>,
}

/// Analyses the runs that have completed so far.
pub fn analyse(input: &Input<'_>) -> Analysis {
    let mut arms: Vec<ArmAnalysis> =
        input.arms.iter().map(|arm| arm::arm_analysis(input, arm)).collect();
    arm::form_ratios(input, &mut arms);
    comparison::compare_arms(input, &mut arms);
    let order = order(input, &arms);
    let tables = points::tables(input, &arms);
    let goals = points::goals(input, &tables);
    let (ending, reason) = ending(input, &arms, order.as_ref(), &goals, &tables);
    let held = matches!(ending, Ending::Fitted | Ending::Predicted | Ending::Missed);
    let reason = if held { format!("{reason}{}", inputs::says(input)) } else { reason };
    Analysis {
        name: input.name.clone(),
        title: input.title.clone(),
        modelled: input.modelled,
        ending,
        reason,
        tolerance: input.tolerance,
        judged: input.judged.clone(),
        reference: input.reference.clone(),
        score: score::score(input, &arms),
        answers: answer::answers(input, &arms),
        order,
        layouts_over: points::layouts(&tables, &arms),
        tables,
        goals,
        arithmetic: input.arithmetic.clone(),
        fitted: input.fitted.clone(),
        inputs: input.inputs.clone(),
        own_parameters: input.own_parameters.clone(),
        searches: input.searches.clone(),
        panels: input.panels.clone(),
        arms,
    }
}

/// Sorts the experiment's arms by the first judged figure: once by its published values, and once
/// by the results. Includes only arms for which this figure was published.
fn order(input: &Input<'_>, arms: &[ArmAnalysis]) -> Option<Order> {
    let figure = input.judged.first()?;
    if !input.goals.is_empty() {
        // The rows of whole tables have no published order, so they are not ordered.
        return None;
    }
    let mut known: Vec<(&str, f64, f64)> = arms
        .iter()
        .filter_map(|arm| {
            let figure = arm.figure(figure)?;
            Some((arm.name.as_str(), figure.published?, figure.mean?))
        })
        .collect();
    if known.len() < 2 {
        return None;
    }
    let names = |all: &[(&str, f64, f64)]| all.iter().map(|one| one.0.to_owned()).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let published = names(&known);
    // The sort is stable, so arms of the experiment with equal results stay in the published order.
    known.sort_by(|a, b| a.2.total_cmp(&b.2));
    Some(Order { figure: figure.clone(), published, found: names(&known) })
}

fn ending(
    input: &Input<'_>,
    arms: &[ArmAnalysis],
    order: Option<&Order>,
    goals: &[GoalAnalysis],
    tables: &[TableAnalysis],
) -> (Ending, String) {
    let missing: u32 = arms.iter().map(|arm| arm.planned.saturating_sub(arm.completed)).sum();
    if missing > 0 {
        let runs: u32 = arms.iter().map(|arm| arm.planned).sum();
        return (
            Ending::Incomplete,
            format!("{missing} of {runs} runs are missing or incomplete."),
        );
    }
    if let Some(search) = input.searches.iter().find(|search| search.found.is_none()) {
        return (Ending::Incomplete, format!("search {} has not run.", search.name));
    }
    if !goals.is_empty() {
        return by_goals(
            goals,
            &points::without_goal(tables, goals, input.tolerance),
            &points::roles(arms),
        );
    }
    let made: Vec<&ArmAnalysis> = arms.iter().filter(|arm| arm.expects.is_some()).collect();
    if !made.is_empty() {
        return caught(&made);
    }
    let says = if input.modelled { "modelled" } else { "measured" };
    let counted = figure_check::check_figures(input, arms);
    if counted.is_empty() {
        let runs: u32 = arms.iter().map(|arm| arm.completed).sum();
        let arms = match arms.len() {
            1 => "One arm".to_owned(),
            count => format!("{count} arms"),
        };
        let runs = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs") };
        let says =
            format!("{arms} of the experiment with {runs}, {says}; no figures were published.");
        return (Ending::Reported, says);
    }
    let ordered = order.is_none_or(Order::holds);
    let sorted_by = |order: &Order| {
        let figure = metrics::all().find(|figure| figure.key == order.figure);
        figure.map_or_else(|| order.figure.clone(), |figure| figure.name.to_owned())
    };
    let order_says = match order {
        Some(order) if order.holds() => {
            format!(
                " Sorted by {}, the arms are in the published order: {}.",
                sorted_by(order),
                order.found.join(" < ")
            )
        }
        Some(order) => format!(
            " Sorted by {}, the arms are not in the published order: the published order is {}, \
             but the order found is {}.",
            sorted_by(order),
            order.published.join(" < "),
            order.found.join(" < ")
        ),
        None => String::new(),
    };
    let reason = format!("{} ({says}).{order_says}", figure_check::says(&counted, input.tolerance));
    (figure_check::ending(&counted, input.tolerance, ordered), reason)
}

/// Returns the result for whole tables. `missed`: sentences about tables that have no goal and
/// exceed the tolerance. `roles`: roles of all published figures.
fn by_goals(goals: &[GoalAnalysis], missed: &[String], roles: &[Role]) -> (Ending, String) {
    let reached = goals.iter().filter(|goal| goal.reached).count();
    let said: Vec<String> = goals
        .iter()
        .filter(|goal| !goal.reached)
        .map(|goal| {
            let name = metrics::all().find(|figure| figure.key == goal.goal.figure);
            let name = name.map_or(goal.goal.figure.as_str(), |figure| figure.name);
            format!(" Goal not reached: table {}, {name}: {}.", goal.goal.group, goal.says)
        })
        .collect();
    let free = roles.iter().filter(|role| **role != Role::Input).count();
    let ending = match reached == goals.len() && missed.is_empty() {
        true if free == 0 => Ending::Fitted,
        true => Ending::Predicted,
        false => Ending::Missed,
    };
    let says = format!(
        "{reached} of {} goals were reached; {free} of {} published figures were not used in the \
         fit.{}",
        goals.len(),
        roles.len(),
        said.into_iter().chain(missed.iter().cloned()).collect::<String>()
    );
    (ending, says)
}

fn caught(made: &[&ArmAnalysis]) -> (Ending, String) {
    let through: Vec<&str> =
        made.iter().filter(|arm| !arm.is_as_expected()).map(|arm| arm.name.as_str()).collect();
    if through.is_empty() {
        let heroes = made.iter().filter(|arm| !arm.caught_by.is_empty()).count();
        let honest = made.len() - heroes;
        let beside = match honest {
            0 => String::new(),
            1 => "; the arm without a trick has its expected verdict".to_owned(),
            _ => format!("; the {honest} arms without a trick have their expected verdicts"),
        };
        return (
            Ending::Caught,
            format!(
                "All {heroes} inflated results are INVALID, each because the rule for its trick \
                 failed{beside}."
            ),
        );
    }
    let says =
        format!("Arms of the experiment with an unexpected verdict: {}.", through.join(", "));
    (Ending::NotCaught, says)
}
