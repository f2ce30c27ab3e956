//! Analyses whole tables. Those arms of the experiment in a group that differ only in I/O size and
//! read share form a table. Each table has errors relative to the published table, goals, and a few
//! summary figures.
//!
//! Errors here are |modelled / published - 1|, with medians and 90th percentiles by linear
//! interpolation between order statistics (type 7 of Hyndman and Fan, 1996), like those of
//! `model fit`.

use plimsoll_judge::sweep::IoShape;
use plimsoll_model::stats::quantile;
use serde::{Deserialize, Serialize};

use super::arm::{ArmAnalysis, RATE};
use super::words::per_second as rate;
use super::{Input, Role};

/// Mean latency over all operations of a matrix.
const LATENCY: &str = "latency_ns_avg";
/// Figures of whole tables that are compared.
const FIGURES: [&str; 2] = [RATE, LATENCY];
/// Writes of at least this size are limited by bytes rather than by operations.
const LARGE_BYTES: u64 = 8192;

/// A goal for a model on one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The table.
    pub group: String,
    pub figure: String,
    /// Maximum median error.
    pub median_max: f64,
    /// Maximum 90th percentile of the errors.
    pub p90_max: Option<f64>,
    /// Maximum of the model's median error divided by the median error of copying.
    pub of_copying_max: Option<f64>,
}

/// Errors of the model, of copying and of interpolation for the same figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableScore {
    pub figure: String,
    /// Role of these published figures in the fit.
    pub role: Role,
    /// Number of figures.
    pub rows: usize,
    /// Median error of the model.
    pub model_median: f64,
    /// 90th percentile of the model's errors.
    pub model_p90: f64,
    /// Median error of copying the same row of a table that was an input; `None` if there is no
    /// such table.
    pub copied_median: Option<f64>,
    /// 90th percentile of the errors of copying; `None` if there is no table to copy.
    pub copied_p90: Option<f64>,
    /// Median error of interpolation between the next smaller and the next larger I/O size.
    /// Interpolation uses rows of the same published table, which the model does not use.
    pub interpolated_median: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalAnalysis {
    pub goal: Goal,
    /// True if the goal was reached.
    pub reached: bool,
    /// Result, as a sentence.
    pub says: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableAnalysis {
    /// Group to which the arms of the table belong.
    pub group: String,
    /// Title of the experiment's arm whose points form the table.
    pub title: String,
    /// I/O sizes. Each is a row of the table.
    pub sizes_bytes: Vec<u64>,
    /// Read shares in percent, in descending order. Each is a column of the table.
    pub read_percents: Vec<f64>,
    /// Errors of the predictions; empty if there are no published figures.
    pub scores: Vec<TableScore>,
    /// Key figures.
    #[serde(default)]
    pub kept: Vec<TableHighlight>,
}

/// A key figure that summarises a table, with its values as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableHighlight {
    /// Name of the figure.
    pub name: String,
    pub modelled: String,
    pub published: Option<String>,
}

/// Ratios of the rates of one table to the rates of another table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The table.
    pub group: String,
    /// Group of the table whose rates are the denominators.
    pub over: String,
    /// Ratios of the individual points.
    pub ratios: Vec<LayoutRatio>,
}

/// Ratio of the rates of one point in two tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRatio {
    /// Share of reads, in percent.
    pub read_percent: f64,
    /// Size of the I/Os, in bytes.
    pub size_bytes: u64,
    pub modelled: f64,
    /// Ratio of the published figures.
    pub published: Option<f64>,
}

/// Returns each of the experiment's arms that measured one row of the table `group`, with the I/O
/// shape of the row.
fn of_group<'a>(arms: &'a [ArmAnalysis], group: &str) -> Vec<(&'a ArmAnalysis, &'a IoShape)> {
    let of = arms.iter().filter(|arm| arm.group == group && !group.is_empty());
    of.filter_map(|arm| Some((arm, arm.point.as_ref()?))).collect()
}

/// Returns the tables that the experiment's arms form.
pub(super) fn tables(input: &Input<'_>, arms: &[ArmAnalysis]) -> Vec<TableAnalysis> {
    let mut groups: Vec<&str> = Vec::new();
    for arm in arms.iter().filter(|arm| arm.point.is_some() && !arm.group.is_empty()) {
        if !groups.contains(&arm.group.as_str()) {
            groups.push(&arm.group);
        }
    }
    let mut all: Vec<TableAnalysis> = Vec::new();
    for group in groups {
        let points = of_group(arms, group);
        let mut sizes_bytes: Vec<u64> = points.iter().map(|(_, p)| p.size_bytes).collect();
        sizes_bytes.sort_unstable();
        sizes_bytes.dedup();
        let mut read_percents: Vec<f64> = points.iter().map(|(_, p)| p.read_percent).collect();
        read_percents.sort_by(|a, b| b.total_cmp(a));
        read_percents.dedup();
        if points.len() < 4 || points.len() != sizes_bytes.len() * read_percents.len() {
            continue;
        }
        let title = points.first().map_or(String::new(), |(arm, _)| arm.title.clone());
        let scores = FIGURES.iter().filter_map(|key| score(input, arms, &points, key)).collect();
        let kept = keep_in_mind(&points);
        let group = group.to_owned();
        all.push(TableAnalysis { group, title, sizes_bytes, read_percents, scores, kept });
    }
    all
}

fn figure(arm: &ArmAnalysis, key: &str) -> (Option<f64>, Option<f64>) {
    arm.figure(key).map_or((None, None), |figure| (figure.mean, figure.published))
}

fn score(
    input: &Input<'_>,
    arms: &[ArmAnalysis],
    points: &[(&ArmAnalysis, &IoShape)],
    key: &str,
) -> Option<TableScore> {
    let (mut model, mut copied, mut line) = (Vec::new(), Vec::new(), Vec::new());
    let mut role = Role::Input;
    for (arm, point) in points {
        let (Some(mean), Some(published)) = figure(arm, key) else { continue };
        let off = |value: f64| libm::fabs(value / published - 1.0);
        role = arm.figure(key).and_then(|figure| figure.role).unwrap_or(role);
        model.push(off(mean));
        copied.extend(twin(input, arms, arm, key).map(|(_, value)| off(value)));
        line.extend(between(points, point, key).map(off));
    }
    let rows = model.len();
    Some(TableScore {
        figure: key.to_owned(),
        role,
        rows,
        model_median: quantile(&mut model, 0.5)?,
        model_p90: quantile(&mut model, 0.9)?,
        copied_median: quantile(&mut copied, 0.5),
        copied_p90: quantile(&mut copied, 0.9),
        interpolated_median: quantile(&mut line, 0.5),
    })
}

/// Returns the roles of the published figures of all arms of the experiment.
pub(super) fn roles(arms: &[ArmAnalysis]) -> Vec<Role> {
    arms.iter().flat_map(|arm| &arm.figures).filter_map(|figure| figure.role).collect()
}

/// Returns a sentence for each published table that has no goal and whose median error exceeds the
/// tolerance.
pub(super) fn without_goal(
    tables: &[TableAnalysis],
    goals: &[GoalAnalysis],
    tolerance: f64,
) -> Vec<String> {
    let mut all = Vec::new();
    for table in tables {
        for score in &table.scores {
            let is_of = |goal: &GoalAnalysis| {
                goal.goal.group == table.group && goal.goal.figure == score.figure
            };
            if score.model_median > tolerance && !goals.iter().any(is_of) {
                let error = 100.0 * score.model_median;
                let (group, figure) = (&table.group, &score.figure);
                all.push(format!(
                    " Table {group} exceeds the tolerance: the median error of \
                 {figure} is {error:.1} %."
                ));
            }
        }
    }
    all
}

/// Returns the row with the same size and read share from another table that was an input. Prefers
/// a table with the same access pattern. The result is the row's arm, and the value.
pub(super) fn twin(
    input: &Input<'_>,
    arms: &[ArmAnalysis],
    arm: &ArmAnalysis,
    key: &str,
) -> Option<(String, f64)> {
    let point = arm.point.as_ref()?;
    let like = |other: &ArmAnalysis, any_pattern: bool| {
        other.group != arm.group
            && other.point.as_ref().is_some_and(|p| {
                (p.size_bytes, p.read_percent) == (point.size_bytes, point.read_percent)
                    && (any_pattern || p.pattern == point.pattern)
            })
    };
    let input = |other: &ArmAnalysis| {
        let mut given = input.given.iter().filter(|given| given.role == Role::Input);
        given
            .find(|given| given.arm == other.name && given.figure == key)
            .map(|given| (given.arm.clone(), given.value))
    };
    let first = |any: bool| arms.iter().filter(|other| like(other, any)).find_map(input);
    first(false).or_else(|| first(true))
}

/// Interpolates logarithmically between the rows of the next smaller and the next larger I/O size
/// with the same read share.
fn between(points: &[(&ArmAnalysis, &IoShape)], point: &IoShape, key: &str) -> Option<f64> {
    let column = points.iter().filter(|(_, p)| p.read_percent == point.read_percent);
    // The alternatives to the model must not use withheld or user-supplied figures.
    let published = |arm: &ArmAnalysis| -> Option<f64> {
        arm.figure(key).filter(|figure| figure.role.is_some_and(Role::was_known))?.published
    };
    let known: Vec<(u64, f64)> =
        column.filter_map(|(arm, p)| Some((p.size_bytes, published(arm)?))).collect();
    let below = known.iter().filter(|(size, _)| *size < point.size_bytes).max_by_key(|k| k.0)?;
    let above = known.iter().filter(|(size, _)| *size > point.size_bytes).min_by_key(|k| k.0)?;
    let place = |size: u64| libm::log(size as f64);
    let share =
        (place(point.size_bytes) - place(below.0)) / (place(above.0) - place(below.0)).max(1e-9);
    let value = libm::log(below.1) + share * (libm::log(above.1) - libm::log(below.1));
    Some(libm::exp(value))
}

/// Returns the interpolated value for an arm of the experiment, given all arms.
pub(super) fn interpolated(arms: &[ArmAnalysis], arm: &ArmAnalysis, key: &str) -> Option<f64> {
    between(&of_group(arms, &arm.group), arm.point.as_ref()?, key)
}

/// Returns the results of the goals for the tables that were run.
pub(super) fn goals(input: &Input<'_>, tables: &[TableAnalysis]) -> Vec<GoalAnalysis> {
    let one = |goal: &Goal| {
        let table = tables.iter().find(|table| table.group == goal.group)?;
        let score = table.scores.iter().find(|score| score.figure == goal.figure)?;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut says = format!("median error {}", percent(score.model_median));
        let mut reached = score.model_median <= goal.median_max;
        let mut wants = format!("at most {}", percent(goal.median_max));
        if let Some(p90) = goal.p90_max {
            reached &= score.model_p90 <= p90;
            says.push_str(&format!(", 90th percentile of the errors {}", percent(score.model_p90)));
            wants.push_str(&format!(" and {}", percent(p90)));
        }
        if let (Some(most), Some(copied)) = (goal.of_copying_max, score.copied_median) {
            reached &= score.model_median <= most * copied;
            says.push_str(&format!(", median error of copied rows {}", percent(copied)));
            wants.push_str(&format!(
                ", and at most {most:.1} times the median error of copied rows"
            ));
        }
        Some(GoalAnalysis { goal: goal.clone(), reached, says: format!("{says} (goal: {wants})") })
    };
    input.goals.iter().filter_map(one).collect()
}

/// A published value and the modelled value of the same figure.
#[derive(Clone, Copy)]
struct Pair {
    modelled: f64,
    published: Option<f64>,
}

impl Pair {
    fn kept(self, name: &str, show: impl Fn(f64) -> String) -> TableHighlight {
        let published = self.published.map(&show);
        TableHighlight { name: name.to_owned(), modelled: show(self.modelled), published }
    }
}

fn pair(arm: &ArmAnalysis, key: &str) -> Option<Pair> {
    let (mean, published) = figure(arm, key);
    Some(Pair { modelled: mean?, published })
}

fn kib(size_bytes: u64) -> String {
    format!("{} KiB", size_bytes / 1024)
}

fn gigabytes(value: f64) -> String {
    format!("{:.2} GB/s", value / 1e9)
}

/// Converts a rate of operations to bytes of data per second.
fn bytes(point: &IoShape, rate: f64) -> f64 {
    rate * (1.0 - point.metadata_percent / 100.0) * point.size_bytes as f64
}

/// Returns a few key figures that summarise a table.
fn keep_in_mind(points: &[(&ArmAnalysis, &IoShape)]) -> Vec<TableHighlight> {
    let rates: Vec<(&IoShape, Pair)> =
        points.iter().filter_map(|(arm, p)| Some((*p, pair(arm, RATE)?))).collect();
    let mut kept = vec![
        most("most operations", &rates, &|_, rate| rate, &rate),
        most("most data", &rates, &bytes, &gigabytes),
        writes(&rates),
        mixing(&rates),
    ];
    let shown = |ns: f64| format!("{:.1} ms", ns / 1e6);
    for at in [points.first(), points.last()] {
        let of = at.and_then(|(arm, p)| Some((p, pair(arm, LATENCY)?)));
        kept.push(of.map(|(p, pair)| pair.kept(&format!("latency of {}", place(p)), shown)));
    }
    kept.into_iter().flatten().collect()
}

fn place(p: &IoShape) -> String {
    let what = match p.read_percent {
        100.0 => "reads".to_owned(),
        0.0 => "writes".to_owned(),
        share => format!("{share:.0} % reads"),
    };
    format!("{} {what}", kib(p.size_bytes))
}

/// Returns the highest modelled and the highest published figure of a table.
fn most(
    name: &str,
    rates: &[(&IoShape, Pair)],
    of: &dyn Fn(&IoShape, f64) -> f64,
    show: &dyn Fn(f64) -> String,
) -> Option<TableHighlight> {
    let largest = |value: &dyn Fn(&Pair) -> Option<f64>| {
        let all = rates.iter().filter_map(|(p, pair)| Some(of(p, value(pair)?)));
        Some(show(all.reduce(f64::max)?))
    };
    Some(TableHighlight {
        name: name.to_owned(),
        modelled: largest(&|pair| Some(pair.modelled))?,
        published: largest(&|pair| pair.published),
    })
}

/// Returns the lowest and the highest bandwidth of large writes. A narrow range means that bytes
/// limit the writes, not operations.
fn writes(rates: &[(&IoShape, Pair)]) -> Option<TableHighlight> {
    let of: Vec<(&IoShape, Pair)> = rates
        .iter()
        .filter(|(p, _)| p.read_percent == 0.0 && p.size_bytes >= LARGE_BYTES)
        .copied()
        .collect();
    let range = |values: Vec<f64>| {
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        let (low, high) = (format!("{:.2}", least / 1e9), gigabytes(most));
        Some(if high.starts_with(&low) { high } else { format!("{low} to {high}") })
    };
    let modelled = range(of.iter().map(|(p, pair)| bytes(p, pair.modelled)).collect())?;
    let published: Option<Vec<f64>> =
        of.iter().map(|(p, pair)| Some(bytes(p, pair.published?))).collect();
    let name = format!("writes from {}", kib(LARGE_BYTES));
    Some(TableHighlight { name, modelled, published: published.and_then(range) })
}

/// Returns the additional time that each read costs if reads are mixed into a stream of writes. The
/// I/O size is the middle size of the table.
fn mixing(rates: &[(&IoShape, Pair)]) -> Option<TableHighlight> {
    let size = 32_768;
    let at = |read: f64| {
        rates.iter().find(|(p, _)| p.size_bytes == size && p.read_percent == read).map(|r| r.1)
    };
    let (alone, half) = (at(0.0)?, at(50.0)?);
    // Half of the operations are writes. It is assumed that a write takes the same time as without
    // reads, so the remaining time is that of the reads.
    let cost_us = |alone: f64, half: f64| 1e6 * (2.0 / half - 1.0 / alone);
    let cost = Pair {
        modelled: cost_us(alone.modelled, half.modelled),
        published: alone.published.zip(half.published).map(|(a, h)| cost_us(a, h)),
    };
    let name = format!("cost of a {} read among writes", kib(size));
    Some(cost.kept(&name, |us| format!("{us:.1} µs")))
}

/// Compares each table with the first table of the same access pattern and queue depth. This shows
/// the effect of the layout.
pub(super) fn layouts(tables: &[TableAnalysis], arms: &[ArmAnalysis]) -> Vec<Layout> {
    let mut all = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let points = of_group(arms, &table.group);
        let alike = |other: &&TableAnalysis| {
            let others = of_group(arms, &other.group);
            let kind =
                |p: &IoShape| (p.pattern.clone(), p.queue_depth, p.metadata_percent.to_bits());
            let (a, b) = (others.first().map(|o| kind(o.1)), points.first().map(|o| kind(o.1)));
            a == b
        };
        let Some(base) = tables[..at].iter().find(alike) else { continue };
        let bases = of_group(arms, &base.group);
        let ends = |p: &IoShape| {
            [table.sizes_bytes.first(), table.sizes_bytes.last()].contains(&Some(&p.size_bytes))
                && [100.0, 50.0, 0.0].contains(&p.read_percent)
        };
        let ratio = |(arm, p): &(&ArmAnalysis, &IoShape)| {
            let like = |o: &&(&ArmAnalysis, &IoShape)| {
                (o.1.size_bytes, o.1.read_percent) == (p.size_bytes, p.read_percent)
            };
            let (other, _) = bases.iter().find(like)?;
            let (this, that) = (pair(arm, RATE)?, pair(other, RATE)?);
            Some(LayoutRatio {
                read_percent: p.read_percent,
                size_bytes: p.size_bytes,
                modelled: this.modelled / that.modelled,
                published: this.published.zip(that.published).map(|(a, b)| a / b),
            })
        };
        let mut ratios: Vec<LayoutRatio> =
            points.iter().filter(|(_, p)| ends(p)).filter_map(ratio).collect();
        ratios.sort_by(|a, b| {
            b.read_percent.total_cmp(&a.read_percent).then(a.size_bytes.cmp(&b.size_bytes))
        });
        all.push(Layout { group: table.group.clone(), over: base.group.clone(), ratios });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_among_writes_costs_what_the_writes_do_not_explain() {
        let point = |read_percent| IoShape {
            size_bytes: 32_768,
            read_percent,
            metadata_percent: 0.0,
            pattern: "skipping".to_owned(),
            queue_depth: 4,
        };
        let (alone, half) = (point(0.0), point(50.0));
        let pair = |modelled| Pair { modelled, published: None };
        // 25,000 writes per second take 40 µs each. With the same number of reads, there are 20,000
        // pairs of 50 µs each.
        let kept = mixing(&[(&alone, pair(25_000.0)), (&half, pair(40_000.0))]).unwrap();
        assert_eq!((kept.modelled.as_str(), kept.published), ("10.0 µs", None));
        let kept = writes(&[(&alone, pair(25_000.0))]).unwrap();
        assert_eq!(kept.modelled, "0.82 GB/s");
        let larger = IoShape { size_bytes: 65_536, ..alone.clone() };
        let kept = writes(&[(&alone, pair(25_000.0)), (&larger, pair(20_000.0))]).unwrap();
        assert_eq!(kept.modelled, "0.82 to 1.31 GB/s");
        assert_eq!(rate(1_234_567.4), "1,234,567/s");
        assert_eq!(rate(123.0), "123.0/s");
    }
}
