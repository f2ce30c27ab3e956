//! Tests pages in a browser with the widths of a phone and a desktop, in light and dark mode. No
//! content may extend beyond the edge, no text may be too faint, and no two texts in a chart may
//! overlap. The test requires Chromium, which `./test` installs.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/studies.rs"]
mod studies;

use std::path::Path;
use std::process::Command;

use common::{QUARTER, QUICK, Sample};
use plimsoll_evidence::Bundle;
use plimsoll_judge::judge;
use plimsoll_report::document::Document;
use plimsoll_report::{comparison_document, html, sweep_document, tuning_document};

/// Page that loads each tested page at both widths and in both colour schemes, and lists errors.
const LOOK: &str = include_str!("browser/look.html");

/// Word as long as the longest paths, hashes and plan fields.
const LONG_WORD: &str = "plan.workload.matrix.streams.0.queue_depth_of_each_client_and_share";

fn run(bundle: &Bundle) -> String {
    plimsoll_report::html(bundle, &judge(bundle)).unwrap()
}

fn study(document: &Document) -> String {
    html::page(document, "made up").unwrap()
}

/// Returns one page of each kind. Some pages contain long names.
fn pages() -> Vec<(&'static str, String)> {
    let mut long = common::bundle(Sample { read_ms: 40.0, stall: true, buffered: true, ..QUICK });
    long.run.plan_sha256 = "0123456789abcdef".repeat(4);
    long.run.instances.iter_mut().for_each(|i| i.path = format!("/mnt/{LONG_WORD}/{LONG_WORD}"));
    let mut quickstart = common::bundle(QUICK);
    quickstart.plan.name = "quickstart".to_owned();
    let quickstart = run(&quickstart);
    assert!(quickstart.contains("Number of mailboxes that this storage would sustain"));
    let mut comparison = studies::comparison();
    comparison.reason = format!("No winner is called: {LONG_WORD}, {LONG_WORD} differ.");
    let mut difference = comparison.differences[0].clone();
    difference.name = LONG_WORD.to_owned();
    difference.values = vec![LONG_WORD.to_owned(); 2];
    comparison.differences.push(difference);
    comparison.metrics.iter_mut().for_each(|metric| {
        metric.says = "significant, as far as so few runs show".to_owned();
    });
    vec![
        ("run", run(&common::bundle(QUARTER))),
        ("failed-run", run(&long)),
        ("quickstart", quickstart),
        ("sweep", study(&sweep_document(&studies::sweep()))),
        ("comparison", study(&comparison_document(&comparison))),
        ("search", study(&tuning_document(&studies::search()))),
    ]
}

/// Checks the pages of a directory in Chromium. Returns the list of errors.
fn looked_at(directory: &Path, names: &[&str]) -> String {
    let list = serde_json::to_string(names).unwrap();
    let look = directory.join("look.html");
    std::fs::write(&look, LOOK.replace("[/* pages */]", &list)).unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120", "chromium", "--headless=new", "--no-sandbox"])
        .args(["--disable-gpu", "--disable-dev-shm-usage", "--allow-file-access-from-files"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("file://{}", look.display()))
        .env("HOME", directory)
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let from = dom.find("<pre id=\"told\">").map(|at| at + "<pre id=\"told\">".len());
    let reported = from.and_then(|from| Some(&dom[from..from + dom[from..].find("</pre>")?]));
    let reported = reported.unwrap_or_else(|| {
        panic!("is chromium installed? {}\n{dom}", String::from_utf8_lossy(&output.stderr))
    });
    reported.trim().to_owned()
}

#[test]
fn pages_fit_and_can_be_read_on_telephones_and_screens_in_light_and_dark() {
    let directory = std::env::temp_dir().join(format!("plimsoll-pages-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut pages = pages();
    // This page is too wide and too faint, so the check must report it.
    let wrong = "<body style=\"background:#fff\"><p style=\"width:600px;color:#ccc\">wide and \
                 faint</p><style>td{display:flex;width:300px}td::before{content:attr(data-title);width:60px}</style><div \
                 class=scroll><table><tr><td data-title=\"a name that is squeezed\">1</table></div>";
    pages.push(("wrong", wrong.to_owned()));
    for (name, page) in &pages {
        std::fs::write(directory.join(format!("{name}.html")), page).unwrap();
    }
    let names: Vec<&str> = pages.iter().map(|(name, _)| *name).collect();
    let reported = looked_at(&directory, &names);
    std::fs::remove_dir_all(&directory).unwrap();
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(
        lines.last(),
        Some(&format!("looked at {}", 4 * names.len()).as_str()),
        "{reported}"
    );
    let (seen, amiss): (Vec<&str>, Vec<&str>) =
        lines[..lines.len() - 1].iter().copied().partition(|line| line.starts_with("wrong "));
    assert!(seen.iter().any(|line| line.contains("wrong 390 light: 6")), "{reported}");
    assert!(seen.iter().any(|line| line.contains("too faint")), "{reported}");
    assert!(seen.iter().any(|line| line.contains("390 light: squeezed")), "{reported}");
    assert!(amiss.is_empty(), "{}", amiss.join("\n"));
}
