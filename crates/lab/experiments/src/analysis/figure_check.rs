//! Checks for every published figure whether the result matched it, and whether it was an input of
//! the fit.

use super::arm::{ArmAnalysis, RATE};
use super::{Ending, Input, Role};

/// Maximum number of errors that a sentence lists, the largest first.
const NAMED_MAX: usize = 6;

/// A published figure and its result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureCheck {
    arm: String,
    figure: String,
    role: Role,
    published: f64,
    /// Modelled or measured value; `None` if there is no such value.
    came: Option<f64>,
}

impl FigureCheck {
    /// Relative error; `None` without a result.
    fn error(&self) -> Option<f64> {
        self.came.map(|came| came / self.published - 1.0)
    }

    fn is_met(&self, tolerance: f64) -> bool {
        self.error().is_some_and(|error| error.abs() <= tolerance)
    }
}

/// Returns the published figures of all arms and load searches of the experiment.
pub(super) fn check_figures(input: &Input<'_>, arms: &[ArmAnalysis]) -> Vec<FigureCheck> {
    let one = |given: &super::PublishedFigure| {
        let came = match arms.iter().find(|arm| arm.name == given.arm) {
            Some(arm) => arm.figure(&given.figure).and_then(|figure| figure.mean),
            None => of_search(input, given)?,
        };
        Some(FigureCheck {
            arm: given.arm.clone(),
            figure: given.figure.clone(),
            role: given.role,
            published: given.value,
            came,
        })
    };
    input.given.iter().filter(|given| given.value > 0.0).filter_map(one).collect()
}

/// Returns the load line of one server from a search. The outer `None` means that no search has
/// this name.
fn of_search(input: &Input<'_>, given: &super::PublishedFigure) -> Option<Option<f64>> {
    let search = input.searches.iter().find(|search| search.name == given.arm)?;
    let line = search.found.as_ref().and_then(|found| found.load_line.as_ref());
    let rate = line.map(|line| line.rate_per_s / f64::from(search.servers.max(1)));
    Some(rate.filter(|_| given.figure == RATE))
}

/// Returns the result.
pub(super) fn ending(counted: &[FigureCheck], tolerance: f64, ordered: bool) -> Ending {
    let met = counted.iter().all(|one| one.is_met(tolerance));
    match met && ordered {
        true if counted.iter().all(|one| one.role == Role::Input) => Ending::Fitted,
        true => Ending::Predicted,
        false => Ending::Missed,
    }
}

/// Returns a sentence with the number of matched inputs, the number of matched predictions, and the
/// errors of the predictions.
pub(super) fn says(counted: &[FigureCheck], tolerance: f64) -> String {
    let (inputs, mut free): (Vec<&FigureCheck>, Vec<&FigureCheck>) =
        counted.iter().partition(|one| one.role == Role::Input);
    let met = |all: &[&FigureCheck]| all.iter().filter(|one| one.is_met(tolerance)).count();
    let within = format!("within {:.0} %", 100.0 * tolerance);
    let fitted = format!("{} of {} fitted figures are {within}", met(&inputs), inputs.len());
    if free.is_empty() {
        return format!("{fitted}; nothing was predicted");
    }
    let size = |one: &FigureCheck| one.error().map_or(f64::INFINITY, f64::abs);
    free.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let named: Vec<String> = free.iter().take(NAMED_MAX).map(|one| named(one)).collect();
    let more = match free.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} smaller errors"),
    };
    let predicted = format!(
        "and {} of {} figures that were not used in the fit; the errors of the latter are {}{more}",
        met(&free),
        free.len(),
        named.join(", ")
    );
    if inputs.is_empty() {
        return format!(
            "{} of {} figures are {within}, and none of them was used in the fit; the errors are \
             {}{more}",
            met(&free),
            free.len(),
            named.join(", ")
        );
    }
    format!("{fitted}, {predicted}")
}

fn named(one: &FigureCheck) -> String {
    let figure = plimsoll_judge::metrics::all().find(|figure| figure.key == one.figure);
    let figure = figure.map_or(one.figure.as_str(), |figure| figure.name);
    match one.error() {
        Some(error) => format!("{:+.0} % ({}, {figure})", 100.0 * error, one.arm),
        None => format!("unknown ({}, {figure})", one.arm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(role: Role, came: Option<f64>) -> FigureCheck {
        let (arm, figure) = ("a".to_owned(), RATE.to_owned());
        FigureCheck { arm, figure, role, published: 100.0, came }
    }

    #[test]
    fn figures_that_were_all_inputs_were_fitted_and_never_predicted() {
        let inputs = [one(Role::Input, Some(96.5)), one(Role::Input, Some(103.0))];
        assert_eq!(ending(&inputs, 0.05, true), Ending::Fitted);
        assert!(says(&inputs, 0.05).contains("nothing was predicted"));
        assert_eq!(ending(&inputs, 0.05, false), Ending::Missed);
        assert_eq!(ending(&inputs, 0.03, true), Ending::Missed);
    }

    #[test]
    fn every_published_figure_counts_and_those_that_were_no_input_are_named() {
        let met = [one(Role::Input, Some(100.0)), one(Role::Blind, Some(110.0))];
        assert_eq!(ending(&met, 0.15, true), Ending::Predicted);
        let says_met = says(&met, 0.15);
        assert!(
            says_met.contains("and 1 of 1 figures that were not used in the fit; the errors of the latter are +10 %"),
            "{says_met}"
        );
        for missed in [Some(70.0), None] {
            let figures = [one(Role::Input, Some(100.0)), one(Role::Given, missed)];
            assert_eq!(ending(&figures, 0.15, true), Ending::Missed);
        }
    }
}
