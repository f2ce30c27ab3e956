//! Gate for a comparison. It checks whether the new side is worse than the baseline by more than an
//! allowance.
//!
//! The 95 % confidence interval of the ratio decides. If the whole interval is outside the
//! allowance, there is a regression. If the whole interval is inside the allowance, there is no
//! such regression. Otherwise the gate is undecided, and it estimates from the scatter how many
//! runs would decide. A difference that is not significant is therefore not automatically a pass.

use serde::{Deserialize, Serialize};

use super::{Comparison, Metric, SideFigure};
use crate::stats::Moments;
use crate::stats::student::{t_factor, t_quantile};
use crate::stats::welch::RUNS_MIN;
use crate::words::many;

/// Confidence of the ratio's interval with two sides.
const CONFIDENCE: f64 = 0.95;

/// Probability that the advised number of runs decides the gate, if the scatter and the difference
/// remain the same.
const POWER: f64 = 0.8;

/// Maximum number of runs per side that the gate advises.
pub const RUNS_ADVISED_MAX: usize = 100;

/// Figures that a gate can check: the name on the command line, and the figure's keys, which depend
/// on the workload.
const FIGURES: &[(&str, &[&str])] = &[
    ("rate", &["achieved_iops_per_s"]),
    ("bandwidth", &["bandwidth_bytes_per_s"]),
    ("latency", &["latency_ns_avg"]),
    ("p99", &["latency_ns_p99"]),
    ("read", &["read_latency_ns_avg", "db_read_latency_ns_avg"]),
    ("read_p99", &["read_latency_ns_p99", "db_read_latency_ns_p99"]),
    ("write", &["write_latency_ns_avg", "db_write_latency_ns_avg"]),
    ("write_p99", &["write_latency_ns_p99", "db_write_latency_ns_p99"]),
    ("log_write", &["log_write_latency_ns_avg"]),
    ("before_rate", &["before_iops_per_s"]),
    ("before_p99", &["before_latency_ns_p99"]),
    ("during_rate", &["during_iops_per_s"]),
    ("during_p99", &["during_latency_ns_p99"]),
    ("outage", &["outage_ns"]),
    ("recovery", &["recovery_ns"]),
    ("after_rate", &["after_iops_per_s"]),
    ("after_p99", &["after_latency_ns_p99"]),
];

/// Permitted worsening of each figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowances {
    /// Allowance for all figures without a separate entry; `None` if only the named figures are
    /// checked.
    every: Option<f64>,
    /// Names of figures with their allowances.
    named: Vec<(&'static str, f64)>,
}

impl Allowances {
    /// Parses arguments such as `10%` and `rate=5%,read_p99=20%`.
    ///
    /// # Errors
    /// A figure is unknown or occurs more than once, or a percentage is invalid.
    pub fn parse(arguments: &[String]) -> Result<Self, AllowanceError> {
        let mut allowances = Self::default();
        for part in arguments.iter().flat_map(|argument| argument.split(',')) {
            let Some((name, value)) = part.split_once('=') else {
                if allowances.every.replace(percentage(part)?).is_some() {
                    return Err(AllowanceError::Twice("all figures".to_owned()));
                }
                continue;
            };
            let name = name.trim();
            let Some((known, _)) = FIGURES.iter().find(|(known, _)| *known == name) else {
                return Err(AllowanceError::Unknown(name.to_owned()));
            };
            let share = percentage(value)?;
            if share >= 1.0 && (known.ends_with("rate") || *known == "bandwidth") {
                return Err(AllowanceError::WholeRate(part.to_owned()));
            }
            if allowances.named.iter().any(|(other, _)| other == known) {
                return Err(AllowanceError::Twice(name.to_owned()));
            }
            allowances.named.push((*known, share));
        }
        if allowances.every.is_some_and(|share| share >= 1.0) {
            return Err(AllowanceError::WholeRate(arguments.join(",")));
        }
        Ok(allowances)
    }

    fn of(&self, name: &str) -> Option<f64> {
        let named = self.named.iter().find(|(other, _)| *other == name);
        named.map(|(_, share)| *share).or(self.every)
    }
}

fn percentage(text: &str) -> Result<f64, AllowanceError> {
    let number = text.trim().strip_suffix('%').map(str::trim_end);
    let plain =
        |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number = number.filter(plain).and_then(|text| text.parse::<f64>().ok());
    match number.filter(|percent| percent.is_finite() && *percent <= 10_000.0) {
        Some(percent) => Ok(percent / 100.0),
        None => Err(AllowanceError::Percentage(text.trim().to_owned())),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowanceError {
    /// The figure's name is unknown.
    #[error("there is no figure with the name {0}")]
    Unknown(String),
    /// A figure has two allowances.
    #[error("{0}: the allowance is given twice")]
    Twice(String),
    #[error("\"{0}\" is not a percentage")]
    Percentage(String),
    /// A rate cannot fall by 100 % or more.
    #[error("{0}: no rate can fall by 100 % or more, so the gate would never fail")]
    WholeRate(String),
    /// The runs did not measure the figure.
    #[error("not measured on both sides of the comparison: {0}")]
    NotMeasured(String),
    /// The number of sides is not two.
    #[error("a gate compares a baseline with one other side, but there are {0} sides")]
    Sides(usize),
}

impl AllowanceError {
    /// Returns the hint for the user.
    pub fn hint(&self, comparison: Option<&Comparison>) -> String {
        match self {
            Self::Unknown(_) => format!("figures: {}", names().collect::<Vec<_>>().join(", ")),
            Self::Twice(_) => "give each allowance once".to_owned(),
            Self::Percentage(_) | Self::WholeRate(_) => {
                "examples: 10%, or rate=5%,read_p99=20%".to_owned()
            }
            Self::NotMeasured(_) => {
                let measured = |name: &&str| comparison.is_some_and(|c| metric(c, name).is_some());
                let measured: Vec<&str> = names().filter(measured).collect();
                format!("measured: {}", measured.join(", "))
            }
            Self::Sides(_) => "plimsoll compare BASE NEW --fail-if-worse 10%".to_owned(),
        }
    }
}

/// Returns the names of all figures.
fn names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

/// Returns the figure with this name, if both sides of the comparison measured it.
fn metric<'a>(comparison: &'a Comparison, name: &str) -> Option<&'a Metric> {
    let (_, keys) = FIGURES.iter().find(|(known, _)| *known == name)?;
    let found = comparison.metrics.iter().find(|m| keys.contains(&m.key.as_str()))?;
    found.sides.iter().all(|side| !side.values.is_empty()).then_some(found)
}

/// Outcome of a gate, or of one figure of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// The whole interval is outside the allowance: there is a regression.
    Worse,
    /// The whole interval is inside the allowance: there is no such regression.
    NotWorse,
    /// There are too few runs, the interval includes the limit of the allowance, or the runs cannot
    /// be compared.
    Undecided,
}

impl GateOutcome {
    /// Returns the outcome in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::NotWorse => "not worse",
            Self::Undecided => "undecided",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateFigure {
    /// Name on the command line.
    pub figure: String,
    /// Key of the metric, with its unit.
    pub key: String,
    /// Display name.
    pub name: String,
    /// True if higher values are better.
    pub higher_is_better: bool,
    /// Mean of the baseline.
    pub base: Option<f64>,
    /// Mean of the new side.
    pub new: Option<f64>,
    /// Ratio of the new side to the baseline, minus 1.
    pub change_share: Option<f64>,
    /// 95 % interval of the change.
    pub change_interval_share: Option<[f64; 2]>,
    /// Permitted worsening.
    pub allowance_share: f64,
    pub outcome: GateOutcome,
    /// Number of additional runs that each side of the comparison needs so that the gate is decided
    /// with a probability of 80 %. `None` if it is already decided, or if even 100 runs on each
    /// side are not enough.
    pub runs_more_per_side: Option<usize>,
    /// Outcome in a sentence.
    pub says: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Names of the baseline and the new side.
    pub sides: [String; 2],
    /// Outcome of the whole gate.
    pub outcome: GateOutcome,
    /// Outcome in a sentence.
    pub reason: String,
    /// Reason why the figures cannot decide: the conditions differ, or a run is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Number of additional runs per side after which all figures are probably decided. `None` if
    /// all figures are decided, or if 100 runs per side would not be enough.
    pub runs_more_per_side: Option<usize>,
    /// All figures, with the deciding figure of the comparison first.
    pub figures: Vec<GateFigure>,
}

/// Applies the allowances to a comparison of two sides.
///
/// # Errors
/// The number of sides is not two, or a named figure was not measured.
pub fn gate(comparison: &Comparison, allowances: &Allowances) -> Result<Gate, AllowanceError> {
    let [base, new] = &comparison.names[..] else {
        return Err(AllowanceError::Sides(comparison.names.len()));
    };
    let named = allowances.named.iter().map(|(name, _)| *name);
    if let Some(missing) = named.into_iter().find(|name| metric(comparison, name).is_none()) {
        return Err(AllowanceError::NotMeasured(missing.to_owned()));
    }
    let one =
        |name: &'static str| Some(figure(name, metric(comparison, name)?, allowances.of(name)?));
    let mut figures: Vec<GateFigure> = names().filter_map(one).collect();
    if figures.is_empty() {
        return Err(AllowanceError::NotMeasured("all figures that a gate can check".to_owned()));
    }
    figures.sort_by_key(|figure| comparison.judged.as_ref() != Some(&figure.key));
    let count = |outcome: GateOutcome| figures.iter().filter(|f| f.outcome == outcome).count();
    let outcome = match comparison.doubt {
        Some(_) => GateOutcome::Undecided,
        None if count(GateOutcome::Worse) > 0 => GateOutcome::Worse,
        None if count(GateOutcome::Undecided) > 0 => GateOutcome::Undecided,
        None => GateOutcome::NotWorse,
    };
    let open = || figures.iter().filter(|figure| figure.outcome == GateOutcome::Undecided);
    let more: Option<Vec<usize>> = open().map(|figure| figure.runs_more_per_side).collect();
    let more = more.and_then(|all| all.into_iter().max());
    let reason = match &comparison.doubt {
        Some(doubt) => doubt.clone(),
        None => reason(outcome, new, base, &figures),
    };
    Ok(Gate {
        sides: [base.clone(), new.clone()],
        outcome,
        reason,
        doubt: comparison.doubt.clone(),
        runs_more_per_side: more.filter(|_| outcome == GateOutcome::Undecided),
        figures,
    })
}

fn reason(outcome: GateOutcome, new: &str, base: &str, figures: &[GateFigure]) -> String {
    let says: Vec<&str> =
        figures.iter().filter(|f| f.outcome == outcome).map(|f| f.says.as_str()).collect();
    let says = says.join("; ");
    match outcome {
        GateOutcome::Worse => format!("{new} is worse than {base}: {says}."),
        GateOutcome::NotWorse => {
            format!("{new} is not worse than {base} by more than the allowance: {says}.")
        }
        GateOutcome::Undecided => format!("There are too few runs for a decision: {says}."),
    }
}

fn figure(name: &str, metric: &Metric, allowance: f64) -> GateFigure {
    let none: &[f64] = &[];
    let [base, new] = [0, 1].map(|at| metric.sides.get(at));
    let values = |side: Option<&SideFigure>| side.map_or(none.to_vec(), |side| side.values.clone());
    let (base_values, new_values) = (values(base), values(new));
    let limit = match metric.higher_is_better {
        true => 1.0 - allowance,
        false => 1.0 + allowance,
    };
    let interval = new.and_then(|side| side.ratio_interval);
    let runs = base_values.len().min(new_values.len());
    let outcome = match interval.filter(|_| runs >= RUNS_MIN) {
        None => GateOutcome::Undecided,
        Some([low, high]) => {
            let (beyond, within) = match metric.higher_is_better {
                true => (high < limit, low >= limit),
                false => (low > limit, high <= limit),
            };
            match (beyond, within) {
                (true, _) => GateOutcome::Worse,
                (_, true) => GateOutcome::NotWorse,
                _ => GateOutcome::Undecided,
            }
        }
    };
    let needed = match outcome {
        GateOutcome::Undecided => runs_needed(&base_values, &new_values, limit),
        _ => Needed::None,
    };
    let ratio = new.and_then(|side| side.ratio);
    let mut figure = GateFigure {
        figure: name.to_owned(),
        key: metric.key.clone(),
        name: metric.name.clone(),
        higher_is_better: metric.higher_is_better,
        base: base.and_then(|side| side.mean),
        new: new.and_then(|side| side.mean),
        change_share: ratio.map(|ratio| ratio - 1.0),
        change_interval_share: interval.map(|ends| ends.map(|end| end - 1.0)),
        allowance_share: allowance,
        outcome,
        runs_more_per_side: match needed {
            Needed::Runs(total) => Some(total.saturating_sub(runs).max(1)),
            Needed::None | Needed::TooMany | Needed::NoRatio => None,
        },
        says: String::new(),
    };
    figure.says = says(&figure, needed, runs);
    figure
}

/// Formats a change such as `-3.2 %`.
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn says(figure: &GateFigure, needed: Needed, runs: usize) -> String {
    let name = &figure.figure;
    // Rounded: 0.07 times 100 is 7.000000000000001.
    let allowed = libm::round(figure.allowance_share * 1e6) / 1e4;
    let allowed =
        format!("allowed: {}{allowed} %", if figure.higher_is_better { "-" } else { "+" });
    let change = match (figure.change_share, figure.change_interval_share) {
        (Some(change), Some([low, high])) => {
            format!("{} ({} to {})", percent(change), percent(low), percent(high))
        }
        (Some(change), None) => percent(change),
        (None, _) => "no ratio".to_owned(),
    };
    let more = match needed {
        Needed::None => String::new(),
        Needed::NoRatio => "; one value is zero, so there is no ratio".to_owned(),
        Needed::Runs(total) => {
            let few = match runs < RUNS_MIN {
                true => format!("; {} per side are too few", many(runs, "run")),
                false => String::new(),
            };
            let more = total.saturating_sub(runs).max(1);
            let word = if more == 1 { "run" } else { "runs" };
            format!("{few}; about {more} more {word} per side would be enough")
        }
        Needed::TooMany => format!("; more than {RUNS_ADVISED_MAX} runs per side would be needed"),
    };
    format!("{name} {change}, {allowed}{more}")
}

/// Number of runs per side that decides a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    /// The figure is decided.
    None,
    /// Number of runs per side, including those that were already made.
    Runs(usize),
    /// More than [`RUNS_ADVISED_MAX`].
    TooMany,
    /// A value is zero, so there is no ratio.
    NoRatio,
}

/// Returns the number of runs that each side of the comparison needs so that the interval excludes
/// the limit with a probability of [`POWER`]: the standard sample size of Welch's test on the
/// logarithms.
fn runs_needed(base: &[f64], new: &[f64], limit: f64) -> Needed {
    if base.iter().chain(new).any(|value| !(*value > 0.0 && value.is_finite())) {
        return Needed::NoRatio;
    }
    let made = base.len().min(new.len());
    let moments = |values: &[f64]| {
        let logarithms: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
        let moments = Moments::of(&logarithms);
        moments.mean().zip(moments.variance())
    };
    // A single run has no scatter, so only the minimum number of runs is known.
    let (Some((base_mean, base_variance)), Some((new_mean, new_variance))) =
        (moments(base), moments(new))
    else {
        return Needed::Runs(RUNS_MIN);
    };
    let distance = (new_mean - base_mean - libm::log(limit)).abs();
    let variance = base_variance + new_variance;
    let squares = base_variance * base_variance + new_variance * new_variance;
    let decides = |runs: &usize| {
        if variance == 0.0 {
            return distance > 0.0;
        }
        let freedom = (*runs - 1) as f64 * variance * variance / squares;
        let factor = t_factor(CONFIDENCE, freedom) + t_quantile(POWER, freedom);
        factor * libm::sqrt(variance / *runs as f64) <= distance
    };
    let first = RUNS_MIN.max(made + 1);
    (first..=RUNS_ADVISED_MAX).find(decides).map_or(Needed::TooMany, Needed::Runs)
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, metric_as};
    use super::*;
    use crate::metrics::FigureUnit;

    const RATE: &str = "achieved_iops_per_s";
    const READ_P99: &str = "read_latency_ns_p99";

    fn comparison(metrics: &[(&str, bool, &[f64], &[f64])]) -> Comparison {
        let one = |(key, higher, base, new): &(&str, bool, &[f64], &[f64])| {
            let called = ((*key).to_owned(), (*key).to_owned());
            metric_as(called, *higher, FigureUnit::PerSecond, &[base.to_vec(), new.to_vec()], false)
        };
        Comparison {
            names: vec!["base".to_owned(), "new".to_owned()],
            outcome: Outcome::Differ,
            winner: None,
            reason: String::new(),
            doubt: None,
            judged: Some(RATE.to_owned()),
            requirement_results: Vec::new(),
            metrics: metrics.iter().map(one).collect(),
            differences: Vec::new(),
            explanation: None,
            remarks: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Runs around a mean with 1 % between them.
    fn around(mean: f64, runs: usize) -> Vec<f64> {
        let noise = [-1.2, 0.4, 1.1, -0.3, 0.8, -0.8];
        noise.iter().cycle().take(runs).map(|z| mean * (1.0 + 0.01 * z)).collect()
    }

    fn parsed(arguments: &[&str]) -> Result<Allowances, AllowanceError> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        Allowances::parse(&arguments)
    }

    fn outcome(new: f64, runs: usize, argument: &str) -> Gate {
        let (base, new) = (around(1000.0, runs), around(new, runs));
        gate(&comparison(&[(RATE, true, &base, &new)]), &parsed(&[argument]).unwrap()).unwrap()
    }

    #[test]
    fn beyond_fails_within_passes_and_between_is_undecided() {
        assert_eq!(outcome(300.0, 5, "10%").outcome, GateOutcome::Worse);
        assert_eq!(outcome(990.0, 5, "10%").outcome, GateOutcome::NotWorse);
        // A gain is never a regression.
        assert_eq!(outcome(3000.0, 5, "10%").outcome, GateOutcome::NotWorse);
        let between = outcome(905.0, 5, "10%");
        assert_eq!(between.outcome, GateOutcome::Undecided);
        assert!(between.runs_more_per_side.is_some_and(|runs| runs > 1), "{between:?}");
        assert!(
            between.reason.contains("more runs per side would be enough"),
            "{}",
            between.reason
        );
        // Exactly at the limit, no number of runs decides.
        let at_limit = outcome(900.0, 5, "10%");
        assert_eq!(at_limit.runs_more_per_side, None);
        assert!(at_limit.reason.contains("more than 100 runs"), "{}", at_limit.reason);
    }

    #[test]
    fn a_latency_is_worse_if_it_rises() {
        let (base, new) = (around(1e6, 5), around(1.7e6, 5));
        let figures = comparison(&[(READ_P99, false, &base, &new)]);
        let with = |argument: &str| gate(&figures, &parsed(&[argument]).unwrap()).unwrap().outcome;
        assert_eq!(with("read_p99=20%"), GateOutcome::Worse);
        assert_eq!(with("read_p99=100%"), GateOutcome::NotWorse);
    }

    #[test]
    fn too_few_runs_never_decide() {
        for runs in [1, 2, 3] {
            let few = outcome(300.0, runs, "10%");
            assert_eq!(few.outcome, GateOutcome::Undecided, "{runs}");
            assert_eq!(few.runs_more_per_side, Some(RUNS_MIN - runs), "{runs}");
            assert!(few.reason.contains("too few"), "{}", few.reason);
        }
    }

    #[test]
    fn the_advised_runs_decide_in_most_cases() {
        // Deterministic scatter of 1 % by inverse normal quantiles at random ranks.
        let mut state = 7u64;
        let mut normal = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let p = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            crate::stats::special::normal_quantile(p)
        };
        let mut sample = |mean: f64, runs: usize| -> Vec<f64> {
            (0..runs).map(|_| mean * libm::exp(0.03 * normal())).collect()
        };
        let limit = 0.9;
        // Five values with a standard deviation of exactly 3 %, 4 % above the limit.
        let exact = |mean: f64| -> Vec<f64> {
            let z = [-1.264_911, -0.632_456, 0.0, 0.632_456, 1.264_911];
            z.iter().map(|z| mean * libm::exp(0.03 * z)).collect()
        };
        let advised = runs_needed(&exact(1000.0), &exact(936.0), limit);
        let needed = (RUNS_MIN..=RUNS_ADVISED_MAX).find(|runs| {
            let decided = (0..400).filter(|_| {
                let values = [sample(1000.0, *runs), sample(936.0, *runs)];
                let compared =
                    crate::stats::welch::compare_at(&values[0], &values[1], 0.95).unwrap();
                compared.ratio.low >= limit
            });
            decided.count() >= 320
        });
        // The formula at the true scatter: (1.96 + 0.84)^2 * 2 * 0.03^2 / ln(0.936 / 0.9)^2.
        assert!(needed.is_some_and(|runs| (9..=12).contains(&runs)), "{needed:?}");
        assert!((9..=12).any(|runs| advised == Needed::Runs(runs)), "{advised:?}");
    }

    #[test]
    fn each_figure_has_its_own_allowance_and_the_deciding_figure_is_first() {
        let steady = around(1e6, 5);
        let (rate, slow) = (around(1000.0, 5), around(2e6, 5));
        let all = comparison(&[
            (READ_P99, false, &steady, &slow),
            (RATE, true, &rate, &rate),
            ("cpu_ns_per_op", false, &steady, &slow),
        ]);
        let every = gate(&all, &parsed(&["10%"]).unwrap()).unwrap();
        let names: Vec<&str> = every.figures.iter().map(|f| f.figure.as_str()).collect();
        assert_eq!((names, every.outcome), (vec!["rate", "read_p99"], GateOutcome::Worse));
        assert!(every.reason.contains("read_p99 +100.0 %"), "{}", every.reason);
        let wide = gate(&all, &parsed(&["10%,read_p99=150%"]).unwrap()).unwrap();
        assert_eq!(wide.outcome, GateOutcome::NotWorse);
        let one = gate(&all, &parsed(&["rate=5%"]).unwrap()).unwrap();
        assert_eq!((one.figures.len(), one.outcome), (1, GateOutcome::NotWorse));
    }

    #[test]
    fn a_doubt_decides_before_the_figures() {
        let (base, new) = (around(1000.0, 5), around(300.0, 5));
        let mut doubted = comparison(&[(RATE, true, &base, &new)]);
        doubted.doubt = Some("2 conditions differ".to_owned());
        let gate = gate(&doubted, &parsed(&["10%"]).unwrap()).unwrap();
        assert_eq!((gate.outcome, gate.runs_more_per_side), (GateOutcome::Undecided, None));
        assert_eq!(gate.reason, "2 conditions differ");
        assert_eq!(gate.figures[0].outcome, GateOutcome::Worse);
    }

    #[test]
    fn wrong_allowances_are_refused_with_the_list() {
        let unknown = parsed(&["p999=5%"]).unwrap_err();
        assert_eq!(unknown, AllowanceError::Unknown("p999".to_owned()));
        assert!(unknown.hint(None).contains("rate, bandwidth, latency, p99, read, read_p99"));
        for wrong in ["10", "-5%", "%", "x%", "rate=", "1e2%", "rate=100%", "100%", "nan%"] {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
        assert!(parsed(&["rate=5%", "rate=6%"]).is_err() && parsed(&["5%,6%"]).is_err());
        let rate = around(1000.0, 5);
        let only_rate = comparison(&[(RATE, true, &rate, &rate), (READ_P99, false, &[], &rate)]);
        let missing = gate(&only_rate, &parsed(&["read_p99=5%"]).unwrap()).unwrap_err();
        assert_eq!(missing.hint(Some(&only_rate)), "measured: rate");
        // Without names, the gate skips figures that were not measured.
        assert_eq!(gate(&only_rate, &parsed(&["5%"]).unwrap()).unwrap().figures.len(), 1);
    }

    #[test]
    fn a_rate_of_zero_is_no_pass() {
        let (base, new) = (around(1000.0, 5), vec![0.0; 5]);
        let stopped = gate(&comparison(&[(RATE, true, &base, &new)]), &parsed(&["10%"]).unwrap());
        let stopped = stopped.unwrap();
        assert_eq!(stopped.outcome, GateOutcome::Undecided);
        assert!(stopped.reason.contains("so there is no ratio"), "{}", stopped.reason);
    }
}
