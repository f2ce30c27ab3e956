//! Derives the plan that one host of a fleet runs. Its fields may differ from the fleet's plan, and
//! it may contain only a part of that plan.
//!
//! A part is a point of a sweep, a step of a search, or one of several targets. The fleet's plan
//! defines the parts. Each host derives the same part from its own plan. An error occurs if the
//! label of the point or step would be wrong on this host.

use sha2::{Digest, Sha256};

use crate::error::{PlanError, PlanErrors};
use crate::knob::Knob;
use crate::overlay::{Change, overlay};
use crate::plan::Plan;
use crate::plan_match::nearest_point;
use crate::resolved::{Carries, Placement, ResolvedPlan, Workload};
use crate::share::Share;

/// The values that a sweep or a search varies in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariedValues {
    /// True if the run is a point of a sweep.
    pub is_swept: bool,
    /// Load of the run, if the run is a step of a search.
    pub load: Option<u64>,
}

impl Plan {
    /// Returns the plan for one agent of a fleet. The result is the whole plan or the agent's share
    /// of it. It contains no `[fleet]` section, but the agent's own fields and random seed. If
    /// several changes set the same field, the last change applies. The result contains no metrics
    /// endpoints: the coordinator polls them, because the metrics include the I/O of all hosts.
    ///
    /// # Errors
    /// The resulting plan is not valid. The error lists all faults of the plan.
    pub fn on_host(&self, name: &str, labels: &[String]) -> Result<Self, PlanErrors> {
        let whole = self.resolve();
        let placement = whole.fleet.unwrap_or_default();
        let seed = Change::parse(&format!("seed={}", host_seed(name, whole.seed)));
        let seed = seed.map_err(|says| self.fault("seed", says))?;
        if placement.carries == Carries::Share {
            return self.share_of(name, &placement, seed);
        }
        let hosts = placement.hosts.iter().filter(|host| host.applies_to(name, labels));
        let set = hosts.flat_map(|host| &host.set);
        let set = set.map(|(field, value)| Change::parse(&format!("{field}={value}")));
        let set = set.collect::<Result<Vec<_>, _>>();
        let set = set.map_err(|says| self.fault("fleet.host", says))?;
        self.without_fleet([vec![seed], set].concat())
    }

    /// Returns the share of an agent. The plan must list the agent in `names`.
    fn share_of(
        &self,
        name: &str,
        placement: &Placement,
        seed: Change,
    ) -> Result<Self, PlanErrors> {
        let fault = |says| self.fault("fleet.carries", says);
        let at = placement.names.iter().position(|own| own == name);
        let at = at.ok_or_else(|| {
            fault(format!("the agent {name} is not in `names`, so it has no share"))
        })?;
        let share = Share { at, of: placement.names.len() };
        self.with_text(&share.text(self).map_err(fault)?)?.without_fleet(vec![seed])
    }

    fn fault(&self, field: &str, says: String) -> PlanErrors {
        let error = PlanError::new("", &(0..0), field.to_owned(), says, String::new());
        PlanErrors { source_name: self.source_name().to_owned(), errors: vec![error] }
    }

    /// Returns the plan for a host that runs the fleet's plan without changes.
    ///
    /// # Errors
    /// The resulting plan is not valid. The error lists all faults of the plan.
    pub fn without_host_changes(&self) -> Result<Self, PlanErrors> {
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

    /// Returns the part of a host's plan (`own`) that corresponds to `part`, which is a part of
    /// this plan. Both parts have the same target, point or step.
    ///
    /// # Errors
    /// This plan does not contain `part`, or the host changes a field that the run varies, or the
    /// host changes a field that is part of the label.
    pub fn part_of_host(
        &self,
        part: &ResolvedPlan,
        own: &ResolvedPlan,
        turned: VariedValues,
    ) -> Result<ResolvedPlan, String> {
        if let Some(fields) = self.differs_from(part, turned.load.as_slice()) {
            return Err(format!("the run does not match the plan; these fields differ: {fields}"));
        }
        let whole = self.resolve();
        if (ResolvedPlan { seed: whole.seed, ..own.clone() }) == whole {
            return Ok(ResolvedPlan { seed: own.seed, ..part.clone() });
        }
        let same = Part { whole: &whole, part, turned };
        match same.of(&whole)? == *part {
            true => same.of(own),
            false => {
                Err("the run does not correspond to any target, point or step of the plan"
                    .to_owned())
            }
        }
    }
}

/// Returns a host's random seed. If hosts had equal seeds, they would send their I/Os at the same
/// times, in bursts that independent clients never cause. The seed depends only on the plan's seed
/// and the host's name. A host therefore makes the same choices in each run and in any fleet.
fn host_seed(host: &str, seed: u64) -> u64 {
    let digest = Sha256::digest(host.as_bytes());
    let own = digest.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    // TOML integers are below 2^63.
    seed ^ own >> 2
}

/// A part of the fleet's plan, from which the corresponding part of another plan is derived.
struct Part<'a> {
    whole: &'a ResolvedPlan,
    part: &'a ResolvedPlan,
    turned: VariedValues,
}

impl Part<'_> {
    /// Returns the part of another plan that corresponds to this part.
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
        of_target.ok_or_else(|| {
            "the targets differ on that host, but all hosts must run the same targets one after \
             another"
                .to_owned()
        })
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
                "sizes, reads, patterns or queue depths differ on that host, but in a sweep they \
                 must be the same on all hosts"
                    .to_owned(),
            );
        }
        nearest_point(&plan, self.part)
            .ok_or_else(|| "the sweep on that host does not contain this point".to_owned())
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
            let says = format!(
                "{} differs on that host, but the search must vary it on all hosts",
                knob.load_name()
            );
            return Err(says);
        }
        if plan.requirement != self.whole.requirement {
            return Err(
                "the requirement differs on that host, but a search multiplies the plan's \
                 requirement by the number of hosts"
                    .to_owned(),
            );
        }
        Ok(knob.with_load(&plan, load))
    }
}

#[cfg(test)]
mod tests;
