//! Report of a sweep. It is created from the sweep's points and their verdicts.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::sweep::{IoShape, PointFinding, Sweep, depth_bends};

use crate::document::{Block, Document, Section};
use crate::number::{Letters, Unit, elapsed, group_counts};
use crate::places;
use crate::run::{sentence, verdict_tone};
use crate::study::SweepDrawing;
use crate::table::{Cell, Column, Table, Tone};

/// Returns the report. It shows key figures, heat maps and line charts for each pattern and queue
/// depth, and a table of all points.
pub fn sweep_document(sweep: &Sweep) -> Document {
    let mut document = SweepDrawing(sweep).document();
    let (planned, done) = (sweep.points_planned, sweep.points.len());
    if done < planned {
        document.headline.tone = Tone::Warn;
        document.headline.reason = format!("{done} of {planned} points were measured.");
    }
    let invalid = sweep.points.iter().filter(|p| p.verdict == VerdictKind::Invalid).count();
    if invalid > 0 {
        document.headline.tone = Tone::Bad;
        let reason = &mut document.headline.reason;
        reason.push_str(&format!(" Points that are INVALID: {invalid}."));
    }
    let unsteady = sweep.points.iter().filter(|point| point.steady == Some(false)).count();
    if unsteady > 0 {
        document.headline.reason.push_str(&format!(" Points that were not steady: {unsteady}."));
    }
    document.identity = identity(sweep);
    document.demonstration = short(sweep);
    if document.headline.tone == Tone::Plain && unsteady == 0 && document.demonstration.is_none() {
        document.headline.tone = Tone::Good;
    }
    let at = usize::from(!sweep.key_figures.is_empty());
    document.sections.insert(at, bends(sweep));
    // Findings follow the figures and charts, and precede the conditions.
    let at = document.sections.len() - usize::from(!sweep.conditions.is_empty());
    document.sections.splice(at..at, [findings(sweep), verdict_basis(sweep)]);
    document.sections.retain(|section| !section.blocks.is_empty());
    document
}

/// Draws curves over the queue depth, and describes where each of them bends.
fn bends(sweep: &Sweep) -> Section {
    let said: Vec<String> = depth_bends(&sweep.points)
        .into_iter()
        .map(|found| {
            let IoShape { pattern, size_bytes, read_percent, .. } = &found.shape;
            let size = Unit::Size.show(*size_bytes as f64, Letters::Unicode);
            let reads = Unit::Plain.show_round(*read_percent, Letters::Unicode);
            let bend = group_counts(&found.bend.sentence("queue depth"));
            format!("{pattern} {size}, {reads} % reads: {bend}")
        })
        .collect();
    let mut section = Section::brief("bends", "Queue depth at which each curve bends");
    if !said.is_empty() {
        section = section.with(Block::List(said));
    }
    for plot in SweepDrawing(sweep).depth_plots() {
        section = section.with(Block::Chart(Box::new(plot)));
    }
    section
}

/// If every point was measured for less than this, the report has a banner. Effects of caches,
/// burst credit and background work of flash last longer than this.
const SHORT_NS: u64 = 60_000_000_000;

/// Returns the text of a banner if every point was measured only for a short time.
fn short(sweep: &Sweep) -> Option<String> {
    let lengths =
        sweep.points.iter().filter_map(|point| point.place.as_ref()).map(|p| p.measured_ns);
    let longest = lengths.max().filter(|ns| *ns < SHORT_NS)?;
    Some(format!(
        "No point was measured for more than {}. This is only a first look: it shows neither the \
         sustained rate nor rare slow operations, and a difference between two points can be due to \
         chance. For reliable figures, measure each point for ten minutes.",
        elapsed(longest as f64)
    ))
}

/// Returns date, host, file system, kernel, device and plan.
fn identity(sweep: &Sweep) -> Vec<(String, String)> {
    let mut pairs = places::facts(sweep.points.iter().filter_map(|point| point.place.as_ref()));
    let short = sweep.plan_sha256.get(..12).unwrap_or(&sweep.plan_sha256);
    pairs.push(("plan".to_owned(), format!("{}, SHA-256 {short}…", sweep.name)));
    pairs
}

/// Lists the names of points. A long list is shortened.
fn list_points(labels: &[&str], points: usize) -> String {
    const NAMED_MAX: usize = 4;
    match labels.len() {
        all if all == points && points > 1 => format!("all {points} points"),
        few if few <= NAMED_MAX => labels.join(", "),
        many => format!("{} and {} more", labels[..NAMED_MAX].join(", "), many - NAMED_MAX),
    }
}

/// Lists the findings. Findings with the same rule and outcome share a row, which shows their
/// points and the explanation for the first point.
fn findings(sweep: &Sweep) -> Section {
    let mut found: Vec<(&PointFinding, Vec<&str>)> = Vec::new();
    for point in &sweep.points {
        for finding in &point.findings {
            let alike = |known: &PointFinding| {
                known.rule == finding.rule && known.outcome == finding.outcome
            };
            match found.iter_mut().find(|(known, _)| alike(known)) {
                Some((_, labels)) => labels.push(&point.label),
                None => found.push((finding, vec![&point.label])),
            }
        }
    }
    found.sort_by_key(|(finding, _)| finding.outcome);
    let mut table = Table::new(
        "",
        vec![
            Column::words("outcome", "outcome"),
            Column::words("rule", "rule"),
            Column::words("points", "points"),
            Column::remarks("explanation (for the first of the points)", "says"),
        ],
    );
    for (finding, labels) in found {
        let (word, tone) = match finding.outcome {
            Outcome::Fail => ("fail", Tone::Bad),
            Outcome::Unknown => ("unknown", Tone::Warn),
            Outcome::Warn => ("warn", Tone::Warn),
            Outcome::Pass => ("pass", Tone::Good),
        };
        table.rows.push(vec![
            Cell::text(word).tone(tone),
            Cell::text(finding.rule.clone()),
            Cell::text(list_points(&labels, sweep.points.len())),
            Cell::text(sentence(&finding.says)),
        ]);
    }
    Section::brief("findings", "Findings").with(Block::Table(table))
}

/// Returns the claims on which the verdicts are based. Points with the same verdict and claims
/// share a row.
fn verdict_basis(sweep: &Sweep) -> Section {
    let mut groups: Vec<(VerdictKind, String, Vec<&str>)> = Vec::new();
    for point in sweep.points.iter().filter(|point| !point.claims.is_empty()) {
        let claims =
            point.claims.iter().map(|(claim, standing)| format!("{claim} {}", standing.label()));
        let claims = claims.collect::<Vec<_>>().join(", ");
        let alike = groups.iter_mut().find(|(v, c, _)| *v == point.verdict && *c == claims);
        match alike {
            Some((_, _, labels)) => labels.push(&point.label),
            None => groups.push((point.verdict, claims, vec![&point.label])),
        }
    }
    let mut table = Table::new(
        "",
        vec![
            Column::words("verdict", "verdict"),
            Column::words("points", "points"),
            Column::words("claims", "claims"),
        ],
    );
    for (verdict, claims, labels) in groups {
        table.rows.push(vec![
            Cell::text(verdict.label()).tone(verdict_tone(verdict)),
            Cell::text(list_points(&labels, sweep.points.len())),
            Cell::text(claims),
        ]);
    }
    Section::brief("rests-on", "What the verdicts are based on").with(Block::Table(table))
}

/// Returns all points as CSV, in base units.
pub fn sweep_csv(sweep: &Sweep) -> String {
    SweepDrawing(sweep).table().csv()
}

#[cfg(test)]
mod tests {
    use plimsoll_judge::sweep::{PointPlace, SweepPoint};

    use super::*;

    fn point(label: &str, measured_ns: u64, says: &str) -> SweepPoint {
        SweepPoint {
            label: label.to_owned(),
            rate_per_s: Some(100.0),
            verdict: VerdictKind::Measured,
            findings: vec![PointFinding {
                rule: "not-steady".to_owned(),
                outcome: Outcome::Unknown,
                says: says.to_owned(),
            }],
            place: Some(PointPlace {
                started_unix_ns: 1_795_392_000_000_000_000,
                measured_ns,
                host: Some("db7".to_owned()),
                kernel: Some("6.12".to_owned()),
                file_systems: vec!["xfs".to_owned()],
                devices: vec!["nvme0n1 (P5510)".to_owned()],
                version: "0.1.0".to_owned(),
            }),
            ..SweepPoint::default()
        }
    }

    #[test]
    fn a_sweep_says_where_and_when_what_was_found_and_that_it_was_short() {
        let mut sweep = Sweep {
            name: "profile".to_owned(),
            plan_sha256: "0123456789abcdef".to_owned(),
            points_planned: 2,
            points: vec![
                point("a", 5_000_000_000, "it fell"),
                point("b", 5_000_000_000, "it rose"),
            ],
            key_figures: Vec::new(),
            conditions: Vec::new(),
        };
        let document = sweep_document(&sweep);
        let text = crate::text::document(&document, &Default::default());
        assert!(text.contains("all 2 points") && text.contains("It fell."), "{text}");
        let sections: Vec<&str> = document.sections.iter().map(|s| s.id.as_str()).collect();
        let at = |id: &str| sections.iter().position(|one| *one == id);
        assert!(at("points") < at("findings"), "figures first: {sections:?}");
        assert!(document.demonstration.is_some_and(|says| says.contains("more than 5 s")));
        let names: Vec<&str> = document.identity.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["measured", "host", "file system", "kernel", "device", "Plimsoll", "plan"]
        );
        sweep.points[0] = point("a", 600_000_000_000, "it fell");
        assert_eq!(sweep_document(&sweep).demonstration, None);
    }
}
