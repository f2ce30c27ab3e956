//! Reports of several runs.

use crate::markup;
use crate::studies;
use plimsoll_report::document::Document;
use plimsoll_report::number::Letters;
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
