//! Tests with real runs of the installed fio: no format of an honest result is rejected, and all
//! formats of a run get the same verdict.
//!
//! The tests use the first ten option sets of `fio-runs.txt`, or all of them with
//! `PLIMSOLL_FIO_RUNS=all`. They print each job that they run, and do nothing if fio is missing.

use std::path::Path;
use std::process::Command;

use plimsoll_import::foreign;
use plimsoll_judge::conservation::study::audits;
use plimsoll_judge::conservation::{Audit, Credibility, DeclaredFacts};
use plimsoll_judge::finding::Outcome;

const SETS: &str = include_str!("fio-runs.txt");
/// Number of option sets if `PLIMSOLL_FIO_RUNS` is not set.
const DEFAULT_SETS: usize = 10;
/// Time limit for fio, which normally stops after one or two seconds.
const SECONDS_MAX: &str = "60";

/// Outputs of one run, by format.
#[derive(Default)]
pub(crate) struct Forms {
    pub(crate) text: String,
    pub(crate) json_plus: String,
    pub(crate) terse: String,
}

impl Forms {
    /// Splits fio's output by format. fio printed all formats in the same run.
    pub(crate) fn of(output: &str) -> Self {
        let (mut forms, mut in_json) = (Self::default(), false);
        for line in output.lines() {
            in_json |= line == "{";
            let form = match line.starts_with("3;fio-") {
                true => &mut forms.terse,
                false if in_json => &mut forms.json_plus,
                false => &mut forms.text,
            };
            form.push_str(line);
            form.push('\n');
            in_json &= line != "}";
        }
        forms
    }

    /// Returns the JSON without histograms, as `--output-format=json` prints it.
    pub(crate) fn json(&self) -> String {
        let mut json = String::new();
        let mut in_bins = false;
        for line in self.json_plus.lines() {
            let begins = line.trim_start().starts_with("\"bins\" : {");
            if !in_bins && !begins {
                json.push_str(line);
                json.push('\n');
            }
            in_bins = (in_bins || begins) && !line.contains('}');
        }
        // A comma remains where the histogram bins were removed.
        json.split_inclusive('\n').fold(String::new(), |mut text, line| {
            if line.trim_start().starts_with('}') && text.ends_with(",\n") {
                text.truncate(text.len() - 2);
                text.push('\n');
            }
            text.push_str(line);
            text
        })
    }
}

/// Returns the option sets to run.
pub(crate) fn sets() -> impl Iterator<Item = &'static str> {
    let all = std::env::var("PLIMSOLL_FIO_RUNS").is_ok_and(|value| value == "all");
    let sets = SETS.lines().filter(|line| !line.starts_with('#'));
    sets.take(if all { usize::MAX } else { DEFAULT_SETS })
}

pub(crate) fn run(options: &str, directory: &Path) -> Forms {
    let output = Command::new("timeout")
        .args([SECONDS_MAX, "fio", "--output-format=normal,json+,terse", "--name=j"])
        .args([&format!("--directory={}", directory.display()), "--size=8m", "--runtime=1"])
        .args(options.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    Forms::of(&String::from_utf8(output.stdout).unwrap())
}

fn audit(form: &str, text: &str, options: &str) -> Audit {
    let study = plimsoll_import::read_text(form, text);
    assert!(study.unreadable.is_empty(), "{options}: {form}: {:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let mut audits = audits(&results, &DeclaredFacts::default());
    assert_eq!(audits.len(), 1, "{options}: {form}: one result\n{text}");
    audits.remove(0)
}

#[test]
fn no_form_of_a_real_run_is_accused() {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("fio is not installed: nothing was run");
        return;
    }
    let (mut runs, mut faults) = (0, Vec::new());
    for options in sets() {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let forms = run(options, directory.path());
        let json = forms.json();
        let named = [
            ("text", &forms.text),
            ("json", &json),
            ("json+", &forms.json_plus),
            ("terse", &forms.terse),
        ];
        for (form, text) in named {
            let audit = audit(form, text, options);
            if audit.verdict != Credibility::Consistent {
                faults.push(format!(
                    "{options}: {form}: {} {}",
                    audit.verdict.label(),
                    audit.reason
                ));
            }
        }
        if let Ok(bundle) = foreign::fio::read(&json, "json") {
            let verdict = plimsoll_judge::judge(&bundle);
            let failed = verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail);
            faults.extend(failed.map(|f| format!("{options}: as a run: {}: {}", f.rule, f.says)));
        }
        runs += 1;
    }
    println!("{runs} runs in 4 forms each, {} accusations", faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Output of a buffered job whose median read took 1 us, in three formats.
const CACHED: &str = include_str!("fio-cached.txt");

#[test]
fn a_buffered_job_that_read_the_page_cache_is_accused_in_no_form() {
    for version in ["3.33", "3.39"] {
        let forms = Forms::of(&CACHED.replace("fio-3.33", &format!("fio-{version}")));
        for (form, text) in
            [("text", &forms.text), ("json", &forms.json_plus), ("terse", &forms.terse)]
        {
            let audit = audit(form, text, version);
            assert_eq!(audit.verdict, Credibility::Consistent, "{form}: {}", audit.reason);
        }
        let verdict = plimsoll_judge::judge(&foreign::fio::read(&forms.json_plus, "json").unwrap());
        let floor = verdict.findings.iter().find(|f| f.rule == "latency-floor").unwrap();
        assert_eq!(floor.outcome, Outcome::Unknown, "{version}: {}", floor.says);
        let failed = verdict.findings.iter().find(|f| f.outcome == Outcome::Fail);
        assert!(failed.is_none(), "{version}: {failed:?}");
    }
}
