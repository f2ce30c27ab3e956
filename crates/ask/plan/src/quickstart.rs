//! The plan of the quickstart. The amount of data is adapted to this machine.
//!
//! The data size is 2 GiB, 5 % of the free space, or the amount written in ten seconds, whichever
//! is smallest. There is one mailbox for each 10 MiB of data, and each mailbox requires 0.2 IOPS.
//! The requirement is therefore proportional to the size of the data.

use thiserror::Error;

use crate::error::PlanErrors;
use crate::plan::Plan;
use crate::resolved::{default_cache_bytes, least_cache_bytes};
use crate::units::SizeBytes;

/// Properties of this machine that determine the amount of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickstartFacts {
    /// Free space of the file system, in bytes.
    pub free_bytes: u64,
    /// Amount of data that the file system could write in ten seconds, in bytes.
    pub write_bytes_in_ten_seconds: u64,
    /// Directory in which the data is created.
    pub directory: String,
}

/// Reason why the quickstart cannot run on this machine.
#[derive(Debug, Error)]
pub enum QuickstartError {
    /// The free space is too small for even one mailbox.
    #[error(
        "the test may use 5 % of the free {free}, which is {data}, but one mailbox requires 10 MiB; \
         free some space or use another directory"
    )]
    TooSmall {
        /// Data size.
        data: String,
        /// Free space.
        free: String,
    },
    /// The storage is too slow for even one mailbox.
    #[error(
        "only {written} were written in ten seconds, but one mailbox requires 10 MiB; use another \
         directory"
    )]
    TooSlow {
        /// Amount of data that could be written in ten seconds, in bytes.
        written: String,
    },
    /// The name of the directory cannot be used in a plan.
    #[error("{0}")]
    Plan(#[from] PlanErrors),
}

const DATA_MAX: u64 = 2 << 30;
const MAILBOX_BYTES: u64 = 10 << 20;
/// The data may use the free space divided by this number: 1/20 of the free space.
const FREE_DIVISOR: u64 = 20;
const DATABASES: u32 = 2;
const THREADS: u32 = 4;

/// Returns the plan of a quickstart. All phases together take about a minute. The creation, the
/// copying and the check of the data take at most ten seconds each. The warm-up takes at most 8 s,
/// and the measured phase 30 s.
///
/// # Errors
/// The machine has too little space for one mailbox, the machine is too slow for one mailbox, or
/// the name of the directory cannot be used in a plan.
pub fn quickstart(facts: &QuickstartFacts) -> Result<Plan, QuickstartError> {
    let (allowed, written) = (facts.free_bytes / FREE_DIVISOR, facts.write_bytes_in_ten_seconds);
    if allowed < MAILBOX_BYTES {
        let (data, free) = (SizeBytes(allowed).about(), SizeBytes(facts.free_bytes).about());
        return Err(QuickstartError::TooSmall { data, free });
    }
    if written < MAILBOX_BYTES {
        return Err(QuickstartError::TooSlow { written: SizeBytes(written).about() });
    }
    let mailboxes = DATA_MAX.min(allowed).min(written) / MAILBOX_BYTES;
    let data = mailboxes * MAILBOX_BYTES;
    let databases = DATABASES.min(u32::try_from(mailboxes).unwrap_or(DATABASES));
    // The cache size and the checkpoint depth are proportional to the size of the data. Most
    // operations therefore cause disk I/O, and the warm-up ends within a few seconds.
    let least = least_cache_bytes(THREADS, databases, 256 << 10);
    let most = default_cache_bytes(THREADS, databases, 256 << 10);
    let cache = (data / 16).clamp(least, most) >> 15 << 15;
    let depth = (data / 64).clamp(1 << 20, 20 << 20) >> 20 << 20;
    let text = format!(
        "# Made by `plimsoll quickstart` for this machine: a demonstration.\nversion = 1\nname = \
         \"quickstart\"\ndescription = \"The mailbox test, small, in about a \
         minute\"\ndemonstration = true\n\n[requirement]\nlatency_max_of = \"5s\"\n\n[target]\npath \
         = {directory}\n\n[workload.mailbox]\nmailboxes = {mailboxes}\niops_per_mailbox = \
         0.2\nmailbox_size = \"10MiB\"\ndatabases = {databases}\nthreads = {THREADS}\ncache = \
         \"{cache}\"\ncheckpoint_depth = \"{depth}\"\n\n[phases]\ncache = \"cold\"\nwarm_up = \
         \"8s\"\nmeasure = \"30s\"\n\n[evidence]\nmin_measure = \"30s\"\n",
        directory = toml::Value::String(facts.directory.clone()),
        cache = SizeBytes(cache),
        depth = SizeBytes(depth),
    );
    Ok(Plan::parse(&text, "quickstart")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(free_bytes: u64, write_bytes_in_ten_seconds: u64) -> QuickstartFacts {
        QuickstartFacts { free_bytes, write_bytes_in_ten_seconds, directory: "/tmp/a \"b\"".into() }
    }

    #[test]
    fn data_is_the_least_of_three() {
        for (free, written, mailboxes) in [
            (1 << 40, 100 << 30, 204),
            (20 << 30, 100 << 30, 102),
            (1 << 40, 500 << 20, 50),
            (200 << 20, 1 << 40, 1),
            (u64::MAX, u64::MAX, 204),
        ] {
            let plan = quickstart(&facts(free, written)).expect("enough room").resolve();
            let store = plan.workload.mailbox().expect("a mail store");
            assert_eq!(store.mailboxes, mailboxes, "{free} {written}");
            let iops = mailboxes as f64 * 0.2;
            assert!((store.target_iops_per_s - iops).abs() < 1e-9);
            assert_eq!(plan.requirement.and_then(|r| r.iops_per_s), Some(store.target_iops_per_s));
            let all = store.database_initial_bytes * u64::from(store.databases);
            assert!(
                all >= mailboxes * MAILBOX_BYTES && all < mailboxes * MAILBOX_BYTES + (1 << 20)
            );
        }
    }

    #[test]
    fn it_fits_the_free_space_with_reserve_and_logs() {
        for free in [200u64 << 20, 1 << 30, 10 << 30, 1 << 40] {
            let plan = quickstart(&facts(free, u64::MAX)).expect("enough room").resolve();
            let needs = plan.required_bytes(&plan.targets[0]);
            let all: u64 = needs.iter().map(|n| n.bytes).sum();
            assert!(all < free / 4, "{all} of {free}");
        }
    }

    #[test]
    fn it_is_a_demonstration_with_limits_of_its_own() {
        let plan = quickstart(&facts(1 << 40, 1 << 30)).expect("enough room").resolve();
        assert!(plan.demonstration);
        assert_eq!(plan.evidence.min_measure_ns, 30_000_000_000);
        let requirement = plan.requirement.expect("a requirement");
        assert_eq!(requirement.latency_max_of_ns, 5_000_000_000);
        assert_eq!(requirement.limits.len(), 4);
        assert!(plan.phases.warm_up_ns + plan.phases.measure_ns < 60_000_000_000);
    }

    #[test]
    fn reports_too_little_space_with_figures() {
        let error = quickstart(&facts(100 << 20, 1 << 30)).expect_err("no room").to_string();
        assert!(error.contains("5 % of the free 100 MiB, which is 5 MiB"), "{error}");
        assert!(!error.contains("seconds"), "the space decides, not the speed: {error}");
        let error = quickstart(&facts(1 << 40, 5 << 20)).expect_err("no time").to_string();
        assert!(error.contains("only 5 MiB were written in ten seconds"), "{error}");
    }

    #[test]
    fn a_name_with_control_characters_is_an_error() {
        let odd = QuickstartFacts { directory: "/tmp/a\nb".into(), ..facts(1 << 40, 1 << 30) };
        assert!(matches!(quickstart(&odd), Err(QuickstartError::Plan(_))));
    }
}
