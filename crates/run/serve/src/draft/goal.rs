//! Goal of a run: either execute the plan as written, or find its load line.

use crate::response::Problem;

/// Form value of [`RunGoal::LoadLine`].
const LOAD_LINE: &str = "load-line";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunGoal {
    /// Execute the runs that the plan requests.
    Runs,
    /// Search for the plan's load line.
    LoadLine,
}

impl RunGoal {
    /// Parses the value of a form or query.
    ///
    /// # Errors
    /// The value is unknown.
    pub fn parse(word: Option<&str>) -> Result<Self, Problem> {
        match word.map_or("", str::trim) {
            "" => Ok(Self::Runs),
            LOAD_LINE => Ok(Self::LoadLine),
            _ => Err(Problem::bad_request(format!("find: the value must be {LOAD_LINE} or empty"))),
        }
    }
}
