//! Converts a part of a run to a separate run, so that checks and rules can judge it separately.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::latency::histogram;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_evidence::series::Data;
use plimsoll_plan::{Stream, Workload};

use super::Part;
use crate::figures::measured;

/// Returns a copy of a run: its measured phase is only `part` of the original, and it contains only
/// the streams that `keeps` selects. Operations in flight at the end of the run do not belong to
/// any part.
pub(crate) fn slice(bundle: &Bundle, part: Part, keeps: impl Fn(&Stream) -> bool) -> Bundle {
    let mut own = bundle.clone();
    let numbers = keep_streams(&mut own, keeps);
    let index = measured(bundle).and_then(|measure| {
        bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure))
    });
    let Some(index) = index else { return own };
    let phase = &mut own.run.phases[index];
    let boundary_error_ns = phase.boundary_error_ns;
    (phase.start_ns, phase.duration_ns) = (part.from_ns, part.duration_ns());
    phase.boundary_error_ns = boundary_error_ns;
    let inside = |start_ns: u64, duration_ns: u64| {
        (part.from_ns..part.to_ns).contains(&(start_ns.saturating_add(duration_ns / 2)))
    };
    own.series.retain(|row| row.phase as usize != index || inside(row.start_ns, row.duration_ns));
    own.latency_spans.retain(|span| inside(span.start_ns, span.duration_ns));
    own.run.classes.retain(|class| numbers.contains_key(&class.instance));
    own.latency.clear();
    for class in &mut own.run.classes {
        let rows = own.series.iter().filter(|row| row.phase as usize == index);
        let named = rows.filter(|row| row.name == class.name);
        *class = named.fold(empty(class), |sums, row| add(sums, row.data));
        class.service_ns_sum = class.latency_ns_sum;
        class.service_ns_max = class.latency_ns_max;
        let mut merged = histogram();
        for span in own.latency_spans.iter().filter(|span| span.tag == class.name) {
            span.histogram.add_to(&mut merged);
        }
        own.latency.insert(class.name.clone(), merged);
        class.instance = numbers[&class.instance];
    }
    own
}

/// Removes the streams that are not selected from the plan and the instances. Returns the new
/// numbers of the remaining instances.
fn keep_streams(own: &mut Bundle, keeps: impl Fn(&Stream) -> bool) -> BTreeMap<u32, u32> {
    let Workload::Matrix(matrix) = &mut own.plan.workload else {
        let instances = own.run.classes.iter().map(|class| class.instance);
        return instances.map(|instance| (instance, instance)).collect();
    };
    let kept: Vec<bool> = matrix.streams.iter().map(keeps).collect();
    let is_kept = |at: usize| kept.get(at).copied().unwrap_or(true);
    let mut at = 0;
    matrix.streams.retain(|_| (is_kept(at), at += 1).0);
    own.run.engine.closed_loop = !matrix.streams.iter().all(|stream| stream.arrival.is_open());
    let numbers =
        (0..kept.len() as u32).filter(|number| is_kept(*number as usize)).zip(0..).collect();
    let mut at = 0;
    own.run.instances.retain(|_| (is_kept(at), at += 1).0);
    numbers
}

fn empty(class: &ClassTotals) -> ClassTotals {
    let ClassTotals { name, group, instance, is_read, .. } = class.clone();
    ClassTotals {
        abandoned: Some(0),
        never_started: Some(0),
        ..ClassTotals::empty(name, group, instance, is_read)
    }
}

fn add(sums: ClassTotals, data: Data) -> ClassTotals {
    let Data::Class { count, sum_ns, bytes, max_ns } = data else { return sums };
    ClassTotals {
        count: sums.count.saturating_add(count),
        size_bytes: sums.size_bytes.saturating_add(bytes),
        latency_ns_sum: sums.latency_ns_sum.saturating_add(sum_ns),
        latency_ns_max: sums.latency_ns_max.max(max_ns),
        ..sums
    }
}
