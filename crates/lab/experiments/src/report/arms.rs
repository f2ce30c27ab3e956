//! Overview of the arms of an experiment: verdict, threads, and description.

use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{ARMS_FEW, RATE};
use crate::analysis::{Analysis, ArmAnalysis};

/// Returns the overview of the experiment's arms, with verdict, headroom and changed settings.
pub(super) fn verdicts(analysis: &Analysis) -> Section {
    let made = analysis.arms.iter().any(|arm| arm.expects.is_some());
    let mut table = Table::new(
        "",
        vec![
            Column::words("arm", "arm"),
            Column::words("verdict", "verdict"),
            Column::numbers("runs", "runs"),
        ],
    );
    let headroom = analysis.arms.iter().any(|arm| arm.headroom.is_some());
    if headroom {
        table.columns.push(Column::of(Unit::Share, "least headroom", "headroom_min"));
    }
    let per_thread = threads_differ(analysis);
    if per_thread {
        table.columns.push(Column::numbers("threads", "threads"));
        table.columns.push(Column::numbers("I/Os per thread", "rate_per_thread_per_s"));
    }
    if made {
        table.columns.push(Column::words("expected verdict", "expects"));
        table.columns.push(Column::words("rules that failed", "failed_rules"));
    }
    table.columns.push(Column::remarks("description", "title"));
    for arm in &analysis.arms {
        let mut row = vec![
            Cell::text(arm.name.clone()).tone(Tone::Strong),
            Cell::text(verdict_words(arm)),
            Cell::count(arm.completed.into()),
        ];
        if headroom {
            row.push(Cell::maybe(Unit::Share, arm.headroom));
        }
        if per_thread {
            row.push(arm.threads.map_or(Cell::not_applicable(), |n| Cell::count(n.into())));
            row.push(Cell::maybe(Unit::Rate, per_thread_of(arm)));
        }
        if made {
            let tone = if arm.is_as_expected() { Tone::Good } else { Tone::Bad };
            let expects = match arm.expects {
                Some(plimsoll_judge::VerdictKind::Invalid) => "INVALID",
                Some(_) => "not INVALID",
                None => "",
            };
            row.push(Cell::text(expects).tone(tone));
            let rules = if arm.failed_rules.is_empty() {
                "none".to_owned()
            } else {
                arm.failed_rules.join(", ")
            };
            row.push(Cell::text(rules));
        }
        row.push(Cell::text(what_it_is(arm)));
        table.rows.push(row);
    }
    let few = analysis.arms.len() <= ARMS_FEW;
    let section = Section {
        depth: if few { Default::default() } else { plimsoll_report::document::Depth::Full },
        ..Section::brief("arms", "The arms")
    };
    section.with(Block::Table(table))
}

/// Returns true if the experiment's arms differ only in their number of threads, so that I/Os per
/// thread can be compared.
fn threads_differ(analysis: &Analysis) -> bool {
    let mut all = analysis.arms.iter().map(|arm| (arm.threads, arm.servers));
    let first = all.next();
    analysis.arms.iter().all(|arm| arm.threads.is_some() && Some(arm.servers) == first.map(|f| f.1))
        && all.any(|one| Some(one) != first)
}

/// Returns the I/Os per second of one thread. The rate of an arm of the experiment is that of one
/// server, but its number of threads is that of all servers.
fn per_thread_of(arm: &ArmAnalysis) -> Option<f64> {
    let rate = arm.figure(RATE)?.mean?;
    Some(rate * f64::from(arm.servers.max(1)) / f64::from(arm.threads.filter(|n| *n > 0)?))
}

fn what_it_is(arm: &ArmAnalysis) -> String {
    let changes: Vec<String> = arm
        .changes
        .iter()
        .map(|(name, value)| format!("{name} = {}", plain(name, value)))
        .collect();
    match (arm.title.is_empty(), changes.is_empty()) {
        (false, false) => format!("{} ({})", arm.title, changes.join(", ")),
        (false, true) => arm.title.clone(),
        (true, _) => changes.join(", "),
    }
}

pub(super) fn verdict_words(arm: &ArmAnalysis) -> String {
    let mut kinds = arm.verdicts.clone();
    kinds.sort();
    kinds.dedup();
    let words: Vec<&str> = kinds.iter().map(|kind| kind.label()).collect();
    if words.is_empty() { "not run".to_owned() } else { words.join(", ") }
}

/// Formats the value of a setting for display: a size with its unit, a word without quotes.
fn plain(name: &str, value: &str) -> String {
    let number = value.parse::<f64>().ok().filter(|_| !value.is_empty());
    match number {
        Some(bytes) if name.ends_with("_bytes") && bytes >= 1e6 => {
            Unit::Bandwidth.show_round(bytes, Letters::Unicode).replace("/s", "")
        }
        Some(number) => Unit::Plain.show_round(number, Letters::Unicode),
        None => value.trim_matches('"').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_as_people_write_them() {
        assert_eq!(plain("oplog.file_bytes", "1500000000.0"), "1.5 GB");
        assert_eq!(plain("extents.moves_max", "2"), "2");
        assert_eq!(plain("compress.data_ratio", "4.0"), "4");
        assert_eq!(plain("think_time", "\"18ms\""), "18ms");
        assert_eq!(plain("metadata.warm", "true"), "true");
    }
}
