//! Was the working set smaller than what can hold it nearer by?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Buffered I/O on less than so many times the host's memory lets the page cache answer a share.
/// MLPerf Storage v2.0 asks for data of five times the memory.
const MEMORY_TIMES: u64 = 5;

/// The rule.
pub const RULE: Rule = Rule {
    id: "working-set-small",
    asks: "was the working set smaller than the memory, cache or tier that it is said to exceed?",
    explains: "The distinct bytes that operations went to are counted. They are set against the \
        host's memory where I/O is buffered, against the storage system's cache (`observe.array_cache`) \
        and against its fast tier (`observe.tier`) where the plan declares them. Less than one of them \
        is a failure for `media-read`: that is where the data was. Between one and five times the \
        memory it is a warning (MLPerf Storage asks for five).",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if seen::matrix(bundle).is_none() || seen::read_bytes(bundle) + seen::written_bytes(bundle) == 0
    {
        return None;
    }
    let shape = &bundle.observed.workload;
    let touched = match (shape.working_set_read_bytes, shape.working_set_written_bytes) {
        // Reads and writes may go to the same blocks: the larger is what is known to be distinct.
        (Some(read), Some(written)) => Some(read.max(written)),
        (one, other) => one.or(other),
    };
    if touched.is_none() && !seen::is_real(bundle) {
        return None;
    }
    let Some(touched) = touched else {
        let says = "the working set is not known";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("run it with plimsoll"));
    };
    let buffered = !seen::buffered_paths(bundle).is_empty();
    let memory = bundle.environment.memory_bytes.filter(|_| buffered);
    let observe = &bundle.plan.observe;
    let holders = [
        ("this host's memory, through which I/O was buffered", memory),
        ("the storage system's declared cache", observe.array_cache_bytes),
        ("its declared fast tier", observe.tier_bytes),
    ];
    let small = holders.iter().find(|(_, bytes)| bytes.is_some_and(|bytes| touched <= bytes));
    let text = seen::size(touched);
    let finding = if let Some((name, Some(bytes))) = small {
        let says = format!("the working set of {text} fits {name} ({})", seen::size(*bytes));
        Finding::new(RULE.id, Outcome::Fail, says)
            .with("holder_bytes", *bytes)
            .advise("use a working set several times that size")
    } else if memory.is_some_and(|bytes| touched < bytes.saturating_mul(MEMORY_TIMES)) {
        let says = format!(
            "the working set of {text} is less than {MEMORY_TIMES} times the memory that I/O was \
             buffered through"
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("use direct I/O, or more data")
    } else {
        let says = format!("the working set of {text} fits nothing that is known to be nearer by");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("working_set_bytes", touched))
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        made_up::finding(&RULE, bundle).outcome
    }

    #[test]
    fn memory_counts_only_where_io_is_buffered() {
        let mut bundle = made_up::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.environment.memory_bytes = Some((1 << 30) - 1);
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.environment.memory_bytes = Some((1 << 30) / 5);
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn a_declared_cache_or_tier_must_be_exceeded() {
        let mut bundle = made_up::reads();
        bundle.plan.observe.tier_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.plan.observe.tier_bytes = Some(1 << 29);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.working_set_read_bytes = None;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }
}
