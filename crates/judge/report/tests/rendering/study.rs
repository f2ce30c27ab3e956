//! Reports of several runs.

use crate::markup;
use crate::studies;
use plimsoll_report::chart::Mark;
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::document::{Document, Fact};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::study::Step;
use plimsoll_report::table::Cell;
use plimsoll_report::{Style, html, text};

fn drawn(document: &Document) -> String {
    text::document(document, &Style { width: 120, letters: Letters::Unicode, ..Style::default() })
}

fn page(document: &Document) -> String {
    let page = html::page(document, "made up").unwrap();
    markup::skeleton(&page).unwrap();
    assert!(!page.contains("NaN"));
    page
}

#[test]
fn a_curve_shows_its_load_line_and_the_fewest_threads() {
    let curve = studies::curve();
    let page = page(&curve.document());
    assert!(page.contains("load line 23,900/s"));
    insta::assert_snapshot!(drawn(&curve.document()));
}

#[test]
fn a_curve_without_a_load_line_says_so() {
    let mut curve = studies::curve();
    (curve.load_line, curve.fewest) = (None, None);
    let text = drawn(&curve.document());
    assert!(text.starts_with("NO LOAD LINE"), "{text}");
    assert!(!page(&curve.document()).contains("class=\"load\""));
}

#[test]
fn a_sweep_has_every_point_once_and_gaps_where_none_was_measured() {
    let sweep = studies::sweep();
    let page = page(&sweep.document());
    let cells = sweep.table().rows.len();
    assert_eq!(cells, 30);
    assert!(page.contains(">n/a<"));
    insta::assert_snapshot!(drawn(&sweep.document()));
}

#[test]
fn a_comparison_sets_off_only_what_is_clear_of_the_noise() {
    let comparison = studies::comparison();
    let page = page(&comparison.document());
    assert!(page.contains("ext4"));
    let table = comparison.table();
    let ratio = table.columns.iter().position(|c| c.key == "b_ratio").unwrap();
    let tones: Vec<_> = table.rows.iter().map(|row| row[ratio].tone).collect();
    use plimsoll_report::table::Tone::{Bad, Good, Plain};
    assert_eq!(tones, [Good, Plain, Bad]);
    insta::assert_snapshot!(drawn(&comparison.document()));
}

#[test]
fn a_line_joins_one_step_of_each_load_and_repeats_are_points_beside_it() {
    let mut curve = studies::curve();
    let at = curve.load_line.unwrap();
    let repeat = Step { rate_per_s: 1.0, steady: Some(true), ..curve.steps[at].clone() };
    curve.steps.insert(at + 1, repeat.clone());
    curve.steps.insert(0, Step { load: 0.5, steady: Some(false), ..repeat.clone() });
    curve.steps.insert(0, Step { load: 0.5, steady: Some(true), rate_per_s: 2.0, ..repeat });
    (curve.load_line, curve.fewest) = (Some(at + 2), curve.fewest.map(|at| at + 2));
    let loads = curve.steps.len() - 2;
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
            assert!(drawn(&line, curve.steps[at + 2].rate_per_s), "the load line");
        }
        assert!(others.iter().all(|dot| dot.label.is_empty()));
    }
}

#[test]
fn the_headline_has_the_figures_that_answer() {
    let compared = studies::comparison().document();
    let shown = |document: &Document| -> Vec<String> {
        let figures = document.headline.figures.iter();
        figures.map(|f| format!("{} {}", f.name, f.cell.show(None, Letters::Unicode))).collect()
    };
    assert_eq!(
        shown(&compared),
        ["ext4: I/Os per second 331.8/s", "Btrfs: I/Os per second 351.7/s", "ratio 1.060"]
    );
    let mut sweep = studies::sweep();
    let fact = |name: &str| Fact::new(name, Cell::number(Unit::Bandwidth, 4e8)).note("at q16");
    sweep.remember = vec![fact("top read bandwidth"), fact("4 KiB random, 75 % reads, depth 4")];
    assert_eq!(shown(&sweep.document()), ["top read bandwidth 400 MB/s"]);
    assert!(page(&sweep.document()).contains("4 KiB random, 75 % reads, depth 4"));
}

#[test]
fn the_answer_of_a_comparison_is_above_the_conditions_that_differ() {
    let mut compared = studies::comparison();
    compared.unlike = vec![("kernel".to_owned(), vec!["6.1".to_owned(), "6.18".to_owned()])];
    let html = page(&compared.document());
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [at("ratio"), at("Side by side"), at("Conditions that differ")];
    assert!(order.is_sorted(), "{order:?}");
}
