//! Test cases and their results. One number, the seed, determines the storage, the load and the
//! truth of a case.

use crate::support::CommandOutput;
use crate::support::draw::Draw;
use crate::truth::Truth;
use crate::wrong::Mistake;
use crate::{evidence, foreign, modelled, real, tricks};

/// Selects the cases that a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    Everything,
    /// Cases on real storage.
    Real,
    /// Cases that use models, results of other tools, or modified evidence.
    Model,
    /// Tricks on real storage, and their honest twins: the same set-ups without the trick.
    Tricks,
}

/// A case that can be executed.
pub struct Case {
    pub seed: u64,
    /// Name of the case's class in the tables.
    pub class: &'static str,
    pub carry_out: Box<dyn FnOnce(u64) -> CaseResult>,
}

impl Case {
    /// Returns the case that a seed determines; `None` if `only` excludes it.
    pub fn of(seed: u64, only: Only) -> Option<Self> {
        let mut draw = Draw::of(seed);
        // Cases on real storage take seconds; other cases take fractions of a second.
        let is_real = draw.once_in(12);
        let is_trick = is_real && draw.once_in(3);
        match (only, is_real, is_trick) {
            (Only::Real, false, _) | (Only::Model, true, _) | (Only::Tricks, _, false) => {
                return None;
            }
            _ => {}
        }
        Some(if is_trick {
            tricks::case(seed, &mut draw)
        } else if is_real {
            real::case(seed, &mut draw)
        } else {
            match draw.below(20) {
                0..12 => modelled::case(seed, &mut draw),
                12..18 => foreign::case(seed, &mut draw),
                _ => evidence::case(seed, &mut draw),
            }
        })
    }

    /// Returns true if the case takes half a minute or longer.
    pub fn is_long(seed: u64) -> bool {
        let mut draw = Draw::of(seed);
        let is_real = draw.once_in(12);
        let is_trick = is_real && draw.once_in(3);
        if is_trick { tricks::is_long(&mut draw) } else { is_real && real::is_long(&mut draw) }
    }
}

/// Result of a case.
pub struct CaseResult {
    /// One word that states how the case ended.
    pub ending: String,
    pub honest: bool,
    pub found: Vec<Mistake>,
    /// Description of the case.
    pub text: String,
}

impl CaseResult {
    /// Creates the result of a case that ran a command.
    pub fn of(truth: &Truth, ran: Option<&CommandOutput>, found: Vec<Mistake>, text: &str) -> Self {
        let verdict =
            ran.and_then(|ran| serde_json::from_str::<serde_json::Value>(&ran.stdout).ok());
        let word = verdict.and_then(|verdict| {
            let own = verdict["verdict"].as_str().or(verdict["audit"]["verdict"].as_str());
            own.map(str::to_owned)
        });
        let ending = word.unwrap_or_else(|| match ran {
            Some(ran) if ran.code == 2 => "refused".to_owned(),
            Some(ran) => format!("exit {}", ran.code),
            None => "hung".to_owned(),
        });
        let refused = ran.filter(|ran| ran.code == 2).map_or("", |ran| ran.stderr.as_str());
        Self { ending, honest: truth.honest, found, text: format!("{text}{refused}") }
    }

    /// Creates the result of a case that this machine cannot run.
    pub fn not_made(why: String) -> Self {
        Self { ending: "not made".to_owned(), honest: false, found: Vec::new(), text: why }
    }

    /// Returns the same result with a different `ending`.
    #[must_use]
    pub fn named(mut self, ending: &str) -> Self {
        self.ending = ending.to_owned();
        self
    }
}
