//! A plan. It consists of the text that the user wrote, and of the resolved plan.

use std::cell::RefCell;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::error::{ERRORS_MAX, PlanError, PlanErrors};
use crate::job::{Job, JobSource, JobText, ReadJob, no_job};
use crate::overlay::{Change, overlay};
use crate::raw::Root;
use crate::read::value::ReadValue;
use crate::read::{Cx, Position};
use crate::resolve::resolve;
use crate::resolved::ResolvedPlan;

/// Maximum size of a plan in bytes. A larger file is probably not a plan.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// Valid plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    source_name: String,
    text: String,
    job: Option<Job>,
    resolved: ResolvedPlan,
}

impl Plan {
    /// Parses a plan. `source_name` identifies the plan in messages.
    ///
    /// # Errors
    /// The plan is not valid. The error lists all faults of the plan. If the plan refers to a fio
    /// job, use [`Self::parse_with`] instead.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, PlanErrors> {
        let no_text = |_: &str| Err("this plan was not read from a file".to_owned());
        Self::parse_with(text, source_name, &no_text, &no_job)
    }

    /// Parses a plan that may refer to a fio job. `job` returns the text of the job, and `read_job`
    /// parses that text.
    ///
    /// # Errors
    /// All errors.
    pub fn parse_with(
        text: &str,
        source_name: &str,
        job: &JobText<'_>,
        read_job: &ReadJob<'_>,
    ) -> Result<Self, PlanErrors> {
        let fail = |errors| PlanErrors { source_name: source_name.to_owned(), errors };
        let root = read(text).map_err(fail)?;
        let (mut cx, root) = root;
        let stem = Path::new(source_name).file_stem().and_then(|s| s.to_str()).unwrap_or("plan");
        let kept = RefCell::new(None);
        let keeping = |text: &str, name: &str, sections: &[String]| {
            read_job(text, name, sections).inspect(|job| drop(kept.replace(Some(job.clone()))))
        };
        let source = JobSource { text: job, read: &keeping };
        let resolved = root.and_then(|root| resolve(&root, stem, &source, &mut cx));
        match resolved.filter(|_| cx.is_empty()) {
            Some(resolved) => Ok(Self {
                source_name: source_name.to_owned(),
                text: text.to_owned(),
                job: kept.into_inner(),
                resolved,
            }),
            None => Err(fail(cx.into_errors(text))),
        }
    }

    /// Reads a plan from its file. The plan may refer to a fio job by a path relative to the plan's
    /// directory. `read_job` parses the job.
    ///
    /// # Errors
    /// The file cannot be read, or the plan is not valid. If the plan is not valid, the error lists
    /// all of its faults.
    pub fn load(path: &Path, read_job: &ReadJob<'_>) -> Result<Self, PlanErrors> {
        Self::load_changed(path, &[], read_job)
    }

    /// Reads a plan as [`Self::load`] does, and applies changes to the plan.
    ///
    /// # Errors
    /// The errors of [`Self::load`]. It is also an error if a change treats a plain value as a
    /// table.
    pub fn load_changed(
        path: &Path,
        changes: &[Change],
        read_job: &ReadJob<'_>,
    ) -> Result<Self, PlanErrors> {
        let name = path.display().to_string();
        let text = read_file(path).map_err(|message| {
            let help = "check the file name and your permission to read the file".to_owned();
            let error = PlanError::new("", &(0..0), String::new(), message, help);
            PlanErrors { source_name: name.clone(), errors: vec![error] }
        })?;
        // If the text is not TOML, changes cannot be applied. The parser of the plan then reports
        // the errors.
        let text = if changes.is_empty() { text } else { overlay(&text, &name, changes)? };
        let beside = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::parse_with(&text, &name, &|job| read_file(&beside.join(job)), read_job)
    }

    /// Returns the plan with every default filled in.
    #[must_use]
    pub fn resolve(&self) -> ResolvedPlan {
        self.resolved.clone()
    }

    /// Returns the text that the user wrote.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of the fio job that the plan refers to.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        self.job.as_ref().map(|job| job.text.as_str())
    }

    /// Parses a changed text of this plan. The changed plan refers to the same job.
    pub(crate) fn with_text(&self, text: &str) -> Result<Self, PlanErrors> {
        let job = || self.job.clone().unwrap_or_default();
        let none = || "this plan has no job".to_owned();
        let given = |_: &str| self.job().map(str::to_owned).ok_or_else(none);
        Self::parse_with(text, self.source_name(), &given, &|_, _, _| Ok(job()))
    }

    /// Returns the file name of the plan, or the name of its source if it is not a file.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Returns the plan's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.resolved.name
    }
}

/// Reads a file. If this fails, the error message is a complete sentence for the user.
fn read_file(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?.len();
    if size > TEXT_MAX_BYTES as u64 {
        return Err(format!(
            "{} has {size} bytes, which is too large for a plan or job",
            path.display()
        ));
    }
    std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

/// Parses the text of a plan and collects errors. If the text has syntax errors, only the syntax
/// errors are reported.
fn read(text: &str) -> Result<(Cx, Option<Root>), Vec<PlanError>> {
    if text.len() > TEXT_MAX_BYTES {
        let message = format!("has {} bytes, which is too large for a plan", text.len());
        let help = "check the file name: this is probably not a plan".to_owned();
        return Err(vec![PlanError::new("", &(0..0), String::new(), message, help)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() && text.trim_start().starts_with('{') {
        let message = "is JSON, but a plan is TOML".to_owned();
        let help = "if it is the result of a tool, use `plimsoll audit FILE`".to_owned();
        return Err(vec![PlanError::new(text, &(0..0), String::new(), message, help)]);
    }
    if !errors.is_empty() {
        return Err(syntax_errors(text, errors));
    }
    let mut cx = Cx::default();
    let at = Position { field: String::new(), span: 0..0 };
    let root = Root::read(&DeValue::Table(table.into_inner()), &at, &mut cx);
    Ok((cx, root))
}

/// Returns only the first error of each line, because a mistake can cause further errors until the
/// end of the line.
fn syntax_errors(text: &str, mut errors: Vec<toml::de::Error>) -> Vec<PlanError> {
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    errors.sort_by_key(start);
    let (mut shown, mut line_end) = (Vec::new(), 0);
    for error in &errors {
        if shown.len() == ERRORS_MAX {
            break;
        }
        let at = start(error);
        if shown.is_empty() || at > line_end {
            let rest = text.get(at..).and_then(|rest| rest.find('\n'));
            line_end = rest.map_or(text.len(), |length| at + length);
            shown.push(syntax_error(text, error));
        }
    }
    shown
}

fn syntax_error(text: &str, error: &toml::de::Error) -> PlanError {
    let span = error.span().unwrap_or(0..0);
    let message = format!("is not TOML: {}", error.message().replace('\n', ", "));
    let error = PlanError::new(text, &span, String::new(), message, String::new());
    let value: String = error.line_text.chars().skip(error.column - 1).collect();
    let value = value.split(['#', ',', ']', '}']).next().unwrap_or("").trim();
    // The usual mistake is that the quotes around a word or around a value with a unit are missing.
    let is_bare = value.starts_with(|c: char| c.is_ascii_alphanumeric()) && !value.contains('"');
    let help = if is_bare && error.line_text.contains('=') {
        format!("put it in quotes: \"{value}\"")
    } else {
        "correct the syntax here (https://toml.io)".to_owned()
    };
    PlanError { help, ..error }
}
