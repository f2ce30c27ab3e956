//! Checks whether all data that was read fits into memory.

use plimsoll_evidence::tool_result::{Figure, Kind, Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::usable;

pub const RULE: Rule = Rule {
    id: "fits-memory",
    asks: "is the data that was read larger than the memory in which it could have been cached?",
    explains: "If the data fits into the memory of the hosts that read it, or into the caches of \
     the storage, all reads after the first pass can come from there. The rate then does not \
     describe the media. The size of this memory comes from the result, or from the options \
     `--memory` and `--array-cache`. If I/O bypassed the page cache, the hosts' memory does not \
     count. MLPerf Storage requires five times the memory.",
    needs: "the size of the data, and the size of the memory (stated in the result, or declared \
     with `--memory` and `--array-cache`)",
    check,
};

fn check(reported: &ToolResult, declared: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in reported.parts.iter().filter(|part| reads(part)) {
        let Some(data) = part.setting.working_set_bytes.as_ref().filter(|d| usable(d)) else {
            continue;
        };
        let stated = part.setting.memory_bytes.clone();
        let memory = stated.or(declared.memory_bytes.map(|m| Figure::exact(m, "--memory")));
        let memory = memory.filter(|_| part.setting.direct != Some(true));
        let cache = declared.cache_bytes.map(|bytes| Figure::exact(bytes, "--array-cache"));
        for (room, whose) in [(memory, "memory of the hosts"), (cache, "cache of the storage")] {
            if let Some(room) = room.filter(|room| usable(room) && room.value > 0.0) {
                outcome.check(within(data, &room, whose));
            }
        }
    }
    outcome
}

/// Returns true if a part contains reads. Operations of unknown kind, such as the samples of a
/// training run, also count as reads.
fn reads(part: &Part) -> bool {
    part.operations.iter().any(|o| matches!(o.kind, Kind::Read | Kind::All | Kind::Other(_)))
}

fn within(data: &Figure, room: &Figure, whose: &str) -> Option<Finding> {
    (data.most <= room.least).then(|| {
        let says = format!(
            "{} of data were read, but the {whose} is {}: all reads may have been served from \
             there",
            format::bytes(data.value),
            format::bytes(room.value)
        );
        Finding::new(Severity::Doubtful, says).with_fields([&data.field, &room.field]).with_request(
            "the media's own read counters, or a run over more data than fits into memory",
        )
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Operation;

    use super::*;

    fn findings(
        data: f64,
        memory: Option<f64>,
        direct: bool,
        declared: &DeclaredFacts,
    ) -> (usize, usize) {
        let operations = vec![Operation::of(Kind::Other("samples".into()))];
        let mut part = Part { operations, ..Part::default() };
        part.setting.working_set_bytes = Some(Figure::exact(data, "data"));
        part.setting.memory_bytes = memory.map(|memory| Figure::exact(memory, "memory"));
        part.setting.direct = direct.then_some(true);
        let outcome = check(&ToolResult { parts: vec![part], ..ToolResult::default() }, declared);
        (outcome.checked, outcome.findings.len())
    }

    #[test]
    fn data_within_memory_is_doubted_and_more_is_not() {
        let none = DeclaredFacts::default();
        assert_eq!(findings(160e9, Some(247e9), false, &none), (1, 1));
        assert_eq!(findings(500e9, Some(247e9), false, &none), (1, 0));
        assert_eq!(
            findings(160e9, Some(247e9), true, &none),
            (0, 0),
            "the page cache was passed by"
        );
        assert_eq!(findings(160e9, None, false, &none), (0, 0));
        let cache = DeclaredFacts { cache_bytes: Some(512e9), ..DeclaredFacts::default() };
        assert_eq!(findings(160e9, None, true, &cache), (1, 1));
    }
}
