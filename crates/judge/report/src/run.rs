//! Report of one run.
//!
//! Checks, charts and the verdict's reasons are first. Then follow the tables, in the order of
//! Jetstress reports (summary, sizing, parameters, database configuration, transactional,
//! maintenance, replication, total, host), and the method. Figures are those of the verdict and of
//! `plimsoll_judge::figures`; this module only adds and divides totals in the evidence.

mod carried;
pub(crate) mod checks;
mod condition;
pub(crate) mod distribution;
pub(crate) mod events;
pub(crate) mod findings;
mod host;
mod inside;
mod io;
pub(crate) mod kinds;
pub(crate) mod links;
mod method;
mod phases;
mod replay;
mod sizing;
pub(crate) mod timeline;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind, Tier};
use plimsoll_judge::figures::{has_figures, measured};
use plimsoll_judge::{Verdict, VerdictKind};

pub use self::inside::{explain, explained_json};

use self::kinds::Operation;
use crate::document::{Document, Fact, Headline, Section};
use crate::durability;
use crate::number::{Unit, elapsed, group_counts};
use crate::table::{Cell, Tone};
use crate::time::utc;

/// Returns the report of a run.
pub fn run_document(bundle: &Bundle, verdict: &Verdict) -> Document {
    let sections = [
        checks::section(verdict),
        events::section(bundle),
        durability::section(bundle),
        replay::section(bundle),
        inside::brief(bundle),
        io::brief(bundle),
        timeline::section(bundle, verdict),
        carried::section(bundle, verdict),
        findings::section(verdict),
        findings::claims_line(verdict),
        condition::section(bundle),
        sizing::summary(bundle, verdict),
        sizing::section(bundle, verdict),
        io::section(bundle),
        distribution::section(bundle),
        inside::section(bundle),
        events::outputs(bundle),
        phases::section(bundle),
        host::performance(bundle),
        findings::claims_section(verdict),
        sizing::parameters(bundle),
        host::environment(bundle),
        method::section(bundle, verdict),
        method::ledger(bundle),
    ];
    Document {
        title: bundle.run.name.clone(),
        description: bundle.plan.description.clone(),
        identity: identity(bundle),
        demonstration: verdict.demonstration.then(|| demonstration(bundle)),
        headline: headline(bundle, verdict),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
    }
}

pub fn verdict_tone(kind: VerdictKind) -> Tone {
    match kind {
        VerdictKind::Pass => Tone::Good,
        VerdictKind::Fail | VerdictKind::Invalid => Tone::Bad,
        VerdictKind::Inconclusive => Tone::Warn,
        VerdictKind::Measured => Tone::Plain,
    }
}

/// Formats a number of threads.
fn threads(count: u32) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

fn identity(bundle: &Bundle) -> Vec<(String, String)> {
    let run = &bundle.run;
    let mut pairs = vec![("run".to_owned(), run.run_id.clone())];
    if let Some(owner) = &bundle.plan.owner {
        pairs.push(("owner".to_owned(), owner.clone()));
    }
    pairs.push(("started".to_owned(), utc(run.started_unix_ns)));
    if let Some(phase) = measured(bundle) {
        pairs.push(("measured".to_owned(), elapsed(phase.duration_ns as f64)));
    }
    let engine = &bundle.run.engine;
    if bundle.run.driver != Driver::Foreign {
        let load = if engine.closed_loop { "closed loop" } else { "open loop" };
        pairs.push(("load".to_owned(), format!("{load}, {}", threads(engine.sessions))));
    }
    if let Some(inside) = &bundle.observed.inside {
        pairs.push(("model".to_owned(), format!("{} ({})", inside.model, inside.origin)));
    } else if let Some(host) = &bundle.environment.host {
        pairs.push(("host".to_owned(), host.clone()));
    }
    pairs.push(("evidence".to_owned(), tier_words(run.tier, run.driver).to_owned()));
    pairs.push(("Plimsoll".to_owned(), run.tool_version.clone()));
    pairs
}

/// Describes the evidence tier.
pub(crate) fn tier_words(tier: Tier, driver: Driver) -> &'static str {
    match (tier, driver) {
        (_, Driver::Model) => "a modelled system in virtual time",
        (Tier::T1, _) => "T1, Plimsoll's own engine",
        (Tier::T2, _) => "T2, a foreign tool under observation",
        (Tier::T3, _) => "T3, a result file alone",
    }
}

pub(crate) fn demonstration(bundle: &Bundle) -> String {
    let lasted = measured(bundle).filter(|phase| phase.duration_ns > 0);
    let Some(measured) = lasted.map(|phase| elapsed(phase.duration_ns as f64)) else {
        return "This run ended before its measurement started, so it shows nothing about this \
                storage."
            .to_owned();
    };
    let bytes: u64 = bundle.run.instances.iter().map(|i| i.allocated_bytes).sum();
    let data = match bytes {
        0 => String::new(),
        bytes => format!(" on {} of data", Unit::Size.show(bytes as f64, Default::default())),
    };
    format!(
        "This run measured for {measured}{data}. It shows what the tool does, and how this storage \
         handled a small load for a short time. It cannot show sustained writes, the behaviour with \
         a working set that exceeds all caches, or rare slow I/Os: run a full plan for that."
    )
}

fn headline(bundle: &Bundle, verdict: &Verdict) -> Headline {
    let mut figures = Vec::new();
    if let Some(achieved) = verdict.achieved_iops_per_s {
        figures.push(Fact::new("achieved I/Os", Cell::number(Unit::Rate, achieved)));
    } else if !has_figures(bundle) {
        figures.push(Fact::new("achieved I/Os", Cell::unknown()));
    }
    if let Some(required) = verdict.required_iops_per_s {
        figures.push(Fact::new("required I/Os", Cell::number(Unit::Rate, required)));
        let headroom = headroom(verdict.headroom);
        // An open loop issues operations at the rate of the plan, so the headroom cannot be
        // measured.
        let set = verdict.headroom.is_none() && verdict.achieved_iops_per_s.is_some();
        let note = if set { "the plan sets this rate" } else { "" };
        figures.push(Fact::new("headroom", headroom).note(note));
    }
    for kind in kinds::kinds(bundle) {
        if matches!(
            (kind.group.as_str(), kind.operation),
            ("transactional", Operation::Read) | ("log", Operation::Write)
        ) {
            let average = kind.totals(bundle, None).latency_ns_avg();
            let name = format!("{}, average", kind.label);
            figures.push(Fact::new(&name, Cell::maybe(Unit::Latency, average)));
        }
    }
    let completed = bundle.run.end.kind == EndKind::Completed;
    let says = &bundle.run.end.says;
    let reason = if completed || says.is_empty() || verdict.reason == *says {
        verdict.reason.clone()
    } else {
        format!("{}. The run ended early: {says}", verdict.reason)
    };
    let modelled = bundle.run.driver == Driver::Model;
    Headline {
        // The word for a verdict on a model begins with MODELLED and is never green, because no
        // storage was tested.
        word: match modelled {
            true => format!("MODELLED {}", verdict.verdict.label()),
            false => verdict.verdict.label().to_owned(),
        },
        tone: if modelled { Tone::Plain } else { verdict_tone(verdict.verdict) },
        reason: group_counts(&sentence(&reason.replace("achieved iops", "achieved I/Os"))),
        figures,
    }
}

/// Capitalises a sentence and adds a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let mut out: String = first.to_uppercase().chain(chars).collect();
    if !out.ends_with(['.', '!', '?', ':']) {
        out.push('.');
    }
    out
}

/// Returns a section without blocks. Reports omit such a section.
pub(crate) fn empty_section() -> Section {
    Section::default()
}

/// Formats the headroom. If the achieved rate is more than ten times the required rate, the exact
/// figure is not shown, because it is not useful.
pub(crate) fn headroom(share: Option<f64>) -> Cell {
    match share {
        Some(share) if share > plimsoll_judge::judge::HEADROOM_SHOWN_MAX => {
            Cell::text("more than 10 times")
        }
        share => Cell::maybe(Unit::Share, share),
    }
}
