//! Order of the rows in an audit of several results.

use clap::ValueEnum;
use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_judge::conservation::{Audit, headline};

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Worst verdict first.
    Verdict,
    /// By file name.
    Name,
    /// Highest rate first.
    Rate,
    /// Highest bandwidth first.
    Bandwidth,
    /// Highest mean latency first.
    Latency,
}

impl Sort {
    /// Sorts results.
    pub fn apply(self, judged: &mut [(&ToolResult, Audit)]) {
        let label = |result: &ToolResult| result.label();
        let falling = |a: Option<f64>, b: Option<f64>| {
            b.unwrap_or(f64::NEG_INFINITY).total_cmp(&a.unwrap_or(f64::NEG_INFINITY))
        };
        judged.sort_by(|(a, judged_a), (b, judged_b)| {
            let (x, y) = (headline(a), headline(b));
            let first = match self {
                Sort::Verdict => judged_a.verdict.cmp(&judged_b.verdict),
                Sort::Name => std::cmp::Ordering::Equal,
                Sort::Rate => falling(x.rate_per_s, y.rate_per_s),
                Sort::Bandwidth => falling(x.bandwidth_per_s, y.bandwidth_per_s),
                Sort::Latency => falling(x.latency_ns, y.latency_ns),
            };
            first.then_with(|| label(a).cmp(&label(b)))
        });
    }
}
