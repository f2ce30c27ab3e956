//! Results made elsewhere, judged: one that reads as a run, by the rules of a run and its figures against each
//! other; any other, or many, by their figures.

use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_import::Study;
use plimsoll_import::detect::{Format, detect};
use plimsoll_import::foreign::{self, table};
use plimsoll_import::walk::HEAD_BYTES;
use plimsoll_judge::conservation::{self, Audit, Credibility};
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::{Verdict, judge};
use plimsoll_plan::{Claim, Media};

use crate::error::RunnerError;
use crate::exit::Exit;

/// What the reader declares about the system, as parsed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Declared {
    /// Operations in flight, all clients together.
    pub outstanding: Option<u64>,
    /// Rate of the slowest link.
    pub link_bytes_per_s: Option<u64>,
    /// Size of the storage system's caches.
    pub array_cache_bytes: Option<u64>,
    /// Memory of the hosts, all together.
    pub memory_bytes: Option<u64>,
    /// What the media are.
    pub media: Option<Media>,
    /// How many drives the data lies on.
    pub drives: Option<u32>,
}

impl Declared {
    /// As the rules of conservation take it.
    pub fn reported(&self) -> conservation::Declared {
        use plimsoll_evidence::tool_result::MediaClass;
        let float = |value: Option<u64>| value.map(|value| value as f64);
        conservation::Declared {
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

/// A file whose results were read as runs and judged: one, or the rows of a table.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The results as evidence.
    pub bundles: Vec<Bundle>,
    /// Their verdicts.
    pub verdicts: Vec<Verdict>,
    /// What the figures of the only result say of each other.
    pub figures: Option<Audit>,
}

impl Judged {
    /// How the command ends that showed it.
    pub fn exit(&self) -> Exit {
        let exit = worst(&self.bundles, &self.verdicts);
        let figures = self.figures.as_ref();
        let impossible = figures.is_some_and(|audit| audit.verdict == Credibility::Impossible);
        if exit == Exit::Ok && impossible { Exit::NoVerdict } else { exit }
    }
}

/// True for a file that is read as a run: fio's JSON, and what has no form of another tool.
pub fn is_of_a_run(path: &Path) -> bool {
    use std::io::Read;
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head));
    if read.is_err() {
        head.clear();
    }
    reads_as_a_run(&head, is_table(path))
}

fn reads_as_a_run(head: &[u8], is_table: bool) -> bool {
    match detect(head) {
        Some(Format::FioJson) => true,
        Some(Format::Table) => is_table && has_columns_of_a_run(head),
        Some(_) => false,
        None => is_table || head.trim_ascii_start().starts_with(b"{"),
    }
}

/// A text that no file holds, as it was read.
#[derive(Clone, Debug)]
pub enum Pasted {
    /// As a run, or the rows of a table, by the rules of a run.
    Run(Box<Judged>),
    /// By its figures alone.
    Figures(Box<Study>),
}

/// Judges a text that somebody has at hand; `name` stands for it. Nothing is written anywhere.
///
/// # Errors
/// A text that is no such result.
pub fn of_text(name: &str, text: &str, declared: &Declared) -> Result<Pasted, RunnerError> {
    let bytes = text.as_bytes();
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let is_table = detect(head) == Some(Format::Table);
    let study = plimsoll_import::read_text(name, text);
    if !reads_as_a_run(head, is_table) {
        return match study.results.is_empty() {
            true => Err(nothing(&[PathBuf::from(name)], &study)),
            false => Ok(Pasted::Figures(Box::new(study))),
        };
    }
    let wrong = |error: foreign::ForeignError| {
        RunnerError::usage(format!("{name}: {error}"))
            .hint("see docs/audit.md for the forms that are known")
    };
    let mut bundles = if is_table {
        let outstanding = table::TableDefaults { outstanding: declared.outstanding };
        table::read(text, name, outstanding).map_err(wrong)?
    } else {
        vec![foreign::fio::read(text, name).map_err(wrong)?]
    };
    bundles.iter_mut().for_each(|bundle| declare(bundle, declared, &[]));
    Ok(Pasted::Run(Box::new(judged(bundles, Some(&study), declared))))
}

fn judged(bundles: Vec<Bundle>, study: Option<&Study>, declared: &Declared) -> Judged {
    let verdicts: Vec<Verdict> = bundles.iter().map(judge).collect();
    let figures = study.and_then(|study| match &study.results[..] {
        [only] => Some(conservation::audit(only, &declared.reported())),
        _ => None,
    });
    Judged { bundles, verdicts, figures }
}

/// True for the columns of docs/audit.md, which name their unit in full.
fn has_columns_of_a_run(head: &[u8]) -> bool {
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

/// Judges a file that reads as a run ([`is_of_a_run`]). `claims`: what it is said to show, where the reader says so.
///
/// # Errors
/// A file that cannot be read or is no such result.
pub fn of_a_run(file: &Path, declared: &Declared, claims: &[Claim]) -> Result<Judged, RunnerError> {
    let mut bundles = read(file, declared)?;
    bundles.iter_mut().for_each(|bundle| declare(bundle, declared, claims));
    let study = study(&[file.to_path_buf()]).ok();
    Ok(judged(bundles, study.as_ref(), declared))
}

/// Reads files, directories and archives.
///
/// # Errors
/// A path that is not there.
pub fn study(paths: &[PathBuf]) -> Result<Study, RunnerError> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    plimsoll_import::read(&paths).map_err(|error| {
        RunnerError::usage(format!("cannot read {error}"))
            .hint("name a result's file, or a directory or archive of results")
    })
}

/// That there is no result below the paths, and why.
pub fn nothing(paths: &[PathBuf], study: &Study) -> RunnerError {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut error = match &study.unreadable[..] {
        [only] => RunnerError::usage(only.to_string()),
        several => RunnerError::usage(format!(
            "there is no result in {} ({} files of no known form, {} that cannot be read)",
            names.join(", "),
            study.passed_over,
            several.len()
        )),
    };
    if study.logs_alone > 0 {
        error = error.hint("there are interval logs; name the result that they belong to as well");
    }
    error.hint("see docs/audit.md for the forms that are known")
}

fn read(file: &Path, declared: &Declared) -> Result<Vec<Bundle>, RunnerError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        RunnerError::usage(format!("cannot read {name}: {error}"))
            .hint("name a file that fio wrote, or a table (CSV)")
    })?;
    let wrong = |error: foreign::ForeignError| {
        RunnerError::usage(format!("{name}: {error}"))
            .hint("see docs/audit.md for the forms that are known")
    };
    let short = file.file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
    if is_table(file) {
        let declared = table::TableDefaults { outstanding: declared.outstanding };
        return table::read(&text, &short, declared).map_err(wrong);
    }
    foreign::fio::read(&text, &short).map(|bundle| vec![bundle]).map_err(wrong)
}

fn declare(bundle: &mut Bundle, declared: &Declared, claims: &[Claim]) {
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
    exits.next().unwrap_or(Exit::Ok)
}
