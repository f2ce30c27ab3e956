//! What could not be carried over, gathered so that the same remark is made once for all jobs.

/// Remarks with the jobs that they are about.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    /// A remark about a job.
    pub(super) fn add(&mut self, job: &str, text: String) {
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, jobs)) => jobs.push(job.to_owned()),
            None => self.0.push((text, vec![job.to_owned()])),
        }
    }

    /// A remark about the whole job file.
    pub(super) fn general(&mut self, text: &str) {
        self.0.push((text.to_owned(), Vec::new()));
    }

    /// One sentence each.
    pub(super) fn into_sentences(self) -> Vec<String> {
        let sentence = |(text, mut jobs): (String, Vec<String>)| {
            jobs.dedup();
            let text = plimsoll_plan::one_line(&text);
            match jobs.as_slice() {
                [] => format!("the job file {text}"),
                some => format!("[{}] {text}", plimsoll_plan::one_line(&some.join(", "))),
            }
        };
        self.0.into_iter().map(sentence).collect()
    }
}
