//! Tests that the page is complete and self-contained, and that names cannot inject markup.

use crate::common::{self, QUARTER, QUICK, Sample};
use crate::markup::skeleton;
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
    // Style and script do not import files or send requests.
    for word in ["@import", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "sendBeacon"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.replace("url(#", "").contains("url("), "a url() that is not within the page");
    assert!(page.contains("default-src 'none'"));
}

/// Returns the figure with the chart `id` from the page.
fn figure<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("<figure class=\"plot\" id=\"{id}\">")).unwrap();
    let length = page[from..].find("</figure>").unwrap();
    &page[from..from + length]
}

#[test]
fn what_stands_in_backticks_is_set_as_code() {
    let page = page(&common::bundle(Sample { buffered: true, ..QUICK }));
    let mut prose = page.as_str();
    let mut seen = String::new();
    // Skips the plan and the script, which may contain backticks.
    while let Some((before, after)) = prose.split_once("<pre>") {
        seen.push_str(before);
        prose = after.split_once("</pre>").unwrap().1;
    }
    seen.push_str(prose.split("<script>").next().unwrap());
    assert!(seen.contains("<code>not shown</code>") && !seen.contains('`'), "a backtick is left");
}

#[test]
fn every_chart_is_drawn_anew_for_a_narrow_page_and_every_cell_says_what_it_is() {
    let page = page(&common::bundle(QUICK));
    let count = |what: &str| page.matches(what).count();
    assert_eq!(count("<svg class=\"chart wide\""), count("<figure class=\"plot\""));
    assert_eq!(count("<svg class=\"chart narrow\""), count("<figure class=\"plot\""));
    assert!(figure(&page, "rate").contains("viewBox=\"0 0 360 "));
    assert!(page.contains("data-title=\"result\""), "the result has no name of its own");
}

/// When a store closes, it flushes its cache. This is not load, so it must not affect the scale of
/// the charts.
#[test]
fn the_flush_at_the_end_does_not_squash_the_charts() {
    use plimsoll_evidence::run::PhaseKind;
    use plimsoll_evidence::series::Data;
    let mut bundle = common::bundle(QUICK);
    let measure = bundle.run.phases.iter().position(|p| p.kind == PhaseKind::Measure).unwrap();
    let mut close = bundle.run.phases[measure].clone();
    close.kind = PhaseKind::Close;
    close.start_ns += close.duration_ns;
    close.duration_ns = 2_000_000_000;
    bundle.run.phases.truncate(measure + 1);
    bundle.run.phases.push(close.clone());
    bundle.run.duration_ns = close.start_ns + close.duration_ns;
    bundle.series.retain(|row| row.phase as usize <= measure);
    let quiet = page(&bundle);
    let of_load = |row: &&plimsoll_evidence::series::Row| matches!(row.data, Data::Class { .. });
    let mut flush = bundle.series.iter().rev().find(of_load).unwrap().clone();
    flush.phase = (measure + 1) as u32;
    flush.start_ns = close.start_ns;
    flush.duration_ns = 1_000_000_000;
    flush.data = Data::Class {
        count: 1_000_000,
        sum_ns: 9_000_000_000_000_000,
        bytes: 4_096_000_000,
        max_ns: 60_000_000_000,
    };
    bundle.series.push(flush);
    let flushed = page(&bundle);
    for id in ["rate", "latency-time", "largest-time"] {
        assert_eq!(figure(&flushed, id), figure(&quiet, id), "{id}");
    }
}

#[test]
fn a_hypervisor_without_a_name_is_named_once_and_a_run_without_a_measurement_says_so() {
    let mut bundle = common::bundle(QUICK);
    bundle.environment.virtualisation = Some("a hypervisor (name not shown)".into());
    let style = plimsoll_report::text::Style { full: true, ..Default::default() };
    let text = plimsoll_report::text(&bundle, &judge(&bundle), &style);
    assert_eq!(text.matches("a hypervisor (name not shown)").count(), 1, "{text}");
    assert!(!text.contains("a hypervisor (a hypervisor"), "{text}");
    bundle.plan.demonstration = true;
    bundle.run.phases.truncate(1);
    let text = plimsoll_report::text(&bundle, &judge(&bundle), &style);
    assert!(
        text.contains("ended before its measurement") && !text.contains("not at all"),
        "{text}"
    );
}

/// No report may contain phrases that readers misunderstand.
#[test]
fn no_report_says_one_of_many_or_ends_before_its_list() {
    use plimsoll_evidence::run::EndKind;
    const OF_MANY: [&str; 9] = [
        "runs",
        "threads",
        "intervals",
        "operations",
        "reads",
        "writes",
        "errors",
        "processes",
        "hosts",
    ];
    let style = plimsoll_report::text::Style { full: true, ..Default::default() };
    let slow = Sample { read_ms: 40.0, buffered: true, ..QUICK };
    for (sample, end) in [
        (QUICK, EndKind::Completed),
        (QUARTER, EndKind::Completed),
        (slow, EndKind::Completed),
        (QUICK, EndKind::Interrupted),
        (slow, EndKind::NoSpace),
    ] {
        let mut bundle = common::bundle(sample);
        bundle.run.end.kind = end;
        (bundle.run.engine.threads, bundle.run.engine.sessions) = (1, 1);
        let verdict = judge(&bundle);
        let text = plimsoll_report::text(&bundle, &verdict, &style);
        let page = plimsoll_report::html(&bundle, &verdict).unwrap();
        for said in [&text, &page] {
            for phrase in
                ["complete: .", "needs rotating disks", "measured for not at all", "of a other"]
            {
                assert!(!said.contains(phrase), "{phrase}: {said}");
            }
            let words: Vec<&str> = said.split_whitespace().collect();
            for two in words.windows(2) {
                let noun = two[1].trim_end_matches(|c: char| !c.is_alphabetic());
                assert!(two[0] != "1" || !OF_MANY.contains(&noun), "{} {}", two[0], two[1]);
            }
        }
    }
}

/// Each term of the project is explained at its first occurrence.
#[test]
fn words_of_our_own_are_explained_where_they_first_appear() {
    let bundle = common::bundle(QUICK);
    let text = plimsoll_report::text(&bundle, &judge(&bundle), &Default::default());
    assert!(text.contains("Claims: what the figures can show"), "{text}");
    assert!(text.contains("upkeep: the store's own I/O"), "{text}");
    let page = page(&bundle);
    let words = [
        "T2: another tool measured",
        "coordinated omission",
        "A claim states what the figures prove",
        "Checkpoints, headers, formatting of log files",
    ];
    for words in words {
        assert!(page.contains(words), "{words}");
    }
}

/// Name that tries to escape from text, attributes, scripts and styles.
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
    bundle.plan.owner = Some(name());
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

#[test]
fn an_owner_is_shown_where_the_plan_names_one() {
    let mut bundle = common::bundle(QUICK);
    assert!(!page(&bundle).contains("owner"));
    bundle.plan.owner = Some("mail <team>".into());
    let page = page(&bundle);
    assert!(page.contains("owner") && page.contains("mail &lt;team&gt;"));
    let text = plimsoll_report::markdown(&bundle, &judge(&bundle));
    assert!(text.contains("owner"), "{text}");
}

/// A page with hostile names has the same tags as a page with harmless names.
#[test]
fn names_cannot_break_out() {
    let mut benign = hostile(common::bundle(QUICK));
    let attacked = page(&benign);
    assert!(!attacked.contains("<img"));
    assert!(!attacked.contains('\u{1b}'));
    let verdict = judge(&benign);
    // Replaces only the name of the run. If counters had harmless names too, they could have equal
    // names and merge.
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

/// A run that ended before its measurement also has a report.
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

/// Every format of a quickstart's report contains the estimate, and no other run's report does.
#[test]
fn a_quickstart_says_what_the_storage_would_carry() {
    let mut bundle = common::bundle(QUICK);
    let forms = |bundle: &Bundle| {
        let verdict = judge(bundle);
        let text = plimsoll_report::text(bundle, &verdict, &Default::default());
        [text, page(bundle), plimsoll_report::markdown(bundle, &verdict)]
    };
    for form in forms(&bundle) {
        assert!(!form.contains("Number of mailboxes that this storage would sustain"), "{form}");
    }
    bundle.plan.name = "quickstart".into();
    for mount in &mut bundle.environment.mounts {
        mount.free_bytes = Some(80 << 30);
    }
    // A rate of 621 I/Os per second is enough for 3,100 heavy mailboxes, but the free space is too
    // small for them.
    for form in forms(&bundle) {
        for says in [
            "Number of mailboxes that this storage would sustain",
            "heavy",
            "space",
            "95 % intervals",
            "80 GiB are free",
            "plimsoll run exchange-1000-heavy",
            "--path /srv/mail",
        ] {
            assert!(form.contains(says), "{says:?} is not in\n{form}");
        }
    }
    // If the free space was not observed, the report says that it is unknown.
    for mount in &mut bundle.environment.mounts {
        mount.free_bytes = None;
    }
    for form in forms(&bundle) {
        assert!(form.contains("free space is unknown"), "{form}");
    }
}
