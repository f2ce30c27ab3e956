//! A job of another tool that a plan names, as far as a plan needs it. Who reads it is passed in.

use toml::Table;

/// What such a job says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Its text, which evidence keeps beside the plan.
    pub text: String,
    /// Its streams, each by the fields of `[workload.matrix]`.
    pub streams: Vec<Table>,
    /// How long it measures, if it says so.
    pub measure_ns: Option<u64>,
    /// Length of a round, if it ends when it is steady; it measures for `measure_ns` at most then.
    pub round_ns: Option<u64>,
    /// How long it warms up, if it says so.
    pub warm_up_ns: Option<u64>,
    /// What could not be carried over, one sentence each.
    pub notes: Vec<String>,
}

/// Why a job can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFault {
    /// What is wrong with it.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Gives the text of a job by the name in the plan, or a sentence why it can't.
pub type JobText<'j> = dyn Fn(&str) -> Result<String, String> + 'j;

/// Reads a job from its text: its name in messages, and the sections to take, none for all.
pub type ReadJob<'j> = dyn Fn(&str, &str, &[String]) -> Result<Job, JobFault> + 'j;

/// The job that a plan names, and how it is read.
pub(crate) struct JobSource<'j> {
    pub(crate) text: &'j JobText<'j>,
    pub(crate) read: &'j ReadJob<'j>,
}

impl JobSource<'_> {
    pub(crate) fn job(&self, name: &str, sections: &[String]) -> Result<Job, JobFault> {
        let help = || "name a job file beside the plan".to_owned();
        let text = (self.text)(name).map_err(|message| JobFault { message, help: help() })?;
        (self.read)(&text, name, sections)
    }
}

/// No job can be read: for plans that name none.
pub(crate) fn no_job(_text: &str, _name: &str, _sections: &[String]) -> Result<Job, JobFault> {
    let message = "jobs can't be read here".to_owned();
    Err(JobFault { message, help: "write the streams as [[workload.matrix]]".to_owned() })
}
