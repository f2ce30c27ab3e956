//! The page: whole, alone, and not to be broken into by names.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/markup.rs"]
mod markup;

use common::{QUARTER, QUICK, Sample};
use markup::skeleton;
use plimsoll_evidence::Bundle;
use plimsoll_judge::judge;

fn page(bundle: &Bundle) -> String {
    plimsoll_report::html(bundle, &judge(bundle)).unwrap()
}

#[test]
fn pages_are_well_formed() {
    for sample in [QUICK, QUARTER, Sample { read_ms: 40.0, buffered: true, ..QUICK }] {
        let page = page(&common::bundle(sample));
        let found = skeleton(&page).unwrap();
        assert!(found.tags.iter().filter(|tag| *tag == "<svg>").count() >= 4);
        assert!(found.tags.iter().filter(|tag| *tag == "<table>").count() >= 8);
    }
}

#[test]
fn pages_ask_nothing_of_any_other_place() {
    let page = page(&common::bundle(QUICK));
    let found = skeleton(&page).unwrap();
    for value in &found.values {
        let namespace = value == "http://www.w3.org/2000/svg";
        assert!(namespace || !value.contains("//"), "{value}");
    }
    // Style and script neither import nor request.
    for word in ["@import", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "sendBeacon"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.replace("url(#", "").contains("url("), "a url() that is not within the page");
    assert!(page.contains("default-src 'none'"));
}

/// A name that tries to break out of text, attributes, scripts and styles.
const HOSTILE: &str = "\"'><img src=x onerror=alert(1)></script></style><!--&\u{1b}[31m\u{7}";

fn hostile(mut bundle: Bundle) -> Bundle {
    let name = || HOSTILE.to_owned();
    let run = &mut bundle.run;
    run.name = name();
    run.run_id = name();
    run.tool_version = name();
    run.plan_sha256 = name();
    run.engine.kind = name();
    run.engine.why = name();
    run.engine.clock.source = name();
    run.engine.paths.iter_mut().for_each(|path| (path.path, path.why) = (name(), name()));
    run.instances.iter_mut().for_each(|i| (i.name, i.path) = (name(), name()));
    run.phases.iter_mut().for_each(|phase| phase.note = name());
    run.counters = run.counters.values().map(|count| (name(), *count)).collect();
    if let Some(ledger) = &mut run.ledger {
        ledger.previous_sha256 = name();
    }
    bundle.plan_text = name();
    bundle.plan.description = name();
    bundle.plan.name = name();
    let environment = &mut bundle.environment;
    for text in [
        &mut environment.host,
        &mut environment.kernel,
        &mut environment.distribution,
        &mut environment.cpu_model,
        &mut environment.virtualisation,
    ] {
        *text = Some(name());
    }
    environment.mounts.iter_mut().for_each(|m| (m.path, m.options) = (name(), Some(name())));
    environment.devices.iter_mut().for_each(|d| (d.name, d.model) = (name(), Some(name())));
    environment.unknown.iter_mut().for_each(|u| (u.what, u.why) = (name(), name()));
    bundle.observed.devices.iter_mut().for_each(|d| d.name = name());
    bundle.observed.unknown.iter_mut().for_each(|u| u.what = name());
    bundle
}

/// The tags of a page whose every name is hostile are those of the same page with a harmless name.
#[test]
fn names_cannot_break_out() {
    let mut benign = hostile(common::bundle(QUICK));
    let attacked = page(&benign);
    assert!(!attacked.contains("<img"));
    assert!(!attacked.contains('\u{1b}'));
    let verdict = judge(&benign);
    // One counter stays of two that now share a name, so the harmless one keeps that too.
    benign.run.name = "harmless".into();
    let harmless = plimsoll_report::html(&benign, &verdict).unwrap();
    assert_eq!(skeleton(&attacked).unwrap().tags, skeleton(&harmless).unwrap().tags);
}

#[test]
fn hostile_names_stay_data_in_every_export() {
    let bundle = hostile(common::bundle(QUICK));
    let verdict = judge(&bundle);
    let text = plimsoll_report::text(&bundle, &verdict, &Default::default());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    let markdown = plimsoll_report::markdown(&bundle, &verdict);
    let listing_apart: String = markdown.lines().filter(|line| !line.starts_with("    ")).collect();
    assert!(!listing_apart.contains("<img"));
    assert!(!markdown.contains('\u{1b}'));
    let fio: serde_json::Value = serde_json::from_str(&plimsoll_report::fio_json(&bundle)).unwrap();
    assert_eq!(fio["fio version"], format!("plimsoll-{HOSTILE}"));
}

/// A run that ended before it measured anything has a report too.
#[test]
fn a_run_without_a_measurement_has_a_report() {
    let mut bundle = common::bundle(QUICK);
    bundle.run.phases.truncate(1);
    bundle.run.classes.clear();
    bundle.run.checks = Default::default();
    bundle.series.clear();
    bundle.latency.clear();
    bundle.observed = Default::default();
    bundle.environment = Default::default();
    bundle.run.ledger = None;
    bundle.run.end.kind = plimsoll_evidence::run::EndKind::NoSpace;
    bundle.run.end.says = "/srv/mail is full".into();
    let verdict = judge(&bundle);
    let page = plimsoll_report::html(&bundle, &verdict).unwrap();
    skeleton(&page).unwrap();
    assert!(page.contains("/srv/mail is full"));
    assert!(!page.contains("NaN"));
    let text = plimsoll_report::text(&bundle, &verdict, &Default::default());
    assert!(text.contains("/srv/mail is full"));
    plimsoll_report::csv(&bundle, &verdict);
    plimsoll_report::markdown(&bundle, &verdict);
    plimsoll_report::fio_json(&bundle);
}
