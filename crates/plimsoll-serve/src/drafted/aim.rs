//! What a plan is started for: its runs, or its load line.

use crate::answer::Problem;

/// The word of a form for [`Aim::LoadLine`].
const LOAD_LINE: &str = "load-line";

/// What a plan is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Its runs, as it asks for them.
    Runs,
    /// The search for its load line.
    LoadLine,
}

impl Aim {
    /// As a form or a query says it.
    ///
    /// # Errors
    /// Another word.
    pub fn of(word: Option<&str>) -> Result<Self, Problem> {
        match word.map_or("", str::trim) {
            "" => Ok(Self::Runs),
            LOAD_LINE => Ok(Self::LoadLine),
            _ => Err(Problem::wrong(format!("find: there is {LOAD_LINE}, or nothing"))),
        }
    }
}
