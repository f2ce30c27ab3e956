//! The line that a writer has appended, and the earlier lines.

use std::collections::BTreeSet;

use super::{Event, HeadState, Link, Question, Start, TornTail, position};
use crate::run::LedgerPosition;

/// The line that was appended, and the lines before it.
pub(super) struct AppendedLine {
    pub own: Link,
    pub earlier: Vec<Link>,
    pub torn: Option<TornTail>,
}

impl AppendedLine {
    pub fn position_of(&self, start: &Start<'_>) -> LedgerPosition {
        let first = self.earlier.first().unwrap_or(&self.own);
        let same_plan = |plan: &str, _: Option<&Question>| plan == start.plan_sha256;
        let alike = |plan: &str, question: Option<&Question>| {
            plan == start.plan_sha256
                || start.question.as_ref().zip(question).is_some_and(|(a, b)| a.is_alike(b))
        };
        // Runs of the same experiment are not counted as similar runs, because they are reported
        // together with this run.
        let (of_plan, given_up) = self.count_earlier(None, same_plan);
        let (of_question, alike_given_up) = self.count_earlier(start.experiment, alike);
        let (otherwise, _) = self.count_earlier(start.experiment, |_, question| {
            let requested = start.question.as_ref().zip(question);
            requested.is_some_and(|(own, earlier)| own.has_other_requirement(earlier))
        });
        LedgerPosition {
            position: self.own.entry.position,
            previous_sha256: self.own.entry.previous_sha256.clone(),
            earlier_runs_of_plan: of_plan,
            earlier_runs_not_completed: given_up,
            earlier_runs_alike: Some(of_question),
            earlier_alike_not_completed: Some(alike_given_up),
            earlier_required_otherwise: Some(otherwise),
            began_unix_ns: Some(first.entry.unix_ns),
            first_sha256: Some(first.sha256.clone()),
            line_sha256: Some(self.own.sha256.clone()),
            bundles_not_held: Some(position::count_missing(start.known, &self.earlier)),
            head_differed: match &self.own.entry.head {
                Some(HeadState::Differed(says)) => Some(says.clone()),
                _ => None,
            },
        }
    }

    /// Counts earlier runs. `takes` decides by the plan hash and the question of a run whether the
    /// run is counted. Runs of the experiment `but_of` are not counted. Also returns how many of
    /// the counted runs did not complete.
    fn count_earlier(
        &self,
        but_of: Option<&str>,
        takes: impl Fn(&str, Option<&Question>) -> bool,
    ) -> (u64, u64) {
        let completed: BTreeSet<&str> = self
            .earlier
            .iter()
            .filter(
                |link| matches!(&link.entry.event, Event::Ended { end, .. } if end == "completed"),
            )
            .map(|link| link.entry.run_id.as_str())
            .collect();
        let taken = self.earlier.iter().filter(|link| match &link.entry.event {
            Event::Started { plan_sha256, question, experiment, .. } => {
                takes(plan_sha256, question.as_ref())
                    && (but_of.is_none() || experiment.as_deref() != but_of)
            }
            _ => false,
        });
        let (mut all, mut given_up) = (0, 0);
        for link in taken {
            all += 1;
            given_up += u64::from(!completed.contains(link.entry.run_id.as_str()));
        }
        (all, given_up)
    }
}
