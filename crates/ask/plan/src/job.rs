//! A job of another tool, such as fio, to which a plan refers. The caller supplies the function
//! that parses the job.

use toml::Table;

/// A job of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Text of the job. The bundle contains this text.
    pub text: String,
    /// Streams of the job. Each stream has the fields of `[workload.matrix]`.
    pub streams: Vec<Table>,
    /// Measuring time in ns, if the job states it.
    pub measure_ns: Option<u64>,
    /// Length of a steady-state round, if the job ends when its rate is steady. `measure_ns` is
    /// then the maximum measuring time.
    pub round_ns: Option<u64>,
    /// Warm-up time in ns, if the job states it.
    pub warm_up_ns: Option<u64>,
    /// Sentences about options that could not be imported, one sentence for each option.
    pub notes: Vec<String>,
}

/// Error in a job of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFault {
    /// Description of the error.
    pub message: String,
    /// Hint for the user, in the imperative.
    pub help: String,
}

/// Function that receives the name of a job and returns its text. If there is no such job, it
/// returns the reason.
pub type JobText<'j> = dyn Fn(&str) -> Result<String, String> + 'j;

/// Function that parses a job. The arguments are the job's text, its name for messages, and the
/// sections to use (empty for all sections).
pub type ReadJob<'j> = dyn Fn(&str, &str, &[String]) -> Result<Job, JobFault> + 'j;

/// Provides the text of a plan's job, and the function that parses the job.
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

/// Rejects every job. It is used for plans that have no job.
pub(crate) fn no_job(_text: &str, _name: &str, _sections: &[String]) -> Result<Job, JobFault> {
    let message = "this command cannot read a job file".to_owned();
    Err(JobFault {
        message,
        help: "describe the streams in [[workload.matrix]] sections".to_owned(),
    })
}
