//! Names of runs. A name consists of the start time, the plan's name, and eight hex digits that
//! distinguish runs of the same second.

use jiff::Timestamp;
use plimsoll_sys::clock;

/// Maximum length of the plan's or job's name in the name of a run. File systems allow names of 255
/// bytes, and a partly written file has an additional prefix and suffix.
const PLAN_CHARS_MAX: usize = 215;

/// Name and identity of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId {
    name: String,
    store_id: u64,
    started_unix_ns: u64,
}

impl RunId {
    /// Creates an id for a plan of this name, starting now.
    pub fn now(plan: &str) -> Self {
        Self::new(plan, clock::realtime_ns(), std::process::id())
    }

    fn new(plan: &str, unix_ns: u64, process: u32) -> Self {
        let store_id = mix(unix_ns ^ u64::from(process) << 40);
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let plan: String = plan.chars().map(safe).take(PLAN_CHARS_MAX).collect();
        let time = format_utc(unix_ns, "%Y%m%d-%H%M%S");
        let name = format!("{time}-{plan}-{:08x}", store_id & 0xffff_ffff);
        Self { name, store_id, started_unix_ns: unix_ns }
    }

    /// Name of the bundle's directory, with the time in UTC.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identity of the run's data.
    pub fn store_id(&self) -> u64 {
        self.store_id
    }

    /// Start time, in nanoseconds since 1970.
    pub fn started_unix_ns(&self) -> u64 {
        self.started_unix_ns
    }
}

/// Formats a time: `2026-11-21 03:00 UTC`.
pub(crate) fn utc(unix_ns: u64) -> String {
    format_utc(unix_ns, "%Y-%m-%d %H:%M UTC")
}

fn format_utc(unix_ns: u64, format: &str) -> String {
    // A 64-bit number of nanoseconds ends in the year 2554, which a `Timestamp` can represent.
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    time.strftime(format).to_string()
}

/// Finaliser of SplitMix64 (Steele, Lea, Flood 2014). Every input bit affects all output bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_still_names_a_directory() {
        let id = RunId::new(&"n".repeat(300), 951_827_696_000_000_000, 7);
        assert!(id.name().len() < 245, "{}", id.name());
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        // Expected values are the output of `date -u -d @N`.
        assert_eq!(utc(951_827_696_000_000_000), "2000-02-29 12:34 UTC");
        assert_eq!(utc(4_107_542_400_000_000_000), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn a_name_holds_only_what_a_file_name_may() {
        let id = RunId::new("a plan/with ../things", 1_795_219_200_000_000_000, 7);
        assert!(id.name().starts_with("20261121-000000-a_plan_with_.._things-"), "{}", id.name());
    }

    #[test]
    fn names_of_a_second_do_not_collide() {
        // 2,000 names collide with a probability of 0.05 %. With only 16 random bits, they would
        // always collide.
        let id = |n: u64| RunId::new("p", 1_795_219_200_000_000_000 + n * 499_979, 7);
        let names: std::collections::BTreeSet<String> =
            (0..2_000).map(|n| id(n).name().to_owned()).collect();
        assert_eq!(names.len(), 2_000);
    }

    #[test]
    fn two_of_the_same_moment_differ_by_their_process() {
        assert_ne!(RunId::new("p", 5, 1).store_id(), RunId::new("p", 5, 2).store_id());
    }
}
