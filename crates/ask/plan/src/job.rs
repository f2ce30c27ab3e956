//! Job of another tool, such as fio, to which a plan refers. The caller supplies the function that
//! parses the job.

use toml::Table;

/// Job of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Text of the job, which is stored in the bundle.
    pub text: String,
    /// Streams of the job, with the fields of `[workload.matrix]`.
    pub streams: Vec<Table>,
    /// Measuring time in ns, if the job states it.
    pub measure_ns: Option<u64>,
    /// Length of a steady-state round, if the job ends at steady state. `measure_ns` is then the
    /// maximum measuring time.
    pub round_ns: Option<u64>,
    /// Warm-up time, if the job states it.
    pub warm_up_ns: Option<u64>,
    /// Options that could not be imported. Each entry describes one option in a sentence.
    pub notes: Vec<String>,
}

/// Error of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFault {
    /// Description of the error.
    pub message: String,
    /// Hint in the imperative.
    pub help: String,
}

/// Function that returns the text of the job with a given name, or the reason why there is no such
/// job.
pub type JobText<'j> = dyn Fn(&str) -> Result<String, String> + 'j;

/// Function that parses a job. The arguments are the job's text, its name for messages, and the
/// sections to use (empty for all sections).
pub type ReadJob<'j> = dyn Fn(&str, &str, &[String]) -> Result<Job, JobFault> + 'j;

/// Source of a plan's job, and the function that parses the job.
pub(crate) struct JobSource<'j> {
    pub(crate) text: &'j JobText<'j>,
    pub(crate) read: &'j ReadJob<'j>,
}

impl JobSource<'_> {
    pub(crate) fn job(&self, name: &str, sections: &[String]) -> Result<Job, JobFault> {
        let help = || "use a job file in the plan's directory".to_owned();
        let text = (self.text)(name).map_err(|message| JobFault { message, help: help() })?;
        (self.read)(&text, name, sections)
    }
}

/// Used for plans that have no job: it rejects every job.
pub(crate) fn no_job(_text: &str, _name: &str, _sections: &[String]) -> Result<Job, JobFault> {
    let message = "this command cannot read a job file".to_owned();
    Err(JobFault {
        message,
        help: "describe the streams in [[workload.matrix]] sections".to_owned(),
    })
}
