//! Notes on options that could not be converted. If several jobs have the same note, it appears
//! only once.

/// Notes, each with the names of the jobs to which it applies.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    /// Adds a note about a job.
    pub(super) fn add(&mut self, job: &str, text: String) {
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, jobs)) => jobs.push(job.to_owned()),
            None => self.0.push((text, vec![job.to_owned()])),
        }
    }

    /// Adds a note about the whole job file.
    pub(super) fn general(&mut self, text: &str) {
        self.0.push((text.to_owned(), Vec::new()));
    }

    /// Returns a sentence for each note.
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
