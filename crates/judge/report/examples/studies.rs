//! Draws the reports of synthetic studies, for review after a change: `cargo run -p plimsoll-report
//! --example studies -- curve|sweep|compare > study.html`.

#[path = "../tests/common/studies.rs"]
mod studies;

fn main() -> Result<(), plimsoll_report::ReportError> {
    let document = match std::env::args().nth(1).as_deref() {
        Some("sweep") => studies::sweep().document(),
        Some("compare") => studies::comparison().document(),
        _ => studies::curve().document(),
    };
    print!("{}", plimsoll_report::html::page(&document, "Nothing here was measured.")?);
    Ok(())
}
