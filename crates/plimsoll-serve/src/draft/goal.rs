//! What a plan is started for: its runs, or its load line.

use crate::response::Problem;

/// The word of a form for [`RunGoal::LoadLine`].
const LOAD_LINE: &str = "load-line";

/// What a plan is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunGoal {
    /// Its runs, as it asks for them.
    Runs,
    /// The search for its load line.
    LoadLine,
}

impl RunGoal {
    /// As a form or a query says it.
    ///
    /// # Errors
    /// Another word.
    pub fn parse(word: Option<&str>) -> Result<Self, Problem> {
        match word.map_or("", str::trim) {
            "" => Ok(Self::Runs),
            LOAD_LINE => Ok(Self::LoadLine),
            _ => Err(Problem::bad_request(format!("find: there is {LOAD_LINE}, or nothing"))),
        }
    }
}
