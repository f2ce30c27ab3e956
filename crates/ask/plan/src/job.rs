//! Job of another tool that a plan names. The caller passes in the reader.

use toml::Table;

/// Job of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Text of the job, which the bundle keeps.
    pub text: String,
    /// Streams with the fields of `[workload.matrix]`.
    pub streams: Vec<Table>,
    /// Measuring time, if the job states it.
    pub measure_ns: Option<u64>,
    /// Round length, if the job ends at steady state. Then `measure_ns` is the maximum.
    pub round_ns: Option<u64>,
    /// Warm-up time, if the job states it.
    pub warm_up_ns: Option<u64>,
    /// Options that could not be imported, one sentence each.
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

/// Returns the text of a job by its name in the plan, or the reason why it cannot.
pub type JobText<'j> = dyn Fn(&str) -> Result<String, String> + 'j;

/// Parses a job from its text, its name for messages, and the sections to use (empty for all).
pub type ReadJob<'j> = dyn Fn(&str, &str, &[String]) -> Result<Job, JobFault> + 'j;

/// Job that a plan names, and its reader.
pub(crate) struct JobSource<'j> {
    pub(crate) text: &'j JobText<'j>,
    pub(crate) read: &'j ReadJob<'j>,
}

impl JobSource<'_> {
    pub(crate) fn job(&self, name: &str, sections: &[String]) -> Result<Job, JobFault> {
        let help = || "name a job file in the plan's directory".to_owned();
        let text = (self.text)(name).map_err(|message| JobFault { message, help: help() })?;
        (self.read)(&text, name, sections)
    }
}

/// Reader for plans without a job.
pub(crate) fn no_job(_text: &str, _name: &str, _sections: &[String]) -> Result<Job, JobFault> {
    let message = "cannot read jobs here".to_owned();
    Err(JobFault { message, help: "write the streams as [[workload.matrix]]".to_owned() })
}
