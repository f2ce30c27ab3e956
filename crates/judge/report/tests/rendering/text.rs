//! Compares the summary in the terminal with the exact expected text.

use crate::common::{self, QUICK, Sample};
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_evidence::series::{Data, Row};
use plimsoll_judge::judge;
use plimsoll_report::number::Letters;
use plimsoll_report::{Style, text};

fn drawn(sample: Sample, style: &Style) -> String {
    let bundle = common::bundle(sample);
    text(&bundle, &judge(&bundle), style)
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(drawn(QUICK, &Style::default()));
}

#[test]
fn a_fail_in_sixty_columns_of_ascii() {
    let style = Style { width: 60, letters: Letters::Ascii, ..Style::default() };
    let drawn = drawn(Sample { read_ms: 24.0, rate_per_s: 80.0, ..QUICK }, &style);
    assert!(drawn.is_ascii());
    assert!(drawn.lines().all(|line| line.len() <= 60), "{drawn}");
    insta::assert_snapshot!(drawn);
}

#[test]
fn an_invalid_run_in_colour() {
    let style = Style { colour: true, ..Style::default() };
    let drawn = drawn(Sample { buffered: true, ..QUICK }, &style);
    insta::assert_snapshot!(drawn.replace('\u{1b}', "ESC"));
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = drawn(QUICK, &Style::default());
    let coloured = drawn(QUICK, &Style { colour: true, ..Style::default() });
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    stripped.push_str(rest);
    // In colour, the verdict has a space on each side.
    assert_eq!(stripped.replacen(" PASS ", "PASS", 1), plain);
}

#[test]
fn every_width_holds() {
    for width in [40, 55, 72, 80, 100, 140] {
        let drawn = drawn(QUICK, &Style { width, full: true, ..Style::default() });
        for line in drawn.lines().filter(|line| !line.starts_with("    ")) {
            assert!(plimsoll_report::text::width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn an_interval_without_an_answer_has_a_rate_of_zero() {
    let spark = |bundle: &Bundle| {
        let drawn = text(bundle, &judge(bundle), &Style::default());
        let line = drawn.lines().find(|line| line.contains("transactional I/Os, measured phase"));
        line.unwrap_or_else(|| panic!("{drawn}")).to_owned()
    };
    let mut bundle = common::bundle(QUICK);
    assert!(!spark(&bundle).contains(" 0/s –"), "{}", spark(&bundle));
    let measure = bundle.run.measure().unwrap().clone();
    let middle_ns = measure.start_ns + measure.duration_ns / 2;
    let is_silent = |row: &Row| {
        matches!(row.data, Data::Class { .. }) && row.start_ns.abs_diff(middle_ns) < 2_000_000_000
    };
    bundle.series.retain(|row| !is_silent(row));
    assert!(spark(&bundle).contains(" 0/s –"), "{}", spark(&bundle));
    // For another tool, rows may be missing from its log, so a gap does not mean a rate of zero.
    bundle.run.driver = Driver::Foreign;
    assert!(!spark(&bundle).contains(" 0/s –"), "{}", spark(&bundle));
}
