//! Synthetic bundles of an I/O matrix whose operations overlap the end of the measured phase.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::latency::histogram;
use plimsoll_evidence::run::{ClassTotals, PhaseKind};
use plimsoll_plan::Plan;

use crate::common::{Chance, QUICK, bundle};

/// Length of the measured phase. It is not a multiple of 1 ms.
const MEASURED_NS: u64 = 2_345_678_901;

/// Creates the bundle of a stream. `stream` contains the keys of its plan section. A closed loop
/// has `slots` operations in flight; if `slots` is `None`, the operations start at random times.
pub fn matrix(stream: &str, slots: Option<u64>) -> Bundle {
    let plan_text = format!(
        "version = 1\nname = \"matrix\"\ndemonstration = true\n[target]\npath = \"/srv/x\"\n\
         [[workload.matrix]]\nname = \"s\"\nfile_size = \"64MiB\"\n{stream}\n[phases]\nmeasure = \
         \"3s\"\nwarm_up = \"0s\"\n[evidence]\nmin_measure = \"1s\"\n"
    );
    let plan = match Plan::parse(&plan_text, "matrix.toml") {
        Ok(plan) => plan.resolve(),
        Err(errors) => panic!("the plan does not parse: {errors}"),
    };
    let of = |is_read| {
        let stream = &plan.workload.matrix().unwrap().streams[0];
        let sizes = match is_read || stream.write_sizes.is_empty() {
            true => &stream.sizes,
            false => &stream.write_sizes,
        };
        (stream.read_percent / 100.0, sizes[0].size_bytes)
    };
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut classes = [true, false].map(|is_read| {
        let name = if is_read { "s.read" } else { "s.write" };
        let totals = ClassTotals::empty(name.into(), "transactional".into(), 0, is_read);
        (totals, histogram(), histogram())
    });
    let starts = slots.unwrap_or(1);
    for _ in 0..starts {
        let mut at_ns = 0;
        while at_ns < MEASURED_NS {
            let service_ns = 18_000 + (-(1.0 - chance.share()).ln() * 400_000.0) as u64;
            let waits_ns = if slots.is_none() { service_ns / 2 } else { 900 };
            let latency_ns = service_ns + waits_ns;
            let (share, _) = of(true);
            let is_read = chance.share() < share;
            let (totals, latencies, services) = &mut classes[usize::from(!is_read)];
            totals.count += 1;
            totals.size_bytes += of(is_read).1;
            if at_ns + latency_ns > MEASURED_NS {
                totals.drained += 1;
                totals.drained_bytes += of(is_read).1;
            }
            totals.latency_ns_sum += latency_ns;
            totals.latency_ns_max = totals.latency_ns_max.max(latency_ns);
            totals.service_ns_sum += service_ns;
            totals.service_ns_max = totals.service_ns_max.max(service_ns);
            latencies.saturating_record(latency_ns);
            services.saturating_record(service_ns);
            at_ns += if slots.is_none() { 330_000 } else { latency_ns + 700 };
        }
    }
    let mut made = bundle(QUICK);
    (made.plan, made.plan_text) = (plan, plan_text);
    made.series.clear();
    made.run.classes.clear();
    made.latency = BTreeMap::new();
    made.observed.devices.clear();
    for phase in made.run.phases.iter_mut().filter(|phase| phase.kind == PhaseKind::Measure) {
        phase.duration_ns = MEASURED_NS;
    }
    for (totals, latencies, services) in classes {
        if totals.count > 0 {
            made.latency.insert(format!("{}.service", totals.name), services);
            made.latency.insert(totals.name.clone(), latencies);
            made.run.classes.push(totals);
        }
    }
    made
}
