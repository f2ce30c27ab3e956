use plimsoll_plan::LimitOrigin;

use plimsoll_evidence::series::Data;

use super::*;
use crate::rules::fixtures::{self, SECOND_NS};

fn avg_of_reads(bundle: &Bundle, limit_ns: u64) -> Check {
    let (class, statistic) = (LatencyClass::Read, LatencyStatistic::Avg);
    let limit = LatencyLimit::new(class, statistic, limit_ns, LimitOrigin::Plan);
    latency(bundle, 15 * SECOND_NS, &limit, true)
}

#[test]
fn the_interval_of_a_mean_latency_contains_the_mean_of_all_operations() {
    let mut bundle = fixtures::reads();
    // Two of five seconds have ten times more reads, and they are slow.
    let of = |second: u64| if second % 5 < 2 { (1_000, 530_000_000) } else { (100, 30_000_000) };
    let (mut count, mut sum_ns) = (0, 0);
    for row in &mut bundle.series {
        let second = row.start_ns / SECOND_NS;
        let Data::Class { count: rows, sum_ns: sums, .. } = &mut row.data else { continue };
        let (ops, mean_ns) = of(second);
        (*rows, *sums) = (ops, ops * mean_ns);
        (count, sum_ns) = (count + ops, sum_ns + ops * mean_ns);
    }
    let class = &mut bundle.run.classes[0];
    (class.count, class.latency_ns_sum) = (count, sum_ns);
    let mean_ns = (sum_ns / count) as f64;
    let check = avg_of_reads(&bundle, 300_000_000);
    let [low, high] = check.interval.unwrap();
    assert!(low < mean_ns && mean_ns < high, "{mean_ns} {low} {high}");
    assert_eq!(check.ok, Some(false), "{}", check.note);
    assert_eq!(avg_of_reads(&bundle, 600_000_000).ok, Some(true));
}

/// Returns a run of an open loop with `count` reads of 1 ms at equal intervals. `drained` of them
/// completed after the end.
fn open_loop_run(stream: &str, count: u64, drained: u64) -> Bundle {
    let mut bundle = fixtures::reads_with("queue_depth = 8", stream);
    bundle.run.engine.closed_loop = false;
    fixtures::rates(&mut bundle, |_| ((count - drained) / (fixtures::SECONDS * 10), 1_000_000));
    let class = &mut bundle.run.classes[0];
    (class.count, class.drained) = (count, drained);
    (class.size_bytes, class.drained_bytes) = (count * 4096, drained * 4096);
    class.latency_ns_max = 1_000_000;
    bundle
}

#[test]
fn an_open_loop_fails_only_if_enough_operations_were_due() {
    let poisson = "arrival = \"poisson\"\nrate = 1000";
    // 1.7 % fewer operations arrived than on average, and the storage completed all of them.
    let few = open_loop_run(poisson, 59_000, 0);
    let check = rate::iops(&few, 1_000.0);
    assert_eq!(check.ok, None);
    assert!(check.note.contains("were due"), "{}", check.note);
    assert_eq!(rate::iops(&few, 970.0).ok, Some(true));
    // The same number completed in time, but more operations were waiting at the end.
    assert_eq!(rate::iops(&open_loop_run(poisson, 61_200, 2_400), 1_000.0).ok, Some(false));
    // So few arrivals cannot be chance: the generator did not issue the operations.
    assert_eq!(rate::iops(&open_loop_run(poisson, 57_000, 0), 970.0).ok, Some(false));
    let constant = "arrival = \"constant\"\nrate = 1000";
    assert_eq!(rate::iops(&open_loop_run(constant, 58_800, 0), 1_000.0).ok, Some(false));
    assert_eq!(rate::iops(&open_loop_run(constant, 60_000, 0), 1_200.0).ok, None);
    let ramp = "arrival = \"constant\"\nrate = 1200\nramp = \"60s\"";
    assert_eq!(rate::iops(&open_loop_run(ramp, 54_000, 0), 1_000.0).ok, None);
}

#[test]
fn the_bandwidth_of_a_saturated_open_loop_has_no_slack() {
    // 1,020 operations per second were requested, and the storage completed 990.
    let saturated = open_loop_run("arrival = \"constant\"\nrate = 1020", 61_200, 1_800);
    assert_eq!(rate::iops(&saturated, 995.0).ok, Some(false));
    assert_eq!(rate::bandwidth(&saturated, 995 * 4096).ok, Some(false));
    assert_eq!(rate::bandwidth(&saturated, 990 * 4096).ok, Some(true));
}

#[test]
fn a_closed_loop_at_its_rate_cap_shows_nothing_about_a_higher_limit() {
    let mut bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 8\nrate = 10000");
    let check = rate::iops(&bundle, 12_000.0);
    assert_eq!(check.ok, None, "{}", check.note);
    // A storage that does not even reach the cap fails.
    fixtures::rates(&mut bundle, |tenth| (900 + tenth * 7 % 11, fixtures::LATENCY_NS));
    bundle.run.classes[0].count = 9_000 * fixtures::SECONDS;
    assert_eq!(rate::iops(&bundle, 12_000.0).ok, Some(false));
}

#[test]
fn an_undecided_limit_with_an_interval_names_the_interval() {
    let mut bundle = fixtures::reads();
    fixtures::rates(&mut bundle, |tenth| (900 + tenth * 37 % 201, fixtures::LATENCY_NS));
    let rate = figures::rate_per_s(&bundle, Pick::Data).unwrap();
    let check = rate::iops(&bundle, rate - 1.0);
    assert!(check.ok.is_none() && check.interval.is_some(), "{check:?}");
    assert!(check.note.starts_with("the confidence interval includes"), "{}", check.note);
}
