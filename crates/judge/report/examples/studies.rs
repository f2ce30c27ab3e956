//! Draws the reports of synthetic studies, for review after a change: `cargo run -p plimsoll-report
//! --example studies -- curve|sweep|compare > study.html`.

#[path = "../tests/common/studies.rs"]
mod studies;

use plimsoll_report::{comparison_document, sweep_document, tuning_document};

fn main() -> Result<(), plimsoll_report::ReportError> {
    let document = match std::env::args().nth(1).as_deref() {
        Some("sweep") => sweep_document(&studies::sweep()),
        Some("compare") => comparison_document(&studies::comparison()),
        _ => tuning_document(&studies::search()),
    };
    print!("{}", plimsoll_report::html::page(&document, "Nothing here was measured.")?);
    Ok(())
}
