//! The audit. Each rule is a pure function of the evidence, in a separate file.
//!
//! A rule has an identifier, a list of the claims that it affects, and a weight for each of these
//! claims. It also has the text that `plimsoll audit --explain` prints. Its outcome is pass, warn,
//! fail or unknown, together with the numbers that support it. A rule that does not apply to a run
//! returns no finding.

use plimsoll_evidence::Bundle;

use crate::claim::Claim;
use crate::finding::Finding;

pub(crate) mod balance;
pub mod before_steady;
pub mod best_of_many;
pub mod burst_credit;
pub mod bytes_balance;
pub mod cache_state;
pub mod cached_read;
pub mod check_failed;
pub mod clock_rate;
pub mod clock_stepped;
pub mod conditioned;
pub mod coordinated_omission;
pub mod cpu_frequency;
pub mod cpu_steal;
pub mod data_content;
pub mod data_reduced;
pub mod event_without_effect;
pub mod events;
pub(crate) mod evidence;
pub mod evidence_consistent;
pub mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod flush_left_out;
pub mod flush_lost;
pub mod generator_limit;
pub mod holes_read;
pub mod in_memory;
pub mod io_errors;
pub mod issuers_together;
mod latencies;
pub mod latency_floor;
pub mod link_exceeded;
pub mod littles_law;
pub mod load_not_reached;
pub mod log_read_back;
pub mod measured_too_short;
pub mod memory_pressure;
pub mod memory_target;
pub mod misaligned;
pub mod never_settled;
pub mod noisy_neighbour;
pub mod not_completed;
pub mod not_steady;
pub mod observation_gaps;
pub mod one_run_only;
pub mod operations_lost;
pub mod operations_missing;
pub mod pattern_other;
pub mod percentile_samples;
pub mod phase_boundaries;
pub mod pool_full;
pub mod raid_degraded;
pub mod rate_capped;
pub mod replay;
pub mod seeks_exceeded;
pub mod served_from_cache_below;
pub mod server_outage;
pub mod stands_between;
pub mod storage_unseen;
pub mod transfer_size;
mod two_modes;
pub mod volatile_cache_unflushed;
pub mod warm_up_short;
pub mod was_stopped;
pub mod working_set_small;
pub mod working_set_stated;
pub mod write_cache;
pub mod zero_data;

/// Influence of a rule on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A failure refutes the claim. If the outcome is unknown, the claim is not proven.
    Mandatory,
    /// A failure refutes the claim. An unknown outcome has no influence.
    Refuting,
    /// The finding is only reported.
    Advisory,
}

/// All claims about storage. A rule that is mandatory for each of them uses this list. The list
/// excludes the claim `in-memory`, which is about the host.
const ALL_OF_STORAGE: &[(Claim, Weight)] = &[
    (Claim::Requirement, Weight::Mandatory),
    (Claim::MediaRead, Weight::Mandatory),
    (Claim::CachedRead, Weight::Mandatory),
    (Claim::BurstWrite, Weight::Mandatory),
    (Claim::SustainedWrite, Weight::Mandatory),
    (Claim::DurableWrite, Weight::Mandatory),
    (Claim::TailLatency, Weight::Mandatory),
    (Claim::Comparative, Weight::Mandatory),
];

/// Audit rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Identifier, as in `verdict.json`.
    pub id: &'static str,
    /// Question that the rule answers, in one line.
    pub asks: &'static str,
    /// Explanation for `audit --explain`: what the rule means, how it works, and how to correct the
    /// run.
    pub explains: &'static str,
    /// Claims that the rule affects.
    pub bears_on: &'static [(Claim, Weight)],
    /// Judges the evidence; `None` if the rule does not apply to this run.
    pub check: fn(&Bundle) -> Option<Finding>,
}

impl Rule {
    /// Returns true if a failure of this rule refutes `claim`.
    pub fn refutes(&self, claim: Claim) -> bool {
        self.mandatory_for(claim) || self.bears_on.contains(&(claim, Weight::Refuting))
    }

    /// Returns true if this rule must pass to prove `claim`.
    pub fn mandatory_for(&self, claim: Claim) -> bool {
        self.bears_on.contains(&(claim, Weight::Mandatory))
    }

    /// Returns true if the rule affects `claim`.
    pub fn bears_on(&self, claim: Claim) -> bool {
        self.bears_on.iter().any(|(of, _)| *of == claim)
    }
}

/// Rules on the events of a plan. For a fleet, these rules judge the sum of all hosts.
pub(crate) const OF_EVENTS: [&Rule; 3] =
    [&events::RULE, &before_steady::RULE, &event_without_effect::RULE];

/// All rules. Findings of equal severity are reported in this order.
pub const ALL: &[Rule] = &[
    io_errors::RULE,
    events::RULE,
    before_steady::RULE,
    event_without_effect::RULE,
    server_outage::RULE,
    evidence_consistent::RULE,
    check_failed::RULE,
    log_read_back::RULE,
    not_completed::RULE,
    phase_boundaries::RULE,
    memory_target::RULE,
    in_memory::RULE,
    holes_read::RULE,
    zero_data::RULE,
    data_reduced::RULE,
    observation_gaps::RULE,
    bytes_balance::RULE,
    storage_unseen::RULE,
    stands_between::RULE,
    data_content::RULE,
    burst_credit::RULE,
    served_from_cache_below::RULE,
    cached_read::RULE,
    cache_state::RULE,
    never_settled::RULE,
    working_set_stated::RULE,
    working_set_small::RULE,
    operations_lost::RULE,
    operations_missing::RULE,
    pattern_other::RULE,
    transfer_size::RULE,
    littles_law::RULE,
    link_exceeded::RULE,
    latency_floor::RULE,
    seeks_exceeded::RULE,
    volatile_cache_unflushed::RULE,
    write_cache::RULE,
    flush_lost::RULE,
    flush_left_out::RULE,
    raid_degraded::RULE,
    issuers_together::RULE,
    was_stopped::RULE,
    clock_rate::RULE,
    clock_stepped::RULE,
    noisy_neighbour::RULE,
    cpu_steal::RULE,
    cpu_frequency::RULE,
    memory_pressure::RULE,
    generator_limit::RULE,
    load_not_reached::RULE,
    rate_capped::RULE,
    coordinated_omission::RULE,
    percentile_samples::RULE,
    measured_too_short::RULE,
    warm_up_short::RULE,
    conditioned::RULE,
    not_steady::RULE,
    pool_full::RULE,
    misaligned::RULE,
    one_run_only::RULE,
    best_of_many::RULE,
    replay::not_replayed::RULE,
    replay::other::RULE,
    replay::late::RULE,
    replay::left_out::RULE,
];

/// Identifiers of rules in earlier versions, each with its successor.
const RETIRED: [(&str, &str); 2] =
    [("page-cache-served", "bytes-balance"), ("write-back-left-out", "bytes-balance")];

/// Returns the rule with this identifier, or the successor of a retired rule.
pub fn find(id: &str) -> Option<&'static Rule> {
    let id = RETIRED.iter().find(|(old, _)| *old == id).map_or(id, |(_, now)| now);
    ALL.iter().find(|rule| rule.id == id)
}
