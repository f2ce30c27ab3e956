//! Every file produces a result or a message. The files are truncated, contain invalid digits, or
//! mix two formats.

use plimsoll_judge::conservation::{DeclaredFacts, audit};

use crate::samples::SAMPLES;

/// Texts that replace a number.
const DIGITS: &[&str] =
    &["-1", "0", "1e400", "NaN", "1e-300", "99999999999999999999999999", "é", ""];

#[test]
fn nothing_panics_and_nothing_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let mut files = 0usize;
    let mut put = |text: &[u8]| {
        std::fs::write(home.path().join(format!("{files:05}")), text).unwrap();
        files += 1;
    };
    for (index, sample) in SAMPLES.iter().enumerate() {
        let bytes = sample.as_bytes();
        put(bytes);
        let step = (bytes.len() / 40).max(1);
        for end in (0..bytes.len()).step_by(step) {
            put(&bytes[..end]);
            put(&bytes[end..]);
        }
        // Replaces each number once, with the replacements in turn.
        let places: Vec<usize> = digits(sample);
        for (number, at) in places.iter().enumerate() {
            let with = DIGITS[(number + index) % DIGITS.len()];
            let end =
                sample[*at..].find(|c: char| !c.is_ascii_digit()).map_or(sample.len(), |n| at + n);
            put(format!("{}{with}{}", &sample[..*at], &sample[end..]).as_bytes());
        }
        let other = SAMPLES[(index + 1) % SAMPLES.len()];
        put(format!("{sample}\n{other}").as_bytes());
    }
    let study = plimsoll_import::read(&[home.path()]).unwrap();
    for result in &study.results {
        let audit = audit(result, &DeclaredFacts::default());
        assert!(!audit.reason.is_empty(), "{}", result.label());
    }
    let mut reported: Vec<String> = study.results.iter().map(|r| r.source.file.clone()).collect();
    reported.extend(study.unreadable.iter().map(|error| error.file.clone()));
    reported.sort();
    reported.dedup();
    assert_eq!(reported.len() + study.passed_over + study.logs_alone, files);
    assert!(study.results.len() > SAMPLES.len());
    // Each complete sample must be readable.
    let texts: Vec<String> = reported
        .iter()
        .filter(|file| study.results.iter().any(|r| r.source.file == **file))
        .map(|file| std::fs::read_to_string(home.path().join(file)).unwrap_or_default())
        .collect();
    for sample in SAMPLES {
        assert!(texts.iter().any(|text| text == sample), "{sample}");
    }
}

/// Many tools print progress for each second, and their report last.
#[test]
fn a_report_after_long_progress_is_read() {
    let progress = "progress of the run: 10 %, 9000 per second\n";
    let mut reports = 0;
    for start in
        ["a: (g=0)", "sysbench", "pgbench", "--- .", "64+0", "IOR-4", "mdtest", "10:00:00.000 S"]
    {
        let report = SAMPLES.iter().find(|sample| sample.starts_with(start)).unwrap();
        for repeats in [2 << 10, 64 << 10] {
            let text = format!("{}{report}", progress.repeat(repeats));
            let study = plimsoll_import::read_text("log", &text);
            assert!(!study.results.is_empty(), "{start}: {:?}", study.unreadable);
            reports += 1;
        }
    }
    assert_eq!(reports, 16);
}

/// Returns the start of each number.
fn digits(text: &str) -> Vec<usize> {
    let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (0..text.len()).filter(|at| digit(*at) && (*at == 0 || !digit(at - 1))).collect()
}
