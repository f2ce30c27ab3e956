//! Checks whether a cache between this host and the media answered the reads: the cache of an
//! array, a controller or a hypervisor, or the page cache under a loop device.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Media;

use super::two_modes::two_modes;
use super::{Rule, Weight, evidence, latencies};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location::{self, Location};
use crate::rules::balance::{self, BalanceResult};

/// Maximum share of reads that a cache may answer, according to the storage system's own counters.
/// The limit is the same as for the page cache.
const CACHE_SHARE_MAX: f64 = 0.05;
/// Ratio of device bytes to application bytes above which another process must have used the device
/// (in a measurement with such a process, the ratio was 2.03). That process may then have caused
/// two modes of latency.
const NEIGHBOUR_RATIO: f64 = 1.05;

pub const RULE: Rule = Rule {
    id: "served-from-cache-below",
    asks: "did a cache between this host's page cache and the media answer the reads?",
    explains: "The rule checks, in this order: the storage system's own counters \
               (`[[observe.metrics]]`, `read_source.*`); whether the working set fits the declared \
               cache (`observe.array_cache`); and whether the latencies have two modes: a fast mode \
               and a slow mode. If a host's own disks moved all bytes, no cache was involved. A \
               disk counts as the host's own only if its transport proves this: NVMe on the PCI \
               bus, SATA, SAS or USB. A LUN of an array (iSCSI, Fibre Channel, NVMe over fabrics), \
               a network block device (rbd, nbd), a volume of a RAID controller or of a cloud, and \
               any disk of a virtual machine may be served from a cache. For these, the outcome is \
               unknown unless the plan declares a cache that is smaller than the working set, or \
               names metrics. The claim is then only as reliable as the plan's declaration. The \
               metrics must include a cache, and their sum must agree with the number or the bytes \
               of the issued reads. The tolerance is 10 %, plus the share of one sampling interval \
               in the measurement. Otherwise the rule does not use the metrics. It does not use the \
               two modes of latency if another process used the disk, because such use also causes \
               two modes.",
    bears_on: &[(Claim::MediaRead, Weight::Mandatory), (Claim::TailLatency, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if evidence::operations(bundle, true) == 0 {
        return None;
    }
    if let Some(memory) = by_memory(bundle) {
        return Some(memory);
    }
    let declared = || by_declared_cache(bundle);
    by_its_own_counters(bundle)
        .or_else(|| {
            let declared = declared()?;
            let modes = by_latency(bundle).filter(|_| {
                declared.outcome == Outcome::Pass
                    && bundle.plan.observe.media != Some(Media::Hybrid)
            });
            Some(modes.unwrap_or(declared))
        })
        .or_else(|| by_latency(bundle))
        .or_else(|| evidence::is_real(bundle).then(|| by_position(bundle)))
}

fn by_its_own_counters(bundle: &Bundle) -> Option<Finding> {
    let from = &bundle.observed.sources.reads_from;
    if from.is_empty() {
        return None;
    }
    let all: f64 = from.values().sum();
    let share = from.get("cache").copied().unwrap_or(0.0) / all.max(f64::MIN_POSITIVE);
    // A model records the source of its reads. For a real system, the plan names the counters.
    if evidence::is_real(bundle)
        && let Some(unsure) = evidence::counters_unsure(bundle)
    {
        return Some(unsure_finding(&unsure, all));
    }
    if all <= 0.0 {
        return None;
    }
    let says = format!(
        "the storage system served {} of the reads from its cache",
        evidence::percent(share)
    );
    let finding = if share > CACHE_SHARE_MAX {
        Finding::new(RULE.id, Outcome::Fail, format!("{says}, according to its own counters"))
            .advise(
                "use a working set several times the size of this cache, or claim `cached-read`",
            )
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    let finding = finding.with("cache_share", share);
    Some(if evidence::is_real(bundle) { finding.as_declared(evidence::METRICS) } else { finding })
}

fn unsure_finding(unsure: &str, all: f64) -> Finding {
    Finding::new(RULE.id, Outcome::Unknown, unsure.to_owned()).with("counted", all).advise(
        "in the plan's metrics, list only counters of this volume: one counter for each cache or \
         device that serves its reads",
    )
}

fn by_declared_cache(bundle: &Bundle) -> Option<Finding> {
    let cache = bundle.plan.observe.array_cache_bytes?;
    let profile = &bundle.observed.workload;
    let read = profile.working_set_read_bytes?;
    let missed = profile.miss_ratio.iter().rfind(|point| point.cache_bytes <= cache);
    let hit_share = missed.map_or(0.0, |point| 1.0 - point.miss_share);
    let (cache_text, read_text) = (evidence::size(cache), evidence::size(read));
    let finding = if cache > 0 && read <= cache {
        let says =
            format!("the working set of {read_text} fits into the declared cache of {cache_text}");
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("use a working set several times the size of the cache")
    } else if cache > 0 && hit_share > CACHE_SHARE_MAX {
        let says = format!(
            "the working set of the reads is {read_text}, so the declared cache of {cache_text} \
             could answer {} of the reads",
            evidence::percent(hit_share)
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("use a larger working set, or name the storage system's metrics")
    } else {
        let says = format!(
            "the working set of {read_text} is so much larger than the declared cache of \
             {cache_text} that the cache can answer almost no reads"
        );
        Finding::new(RULE.id, Outcome::Pass, says).as_declared(format!("array cache {cache_text}"))
    };
    Some(finding.with("cache_bytes", cache).with("working_set_bytes", read))
}

fn by_latency(bundle: &Bundle) -> Option<Finding> {
    // I/O of other processes explains the two modes only if the load itself also read its bytes
    // from this host's disks.
    if evidence::read_ratio(bundle).is_some_and(|ratio| ratio > NEIGHBOUR_RATIO)
        && by_position(bundle).outcome == Outcome::Pass
    {
        return None;
    }
    let modes = two_modes(&latencies::histogram(bundle)?)?;
    let says = format!(
        "{} of the reads took about {:.2} ms and the other reads about {:.2} ms: a cache may have \
         served the fast reads",
        evidence::percent(modes.fast_share),
        modes.fast_ns as f64 / 1e6,
        modes.slow_ns as f64 / 1e6
    );
    Some(
        Finding::new(RULE.id, Outcome::Unknown, says)
            .with("fast_share", modes.fast_share)
            .with("fast_ns", modes.fast_ns)
            .with("slow_ns", modes.slow_ns)
            .advise(
                "declare `observe.array_cache` and use a larger working set, or name the storage \
                 system's metrics",
            ),
    )
}

/// Returns a failure if the target is in memory: its answers come as fast as those of a cache.
fn by_memory(bundle: &Bundle) -> Option<Finding> {
    let what = location::memory(bundle)?;
    let says = format!("reads came from this host's memory ({what})");
    Some(Finding::new(RULE.id, Outcome::Fail, says).advise("set a target directory on storage"))
}

fn by_position(bundle: &Bundle) -> Finding {
    let farthest = location::farthest(bundle);
    let moved = balance::side(bundle, true).is_some_and(|side| side.result == BalanceResult::Moved);
    if bundle.run.driver != Driver::Foreign
        && moved
        && farthest.is_some_and(|(_, place)| place == Location::Own)
    {
        let says = "this host's own disks moved all bytes that were read";
        return Finding::new(RULE.id, Outcome::Pass, says);
    }
    let why = match farthest {
        _ if bundle.observed.devices.is_empty() => match evidence::storage_unseen(bundle) {
            Some(unseen) => unseen.why.clone(),
            None => "no device is visible".to_owned(),
        },
        Some((_, Location::Own)) => {
            "possibly, the disks did not move all bytes that were read".to_owned()
        }
        Some((device, place)) => format!("{} {}", device.name, place.says()),
        None => "the device may belong to an array with its own cache".to_owned(),
    };
    Finding::new(
        RULE.id,
        Outcome::Unknown,
        format!("it is unknown whether a cache answered the reads: {why}"),
    )
    .advise(
        "declare `observe.array_cache` and use a larger working set, or name the storage system's \
         metrics",
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Transport;
    use plimsoll_evidence::observed::MissRatio;

    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    /// Sets the counters of the storage system, which here count reads.
    fn counters(bundle: &mut Bundle, sources: &[(&str, f64)]) {
        let all = evidence::operations(bundle, true) as f64;
        bundle.observed.sources.reads_from =
            sources.iter().map(|(name, share)| ((*name).to_owned(), share * all)).collect();
    }

    #[test]
    fn the_systems_own_counters_go_first_where_they_add_up() {
        let mut bundle = fixtures::reads();
        counters(&mut bundle, &[("cache", 0.06), ("hdd", 0.94)]);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        counters(&mut bundle, &[("cache", 0.05), ("hdd", 0.95)]);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Pass);
        assert_eq!(finding.declared, [evidence::METRICS]);
        // The rule also accepts counters that count bytes.
        for share in bundle.observed.sources.reads_from.values_mut() {
            *share *= 4096.0;
        }
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn any_counter_that_grows_is_no_evidence() {
        let mut bundle = fixtures::reads();
        let unsure: [&[(&str, f64)]; 5] = [
            // None of the sources is a cache.
            &[("ssd", 1.0)],
            // The sum of the counters is lower or higher than the number of reads, or zero.
            &[("cache", 0.0), ("ssd", 0.8)],
            &[("cache", 0.0), ("ssd", 1.3)],
            &[("cache", 0.5), ("ssd", 3.0)],
            &[("cache", 0.0), ("ssd", 0.0)],
        ];
        for sources in unsure {
            counters(&mut bundle, sources);
            assert_eq!(outcome(&bundle), Outcome::Unknown, "{sources:?}");
        }
        counters(&mut bundle, &[("cache", 0.0), ("ssd", 1.0)]);
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn a_declared_cache_must_be_exceeded() {
        let mut bundle = fixtures::reads();
        bundle.plan.observe.array_cache_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.plan.observe.array_cache_bytes = Some((1 << 30) - 1);
        let hits = |miss_share| vec![MissRatio { cache_bytes: 1 << 29, miss_share }];
        bundle.observed.workload.miss_ratio = hits(0.5);
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        bundle.observed.workload.miss_ratio = hits(0.96);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!((finding.outcome, finding.declared.len()), (Outcome::Pass, 1));
        // Two modes of latency show that a cache answered, despite the declaration.
        let histogram = bundle.latency.get_mut("matrix.read").unwrap();
        histogram.record_n(20_000_000, 300_000).unwrap();
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        bundle.plan.observe.media = Some(Media::Hybrid);
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn a_hypervisors_disk_is_unknown() {
        let mut bundle = fixtures::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.environment.virtualisation = Some("KVM".into());
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }

    #[test]
    fn a_disk_that_is_not_shown_to_be_this_hosts_own_is_unknown() {
        let of = |transport| {
            let mut bundle = fixtures::reads();
            bundle.environment.devices[0].transport = transport;
            outcome(&bundle)
        };
        use Transport as T;
        for transport in [T::Iscsi, T::FibreChannel, T::Rbd, T::Nbd, T::RaidController, T::Other] {
            assert_eq!(of(Some(transport)), Outcome::Unknown, "{transport:?}");
        }
        assert_eq!(of(None), Outcome::Unknown);
        assert_eq!(of(Some(T::NvmePcie)), Outcome::Pass);
        assert_eq!(of(Some(T::Zram)), Outcome::Fail);
    }

    #[test]
    fn two_modes_are_unknown_unless_a_neighbour_explains_them() {
        let mut bundle = fixtures::reads();
        let histogram = bundle.latency.get_mut("matrix.read").unwrap();
        histogram.record_n(20_000_000, 300_000).unwrap();
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        bundle.observed.devices[0].read_bytes *= 2;
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }
}
