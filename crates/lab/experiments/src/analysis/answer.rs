//! Answers an experiment's questions from its figures, and checks published arithmetic.

use plimsoll_judge::metrics::{self, FigureUnit};
use plimsoll_judge::tuning::Tuning;
use plimsoll_judge::verdict::VerdictKind;
use serde::{Deserialize, Serialize};

use super::arm::{ArmAnalysis, FigureAnalysis, RATE};
use super::words::{ms, per_second, percent};
use super::{Input, SearchAnalysis};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub text: String,
    pub arm: Option<String>,
    /// Arm of the experiment with which the arm of the question is compared.
    pub over: Option<String>,
    /// Figure about which the question asks. If there is none, the answer is the arm's verdict and
    /// mechanism.
    pub figure: Option<String>,
    /// Arms of the experiment to rank; empty to rank all arms.
    #[serde(default)]
    pub among: Vec<String>,
}

/// A published claim about two results. It states that one result is lower than the other by a
/// given share, but that both are equal after a correction for CPU speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The published claim, as a sentence.
    pub text: String,
    /// Claimed share by which the result is below the other result.
    pub below: f64,
    /// Claimed share by which the other arm's CPU core is faster.
    pub cpu_faster: f64,
    /// Claimed maximum relative difference after the correction.
    pub apart_max: f64,
    /// Arm of the experiment whose result the claim is about. The figure of this arm is corrected
    /// in the same way.
    pub arm: Option<String>,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
}

pub(super) fn answers(input: &Input<'_>, arms: &[ArmAnalysis]) -> Vec<Answer> {
    let requested = input.questions.iter().filter_map(|question| {
        let answer = answer(question, arms, &input.searches, input.modelled)?;
        Some(Answer { question: question.text.clone(), answer })
    });
    let claimed = input.claims.iter().map(|claim| Answer {
        question: claim.text.clone(),
        answer: format!("{}{}", arithmetic(claim), corrected(claim, arms).unwrap_or_default()),
    });
    requested.chain(claimed).collect()
}

fn answer(
    question: &Question,
    arms: &[ArmAnalysis],
    searches: &[SearchAnalysis],
    modelled: bool,
) -> Option<String> {
    if let (Some(name), None, None) = (&question.arm, &question.over, &question.figure)
        && let Some(search) = searches.iter().find(|search| search.name == *name)
    {
        return search.found.as_ref().map(|found| searched(search, found));
    }
    let found = |name: &Option<String>| arms.iter().find(|arm| Some(&arm.name) == name.as_ref());
    let of_arm = found(&question.arm);
    let over = found(&question.over);
    // If its arm is missing, the question has no answer.
    if question.arm.is_some() != of_arm.is_some() || question.over.is_some() != over.is_some() {
        return None;
    }
    match (of_arm, over, &question.figure) {
        (Some(arm), Some(over), Some(key)) => {
            Some(compared(arm, over, arm.figure(key)?, over.figure(key)?))
        }
        (Some(arm), _, Some(key)) => {
            let figure = arm.figure(key)?;
            let says = if modelled { "modelled" } else { "measured" };
            Some(format!("{}: {} ({says}).", capital(&named(arm)), shown(figure)))
        }
        (Some(arm), _, None) => Some(stands(arm)),
        (None, _, Some(key)) => ranked(arms, &question.among, key),
        (None, _, None) => None,
    }
}

fn figure_unit(key: &str) -> FigureUnit {
    metrics::all().find(|f| f.key == key).map_or(FigureUnit::PerSecond, |figure| figure.unit)
}

/// Returns a figure with its unit, as text.
fn value(key: &str, value: f64) -> String {
    match figure_unit(key) {
        FigureUnit::PerSecond => per_second(value),
        FigureUnit::BytesPerSecond if value >= 1e9 => format!("{:.2} GB/s", value / 1e9),
        FigureUnit::BytesPerSecond => format!("{:.1} MB/s", value / 1e6),
        FigureUnit::Nanoseconds => ms(value),
        FigureUnit::Share => percent(value),
    }
}

fn shown(figure: &FigureAnalysis) -> String {
    let Some(mean) = figure.mean else { return "not measured".to_owned() };
    let interval = figure.interval.map_or(String::new(), |[low, high]| {
        format!(" ({} to {})", value(&figure.key, low), value(&figure.key, high))
    });
    let published = figure
        .published
        .map_or(String::new(), |p| format!("; published {}", value(&figure.key, p)));
    format!("{}{interval}{published}", value(&figure.key, mean))
}

/// Returns the change of a figure as text. Changes of less than half a percent count as no change.
fn more_or_less(key: &str, ratio: f64) -> &'static str {
    let longer = matches!(figure_unit(key), FigureUnit::Nanoseconds);
    match (ratio, longer) {
        (r, true) if r >= 1.005 => "Longer",
        (r, true) if r <= 0.995 => "Shorter",
        (_, true) => "Equal",
        (r, false) if r >= 1.005 => "Higher",
        (r, false) if r <= 0.995 => "Lower",
        (_, false) => "Equal",
    }
}

fn compared(
    arm: &ArmAnalysis,
    over: &ArmAnalysis,
    a: &FigureAnalysis,
    b: &FigureAnalysis,
) -> String {
    let (Some(mean), Some(base)) = (a.mean, b.mean.filter(|base| *base > 0.0)) else {
        return "Not measured.".to_owned();
    };
    let ratio = mean / base;
    // If the intervals overlap, the difference is within the variation between runs.
    let apart = match (a.interval, b.interval) {
        (Some([low, high]), Some([b_low, b_high])) if low <= b_high && b_low <= high => {
            " The confidence intervals overlap, so the difference is not significant."
        }
        _ => "",
    };
    let published = match (a.published, b.published) {
        (Some(p), Some(q)) if q > 0.0 => format!(" Published ratio: {:.2}.", p / q),
        _ => String::new(),
    };
    format!(
        "{} ({ratio:.2} times): {} with {}, compared with {} with {}.{apart}{published}",
        more_or_less(&a.key, ratio),
        value(&a.key, mean),
        named(arm),
        value(&b.key, base),
        named(over)
    )
}

/// Returns the name of an arm of the experiment for use in a sentence. A point of a table is
/// described by its size and read share.
fn named(arm: &ArmAnalysis) -> String {
    match arm.point.as_ref().filter(|_| !arm.group.is_empty()) {
        Some(point) => format!(
            "{} ({} KiB, {:.0} % reads)",
            arm.group,
            point.size_bytes / 1024,
            point.read_percent
        ),
        None => format!("arm {}", arm.name),
    }
}

/// Returns the arm's verdict, its headroom, and the first sentences of its mechanism.
fn stands(arm: &ArmAnalysis) -> String {
    let mut kinds: Vec<VerdictKind> = arm.verdicts.clone();
    kinds.sort();
    kinds.dedup();
    let words: Vec<&str> = kinds.iter().map(|kind| kind.label()).collect();
    let headroom = arm.headroom.map_or(String::new(), |h| match h {
        h if h < 0.0 => format!(", {} below the required rate", percent(-h)),
        h => format!(", minimum headroom {}", percent(h)),
    });
    let why = arm.mechanism.iter().take(5).cloned().collect::<Vec<_>>().join(" ");
    if let Some(failure) = &arm.failure {
        return format!("{} {why}", capital(&failure.says));
    }
    // The points of a table are very short runs, so their mechanism is described, but not their
    // verdict.
    if arm.point.is_some() && !arm.group.is_empty() {
        return format!("{}: {why}", capital(&named(arm)));
    }
    // A verdict other than MEASURED or PASS is explained, unless the experiment expects it.
    let plain = |kind: &VerdictKind| matches!(kind, VerdictKind::Measured | VerdictKind::Pass);
    let rate = arm.servers > 1 && arm.reason.contains("iops");
    let all = if rate { " (all servers together)" } else { "" };
    let because = if arm.expects.is_some() || kinds.iter().all(plain) || arm.reason.is_empty() {
        String::new()
    } else {
        let reason = arm.reason.trim_end_matches('.');
        format!(": {}{all}", reason.strip_prefix("modelled: ").unwrap_or(reason))
    };
    let caught = match &arm.failed_rules[..] {
        rules if arm.expects.is_some() && !rules.is_empty() => format!(" by {}", rules.join(", ")),
        _ => String::new(),
    };
    format!("{}{caught}{headroom}{because}. {why}", words.join(" or ")).trim().to_owned()
}

/// Ranks the experiment's arms in `among`, or all arms, by a figure.
fn ranked(arms: &[ArmAnalysis], among: &[String], key: &str) -> Option<String> {
    let mut known: Vec<(&str, f64)> = arms
        .iter()
        .filter(|arm| among.is_empty() || among.contains(&arm.name))
        .filter_map(|arm| Some((arm.name.as_str(), arm.figure(key)?.mean?)))
        .collect();
    if known.is_empty() {
        return None;
    }
    let higher = metrics::all().find(|figure| figure.key == key)?.higher_is_better;
    known.sort_by(|a, b| if higher { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let parts: Vec<String> =
        known.iter().map(|(name, of)| format!("{} with {name}", value(key, *of))).collect();
    Some(format!("Best first: {}.", parts.join(", ")))
}

/// Describes the result of a search.
fn searched(search: &SearchAnalysis, found: &Tuning) -> String {
    let parts = f64::from(search.servers.max(1));
    let each = if search.servers > 1 { " per server" } else { "" };
    let rate = |per_s: f64| format!("{}{each}", per_second(per_s / parts));
    let load = |load: u64| match search.counted_in() {
        "threads" if load == 1 => "1 thread".to_owned(),
        "threads" => format!("{load} threads"),
        name => format!("{name} {load}"),
    };
    let mut says = Vec::new();
    match (found.required_load, found.required_per_s) {
        (Some(fewest), Some(required)) => {
            let checked = if found.required_load_checked {
                ", but the smaller loads that were tested do not"
            } else {
                ""
            };
            says.push(format!(
                "{} is the smallest load found that meets the required rate of {}: it sustains \
                 {}{checked}.",
                capital(&load(fewest.load)),
                rate(required),
                per_second(fewest.rate_per_s / parts)
            ));
        }
        (None, Some(required)) if !found.knob.is_open() => {
            says.push(format!("No tested load meets the required rate of {}.", rate(required)));
        }
        _ => {}
    }
    match found.load_line {
        Some(line) => says.push(format!(
            "The load line (the highest rate at which every latency limit is met) is {} with {}.",
            rate(line.rate_per_s),
            load(line.load)
        )),
        None => says.push("No tested load meets every latency limit.".to_owned()),
    }
    if let Some(knee) = found.knee.filter(|knee| Some(knee.load) != found.load_line.map(|l| l.load))
    {
        let (at, with) = (rate(knee.rate_per_s), load(knee.load));
        says.push(format!("The ratio of rate to latency is highest at {at} with {with}."));
    }
    says.join(" ")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// Compares the figure of the experiment's arm with the other run's published figure, after a
/// correction for the CPU of the arm.
fn corrected(claim: &Claim, arms: &[ArmAnalysis]) -> Option<String> {
    let arm = arms.iter().find(|arm| Some(&arm.name) == claim.arm.as_ref())?;
    let figure = arm.figure(RATE)?;
    let (mean, published) = (figure.mean?, figure.published?);
    let literal = published / (1.0 - claim.below) / (1.0 + claim.cpu_faster);
    let turned = published * (1.0 + claim.below) / (1.0 + claim.cpu_faster);
    let against = |other: f64| {
        let off = mean / other - 1.0;
        let word = if off >= 0.0 { "above" } else { "below" };
        format!("{:.1}/s, and arm {} is {} {word} it", other, arm.name, percent2(off.abs()))
    };
    Some(format!(
        "Arm {} sustains {mean:.1}/s. If the claim is meant literally, the rate of the other run on \
         this CPU would be {}. If the claim means that the other run is above this run by that \
         share, the rate would be {}.",
        arm.name,
        against(literal),
        against(turned)
    ))
}

/// Checks both meanings of "A is x % below B": A is B reduced by x %, or B is A increased by x %.
fn arithmetic(claim: &Claim) -> String {
    let literal = 1.0 / (1.0 - claim.below);
    let turned = 1.0 + claim.below;
    let apart = |other: f64| (other / (1.0 + claim.cpu_faster) - 1.0).abs();
    let (as_said, reversed) = (apart(literal), apart(turned));
    let holds = |apart: f64| if apart <= claim.apart_max { "holds" } else { "does not hold" };
    let so = match (as_said <= claim.apart_max, reversed <= claim.apart_max) {
        (true, _) => "The arithmetic holds as stated.",
        (false, true) => {
            "The arithmetic holds only if the other run was above this run by that share. The claim \
             states something else: that this run was below the other run by that share."
        }
        (false, false) => "The arithmetic does not hold in either interpretation.",
    };
    format!(
        "If this run is {} below the other run, the rate of the other run is {literal:.4} times the \
         rate of this run. After correction for a CPU that is {} faster, the two rates differ by {} \
         (the claim {}). If the other run is instead {} above this run, the corrected rates differ \
         by {} (the claim {}). {so}",
        percent2(claim.below),
        percent2(claim.cpu_faster),
        percent2(as_said),
        holds(as_said),
        percent2(claim.below),
        percent2(reversed),
        holds(reversed)
    )
}

fn percent2(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arithmetic_of_a_claim_is_told_in_both_readings() {
        let claim = Claim {
            text: String::new(),
            below: 0.1561,
            cpu_faster: 0.1628,
            apart_max: 0.01,
            arm: None,
        };
        let says = arithmetic(&claim);
        // 1 / 0.8439 / 1.1628 is 1.0191, 1.1561 / 1.1628 is 0.9942.
        for part in ["1.91 %", "0.58 %", "holds only if the other run was above this run"] {
            assert!(says.contains(part), "{says}");
        }
        let right = Claim { below: 0.2, cpu_faster: 0.25, ..claim };
        assert!(arithmetic(&right).contains("holds as stated"));
        let wrong = Claim { below: 0.5, cpu_faster: 0.1, ..right };
        assert!(arithmetic(&wrong).contains("does not hold in either interpretation"));
    }
}
