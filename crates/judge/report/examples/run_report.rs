//! Draws the report of a synthetic run, for review after a change: `cargo run -p plimsoll-report
//! --example run_report -- quick|long|slow|buffered|BUNDLE html|text|md|csv|fio`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{LONG, QUICK, Sample};
use plimsoll_report::number::Letters;
use plimsoll_report::text::Style;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sample = match arguments.first().map(String::as_str) {
        Some("long") => LONG,
        Some("slow") => Sample { read_ms: 24.0, rate_per_s: 80.0, ..QUICK },
        Some("buffered") => Sample { buffered: true, ..QUICK },
        _ => QUICK,
    };
    let bundle = match arguments.first().map(std::path::Path::new) {
        Some(path) if path.is_dir() => plimsoll_evidence::Bundle::read(path)?,
        _ => common::bundle(sample),
    };
    let verdict = plimsoll_judge::judge(&bundle);
    let text = match arguments.get(1).map(String::as_str) {
        Some("html") => plimsoll_report::html(&bundle, &verdict)?,
        Some("md") => plimsoll_report::markdown(&bundle, &verdict),
        Some("csv") => plimsoll_report::csv(&bundle, &verdict),
        Some("fio") => plimsoll_report::fio_json(&bundle),
        Some("ascii") => {
            let style = Style { letters: Letters::Ascii, width: 60, ..Style::default() };
            plimsoll_report::text(&bundle, &verdict, &style)
        }
        Some("colour") => {
            plimsoll_report::text(&bundle, &verdict, &Style { colour: true, ..Style::default() })
        }
        _ => plimsoll_report::text(&bundle, &verdict, &Style::default()),
    };
    print!("{text}");
    Ok(())
}
