//! Renders evidence and verdict as text, HTML, charts, CSV and other exports. This crate computes
//! no figures except sums and quotients of totals in the evidence.
//!
//! A report is built in two steps. [`run::run_document`] turns evidence and verdict into a
//! [`document::Document`]: headings, tables, charts and sentences as data. The document is then
//! rendered as text for the terminal ([`mod@text`]), as a page ([`html`]) or as Markdown.
//!
//! # Where to change what
//!
//! - a section of the report: a file in `run` and an entry in `run.rs`. The file also builds the
//!   section's charts, each as a `Plot`.
//! - the page's layout: `html`, `chart` (each chart is drawn wide and narrow); `tests/browser.rs`
//!   checks the layout with Chromium
//! - exports: `exports` (JUnit, Prometheus), `fio.rs`
//! - charts of searches, sweeps and comparisons: `study`; comparisons of sweeps: `sweeps.rs`
//! - output of `verify`, `ledger` and `audit`: `verified.rs`, `ledger.rs`, `reported.rs`,
//!   `rows.rs`, `rules.rs`; spread of repeats: `reported/spread.rs`
//! - facts about the plan in the head of the report: `run.rs`; network interfaces: `run/links.rs`;
//!   quickstart: `run/carried.rs`; stages: `stages.rs`; fleets: `fleet.rs`

pub mod chart;
pub mod comparison;
pub mod csv;
pub mod document;
pub mod durability;
pub mod error;
pub mod escape;
mod experiment;
pub mod exports;
pub mod fio;
mod fleet;
mod gate;
pub mod hosts;
pub mod html;
pub mod ledger;
pub mod markdown;
pub mod number;
mod places;
pub mod reported;
pub mod rows;
pub mod rules;
pub mod run;
pub mod runs;
mod stages;
mod study;
mod sweep;
mod sweeps;
pub mod table;
pub mod text;
pub mod time;
mod tuning;
pub mod verified;

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;

pub use comparison::comparison_document;
pub use error::ReportError;
pub use experiment::{experiment, experiment_document};
pub use fleet::fleet_document;
pub use gate::{gate_document, gated_document};
pub use number::elapsed;
pub use run::run_document;
pub use stages::{stages_csv, stages_document};
pub use study::Curve;
pub use sweep::{sweep_csv, sweep_document};
pub use sweeps::sweeps_document;
pub use text::Style;
pub use tuning::{tuning_csv, tuning_document};

/// Id of this build: a digest of all sources that determine the derived files. From the same
/// bundle, builds with the same id derive files that are identical byte for byte.
pub const BUILD: &str = env!("PLIMSOLL_BUILD");

/// Returns the summary for a terminal. It starts with the verdict and ends with a line feed.
pub fn text(bundle: &Bundle, verdict: &Verdict, style: &Style) -> String {
    text::document(&run_document(bundle, verdict), style)
}

/// Returns the report as one self-contained page.
///
/// # Errors
/// [`ReportError::Template`] if the page's template has a defect.
pub fn html(bundle: &Bundle, verdict: &Verdict) -> Result<String, ReportError> {
    let footer = format!("Plimsoll {}, run {}", bundle.run.tool_version, bundle.run.run_id);
    html::page(&run_document(bundle, verdict), &footer)
}

/// Returns the report as Markdown, without charts.
pub fn markdown(bundle: &Bundle, verdict: &Verdict) -> String {
    markdown::document(&run_document(bundle, verdict))
}

/// Returns the figures of each class of I/O as CSV, in base units.
pub fn csv(bundle: &Bundle, verdict: &Verdict) -> String {
    csv::classes(bundle, verdict)
}

/// Returns the result in the format of `fio --output-format=json`, with a line feed at the end.
pub fn fio_json(bundle: &Bundle) -> String {
    format!("{:#}\n", fio::json(bundle))
}

/// Returns the verdict as JUnit XML, with a line feed at the end.
pub fn junit(bundle: &Bundle, verdict: &Verdict) -> String {
    exports::junit::xml(bundle, verdict)
}

/// Returns the result in Prometheus' text format, with a line feed at the end.
pub fn prometheus(bundle: &Bundle, verdict: &Verdict) -> String {
    exports::prometheus::text(bundle, verdict)
}
