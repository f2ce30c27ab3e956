//! Converts results of other tools to evidence. Stated figures are used unchanged, and missing
//! figures stay unknown. Evidence from only a result file has tier T3. It has a higher tier only if
//! Plimsoll observed the run.

pub mod fio;
pub mod table;
pub mod tool_result;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::foreign::MEASURE_NS_MIN;
use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::run::{
    Checks, ClassTotals, Driver, End, EndKind, Engine, Phase, PhaseKind, Run, SCHEMA_VERSION, Tier,
};
use plimsoll_plan::ResolvedPlan;

/// Reason why a result cannot be converted.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ForeignError(pub String);

/// Returns the evidence of a command whose figures are unknown. It contains only the run time.
#[must_use]
pub fn unfigured(name: &str, plan_text: &str, plan: ResolvedPlan, duration_ns: u64) -> Bundle {
    bundle(name, plan_text, plan, duration_ns)
}

/// Returns a bundle that contains one measured phase, but no figures.
fn bundle(name: &str, plan_text: &str, plan: ResolvedPlan, duration_ns: u64) -> Bundle {
    let mut plan = plan;
    plan.evidence.min_measure_ns = MEASURE_NS_MIN;
    let plan_sha256 = plan.sha256_hex().unwrap_or_default();
    Bundle {
        run: Run {
            schema_version: SCHEMA_VERSION,
            tool_version: String::new(),
            build: None,
            run_id: name.to_owned(),
            name: name.to_owned(),
            plan_sha256,
            driver: Driver::Foreign,
            tier: Tier::T3,
            started_unix_ns: 0,
            duration_ns,
            end: End { kind: EndKind::Completed, says: String::new() },
            experiment: None,
            ledger: None,
            signed_by: None,
            engine: Engine { closed_loop: true, ..Engine::default() },
            phases: vec![Phase {
                kind: PhaseKind::Measure,
                start_ns: 0,
                duration_ns,
                read_bytes: 0,
                written_bytes: 0,
                reached: true,
                note: String::new(),
                boundary_error_ns: None,
            }],
            classes: Vec::new(),
            instances: Vec::new(),
            counters: std::collections::BTreeMap::new(),
            checks: Checks::default(),
            events: Vec::new(),
            durability: None,
        },
        plan_text: plan_text.to_owned(),
        job_text: None,
        plan,
        environment: Environment::default(),
        series: Vec::new(),
        observed: Observed::default(),
        latency: std::collections::BTreeMap::new(),
        latency_spans: Vec::new(),
        seal_sha256: None,
    }
}

fn class(name: String, is_read: bool, instance: u32) -> ClassTotals {
    ClassTotals::empty(name, "transactional".into(), instance, is_read)
}
