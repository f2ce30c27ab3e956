//! Figures of each window, for reports.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Window;

use super::{Part, Windows, errors, largest_ns, outage, slice};
use crate::figures::{self as run_figures, Pick};

/// Figures of the load in one window. They exclude streams that start at an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFigures {
    pub part: Part,
    pub rate_per_s: Option<f64>,
    /// Rate as a fraction of the rate before the event.
    pub of_before: Option<f64>,
    pub latency_ns_p50: Option<u64>,
    pub latency_ns_p99: Option<u64>,
    pub latency_ns_max: Option<u64>,
    /// Longest time without a completion. Zero if this time is too short to be detected with
    /// intervals of this length.
    pub outage_ns: Option<u64>,
    pub errors: u64,
}

/// Returns the figures of the windows of a run.
pub fn window_figures(bundle: &Bundle, windows: &Windows) -> Vec<WindowFigures> {
    let mut before = None;
    let mut figures = Vec::new();
    for part in &windows.parts {
        let own = slice(bundle, *part, |stream| stream.start_event.is_none());
        let rate_per_s = run_figures::rate_per_s(&own, Pick::Transactional);
        if part.window == Window::Before {
            before = rate_per_s;
        }
        let pick = run_figures::latency_pick(&own, Pick::Transactional);
        let percentile = |quantile| run_figures::percentile_ns(&own, pick, quantile);
        figures.push(WindowFigures {
            part: *part,
            rate_per_s,
            of_before: rate_per_s.zip(before.filter(|rate| *rate > 0.0)).map(|(own, of)| own / of),
            latency_ns_p50: percentile(0.5),
            latency_ns_p99: percentile(0.99),
            latency_ns_max: largest_ns(bundle, *part),
            outage_ns: outage(bundle, *part).map(|outage| outage.duration_ns),
            errors: errors(bundle, *part),
        });
    }
    figures
}
