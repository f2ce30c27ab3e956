//! Report of `model fit`: tables and sentences.

use plimsoll_model::fit::goals::{Figure, Measure};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Unit, significant};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{ChecksOut, GoalOut, Outcome, RowOut, ScoresOut};

/// Maximum number of rows that are listed for a missed goal. If there are more rows, only the
/// number of the remaining rows is printed.
const ROWS_NAMED: usize = 8;

pub(super) fn document(result: &Outcome) -> Document {
    let mut sections = vec![
        Section::brief("scores", "Errors").with(Block::Table(scores_table(result))),
        Section::brief("parameters", "Parameters").with(Block::Table(parameter_table(result))),
    ];
    sections[0].blocks.push(Block::Table(goals_table(&result.goals)));
    sections[0].blocks.extend(interpolation_text(result).map(Block::Words));
    if let Some(gaps) = gaps_section(result) {
        sections.insert(1, gaps);
    }
    let parameters = sections.len() - 1;
    let vague: Vec<&str> =
        result.parameters.iter().filter(|p| !p.identified).map(|p| p.path.as_str()).collect();
    if !vague.is_empty() {
        let says = format!(
            "The table does not determine these parameters: {}. The interval of each value reaches \
             a bound or spans a factor of two.",
            vague.join(", ")
        );
        sections[parameters].blocks.push(Block::Words(says));
    }
    sections.push(checks_section("checks", "Consistency of the table", &result.checks));
    sections
        .push(Section::brief("rows", "Fitted rows").with(Block::Table(rows_table(&result.rows))));
    if let Some(predicted) = &result.predicted {
        sections.push(checks_section(
            "other-checks",
            "Consistency of the predicted table",
            &predicted.checks,
        ));
        sections.push(
            Section::brief("predicted", "Predicted rows, which the fit did not use")
                .with(Block::Table(rows_table(&predicted.rows))),
        );
    }
    let of = if result.fits {
        predicted_or_fitted(result)
    } else {
        (result.fitted, " on the fitted rows.")
    };
    let reason = format!(
        "{}: the median error is {:.1} % for the rate and {:.1} % for the latency{}",
        result.model,
        100.0 * of.0.ops_error_median,
        100.0 * of.0.latency_error_median,
        of.1
    );
    let missed = result.goals.iter().filter(|goal| !goal.met).count();
    let reason = match missed {
        0 => reason,
        n => format!("{reason} {n} of {} goals {} missed.", result.goals.len(), are(n)),
    };
    let word = match (result.fits, result.predicted.is_some()) {
        (false, _) => "DOES NOT FIT",
        (true, true) => "PREDICTED",
        (true, false) => "FITTED",
    };
    Document {
        title: result.model.clone(),
        headline: Headline { word: word.to_owned(), reason, ..Headline::default() },
        sections,
        ..Document::default()
    }
}

/// States whether interpolation predicts rows better than the model. The rows are those of the
/// predicted table, or otherwise those of the fitted table. If no rows were left out of fits, the
/// errors of fitted rows are compared, although errors of new rows are larger.
fn interpolation_text(result: &Outcome) -> Option<String> {
    let inside = result.predicted.as_ref().and_then(|p| p.interpolated.as_ref());
    let predicted = inside.map(|inside| (inside.model, inside.scores));
    let own = || Some((result.left_out.unwrap_or(result.fitted), result.interpolated?));
    let (model, between) = predicted.or_else(own)?;
    let p99 = model.latency_p99_error_median.zip(between.latency_p99_error_median);
    let figures = [
        ("rate", Some((model.ops_error_median, between.ops_error_median))),
        ("latency", Some((model.latency_error_median, between.latency_error_median))),
        ("p99 latency", p99),
    ];
    let better =
        figures.iter().filter(|(_, errors)| errors.is_some_and(|(model, other)| other < model));
    let better: Vec<&str> = better.map(|(name, ..)| *name).collect();
    (!better.is_empty()).then(|| {
        format!(
            "For points between measured rows, interpolation is more accurate than the model ({}): \
             use `plimsoll model predict` for such points. Only the model predicts other systems \
             and loads.",
            better.join(", ")
        )
    })
}

fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns a table of goals and reached values.
fn goals_table(goals: &[GoalOut]) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("goal", "goal"),
            Column::numbers("at most", "limit"),
            Column::numbers("reached", "reached"),
            Column::words("", "met"),
        ],
    );
    for goal in goals {
        let met = match goal.met {
            true => Cell::text("reached").tone(Tone::Good),
            false => Cell::text("MISSED").tone(Tone::Warn),
        };
        let (name, limit) = (Cell::text(goal.says.clone()), percent(goal.limit));
        table.rows.push(vec![name, Cell::text(limit), Cell::text(percent(goal.reached)), met]);
    }
    table
}

/// Returns a goal as text.
pub(super) fn goal_text(goal: &plimsoll_model::fit::goals::Goal, copying: Option<f64>) -> String {
    use plimsoll_model::fit::goals::RowSet;
    let rows = match goal.of {
        RowSet::Fitted => "fitted rows",
        RowSet::Predicted => "predicted rows",
    };
    let figure = match goal.figure {
        Figure::Ops => "rate",
        Figure::Latency => "latency",
        Figure::LatencyP99 => "p99 latency",
    };
    let measure = match (goal.measure, copying) {
        (Measure::Median, _) => "median error".to_owned(),
        (Measure::P90, _) => "p90 error".to_owned(),
        (Measure::OfCopying, None) => "median error, relative to that of copying".to_owned(),
        (Measure::OfCopying, Some(copying)) => {
            format!("median error, relative to that of copying ({})", percent(copying))
        }
    };
    format!("{rows}, {figure}: {measure}")
}

/// Explains each missed goal, and lists the effects that the model does not include.
fn gaps_section(result: &Outcome) -> Option<Section> {
    let mut says: Vec<String> = result.goals.iter().flat_map(gap_text).collect();
    if says.is_empty() {
        return None;
    }
    if let Some(missing) = &result.missing {
        says.push(format!("Missing in {}: {missing}", result.model));
    } else {
        says.push(format!(
            "{} must list the effects that it does not model: add `missing` to its [model] table.",
            result.model
        ));
    }
    Some(Section::brief("gaps", "Goals that are missed").with(Block::List(says)))
}

fn gap_text(goal: &GoalOut) -> Vec<String> {
    let Some(gap) = &goal.gap else { return Vec::new() };
    let signed = |share: f64| format!("{:+.1} %", 100.0 * share);
    let mut says = vec![format!(
        "{}: the value is {}, but the goal is at most {}: {:.1} percentage points too high.",
        goal.says,
        percent(goal.reached),
        percent(goal.limit),
        100.0 * gap.over
    )];
    let named = gap.rows.iter().take(ROWS_NAMED);
    let named: Vec<String> =
        named.map(|row| format!("{} ({})", row.row, signed(row.error))).collect();
    let more = match gap.rows.len().saturating_sub(ROWS_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more rows"),
    };
    if !named.is_empty() {
        says.push(format!(
            "Rows with an error above {}: {}{more}.",
            percent(gap.row_limit),
            named.join("; ")
        ));
    }
    let side = |error: f64| if error < 0.0 { "low" } else { "high" };
    let group = |group: &super::GroupOut| {
        let n = match group.one_side == group.rows {
            true => format!("all {} rows", group.rows),
            false => format!("{} of {} rows", group.one_side, group.rows),
        };
        let error = group.error_median;
        format!(
            "{}: the modelled values of {n} are too {}, with a median error of {}",
            group.group,
            side(error),
            signed(error)
        )
    };
    let groups: Vec<String> = gap.groups.iter().map(group).collect();
    says.push(match groups.is_empty() {
        true => {
            "No I/O size or mix has errors that are mainly too low or mainly too high.".to_owned()
        }
        false => format!(
            "I/O sizes and mixes whose errors are mainly in one direction: {}.",
            groups.join("; ")
        ),
    });
    says
}

fn predicted_or_fitted(result: &Outcome) -> (ScoresOut, &'static str) {
    match &result.predicted {
        Some(predicted) => (predicted.scores, " on rows that the fit did not use."),
        None => (result.fitted, " on the fitted rows."),
    }
}

fn scores_table(result: &Outcome) -> Table {
    let plural = if result.free_parameters == 1 { "" } else { "s" };
    let predicted = result.predicted.as_ref();
    let inside = predicted.and_then(|p| p.interpolated.as_ref());
    let count = inside.map_or(0, |inside| inside.rows);
    let rows = [
        (format!("fitted, {} free parameter{plural}", result.free_parameters), Some(result.fitted)),
        ("each row left out of the fit in turn".to_owned(), result.left_out),
        ("each row interpolated from the other rows".to_owned(), result.interpolated),
        ("predicted".to_owned(), predicted.map(|predicted| predicted.scores)),
        ("copied from the fitted table".to_owned(), predicted.and_then(|p| p.copied)),
        (format!("predicted, the {count} rows between fitted rows"), inside.map(|i| i.model)),
        (format!("interpolated, the same {count} rows"), inside.map(|i| i.scores)),
    ];
    let known = rows.into_iter().filter_map(|(name, scores)| Some((name, scores?)));
    ScoresOut::table("rows", &known.collect::<Vec<_>>())
}

fn parameter_table(result: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("parameter", "parameter"),
            Column::numbers("start", "given"),
            Column::numbers("fitted", "fitted"),
            Column::numbers("from", "interval_low"),
            Column::numbers("to", "interval_high"),
            Column::words("determined", "identified"),
        ],
    );
    for p in &result.parameters {
        let digits = |value: f64| Cell::text(significant(value, 4));
        let end = |pick: fn((f64, f64)) -> f64| {
            p.interval.map_or(Cell::not_applicable(), |interval| digits(pick(interval)))
        };
        let identified = match (p.interval, p.identified) {
            (None, _) => Cell::not_applicable(),
            (Some(_), true) => Cell::text("yes").tone(Tone::Good),
            (Some(_), false) => Cell::text("no").tone(Tone::Warn),
        };
        table.rows.push(vec![
            Cell::text(p.path.clone()),
            digits(p.given),
            digits(p.fitted),
            end(|i| i.0),
            end(|i| i.1),
            identified,
        ]);
    }
    table
}

fn rows_table(rows: &[RowOut]) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("row", "row"),
            Column::of(Unit::Rate, "measured", "measured_ops_per_s").under("rate"),
            Column::of(Unit::Rate, "model", "modelled_ops_per_s").under("rate"),
            Column::numbers("error", "ops_error").under("rate"),
            Column::of(Unit::Latency, "measured", "measured_latency_ns").under("latency"),
            Column::of(Unit::Latency, "model", "modelled_latency_ns").under("latency"),
            Column::numbers("error", "latency_error").under("latency"),
        ],
    );
    let error = |share: f64| Cell::text(format!("{:+.1} %", 100.0 * share));
    for row in rows {
        table.rows.push(vec![
            Cell::text(row.row.clone()),
            Cell::number(Unit::Rate, row.measured_ops_per_s),
            Cell::number(Unit::Rate, row.modelled_ops_per_s),
            error(row.ops_error),
            Cell::number(Unit::Latency, row.measured_latency_ms * 1e6),
            Cell::number(Unit::Latency, row.modelled_latency_ms * 1e6),
            error(row.latency_error),
        ]);
    }
    table
}

/// Describes the results of the consistency checks.
fn checks_section(id: &str, title: &str, checks: &ChecksOut) -> Section {
    let mut says = Vec::new();
    if checks.identity_residual_median.is_finite() {
        let unit = if checks.bandwidth_unit_bytes == 1e6 { "10^6" } else { "2^20" };
        says.push(format!(
            "The bandwidth column equals data operations x I/O size + operations x {:.0} protocol \
             bytes, in units of {unit} bytes: the median residual is {:.3} %.",
            checks.protocol_bytes_per_op,
            100.0 * checks.identity_residual_median
        ));
        for (row, residual) in &checks.identity_odd_rows {
            says.push(format!("The bandwidth of {row} deviates by {:+.1} %.", 100.0 * residual));
        }
    } else {
        says.push("The table has no bandwidth column that could be checked.".to_owned());
    }
    let most = checks
        .concurrency_possible
        .map(|most| format!("; the load allows at most {most:.0} operations"));
    says.push(format!(
        "By Little's law (rate x latency), the rows have {:.0} to {:.0} operations in flight{}.",
        checks.concurrency_least,
        checks.concurrency_most,
        most.unwrap_or_default()
    ));
    for (row, n) in &checks.concurrency_impossible_rows {
        says.push(format!("{row} has {n:.0} operations in flight, which is impossible."));
    }
    let gigabytes = |bytes: f64| bytes / 1e9;
    let limit = checks.network_limit_bytes_per_s.map_or(String::new(), |limit| {
        let over = checks.network_bytes_per_s_max > limit;
        let word = if over { "MORE than" } else { "within" };
        format!(", {word} the bandwidth of the model's ports ({:.2} GB/s)", gigabytes(limit))
    });
    says.push(format!(
        "The busiest row transfers {:.2} GB/s in one direction{limit}.",
        gigabytes(checks.network_bytes_per_s_max)
    ));
    if let Some(deviation) = checks.repeat_deviation_median {
        says.push(format!(
            "{} rows have the same size, pattern, mix and operations in flight as another row. The \
             median deviation of their rates from the mean rate of the same settings is {}: no \
             model and no interpolation can be more accurate than that.",
            checks.rows_repeated,
            percent(deviation)
        ));
    }
    if !checks.columns_passed_over.is_empty() {
        says.push(format!(
            "These columns of the table were ignored, because a fit does not use them: {}.",
            checks.columns_passed_over.join(", ")
        ));
    }
    if checks.rows_left_out > 0 {
        says.push(format!(
            "Number of rows that were left out, because they are INVALID or lack a required figure: \
             {}.",
            checks.rows_left_out
        ));
    }
    Section::brief(id, title).with(Block::List(says))
}

#[cfg(test)]
mod tests {
    use super::super::{GapOut, GroupOut, OddRow, goals_of};
    use super::*;
    use plimsoll_report::text::Style;

    /// Returns the default goal with this index, with the value that was reached.
    fn goal(at: usize, reached: f64, gap: Option<GapOut>) -> GoalOut {
        let goal = goals_of(&[]).unwrap_or_default()[at];
        let copying = (goal.measure == Measure::OfCopying).then_some(0.43);
        GoalOut {
            goal: goal.name(),
            says: goal_text(&goal, copying),
            limit: goal.limit,
            reached,
            met: gap.is_none(),
            copying_error_median: copying,
            gap,
        }
    }

    fn gap(over: f64, rows: usize, groups: Vec<GroupOut>) -> GapOut {
        let row = |n: usize| OddRow { row: format!("{n} KiB, 50 % read"), error: -0.3 };
        GapOut { over, row_limit: 0.25, rows: (1..=rows).map(row).collect(), groups }
    }

    #[test]
    fn a_missed_goal_is_told_with_its_gap_its_rows_and_what_the_model_lacks() {
        let group = |group: &str, one_side: usize, error_median: f64| GroupOut {
            group: group.to_owned(),
            rows: 5,
            one_side,
            error_median,
        };
        let groups = vec![group("16 KiB", 4, -0.281), group("4 KiB", 5, 0.204)];
        let result = Outcome {
            model: "tiny".to_owned(),
            fits: true,
            fitted: ScoresOut::default(),
            left_out: None,
            interpolated: None,
            free_parameters: 1,
            rows: Vec::new(),
            parameters: Vec::new(),
            checks: ChecksOut::default(),
            predicted: None,
            goals: vec![
                goal(0, 0.024, None),
                goal(5, 0.285, Some(gap(0.035, 9, groups))),
                goal(7, 0.612, Some(gap(0.112, 0, Vec::new()))),
            ],
            missing: Some("two queues of each drive.".to_owned()),
        };
        let text = plimsoll_report::text::document(&document(&result), &Style::default());
        let report = text.split("Parameters").next().unwrap_or_default();
        insta::assert_snapshot!(report);
        assert!(text.starts_with("FITTED"), "{text}");
        let unsaid = Outcome { missing: None, fits: false, ..result };
        let text = plimsoll_report::text::document(&document(&unsaid), &Style::default());
        assert!(text.contains("`missing`"), "{text}");
        assert!(text.starts_with("DOES NOT FIT"), "{text}");
    }
}
