//! Goal of a run: the plan as written, or its load line.

use crate::response::Problem;

/// The word of a form for [`RunGoal::LoadLine`].
const LOAD_LINE: &str = "load-line";

/// Goal of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunGoal {
    /// The runs that the plan requests.
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
