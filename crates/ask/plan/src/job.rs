//! Job of another tool that a plan refers to. The caller supplies the function that parses it.

use toml::Table;

/// Job of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Text of the job, which is stored in the bundle.
    pub text: String,
    /// Streams with the fields of `[workload.matrix]`.
    pub streams: Vec<Table>,
    /// Measuring time, if the job states it.
    pub measure_ns: Option<u64>,
    /// Round length if the job ends at steady state. `measure_ns` is then the maximum.
    pub round_ns: Option<u64>,
    /// Warm-up time, if the job states it.
    pub warm_up_ns: Option<u64>,
    /// Options that could not be imported, each described in one sentence.
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

/// Returns the text of a job that the plan refers to by name, or the reason why there is none.
pub type JobText<'j> = dyn Fn(&str) -> Result<String, String> + 'j;

/// Parses a job. The arguments are its text, its name for messages, and the sections to use (empty
/// for all sections).
pub type ReadJob<'j> = dyn Fn(&str, &str, &[String]) -> Result<Job, JobFault> + 'j;

/// Job that a plan refers to, and the function that parses it.
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

/// Parser for plans that have no job.
pub(crate) fn no_job(_text: &str, _name: &str, _sections: &[String]) -> Result<Job, JobFault> {
    let message = "this command cannot read a job file".to_owned();
    Err(JobFault {
        message,
        help: "describe the streams in [[workload.matrix]] sections".to_owned(),
    })
}
