//! Checks fields that must agree: the driver, the engine, the target and the end of the run.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind, PhaseKind, Tier};
use plimsoll_evidence::series::Data;
use plimsoll_plan::TargetKind;

use super::CrossChecks;

/// Kinds of engines that exist only in Plimsoll. Other tools also have engines named `io_uring`,
/// `null` and `nfs`.
const OWN_ENGINES: [&str; 3] = ["threads", "s3", "model"];

pub(super) fn check(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    driver(bundle, cross_checks);
    end(bundle, cross_checks);
    checks(bundle, cross_checks);
}

fn word(driver: Driver) -> &'static str {
    match driver {
        Driver::Real => "Plimsoll on real storage",
        Driver::Model => "a model",
        Driver::Foreign => "another tool",
    }
}

fn driver(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let run = &bundle.run;
    let kind = run.engine.kind.as_str();
    let foreign = run.driver == Driver::Foreign;
    cross_checks.require(foreign == (run.tier != Tier::T1), || {
        format!("the tier {:?} contradicts the driver, {}", run.tier, word(run.driver))
    });
    cross_checks.require(!foreign || !OWN_ENGINES.contains(&kind), || {
        format!(
            "the bundle names another tool as the source of the figures, but its engine is {kind}"
        )
    });
    let by_ours = bundle.series.iter().any(|row| matches!(row.data, Data::Class { .. }));
    cross_checks.require(!foreign || !by_ours, || {
        "the bundle names another tool as the source of the figures, but its series contains \
         figures for each interval, which only Plimsoll measures"
            .to_owned()
    });
    let modelled = kind == "model" || bundle.observed.inside.is_some();
    cross_checks.require(foreign || modelled == (run.driver == Driver::Model), || {
        format!("the bundle names the driver {}, but its engine is {kind}", word(run.driver))
    });
    if foreign {
        return;
    }
    let target = |is: fn(&TargetKind) -> bool| bundle.plan.targets.iter().any(|t| is(&t.kind));
    let model = target(|kind| matches!(kind, TargetKind::Model { .. }));
    cross_checks.require(model == (run.driver == Driver::Model), || {
        format!(
            "the bundle names the driver {}, but the plan's target requires a different driver",
            word(run.driver)
        )
    });
    let null = target(|kind| matches!(kind, TargetKind::Null));
    cross_checks.require(null == (kind == "null") || run.classes.is_empty(), || {
        format!(
            "the bundle names the engine {kind}, but the plan's target requires a different \
             engine (only one of the two is the engine `null`)"
        )
    });
    cross_checks.require(run.name == bundle.plan.name, || {
        format!(
            "the run names the plan {:?}, but the bundle contains the plan {:?}",
            run.name, bundle.plan.name
        )
    });
}

fn end(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let run = &bundle.run;
    let completed = run.end.kind == EndKind::Completed;
    cross_checks.require(!completed || run.end.says.is_empty(), || {
        format!("the run is marked as completed, but it ended early: {}", run.end.says)
    });
    cross_checks.require(completed || !run.end.says.is_empty(), || {
        format!("the run is marked as {}, but there is no reason for this end", run.end.kind.word())
    });
    let measured = run.phases.iter().filter(|phase| phase.kind == PhaseKind::Measure).count();
    cross_checks
        .require(measured <= 1, || format!("{measured} phases are marked as the measurement"));
    cross_checks.require(!completed || measured == 1, || {
        "the run is marked as completed, but has no measured phase".to_owned()
    });
}

fn checks(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let run = &bundle.run;
    let named = run.checks.damage.len() as u64;
    cross_checks.require(run.checks.errors >= named, || {
        format!(
            "the bundle counts {} verification errors, but lists {named} damaged places",
            run.checks.errors
        )
    });
    let verified = run.phases.iter().find(|phase| phase.kind == PhaseKind::Verify);
    cross_checks.require(run.checks.pages_checked.is_none() || verified.is_some(), || {
        "the bundle counts checked pages, but has no phase that checks pages".to_owned()
    });
}
