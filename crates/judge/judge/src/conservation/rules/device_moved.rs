//! Checks that the device moved the bytes that the tool reports as read.

use plimsoll_evidence::tool_result::{DeviceCounts, Figure, Kind, Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, usable, window};

/// Minimum share of the bytes that the device must have moved to have served the reads.
const SHARE_MIN: f64 = 0.5;
/// Maximum request of Linux's block layer, with a margin (`max_sectors_kb` is 32,767 at most).
const REQUEST_BYTES_MAX: f64 = 32.0 * 1024.0 * 1024.0;
/// Run time below which sampled counters may miss most of the run.
const WINDOW_NS_MIN: f64 = 2e9;

pub const RULE: Rule = Rule {
    id: "device-moved",
    asks: "did the device move the bytes that the tool reports as read?",
    explains: "A tool that prints the device's counters shows the source of its reads. If the \
               device moved less than half of the bytes, something else answered: the page cache, \
               a host's cache, holes of a file. Sectors give the bytes. Requests do not, because \
               the page cache combines small reads into large requests: a request moves at most \
               32 MiB, and with O_DIRECT each read that reaches the device is a request or part \
               of one. If both bounds are possible, the outcome is unknown. So is that of a run \
               of less than two seconds, whose counters may miss its end.",
    needs: "the device's counters, the amount that was read, and a run of two seconds or more",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let parts = || reported.parts.iter().filter(|part| !part.is_total);
    let devices: Vec<&DeviceCounts> =
        reported.parts.iter().flat_map(|part| &part.devices).collect();
    let Some(read) = Reads::of(parts()).filter(|_| !devices.is_empty()) else { return outcome };
    let bytes = total(&devices, |device| device.read_bytes.as_ref());
    let requests = total(&devices, |device| device.reads.as_ref());
    let merges = total(&devices, |device| device.read_merges.as_ref());
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let name = names.join(", ");
    if let Some((moved, field)) = bytes {
        let says = format!("{name} moved {} in all", format::bytes(moved));
        outcome.check(read.check_share(moved / read.bytes, says, field));
        return outcome;
    }
    let Some((requests, field)) = requests else { return outcome };
    let says = format!("{name} completed {} reads in all", format::number(requests));
    if requests * REQUEST_BYTES_MAX < SHARE_MIN * read.bytes {
        outcome.check(read.check_share(requests * REQUEST_BYTES_MAX / read.bytes, says, field));
    } else if let Some(count) = read.count.filter(|_| read.direct) {
        let served = requests + merges.map_or(0.0, |(merges, _)| merges);
        outcome.check(read.check_share(served / count, says, field));
    }
    outcome
}

/// Reads of all parts.
struct Reads {
    bytes: f64,
    count: Option<f64>,
    direct: bool,
    fields: Vec<String>,
}

impl Reads {
    fn of<'r>(parts: impl Iterator<Item = &'r Part>) -> Option<Self> {
        let mut reads = Self { bytes: 0.0, count: Some(0.0), direct: true, fields: Vec::new() };
        for part in parts {
            for operation in part.operations.iter().filter(|o| o.kind == Kind::Read) {
                let long = window(part, operation).is_some_and(|w| w.value >= WINDOW_NS_MIN);
                let bytes = first(&operation.bytes).filter(|_| long)?;
                reads.bytes += bytes.value;
                let count = first(&operation.count).map(|count| count.value);
                reads.count = reads.count.zip(count).map(|(a, b)| a + b);
                reads.direct &= part.setting.direct == Some(true);
                reads.fields.push(bytes.field.clone());
            }
        }
        (reads.bytes > 0.0).then_some(reads)
    }

    fn check_share(&self, share: f64, device: String, field: String) -> Option<Finding> {
        (share < SHARE_MIN).then(|| {
            let says = format!(
                "the tool read {}, but {device}: the reads were served from a cache and not from the device",
                format::bytes(self.bytes)
            );
            Finding::new(Severity::Invalid, says)
                .with_fields([field].into_iter().chain(self.fields.iter().cloned()))
                .with_request("a run with O_DIRECT on data that was written before, and the device's sectors")
        })
    }
}

/// Returns the sum over devices and the field of the first; `None` if any device lacks the counter.
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
}
