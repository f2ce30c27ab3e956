//! Sections about the test summary, sizing and throughput, parameters, and databases.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_judge::Verdict;
use plimsoll_judge::figures::measured;
use plimsoll_plan::{Mailbox, Pace, Workload};

use super::kinds::{Operation, Totals, kind};
use super::{empty_section, sentence, tier_words, verdict_tone};
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table};
use crate::time::utc;

pub(super) fn summary(bundle: &Bundle, verdict: &Verdict) -> Section {
    let run = &bundle.run;
    let end = match run.end.kind {
        EndKind::Completed => "completed".to_owned(),
        _ => sentence(&run.end.says),
    };
    let ended_ns = run.started_unix_ns.saturating_add(run.duration_ns);
    let text = |name: &str, text: &str| Fact::new(name, Cell::text(text));
    let mut facts = vec![
        Fact::new(
            "overall result",
            Cell::text(verdict.verdict.label()).tone(verdict_tone(verdict.verdict)),
        ),
        text("plan", &run.name),
        text("host", bundle.environment.host.as_deref().unwrap_or("unknown")),
        text("test started", &utc(run.started_unix_ns)),
        text("test ended", &utc(ended_ns)),
    ];
    if let Some(phase) = measured(bundle) {
        let from = run.started_unix_ns.saturating_add(phase.start_ns);
        let lasted = Cell::number(Unit::Elapsed, phase.duration_ns as f64);
        facts.push(Fact::new("measured for", lasted).note(format!("from {}", utc(from))));
    }
    facts.extend([
        text("end", &end),
        text("evidence", tier_words(run.tier, run.driver)),
        text("Plimsoll version", &run.tool_version),
        text("kernel", bundle.environment.kernel.as_deref().unwrap_or("unknown")),
    ]);
    Section::full("summary", "Test summary").with(Block::Facts(facts))
}

pub(super) fn section(bundle: &Bundle, verdict: &Verdict) -> Section {
    if measured(bundle).is_none() {
        return empty_section();
    }
    let facts = throughput(bundle, verdict);
    let mut section = Section::full("throughput", "Sizing and throughput");
    section = section.with(Block::Facts(facts));
    section.with(Block::Table(databases(bundle)))
}

fn throughput(bundle: &Bundle, verdict: &Verdict) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("achieved I/Os", Cell::maybe(Unit::Rate, verdict.achieved_iops_per_s))
            .note("transactional"),
        Fact::new("required I/Os", Cell::maybe(Unit::Rate, verdict.required_iops_per_s))
            .note(required_note(bundle)),
        Fact::new("headroom", super::headroom(verdict.headroom)),
    ];
    let is_mailbox = bundle.plan.workload.mailbox().is_some();
    let words = match is_mailbox {
        true => ["initial database size", "final database size", "databases"],
        false => ["data size at the start", "data size at the end", "instances"],
    };
    let sessions = bundle.run.engine.sessions;
    if let (Some(achieved), true) = (verdict.achieved_iops_per_s, sessions > 0) {
        let each = Cell::number(Unit::Rate, achieved / f64::from(sessions));
        facts.push(Fact::new("I/Os per thread", each).note(super::threads(sessions)));
    }
    let initial: u64 = bundle.run.instances.iter().map(|i| i.size_bytes_initial).sum();
    let last: u64 = bundle.run.instances.iter().map(|i| i.size_bytes_final).sum();
    if initial > 0 {
        let size = |bytes: u64| Cell::number(Unit::Size, bytes as f64);
        facts.push(Fact::new(words[0], size(initial)));
        facts.push(Fact::new(words[1], size(last)));
    }
    facts.push(Fact::new(words[2], Cell::count(bundle.run.instances.len() as u64)));
    if is_mailbox {
        facts.extend(ratios(bundle));
    }
    facts.extend(bundle.run.counters.iter().map(|(name, count)| counter(name, *count)));
    facts
}

/// Formats a counter of the run. The end of the counter's name determines the unit.
fn counter(name: &str, count: u64) -> Fact {
    let words = |name: &str| name.replace('_', " ").replace(" cpu", " CPU");
    let number = |unit: Unit| Cell::number(unit, count as f64);
    if let Some(name) = name.strip_suffix("_bytes") {
        return Fact::new(&format!("{} data", words(name)), number(Unit::Size));
    }
    if let Some(name) = name.strip_suffix("_ns") {
        return Fact::new(&words(name), number(Unit::Latency));
    }
    match name.split_once("_ns_") {
        Some((name, of)) => {
            let of = if of == "max" { "largest".to_owned() } else { words(of) };
            Fact::new(&format!("{}, {of}", words(name)), number(Unit::Latency))
        }
        None => {
            let name = words(name).replace("checksum errors ", "checksum errors, ");
            Fact::new(&name, Cell::count(count))
        }
    }
}

fn required_note(bundle: &Bundle) -> String {
    let from_workload = bundle.plan.requirement.as_ref().is_some_and(|r| r.iops_from_workload);
    match (&bundle.plan.workload, from_workload) {
        (Workload::Mailbox(store), true) => {
            let margin = match store.margin {
                m if m != 0.0 => format!(" + {}", Unit::Share.show(m, Letters::Unicode)),
                _ => String::new(),
            };
            format!(
                "{} mailboxes × {} I/Os{margin}",
                Unit::Count.show(store.mailboxes as f64, Letters::Unicode),
                store.iops_per_mailbox_per_s
            )
        }
        _ => String::new(),
    }
}

/// Compares the load with published figures for Exchange. These ratios are for information only.
fn ratios(bundle: &Bundle) -> Vec<Fact> {
    let of = |group: &str, operation: Operation| -> Totals {
        kind(bundle, group, operation).totals(bundle, None)
    };
    let (reads, writes, log) = (
        of("transactional", Operation::Read),
        of("transactional", Operation::Write),
        of("log", Operation::Write),
    );
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    let show = |name: &str, value: Option<f64>, note: &str| {
        Fact::new(name, Cell::maybe(Unit::Plain, value)).note(note)
    };
    vec![
        show(
            "ratio of database reads to writes",
            ratio(reads.sums.count, writes.sums.count),
            "reads per write; published ratios: 1.5 to 2",
        ),
        show(
            "ratio of database I/Os to log writes",
            ratio(reads.sums.count + writes.sums.count, log.sums.count),
            "database I/Os per log write; published ratios: 8 to 12 (2007), 2.7 to 3.8 (2010)",
        ),
        Fact::new("average log write", Cell::maybe(Unit::Size, log.size_bytes_avg()))
            .note("published goal: 6 to 8 KiB"),
    ]
}

fn databases(bundle: &Bundle) -> Table {
    let (caption, title) = match bundle.plan.workload.mailbox() {
        Some(_) => ("Database configuration", "database"),
        None => ("Data directories", "instance"),
    };
    let mut table = Table::new(
        caption,
        vec![
            Column::words(title, title),
            Column::words("data", "path"),
            Column::words("log", "log_path"),
            Column::numbers("initial size", "size_bytes_initial"),
            Column::numbers("final size", "size_bytes_final"),
            Column::numbers("file", "allocated_bytes"),
        ],
    );
    let size = |bytes: u64| Cell::number(Unit::Size, bytes as f64);
    table.rows = bundle
        .run
        .instances
        .iter()
        .map(|instance| {
            vec![
                Cell::text(instance.name.clone()),
                Cell::text(instance.path.clone()),
                instance.log_path.clone().map_or(Cell::empty(), Cell::text),
                size(instance.size_bytes_initial),
                size(instance.size_bytes_final),
                size(instance.allocated_bytes),
            ]
        })
        .collect();
    table
}

pub(super) fn parameters(bundle: &Bundle) -> Section {
    let mut section = Section::full("plan", "Parameters and plan");
    if let Workload::Mailbox(store) = &bundle.plan.workload {
        section = section.with(Block::Facts(mailbox(store)));
    }
    section = section.with(Block::Listing {
        caption: "The plan as the user wrote it (plan.toml)".to_owned(),
        text: bundle.plan_text.clone(),
    });
    if let Some(job) = &bundle.job_text {
        let caption = "The fio job of the plan (job.fio)".to_owned();
        section = section.with(Block::Listing { caption, text: job.clone() });
    }
    // A plan from a bundle can always be serialised.
    if let Ok(resolved) = bundle.plan.to_toml() {
        section = section.with(Block::Listing {
            caption: format!(
                "The plan that was run, with all defaults filled in (resolved.toml, SHA-256 {})",
                bundle.run.plan_sha256
            ),
            text: resolved,
        });
    }
    section
}

fn mailbox(store: &Mailbox) -> Vec<Fact> {
    let size = |bytes: u64| Cell::number(Unit::Size, bytes as f64);
    let text = |text: String| Cell::text(text);
    let mix = &store.mix;
    let percent = |p: f64| Unit::Share.show(p / 100.0, Letters::Unicode);
    let pace = match store.pace {
        Pace::Free => "unlimited: each thread issues operations as fast as it can",
        Pace::Target => "target: open loop at the required rate",
    };
    let maintenance = store.maintenance.as_ref().map_or("off".to_owned(), |m| {
        format!(
            "{} every {}, for each database",
            Unit::Size.show(m.read_bytes as f64, Letters::Unicode),
            Unit::Latency.show(m.interval_ns as f64, Letters::Unicode)
        )
    });
    vec![
        Fact::new("mailboxes", Cell::count(store.mailboxes)),
        Fact::new(
            "I/Os per second per mailbox",
            Cell::number(Unit::Plain, store.iops_per_mailbox_per_s),
        ),
        Fact::new("mailbox size", size(store.mailbox_size_bytes)),
        Fact::new("threads", Cell::count(u64::from(store.threads))).note(if store.threads_auto {
            "chosen by tuning"
        } else {
            ""
        }),
        Fact::new("pace", text(pace.to_owned())),
        Fact::new(
            "operations",
            text(format!(
                "insert {}, delete {}, replace {}, read {}",
                percent(mix.insert_percent),
                percent(mix.delete_percent),
                percent(mix.replace_percent),
                percent(mix.read_percent)
            )),
        ),
        Fact::new("lazy commits", Cell::number(Unit::Share, store.lazy_commit_share)),
        Fact::new("durable commits by", text(store.durability.word().to_owned())),
        Fact::new("page", size(store.page_size_bytes)),
        Fact::new("page cache", size(store.cache_bytes)).note("for all databases"),
        Fact::new("checkpoint depth", size(store.checkpoint_depth_bytes)),
        Fact::new(
            "log files",
            text(format!(
                "{} of {} per database",
                store.log_files,
                Unit::Size.show(store.log_file_size_bytes as f64, Letters::Unicode)
            )),
        ),
        Fact::new("background maintenance", text(maintenance)),
        Fact::new("copies", Cell::count(u64::from(store.copies))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_in_words_and_units() {
        let shown = |name: &str, count: u64| {
            let fact = counter(name, count);
            format!("{}: {}", fact.name, fact.cell.show(None, Letters::Unicode))
        };
        assert_eq!(shown("generator_lag_ns_p99", 115_839), "generator lag, p99: 116 µs");
        assert_eq!(shown("generator_lag_ns_max", 9_000_000), "generator lag, largest: 9.00 ms");
        assert_eq!(shown("log_write_bytes", 1 << 20), "log write data: 1 MiB");
        assert_eq!(shown("ring_worker_cpu_ns", 2_000_000), "ring worker CPU: 2.00 ms");
        assert_eq!(shown("checksum_errors_torn", 2), "checksum errors, torn: 2");
        assert_eq!(shown("commits_durable", 47_127), "commits durable: 47,127");
    }
}
