//! Audits results of other tools. If a result describes a run, it is judged by the rules for runs,
//! and its figures are checked for consistency. Otherwise only its figures are judged.

use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_import::Study;
use plimsoll_import::detect::{Format, detect};
use plimsoll_import::foreign::{self, ForeignError, table};
use plimsoll_import::text;
use plimsoll_import::walk::{read_sample, sample};
use plimsoll_judge::conservation::{self, Audit, Credibility};
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::{Verdict, judge};
use plimsoll_plan::{Claim, Media};

use crate::error::RunnerError;
use crate::exit::Exit;

/// Facts about the system under test, as stated by the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclaredSystem {
    /// Total number of operations in flight, over all clients.
    pub outstanding: Option<u64>,
    /// Bandwidth of the slowest link.
    pub link_bytes_per_s: Option<u64>,
    /// Total size of the storage system's caches.
    pub array_cache_bytes: Option<u64>,
    /// Total memory of all hosts.
    pub memory_bytes: Option<u64>,
    /// Type of the drives.
    pub media: Option<Media>,
    /// Number of drives on which the data is stored.
    pub drives: Option<u32>,
}

impl DeclaredSystem {
    /// Converts to the form that the consistency rules use.
    pub fn reported(&self) -> conservation::DeclaredFacts {
        use plimsoll_evidence::tool_result::MediaClass;
        let float = |value: Option<u64>| value.map(|value| value as f64);
        conservation::DeclaredFacts {
            link_bytes_per_s: float(self.link_bytes_per_s),
            drives: self.drives.map(f64::from),
            media: self.media.and_then(|media| match media {
                Media::Hdd => Some(MediaClass::Hdd),
                Media::Ssd => Some(MediaClass::Ssd),
                Media::Nvme => Some(MediaClass::Nvme),
                _ => None,
            }),
            outstanding: float(self.outstanding),
            cache_bytes: float(self.array_cache_bytes),
            memory_bytes: float(self.memory_bytes),
        }
    }
}

/// The results in a file that contains one run or a table of runs. Each result was judged as a run.
#[derive(Clone, Debug)]
pub struct AuditedFile {
    /// One bundle per result.
    pub bundles: Vec<Bundle>,
    /// Verdicts, in the same order.
    pub verdicts: Vec<Verdict>,
    /// The single result, with the check whether its figures are consistent. `None` if the file has
    /// several results.
    pub figures: Option<(ToolResult, Audit)>,
}

impl AuditedFile {
    /// Exit code of the command.
    pub fn exit(&self) -> Exit {
        let exit = worst(&self.bundles, &self.verdicts);
        match &self.figures {
            Some((_, audit)) if audit.verdict != Credibility::Consistent => {
                exit.worse(Exit::NoVerdict)
            }
            _ => exit,
        }
    }
}

/// Returns true if the file is judged as a run, because it has fio's JSON format or no other known
/// format.
pub fn is_run_result(path: &Path) -> bool {
    path.is_file() && has_run_format(&read_sample(path).unwrap_or_default(), is_table(path))
}

fn has_run_format(sample: &[u8], is_table: bool) -> bool {
    match detect(sample) {
        Some(Format::FioJson) => true,
        Some(Format::Table) => is_table && has_run_columns(sample),
        Some(_) => false,
        None => is_table || sample.trim_ascii_start().starts_with(b"{"),
    }
}

#[derive(Clone, Debug)]
pub enum AuditedText {
    /// One run, or the rows of a table, judged by the rules for runs.
    Run(Box<AuditedFile>),
    /// A result of which only the figures were judged.
    Figures(Box<Study>),
}

impl AuditedText {
    /// If a result cannot be judged as a run, judges its figures instead and gives the reason.
    fn figures(mut study: Study, reason: &ForeignError) -> Option<Self> {
        let remark = format!("only the figures of this result were judged: {reason}");
        study.results.iter_mut().for_each(|result| result.remarks.push(remark.clone()));
        (!study.results.is_empty()).then(|| Self::Figures(Box::new(study)))
    }
}

/// Judges a text. `name` is used in messages. Writes nothing.
///
/// # Errors
/// The text is not a result of a known format.
pub fn audit_text(
    name: &str,
    text: &str,
    declared: &DeclaredSystem,
) -> Result<AuditedText, RunnerError> {
    let sample = sample(text.as_bytes());
    let is_table = detect(&sample) == Some(Format::Table);
    let study = plimsoll_import::read_text(name, text);
    if !has_run_format(&sample, is_table) {
        return match study.results.is_empty() {
            true => Err(no_result_error(&[PathBuf::from(name)], &study)),
            false => Ok(AuditedText::Figures(Box::new(study))),
        };
    }
    judge_text(text, (name, name), is_table, study, declared, &[])
}

/// Judges a text as a run. If its job or rows cannot be converted, judges only its figures.
fn judge_text(
    text: &str,
    (name, short): (&str, &str),
    is_table: bool,
    study: Study,
    declared: &DeclaredSystem,
    claims: &[Claim],
) -> Result<AuditedText, RunnerError> {
    // Each block of a page is a separate result.
    if !is_table && study.results.len() > 1 {
        return Ok(AuditedText::Figures(Box::new(study)));
    }
    let bundles = match is_table {
        true => {
            let outstanding = table::TableDefaults { outstanding: declared.outstanding };
            table::read(text, short, outstanding)
        }
        false => foreign::fio::read(text, short).map(|bundle| vec![bundle]),
    };
    match bundles {
        Ok(mut bundles) => {
            bundles.iter_mut().for_each(|bundle| declare(bundle, declared, claims));
            Ok(AuditedText::Run(Box::new(judge_all(bundles, Some(&study), declared))))
        }
        Err(error) => AuditedText::figures(study, &error).ok_or_else(|| {
            // If the format is known, its parser has returned a more precise error.
            let sample = sample(text.as_bytes());
            let unknown = detect(&sample).is_none().then_some(&*sample);
            let seems = unknown.and_then(plimsoll_import::unread::refusal);
            let says = seems.unwrap_or_else(|| error.to_string());
            RunnerError::usage(format!("{name}: {says}"))
                .hint("see docs/audit.md for the known formats")
        }),
    }
}

fn judge_all(
    bundles: Vec<Bundle>,
    study: Option<&Study>,
    declared: &DeclaredSystem,
) -> AuditedFile {
    let verdicts: Vec<Verdict> = bundles.iter().map(judge).collect();
    let figures = study.and_then(|study| match &study.results[..] {
        [only] => Some((only.clone(), conservation::audit(only, &declared.reported()))),
        _ => None,
    });
    AuditedFile { bundles, verdicts, figures }
}

/// Returns true if the header has the columns that docs/audit.md describes. Their names include the
/// unit.
fn has_run_columns(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let names = ["_per_s", "io_kib", "io_bytes"];
    lines.next().is_some_and(|header| names.iter().any(|name| header.contains(name)))
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["csv", "tsv"].into_iter().any(|table| extension.eq_ignore_ascii_case(table))
    })
}

/// Judges a file for which [`is_run_result`] returns true. `claims`: claims of the user about it.
///
/// # Errors
/// The file cannot be read, or is not a result in a known format.
pub fn audit_run_file(
    file: &Path,
    declared: &DeclaredSystem,
    claims: &[Claim],
) -> Result<AuditedText, RunnerError> {
    let name = file.display().to_string();
    let wrong = |why: &str| {
        RunnerError::usage(format!("cannot read {name}: {why}"))
            .hint("specify a JSON file of fio, or a table (CSV)")
    };
    let bytes = std::fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    let text = text::decode(&bytes).ok_or_else(|| wrong("it is not text"))?;
    let short = file.file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
    let study = study(&[file.to_path_buf()]).unwrap_or_default();
    judge_text(&text, (&name, &short), is_table(file), study, declared, claims)
}

/// # Errors
/// A path does not exist.
pub fn study(paths: &[PathBuf]) -> Result<Study, RunnerError> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    plimsoll_import::read(&paths).map_err(|error| {
        RunnerError::usage(error.to_string())
            .hint("specify a file, directory or archive of results")
    })
}

/// Returns the error for paths that contain no result. The error states the reason.
pub fn no_result_error(paths: &[PathBuf], study: &Study) -> RunnerError {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut error = match &study.unreadable[..] {
        [only] => RunnerError::usage(only.to_string()),
        several => RunnerError::usage(format!(
            "no results found in {} ({} files have an unknown format, {} are unreadable)",
            names.join(", "),
            study.passed_over,
            several.len()
        )),
    };
    if study.logs_alone > 0 {
        error = error
            .hint("interval logs were found: also specify the result file to which they belong");
    }
    error.hint("see docs/audit.md for the known formats")
}

fn declare(bundle: &mut Bundle, declared: &DeclaredSystem, claims: &[Claim]) {
    let observe = &mut bundle.plan.observe;
    observe.link_bytes_per_s = declared.link_bytes_per_s;
    observe.array_cache_bytes = declared.array_cache_bytes;
    bundle.environment.memory_bytes = declared.memory_bytes;
    if declared.media.is_some() {
        observe.media = declared.media;
    }
    if !claims.is_empty() {
        bundle.plan.claims = claims.to_vec();
        bundle.plan.claims_assumed = false;
    }
}

fn worst(bundles: &[Bundle], verdicts: &[Verdict]) -> Exit {
    let mut exits = bundles.iter().zip(verdicts).map(|(b, v)| Exit::of(&b.run, v.verdict));
    let table = verdicts.len() > 1;
    let fails = |v: &Verdict| v.findings.iter().any(|f| f.outcome == Outcome::Fail);
    if table {
        return if verdicts.iter().any(fails) { Exit::NoVerdict } else { Exit::Ok };
    }
    match exits.next() {
        // The audited run failed, but this command did not.
        Some(Exit::Environment) => Exit::NoVerdict,
        exit => exit.unwrap_or(Exit::Ok),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_result_is_named_once_with_one_reason() {
        let error = study(&["/none.json".into()]).unwrap_err().to_string();
        assert!(error.starts_with("error: /none.json: cannot be read: No such file"), "{error}");
    }

    const FIO: &str = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "job options": {
        "rw": "read", "bs": "4k", "ioengine": "psync", "filename": "/x/f", "size": "1g"},
        "read": {"io_bytes": 4096000, "runtime": 1000, "total_ios": 1000, "iops": 1000.0}}]}"#;

    fn audit_bytes(bytes: &[u8]) -> Result<AuditedText, RunnerError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.json");
        std::fs::write(&file, bytes).unwrap();
        assert!(is_run_result(&file));
        audit_run_file(&file, &DeclaredSystem::default(), &[])
    }

    #[test]
    fn json_of_any_encoding_is_judged_as_a_run() {
        let wide: Vec<u8> = FIO.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&[0xff, 0xfe], &wide[..]].concat();
        for bytes in [FIO.as_bytes(), &wide, &marked] {
            assert!(matches!(audit_bytes(bytes), Ok(AuditedText::Run(_))));
        }
    }

    #[test]
    fn json_that_is_cut_off_is_named() {
        let error = audit_bytes(&FIO.as_bytes()[..FIO.len() - 60]).unwrap_err().to_string();
        assert!(error.contains("the file is cut off"), "{error}");
    }
}
