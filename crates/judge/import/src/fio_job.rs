//! Imports fio jobs as plans. Each job becomes a stream of the matrix. Options that cannot be
//! converted are listed with their meaning. In fio jobs, unlike in plans, a bare `k` is 1024.

mod ending;
mod engine;
mod job;
mod load;
mod notes;
mod options;
mod place;
mod prepare;
mod servers;
mod setting;
mod steady;
mod stream;
mod text;
pub(crate) mod values;

use notes::Notes;
use plimsoll_plan::{Job, JobFault, Plan, PlanError, PlanErrors, printable, reference_markdown};
pub use prepare::{Include, Variable, prepare};
use steady::SteadyState;
use stream::Draft;

/// Note on a job file without a target.
pub const NO_PLACE: &str = "does not specify a directory or device, so the target is the working \
                            directory; change target.path";

/// Result of converting a fio job to a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FioImport {
    /// The plan. Comments in its text list the options that could not be converted.
    pub plan: Plan,
    /// Options that could not be converted. Each entry describes one option in a sentence.
    pub notes: Vec<String>,
}

/// Converts a fio job to a plan. `job_name` is the name of the file in messages, and becomes the
/// name of the plan.
///
/// # Errors
/// A line cannot be parsed, an option has an invalid value, or no job can be converted. A job can
/// be converted only if it reads or writes files, devices or `null`.
pub fn import_fio(text: &str, job_name: &str) -> Result<FioImport, PlanErrors> {
    let faults = |errors| PlanErrors { source_name: job_name.to_owned(), errors };
    let job = one_stage(load(text, &[]).map_err(faults)?, text).map_err(faults)?;
    let plan = Plan::parse(&text::plan(&job, job_name), &format!("{job_name} as a plan"))?;
    Ok(FioImport { plan, notes: job.notes })
}

/// Converts a fio job to plans that run one after another. A new plan starts at each job with
/// `stonewall`, which waits for the jobs before it. Each plan is named after its first section.
///
/// # Errors
/// See [`import_fio`].
pub fn import_stages(text: &str, job_name: &str) -> Result<Vec<(String, FioImport)>, PlanErrors> {
    let faults = |errors| PlanErrors { source_name: job_name.to_owned(), errors };
    let mut imported = Vec::new();
    let jobs = job::parse(text).map_err(faults)?;
    for sections in stages(&jobs) {
        let job = together(text, sections).map_err(faults)?;
        let stage = sections.first().map_or("stage", |first| first.name.as_str());
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let stage: String = stage.chars().map(safe).collect();
        let name = format!("{job_name}-{}-{stage}", imported.len() + 1);
        let plan = Plan::parse(&text::plan(&job, &name), &format!("{name} as a plan"))?;
        imported.push((name, FioImport { plan, notes: job.notes }));
    }
    Ok(imported)
}

/// Returns the groups of sections that run at the same time, in order of execution.
fn stages(jobs: &[job::Job]) -> impl Iterator<Item = &[job::Job]> {
    jobs.chunk_by(|_, next| !next.waits())
}

/// Returns the job, or an error if its sections do not all run at the same time.
fn one_stage(job: FioJob, text: &str) -> Result<FioJob, Vec<PlanError>> {
    let Some(second) = job.drafts.iter().skip(1).find(|draft| draft.begins_stage) else {
        return Ok(job);
    };
    let message = format!(
        "[{}] waits for the jobs before it (stonewall), but a plan runs all its streams at the same \
         time",
        printable(&second.name)
    );
    let help = "run the stages one after another (plimsoll run JOB), create a plan for each stage \
                (plimsoll plan import JOB --out DIR), or list only the sections of one stage in \
                `sections`"
        .to_owned();
    Err(vec![PlanError::new(text, &(0..0), String::new(), message, help)])
}

/// A parsed job, which consists of streams and of settings for the other sections of a plan.
pub(crate) struct FioJob {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) place: place::Place,
    pub(crate) measure_ns: Option<u64>,
    pub(crate) warm_up_ns: Option<u64>,
    pub(crate) steady: Option<SteadyState>,
    pub(crate) verify: bool,
    pub(crate) description: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) all_synchronous: bool,
    pub(crate) io_poll: bool,
    pub(crate) sq_poll: bool,
    pub(crate) notes: Vec<String>,
}

/// Reads the job to which a plan refers. [`Plan::load`] calls this function.
///
/// # Errors
/// Returns the first error in the job.
pub fn read_job(text: &str, name: &str, sections: &[String]) -> Result<Job, JobFault> {
    let fault = |errors: Vec<PlanError>| {
        let first = errors.into_iter().next();
        let (line, field, message, help) = first.map_or_else(
            || (0, String::new(), "cannot be read".to_owned(), "correct the job".to_owned()),
            |error| (error.line, error.field, error.message, error.help),
        );
        JobFault { message: format!("{} line {line}: {field}: {message}", printable(name)), help }
    };
    let job = load(text, sections).and_then(|job| one_stage(job, text)).map_err(fault)?;
    Ok(Job {
        text: text.to_owned(),
        streams: job.drafts.iter().map(Draft::table).collect(),
        measure_ns: job.measure_ns,
        warm_up_ns: job.warm_up_ns,
        round_ns: job.steady.map(|steady| steady.round_ns),
        notes: job.notes,
    })
}

/// Parses a size as fio does on its command line. A bare `k` is 1024.
#[must_use]
pub fn size_bytes(text: &str) -> Option<u64> {
    values::size(text, 1024)
}

/// Parses a time as fio does, and returns it in nanoseconds. A number without a unit is in seconds.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    values::time(text, 1_000_000_000)
}

const FIO: &str = "
## fio jobs

`plimsoll plan import` and `[workload.fio]` convert a fio job to streams of the matrix. In a job, a bare
`k` is 1024, as in fio. An imported plan does not need the job file. The bundle of a `[workload.fio]`
plan contains the job as `job.fio`, which the seal protects. The following lists contain all options
of fio 3.33 to 3.42.

";

/// Returns the text of `docs/plan.md`, which is the reference of all plan fields and fio job
/// options.
#[must_use]
pub fn plan_reference() -> String {
    format!("{}{FIO}{}", reference_markdown(), options::options_markdown())
}

/// Reads a job. `only` contains the names of the sections to use. If it is empty, all sections are
/// used.
pub(crate) fn load(text: &str, only: &[String]) -> Result<FioJob, Vec<PlanError>> {
    let jobs = job::parse(text)?;
    if let Some(missing) = only.iter().find(|name| jobs.iter().all(|j| j.name != **name)) {
        let message = format!("has no section [{missing}]");
        let help = "use names of sections in the job file".to_owned();
        return Err(vec![PlanError::new(text, &(0..0), String::new(), message, help)]);
    }
    let taken: Vec<_> =
        jobs.into_iter().filter(|j| only.is_empty() || only.contains(&j.name)).collect();
    together(text, &taken)
}

/// Combines sections that run at the same time.
fn together(text: &str, taken: &[job::Job]) -> Result<FioJob, Vec<PlanError>> {
    let mut notes = Notes::default();
    let mut errors = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    // If a section is omitted, the sections after it still wait where it would have waited.
    let mut waits = false;
    for job in taken {
        waits |= job.waits();
        if let Some(mut draft) = stream::draft(job, text, &mut notes, &mut errors) {
            unique(&mut draft.name, &drafts);
            draft.begins_stage = std::mem::take(&mut waits);
            drafts.push(draft);
        }
    }
    if drafts.is_empty() && errors.is_empty() {
        let listed = notes.clone().into_sentences().join("; ");
        let message = format!("contains no job that can be converted: {listed}");
        let help = "import a job that reads or writes files or a device".to_owned();
        errors.push(PlanError::new(text, &(0..0), String::new(), message, help));
    }
    // Sections that run at the same time are one measurement. Only after the stages are known can
    // the converter check these sections.
    let together = |a: &Draft, b: &Draft| {
        !b.begins_stage
            && a.steady.map(SteadyState::window_ns) != b.steady.map(SteadyState::window_ns)
    };
    if let Some(pair) = drafts.windows(2).find(|pair| together(&pair[0], &pair[1])) {
        let message = format!(
            "[{}] and [{}] run at the same time, but their steady-state settings differ",
            printable(&pair[0].name),
            printable(&pair[1].name)
        );
        let help =
            "set the same steadystate and steadystate_duration in all these jobs, or in none of \
             them"
                .to_owned();
        errors.push(PlanError::new(text, &(0..0), String::new(), message, help));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(gather(drafts, notes))
}

fn unique(name: &mut String, drafts: &[Draft]) {
    let base = name.clone();
    let mut number = 2;
    while drafts.iter().any(|d| d.name == *name) {
        *name = format!("{base}-{number}");
        number += 1;
    }
}

/// Combines the settings of the jobs. If they differ, the function uses the longest time or the
/// first target, and adds a note.
fn gather(drafts: Vec<Draft>, mut notes: Notes) -> FioJob {
    let places: Vec<&place::Place> = drafts.iter().map(|d| &d.place).collect();
    let place = places.first().map_or(place::Place::WorkingDirectory, |p| (*p).clone());
    for draft in drafts.iter().filter(|d| d.place != place) {
        let text =
            format!("uses {}, but a plan has only one target, which is {place}", draft.place);
        notes.add(&draft.name, text);
    }
    if place == place::Place::WorkingDirectory {
        notes.general(NO_PLACE);
    }
    let longest = |of: fn(&Draft) -> Option<u64>, what: &str, notes: &mut Notes| {
        let most = drafts.iter().filter_map(of).max();
        if drafts.iter().any(|d| of(d) != most) && drafts.len() > 1 {
            notes.general(&format!(
                "sets different {what} for its jobs; all streams of a plan run for the same time, \
                 so the plan uses the longest of these times"
            ));
        }
        most
    };
    let measure_ns = longest(|d| d.measure_ns, "run times", &mut notes);
    let warm_up_ns = longest(|d| d.warm_up_ns, "ramp times", &mut notes);
    if measure_ns.is_none() {
        notes.general(
            "sets no runtime, so fio ends after `size` bytes; in the plan, phases.measure sets the \
             run time",
        );
    }
    FioJob {
        place,
        measure_ns,
        warm_up_ns,
        steady: drafts.first().and_then(|draft| draft.steady),
        verify: drafts.iter().any(|d| d.verify),
        description: drafts.iter().find_map(|d| d.description.clone()),
        seed: drafts.iter().find_map(|d| d.seed),
        all_synchronous: drafts.iter().all(|d| d.is_synchronous),
        io_poll: drafts.iter().any(|d| d.io_poll),
        sq_poll: drafts.iter().any(|d| d.sq_poll),
        notes: notes.into_sentences(),
        drafts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_are_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/plan.md");
        let written = std::fs::read_to_string(path).expect("docs/plan.md");
        assert!(
            written == plan_reference(),
            "run: cargo run -p plimsoll-import --example plan_reference > docs/plan.md"
        );
    }
}
