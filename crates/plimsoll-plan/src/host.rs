//! A plan as one host of a fleet carries it: what differs there, and what of it is run there.
//!
//! Points of a sweep, steps of a search and targets in turns are the plan's own, for all hosts. A host has the same of its own
//! plan, where that can be meant: what a point or a step is called has to be true of every host.

use sha2::{Digest, Sha256};

use crate::error::{PlanError, PlanErrors};
use crate::given::nearest_point;
use crate::knob::Knob;
use crate::overlay::{Change, overlay};
use crate::plan::Plan;
use crate::resolved::{Carries, Placement, ResolvedPlan, Workload};
use crate::share::Share;

/// What an experiment turns in its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// Whether the run is a point of a sweep.
    pub is_swept: bool,
    /// The load of a step, where the run is one of a search.
    pub load: Option<u64>,
}

impl Plan {
    /// The plan as an agent of a fleet carries it out: its share of it or the whole, with what differs on its host, random choices
    /// of its own, and without `[fleet]`. Where several changes name one field, the last counts. The storage system's own metrics are asked for by who coordinates: they
    /// rise by what all hosts do.
    ///
    /// # Errors
    /// Everything that is wrong with it then.
    pub fn on_host(&self, name: &str, labels: &[String]) -> Result<Self, PlanErrors> {
        let whole = self.resolve();
        let placement = whole.fleet.unwrap_or_default();
        let seed = Change::parse(&format!("seed={}", seed_on(name, whole.seed)));
        let seed = seed.map_err(|says| self.fault("seed", says))?;
        if placement.carries == Carries::Share {
            return self.share_of(name, &placement, seed);
        }
        let hosts = placement.hosts.iter().filter(|host| host.is_of(name, labels));
        let set = hosts.flat_map(|host| &host.set);
        let set = set.map(|(field, value)| Change::parse(&format!("{field}={value}")));
        let set = set.collect::<Result<Vec<_>, _>>();
        let set = set.map_err(|says| self.fault("fleet.host", says))?;
        self.without_fleet([vec![seed], set].concat())
    }

    /// The share of one of the agents that the plan names.
    fn share_of(
        &self,
        name: &str,
        placement: &Placement,
        seed: Change,
    ) -> Result<Self, PlanErrors> {
        let fault = |says| self.fault("fleet.carries", says);
        let at = placement.names.iter().position(|own| own == name);
        let at = at.ok_or_else(|| fault(format!("{name} is none of `names`, and has no share")))?;
        let share = Share { at, of: placement.names.len() };
        self.with_text(&share.text(self).map_err(fault)?)?.without_fleet(vec![seed])
    }

    fn fault(&self, field: &str, says: String) -> PlanErrors {
        let error = PlanError::new("", &(0..0), field.to_owned(), says, String::new());
        PlanErrors { source_name: self.source_name().to_owned(), errors: vec![error] }
    }

    /// The plan as a host carries it on which nothing differs.
    ///
    /// # Errors
    /// Everything that is wrong with it then.
    pub fn on_any_host(&self) -> Result<Self, PlanErrors> {
        self.without_fleet(Vec::new())
    }

    fn without_fleet(&self, mut changes: Vec<Change>) -> Result<Self, PlanErrors> {
        let resolved = self.resolve();
        let both = [
            ("fleet", resolved.fleet.is_some()),
            ("observe.metrics", !resolved.observe.metrics.is_empty()),
        ];
        let gone = both.iter().filter(|(_, is_there)| *is_there);
        changes.splice(0..0, gone.map(|(field, _)| Change::remove(field)));
        if changes.is_empty() {
            return Ok(self.clone());
        }
        self.with_text(&overlay(self.text(), self.source_name(), &changes)?)
    }

    /// What a host carries of its `own` plan where `part` of this one is run: the same target, point or step.
    ///
    /// # Errors
    /// A part that this plan does not give; a host on which a field differs that the part is called by, or that is turned.
    pub fn part_on(
        &self,
        part: &ResolvedPlan,
        own: &ResolvedPlan,
        turned: Turned,
    ) -> Result<ResolvedPlan, String> {
        if let Some(fields) = self.differs_from(part, turned.load.as_slice()) {
            return Err(format!("what is to be run is not the plan: it has another {fields}"));
        }
        let whole = self.resolve();
        if (ResolvedPlan { seed: whole.seed, ..own.clone() }) == whole {
            return Ok(ResolvedPlan { seed: own.seed, ..part.clone() });
        }
        let same = Part { whole: &whole, part, turned };
        match same.of(&whole)? == *part {
            true => same.of(own),
            false => Err("what is to be run is no target, point or step of the plan".to_owned()),
        }
    }
}

/// The seed of a host: hosts that make the same random choices would send their I/Os at the same instants, in bursts that
/// clients which do not know of each other never make. It comes of the plan's seed and the host's name alone, so that a
/// host's choices are the same in each run and in a fleet of any size.
fn seed_on(host: &str, seed: u64) -> u64 {
    let digest = Sha256::digest(host.as_bytes());
    let own = digest.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    // A whole number of TOML is below 2^63.
    seed ^ own >> 2
}

/// How a part comes of a whole plan.
struct Part<'a> {
    whole: &'a ResolvedPlan,
    part: &'a ResolvedPlan,
    turned: Turned,
}

impl Part<'_> {
    /// The same part of another plan.
    fn of(&self, plan: &ResolvedPlan) -> Result<ResolvedPlan, String> {
        let of_target = self.target(plan)?;
        let of_point = self.point(of_target)?;
        self.step(of_point)
    }

    fn target(&self, plan: &ResolvedPlan) -> Result<ResolvedPlan, String> {
        let ([_, _, ..], [one]) = (&self.whole.targets[..], &self.part.targets[..]) else {
            return Ok(plan.clone());
        };
        let at = self.whole.targets.iter().position(|target| target == one);
        let names = |plan: &ResolvedPlan| -> Vec<String> {
            plan.targets.iter().map(|target| target.name.clone()).collect()
        };
        let same = names(plan) == names(self.whole);
        let of_target = at.filter(|_| same).and_then(|at| plan.for_target(at));
        of_target.ok_or_else(|| "it has other targets there, which are run in turns".to_owned())
    }

    fn point(&self, plan: ResolvedPlan) -> Result<ResolvedPlan, String> {
        let Workload::Matrix(whole) = &self.whole.workload else { return Ok(plan) };
        let is_one_of_several = self.part.point_count() == 1 && whole.point_count() > 1;
        if !is_one_of_several && !self.turned.is_swept {
            return Ok(plan);
        }
        let axes = plan.workload.matrix().map(|matrix| &matrix.axes);
        if axes != Some(&whole.axes) {
            return Err(
                "it has other sizes, reads, patterns or queue depths there, and the points of a sweep are called by \
                 them"
                .to_owned(),
            );
        }
        nearest_point(&plan, self.part).ok_or_else(|| "it has no such point there".to_owned())
    }

    fn step(&self, plan: ResolvedPlan) -> Result<ResolvedPlan, String> {
        let knob = Knob::of(self.part);
        let is_left = self.whole.workload.mailbox().is_some_and(|store| store.threads_auto);
        let load = match (self.turned.load, &knob) {
            (None, Ok(knob)) if is_left => Some(knob.load(self.part)),
            (load, _) => load,
        };
        let Some(load) = load else { return Ok(plan) };
        let knob = knob?;
        if Knob::of(&plan) != Ok(knob) || knob.settings(&plan) != knob.settings(self.whole) {
            let says = format!("it has another {} there, which the search turns", knob.load_name());
            return Err(says);
        }
        if plan.requirement != self.whole.requirement {
            return Err("it requires something else there, and a search asks of all hosts so many times what the plan \
                        requires"
                .to_owned());
        }
        Ok(knob.turned(&plan, load))
    }
}

#[cfg(test)]
mod tests;
