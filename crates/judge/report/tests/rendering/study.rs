//! Tests of reports about several runs.

use crate::markup;
use crate::studies;
use plimsoll_judge::tuning::TuneStep;
use plimsoll_report::chart::Mark;
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::document::{Block, Document};
use plimsoll_report::number::Letters;
use plimsoll_report::table::{Table, Value};
use plimsoll_report::{
    Curve, Style, comparison_document, html, sweep_document, text, tuning_document,
};

fn drawn(document: &Document) -> String {
    text::document(document, &Style { width: 120, letters: Letters::Unicode, ..Style::default() })
}

fn table<'a>(document: &'a Document, section: &str) -> &'a Table {
    let section = document.sections.iter().find(|one| one.id == section).unwrap();
    let table = |block: &'a Block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    };
    section.blocks.iter().find_map(table).unwrap()
}

fn page(document: &Document) -> String {
    let page = html::page(document, "made up").unwrap();
    markup::skeleton(&page).unwrap();
    assert!(!page.contains("NaN"));
    page
}

#[test]
fn a_curve_shows_its_load_line_and_the_fewest_threads() {
    let document = tuning_document(&studies::search());
    assert!(page(&document).contains("load line 23,900/s"));
    insta::assert_snapshot!(drawn(&document));
}

#[test]
fn a_curve_without_a_load_line_says_so() {
    let mut search = studies::search();
    (search.load_line, search.required_load) = (None, None);
    let document = tuning_document(&search);
    let text = drawn(&document);
    assert!(text.starts_with("NO LOAD LINE"), "{text}");
    assert!(!page(&document).contains("class=\"load\""));
}

#[test]
fn a_step_without_a_rate_has_none() {
    let mut search = studies::search();
    search.steps[0].rate_per_s = None;
    let document = tuning_document(&search);
    assert_eq!(table(&document, "curve-section").rows[0][1].value, Value::NotApplicable);
    assert!(!drawn(&document).contains(" 0.0/s"));
}

#[test]
fn a_sweep_has_every_point_once_and_gaps_where_none_was_measured() {
    let document = sweep_document(&studies::sweep());
    assert_eq!(table(&document, "points").rows.len(), 30);
    assert!(page(&document).contains(">n/a<"));
    insta::assert_snapshot!(drawn(&document));
}

#[test]
fn a_comparison_sets_off_only_what_is_clear_of_the_noise() {
    let document = comparison_document(&studies::comparison());
    assert!(page(&document).contains("ext4"));
    let table = table(&document, "metrics");
    let ratio = table.columns.iter().position(|c| c.key == "b_ratio").unwrap();
    let tones: Vec<_> = table.rows.iter().map(|row| row[ratio].tone).collect();
    use plimsoll_report::table::Tone::{Bad, Good, Plain};
    assert_eq!(tones, [Good, Plain, Bad]);
    insta::assert_snapshot!(drawn(&document));
}

#[test]
fn a_line_joins_one_step_of_each_load_and_repeats_are_points_beside_it() {
    let mut search = studies::search();
    let line = search.steps.iter().find(|step| step.load == 64).unwrap().clone();
    let step = |load, rate_per_s, steady| TuneStep {
        load,
        rate_per_s: Some(rate_per_s),
        steady: Some(steady),
        ..line.clone()
    };
    search.steps.extend([step(64, 1.0, true), step(512, 2.0, true), step(512, 1.0, false)]);
    let loads = search.steps.len() - 2;
    let curve = Curve::of(&search);
    let plots = [vec![curve.plot()], curve.load_plots().to_vec()].concat();
    for plot in plots {
        let dots = |joined: bool| {
            let of = |mark: &Mark| match mark {
                Mark::Dots { dots, joined: is, .. } if *is == joined => Some(dots.clone()),
                _ => None,
            };
            plot.marks.iter().find_map(of).unwrap()
        };
        let (line, others) = (dots(true), dots(false));
        assert_eq!((line.len(), others.len()), (loads, 2), "{}", plot.id);
        let drawn = |dots: &[Dot], rate: f64| dots.iter().any(|dot| dot.x == rate || dot.y == rate);
        if plot.id != "load-latency" {
            assert!(drawn(&line, 2.0), "the steady step of a load");
            assert!(drawn(&line, 23_900.0), "the load line");
        }
        assert!(others.iter().all(|dot| dot.label.is_empty()));
    }
}

#[test]
fn the_headline_has_the_figures_that_answer() {
    let compared = comparison_document(&studies::comparison());
    let shown = |document: &Document| -> Vec<String> {
        let figures = document.headline.figures.iter();
        figures.map(|f| format!("{} {}", f.name, f.cell.show(None, Letters::Unicode))).collect()
    };
    assert_eq!(
        shown(&compared),
        ["ext4: I/Os per second 331.8/s", "Btrfs: I/Os per second 351.7/s", "ratio 1.060"]
    );
    let mut sweep = studies::sweep();
    let figure = |name: &str| studies::key_figure(name, 1.0, 4e8);
    sweep.key_figures =
        vec![figure("top read bandwidth (q16)"), figure("4 KiB random, 75 % reads, depth 4")];
    let document = sweep_document(&sweep);
    assert_eq!(shown(&document), ["top read bandwidth 400 MB/s"]);
    assert!(page(&document).contains("4 KiB random, 75 % reads, depth 4"));
}

#[test]
fn the_answer_of_a_comparison_is_above_the_conditions_that_differ() {
    let html = page(&comparison_document(&studies::comparison()));
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [at("ratio"), at("Side by side"), at("Conditions that differ")];
    assert!(order.is_sorted(), "{order:?}");
}
