//! Parses the text of a fio job file into sections. The options of each section follow those of
//! `[global]`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::options::{DIRECTIONAL, canonical, conversion};
use super::prepare::{include_of, without_comment};
use super::values;
use plimsoll_plan::PlanError;

/// An option as the job file states it.
#[derive(Clone, Debug)]
pub(super) struct Opt {
    /// Value of the option. It is `1` for an option without a value.
    pub(super) value: String,
    /// Position of the option in the text.
    pub(super) span: Range<usize>,
}

/// A job with all options that apply to it, including those of `[global]`.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Name of the section.
    pub(super) name: String,
    /// Options by their canonical name.
    pub(super) options: BTreeMap<String, Opt>,
}

impl Job {
    /// Returns true if the job waits for the jobs before it.
    pub(super) fn waits(&self) -> bool {
        self.options.get("stonewall").is_some_and(|opt| values::flag(&opt.value))
    }
}

/// Maximum number of jobs. The limit of fio itself is far lower.
const JOBS_MAX: usize = 1024;
/// Maximum total number of options in all jobs. Options of `[global]` count once for each job. This
/// limits the memory that a foreign job can use.
const OPTIONS_MAX: usize = 1 << 16;
/// Maximum number of reported errors, because finding the line of an error takes time.
const FAULTS_MAX: usize = 100;

/// Splits a job file into jobs. Each line is a section header or an option. `#` or `;` starts a
/// comment.
pub(super) fn parse(text: &str) -> Result<Vec<Job>, Vec<PlanError>> {
    let mut globals: BTreeMap<String, Opt> = BTreeMap::new();
    let mut jobs: Vec<Job> = Vec::new();
    let mut errors = Vec::new();
    let mut section = Section::None;
    let mut start = 0;
    let mut held = 0;
    for raw in text.split_inclusive('\n') {
        let line = without_comment(raw).trim();
        let from = start + (raw.len() - raw.trim_start().len()).min(raw.len());
        let span = from..from + line.len();
        start += raw.len();
        if line.is_empty() {
            continue;
        }
        if errors.len() >= FAULTS_MAX {
            break;
        }
        held += 1;
        if jobs.len() > JOBS_MAX || held > OPTIONS_MAX {
            errors.push(too_large(text, &span));
            break;
        }
        let outside = match (include_of(line), line.contains("${")) {
            (Some(_), _) => Some("the line includes another file"),
            (None, true) => Some("the line uses an environment variable"),
            (None, false) => None,
        };
        if let Some(outside) = outside {
            errors.push(PlanError::new(
                text,
                &span,
                String::new(),
                format!("{outside}, but the evidence contains only the job file itself"),
                "convert the job to a plan: plimsoll plan import".to_owned(),
            ));
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            // fio compares only the first six letters (init.c, __parse_jobs_ini).
            section = if name.starts_with("global") { Section::Global } else { Section::Job };
            if section == Section::Job {
                held += globals.len();
                jobs.push(Job { name: name.to_owned(), options: globals.clone() });
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        let option = Opt { value: value.trim().to_owned(), span: span.clone() };
        let key = canonical(key.trim());
        match (&section, jobs.last_mut()) {
            (Section::Global, _) => insert(&mut globals, key, option),
            (Section::Job, Some(job)) => insert(&mut job.options, key, option),
            _ => errors.push(PlanError::new(
                text,
                &span,
                String::new(),
                "the option is not in a section".to_owned(),
                "begin with [global] or a job's name in brackets".to_owned(),
            )),
        }
    }
    let is_known = |job: &Job| job.options.keys().any(|name| conversion(name).is_some());
    if errors.is_empty() && !jobs.iter().any(is_known) {
        let (message, help) = match jobs.is_empty() {
            true => ("the file contains no job", "add a section such as [job1]"),
            // fio also rejects such a job, unless a file exists whose name is the name of the job.
            false => ("no job contains a fio option", "set at least rw, and size or filename"),
        };
        let (message, help) = (message.to_owned(), help.to_owned());
        errors.push(PlanError::new(text, &(0..0), String::new(), message, help));
    }
    if errors.is_empty() { Ok(jobs) } else { Err(errors) }
}

/// Adds an option to those of a section. fio replaces the earlier value, with two exceptions.
/// `filename` adds files (options.c, str_filename_cb). An empty value of one direction, as in
/// `bs=,8k`, leaves the earlier value of this direction unchanged (parse.c, handle_option).
fn insert(options: &mut BTreeMap<String, Opt>, key: String, mut option: Opt) {
    if let Some(before) = options.get(&key).map(|before| before.value.as_str()) {
        if key == "filename" {
            option.value = format!("{before}:{}", option.value);
        } else if DIRECTIONAL.contains(&key.as_str()) && option.value.contains(',') {
            let part = |index| direction_part(&option.value, index);
            let kept = |index| part(index).or_else(|| direction_part(before, index)).unwrap_or("");
            option.value = format!("{},{}", kept(0), kept(1));
        }
    }
    options.insert(key, option);
}

/// Returns the value of one direction: 0 for reads, 1 for writes. Without a comma, the value
/// applies to both. Returns `None` if the value is empty.
pub(super) fn direction_part(value: &str, index: usize) -> Option<&str> {
    let mut parts = value.split(',');
    let first = parts.next().unwrap_or("");
    let part = if index == 0 { first } else { parts.next().unwrap_or(first) }.trim();
    (!part.is_empty()).then_some(part)
}

fn too_large(text: &str, span: &Range<usize>) -> PlanError {
    let message = format!(
        "the file contains more than {JOBS_MAX} jobs, or its jobs contain more than {OPTIONS_MAX} \
         options in total"
    );
    let help = "divide the job among several files".to_owned();
    PlanError::new(text, span, String::new(), message, help)
}

#[derive(PartialEq, Eq)]
enum Section {
    None,
    Global,
    Job,
}
