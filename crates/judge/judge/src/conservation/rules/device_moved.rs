//! Checks that the device moved the bytes that the tool reports.

use plimsoll_evidence::tool_result::{DeviceCounts, Figure, Kind, Part, Pattern, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, usable, window};

/// The device must have moved at least this share of the bytes. The rule `bytes-balance` uses the
/// same share.
const SHARE_MIN: f64 = 0.8;
/// Maximum size of a request in Linux's block layer, with a margin (`max_sectors_kb` is 32,767 at
/// most).
const REQUEST_BYTES_MAX: f64 = 32.0 * 1024.0 * 1024.0;
/// Maximum size of a request for random reads through the page cache: four times the default
/// read-ahead.
const RANDOM_BYTES_MAX: f64 = 512.0 * 1024.0;
/// Minimum run time of a checked run. Sampled counters may miss most of a shorter run.
const WINDOW_NS_MIN: f64 = 2e9;

pub const RULE: Rule = Rule {
    id: "device-moved",
    asks: "did the device move the bytes that the tool reports?",
    explains: "A tool that prints the device's counters shows the source of its reads. If the \
     device moved less than 80 % of the bytes, the other bytes have a different source: the page \
     cache, a host's cache, or holes of a file. If the tool prints sectors, the number of bytes is \
     exact. If it prints requests, only a maximum is known, because the page cache combines small \
     reads: a request is at most 32 MiB, or 512 KiB for random reads. With O_DIRECT, each \
     operation that reaches the device becomes one request or a part of one. If the requests could \
     have moved at least the reported bytes, the outcome is unknown. It is also unknown for a run \
     of less than two seconds, because the counters may miss the end of the run. The rule checks \
     writes only with O_DIRECT, because the page cache may write other data later. An engine that \
     completes operations without performing them moves no bytes, and `/dev/zero`, `/dev/null` and \
     targets in memory are not storage.",
    needs: "the device's counters, the number of bytes read, and a run of two seconds or more",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let parts = || reported.parts.iter().filter(|part| !part.is_total);
    if let Some(reason) = parts().find_map(|part| part.setting.no_storage.as_ref()) {
        let says = format!("no storage was used: {reason}");
        outcome.check(Some(Finding::new(Severity::Invalid, says).with_request(
            "a run that \
            performs its operations on storage",
        )));
    }
    let devices: Vec<&DeviceCounts> =
        reported.parts.iter().flat_map(|part| &part.devices).collect();
    if devices.is_empty() {
        return outcome;
    }
    for kind in [Kind::Read, Kind::Write] {
        if let Some(moved) = RequestTotals::of(parts(), &kind) {
            moved.check(&devices, &mut outcome);
        }
    }
    outcome
}

/// All reads, or all writes, of a result, summed over its parts.
struct RequestTotals {
    kind: Kind,
    bytes: f64,
    count: Option<f64>,
    direct: bool,
    /// Maximum bytes of one request.
    request_bytes_max: f64,
    fields: Vec<String>,
}

impl RequestTotals {
    fn of<'r>(parts: impl Iterator<Item = &'r Part>, kind: &Kind) -> Option<Self> {
        let mut moved = Self {
            kind: kind.clone(),
            bytes: 0.0,
            count: Some(0.0),
            direct: true,
            request_bytes_max: RANDOM_BYTES_MAX,
            fields: Vec::new(),
        };
        for part in parts {
            for operation in part.operations.iter().filter(|o| o.kind == *kind) {
                let long = window(part, operation).is_some_and(|w| w.value >= WINDOW_NS_MIN);
                let bytes = first(&operation.bytes).filter(|_| long)?;
                moved.bytes += bytes.value;
                let count = first(&operation.count).map(|count| count.value);
                moved.count = moved.count.zip(count).map(|(a, b)| a + b);
                moved.direct &= part.setting.direct == Some(true);
                let size = super::size(operation).map_or(REQUEST_BYTES_MAX, |size| size.most);
                let random = part.setting.pattern == Some(Pattern::Random);
                let request = if random { size } else { REQUEST_BYTES_MAX };
                moved.request_bytes_max = moved.request_bytes_max.max(request);
                moved.fields.push(bytes.field.clone());
            }
        }
        let counts = *kind == Kind::Read || moved.direct;
        (moved.bytes > 0.0 && counts).then_some(moved)
    }

    fn check(&self, devices: &[&DeviceCounts], outcome: &mut RuleResult) {
        type Counter = fn(&DeviceCounts) -> Option<&Figure>;
        let of: [Counter; 3] = match self.kind {
            Kind::Read => {
                [|d| d.read_bytes.as_ref(), |d| d.reads.as_ref(), |d| d.read_merges.as_ref()]
            }
            _ => [|d| d.written_bytes.as_ref(), |d| d.writes.as_ref(), |d| d.write_merges.as_ref()],
        };
        let [bytes, requests, merges] = of.map(|of| total(devices, of));
        let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        let name = names.join(", ");
        if let Some((bytes, field)) = bytes {
            let says = format!("{name} moved only {} in total", format::bytes(bytes));
            outcome.check(self.check_share(bytes / self.bytes, says, field));
            return;
        }
        let Some((requests, field)) = requests else { return };
        let says = format!("{name} completed only {} requests", format::number(requests));
        let most = requests * self.request_bytes_max / self.bytes;
        if most < SHARE_MIN {
            outcome.check(self.check_share(most, says, field));
        } else if let Some(count) = self.count.filter(|_| self.direct) {
            let served = requests + merges.map_or(0.0, |(merges, _)| merges);
            outcome.check(self.check_share(served / count, says, field));
        }
    }

    fn check_share(&self, share: f64, device: String, field: String) -> Option<Finding> {
        (share < SHARE_MIN).then(|| {
            let (done, end) = match self.kind {
                Kind::Read => {
                    ("read", "the reads were served from a cache and not from the device")
                }
                _ => ("wrote", "not all of the writes reached the device"),
            };
            let count = self.count.map_or_else(String::new, |count| {
                format!(" in {} operations", format::number(count))
            });
            let bytes = format::bytes(self.bytes);
            let says = format!("the tool {done} {bytes}{count}, but {device}: {end}");
            Finding::new(Severity::Invalid, says)
                .with_fields([field].into_iter().chain(self.fields.iter().cloned()))
                .with_request(
                    "a run with O_DIRECT on data that was written before, and the device's sectors",
                )
        })
    }
}

/// Returns the sum of a counter over all devices, and the name of the first device's field. `None`
/// if a device lacks the counter.
fn total(
    devices: &[&DeviceCounts],
    of: impl Fn(&DeviceCounts) -> Option<&Figure>,
) -> Option<(f64, String)> {
    let figures: Option<Vec<&Figure>> =
        devices.iter().map(|device| of(device).filter(|figure| usable(figure))).collect();
    let figures = figures.filter(|figures| !figures.is_empty())?;
    Some((figures.iter().map(|figure| figure.value).sum(), figures[0].field.clone()))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Operation;

    use super::*;

    fn result(requests: f64, direct: Option<bool>, seconds: f64) -> ToolResult {
        let mut operation = Operation::of(Kind::Read);
        operation.count = vec![Figure::exact(66e6, "total_ios")];
        operation.bytes = vec![Figure::exact(66e6 * 4096.0, "io_bytes")];
        operation.window_ns = Some(Figure::exact(seconds * 1e9, "runtime"));
        let mut part = Part { operations: vec![operation], ..Part::default() };
        part.setting.direct = direct;
        let reads = Some(Figure::exact(requests, "ios"));
        part.devices =
            vec![DeviceCounts { name: "loop1".into(), reads, ..DeviceCounts::default() }];
        ToolResult { parts: vec![part], ..ToolResult::default() }
    }

    fn outcome(requests: f64, direct: Option<bool>, seconds: f64) -> (usize, usize) {
        let outcome = check(&result(requests, direct, seconds), &DeclaredFacts::default());
        (outcome.checked, outcome.findings.len())
    }

    #[test]
    fn a_device_that_did_next_to_nothing_is_accused_in_any_mode() {
        assert_eq!(outcome(55.0, None, 60.0), (1, 1));
        assert_eq!(outcome(55.0, None, 1.0), (0, 0), "the run is too short for sampled counters");
    }

    #[test]
    fn requests_are_compared_with_operations_only_for_direct_io() {
        assert_eq!(outcome(600_000.0, None, 60.0), (0, 0));
        assert_eq!(outcome(600_000.0, Some(true), 60.0), (1, 1));
        assert_eq!(outcome(66e6, Some(true), 60.0), (1, 0));
    }

    #[test]
    fn random_reads_bound_the_request() {
        let random = |requests: f64| {
            let mut result = result(requests, None, 60.0);
            result.parts[0].setting.pattern = Some(Pattern::Random);
            let outcome = check(&result, &DeclaredFacts::default());
            (outcome.checked, outcome.findings.len())
        };
        // 270 GB of random reads: 400,000 requests of 512 KiB move at most 210 GB, but 500,000
        // requests could move all of it.
        assert_eq!(random(400_000.0), (1, 1));
        assert_eq!(random(500_000.0), (0, 0));
    }

    #[test]
    fn direct_writes_reach_the_device_and_buffered_ones_may_later() {
        let writes = |direct| {
            let mut result = result(55.0, direct, 60.0);
            result.parts[0].operations[0].kind = Kind::Write;
            result.parts[0].devices[0].writes = result.parts[0].devices[0].reads.take();
            check(&result, &DeclaredFacts::default()).findings.len()
        };
        assert_eq!((writes(Some(true)), writes(None)), (1, 0));
    }

    #[test]
    fn an_engine_that_performs_nothing_is_invalid() {
        let mut result = result(55.0, None, 1.0);
        result.parts[0].setting.no_storage = Some("the engine null".into());
        let outcome = check(&result, &DeclaredFacts::default());
        assert_eq!(outcome.findings[0].severity, Severity::Invalid);
    }
}
