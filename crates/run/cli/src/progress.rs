//! Progress on stderr: on a terminal, a bar with rate, latency and remaining time; otherwise plain
//! lines. It also updates the live state.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::HumanBytes;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_live::state_listener::StateListener;
use plimsoll_live::status_server::StatusServer;
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::listener::{FleetProgress, Listener};
use plimsoll_runner::render::json;

use crate::common::Globals;
use crate::error::CliError;
use crate::notes;

/// Interval between lines if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum duration of a phase that gets its own line if stderr is not a terminal.
const LINE_PHASE_NS: u64 = 2_000_000_000;

/// Shows the progress of a run on stderr.
pub struct StderrProgress {
    /// Number of the current bar.
    bar: Option<u64>,
    /// Phase that the bar of a fleet shows.
    fleet_phase: Option<PhaseKind>,
    quiet: bool,
    terminal: bool,
    last_line: Instant,
    /// Messages of the checks in a dry run. They are the result of a dry run. `None` for other
    /// runs.
    dry_run: Option<Vec<String>>,
    /// Live state of the run, and the servers that publish it.
    live: Option<(StateListener, Vec<StatusServer>)>,
}

impl StderrProgress {
    /// Creates the display. It shows nothing if `quiet` is set.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            bar: None,
            fleet_phase: None,
            quiet,
            terminal,
            last_line: Instant::now(),
            dry_run: None,
            live: None,
        }
    }

    /// Returns a display that also updates a live state until the display is dropped.
    #[must_use]
    pub fn publishing(mut self, listener: StateListener, servers: Vec<StatusServer>) -> Self {
        self.live = Some((listener, servers));
        self
    }

    fn listener(&mut self) -> Option<&mut StateListener> {
        self.live.as_mut().map(|(listener, _)| listener)
    }

    /// Prints a warning, even if `quiet` is set.
    pub fn warn(&self, text: &str) {
        if let Some((listener, _)) = &self.live {
            listener.note(true, text);
        }
        notes::tell(text);
    }

    fn bar_begins(&mut self, kind: PhaseKind) {
        if self.quiet || !self.terminal {
            return;
        }
        static BARS: AtomicU64 = AtomicU64::new(0);
        let bar = BARS.fetch_add(1, Ordering::Relaxed);
        notes::bar_begins(bar, kind.label());
        self.bar = Some(bar);
    }

    fn bar_ends(&mut self) {
        if let Some(bar) = self.bar.take() {
            notes::bar_ends(bar);
        }
    }

    /// Shows the progress of a phase with a description.
    fn show_progress(&mut self, kind: PhaseKind, progress: &Progress, says: &str) {
        if let Some(bar) = self.bar {
            let parts = (share(progress) * notes::BAR_PARTS as f64) as u64;
            notes::bar_moves(bar, parts, says);
        } else if !self.quiet && self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            let percent = share(progress) * 100.0;
            notes::tell(&format!("{}: {percent:.0} %, {says}", kind.label()));
        }
    }

    /// Runs the checks before a run. In a dry run, prints their messages as the result.
    ///
    /// # Errors
    /// The errors of `check`. The messages are then printed as notes.
    pub fn check(
        &mut self,
        dry_run: bool,
        common: &Globals,
        check: impl FnOnce(&mut Self) -> Result<bool, CliError>,
    ) -> Result<bool, CliError> {
        self.dry_run = dry_run.then(Vec::new);
        let checked = check(self);
        let lines = self.dry_run.take().unwrap_or_default();
        if checked.is_err() {
            lines.iter().for_each(|line| Self::say(self, line));
        } else if dry_run {
            let text = match common.json {
                true => json(&serde_json::json!({ "dry_run": lines }))?,
                false => lines.join("\n") + "\n",
            };
            notes::write_result(notes::without_control(&text).as_bytes());
        }
        checked
    }

    /// Prints a message above the bars.
    pub fn say(&self, text: &str) {
        if let Some((listener, _)) = &self.live {
            listener.note(false, text);
        }
        if !self.quiet {
            notes::tell(text);
        }
    }
}

impl Drop for StderrProgress {
    fn drop(&mut self) {
        self.bar_ends();
    }
}

impl Listener for StderrProgress {
    fn say(&mut self, text: &str) {
        match &mut self.dry_run {
            Some(lines) => lines.push(text.to_owned()),
            None => Self::say(self, text),
        }
    }

    fn warn(&mut self, text: &str) {
        Self::warn(self, text);
    }

    fn part(&mut self, text: &str) {
        if let Some(listener) = self.listener() {
            listener.part(text);
        }
        if !self.quiet {
            notes::tell(text);
        }
    }

    fn fleet(&mut self, now: &FleetProgress) {
        if let Some(listener) = self.listener() {
            listener.fleet(now);
        }
        let Some(kind) = now.kind.filter(|_| !self.quiet) else { return };
        if self.fleet_phase.replace(kind) != Some(kind) {
            self.bar_ends();
            self.bar_begins(kind);
        }
        let progress = now.progress();
        let slow = now.slow().map_or(String::new(), |(name, share)| {
            format!("; {name} reaches {:.0} % of the average rate", share * 100.0)
        });
        let hosts = format!("{} of {} hosts", now.in_common_phase().count(), now.count);
        self.show_progress(kind, &progress, &format!("{hosts}, {}{slow}", describe(&progress)));
    }

    fn finished(&mut self, run: &FinishedRun) {
        self.bar_ends();
        self.fleet_phase = None;
        if let Some(listener) = self.listener() {
            listener.finished(run);
        }
    }
}

impl Watcher for StderrProgress {
    fn begin(&mut self, kind: PhaseKind) {
        if let Some(listener) = self.listener() {
            listener.begin(kind);
        }
        self.last_line = Instant::now();
        self.bar_begins(kind);
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        if let Some(listener) = self.listener() {
            listener.progress(kind, progress);
        }
        self.show_progress(kind, progress, &describe(progress));
    }

    fn rows(&mut self, rows: &[Row]) {
        if let Some(listener) = self.listener() {
            listener.rows(rows);
        }
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        if let Some(listener) = self.listener() {
            listener.latencies(intervals);
        }
    }

    fn end(&mut self, phase: &Phase) {
        if let Some(listener) = self.listener() {
            listener.end(phase);
        }
        self.bar_ends();
        if self.quiet || !self.terminal && phase.duration_ns < LINE_PHASE_NS {
            return;
        }
        let seconds = phase.duration_ns as f64 / 1e9;
        let bytes = phase.read_bytes + phase.written_bytes;
        let moved = if bytes > 0 { format!(", {}", HumanBytes(bytes)) } else { String::new() };
        let note = if phase.note.is_empty() { String::new() } else { format!(" ({})", phase.note) };
        notes::tell(&format!("{:>14}: {seconds:.1} s{moved}{note}", phase.kind.label()));
    }
}

fn share(progress: &Progress) -> f64 {
    let of = |done: u64, total: u64| (total > 0).then(|| done as f64 / total as f64);
    let by_time = of(progress.elapsed_ns, progress.total_ns);
    by_time.or(of(progress.done_bytes, progress.total_bytes)).unwrap_or(0.0).clamp(0.0, 1.0)
}

/// Estimates the remaining time from the average pace so far.
fn left_ns(progress: &Progress) -> Option<u64> {
    if progress.total_ns > 0 {
        return Some(progress.total_ns.saturating_sub(progress.elapsed_ns));
    }
    let share = share(progress);
    (share > 0.01).then(|| (progress.elapsed_ns as f64 * (1.0 - share) / share) as u64)
}

fn describe(progress: &Progress) -> String {
    let mut parts = vec![format!("{:.0} IO/s", progress.rate_ops_per_s)];
    if progress.rate_bytes_per_s > 0.0 {
        parts.push(format!("{}/s", HumanBytes(progress.rate_bytes_per_s as u64)));
    }
    if let Some(ns) = progress.latency_ns_avg {
        parts.push(format!("{:.2} ms", ns as f64 / 1e6));
    }
    if let Some(ns) = left_ns(progress) {
        parts.push(format!("{} left", minutes(ns)));
    }
    parts.join(", ")
}

fn minutes(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_goes_by_time_where_the_phase_has_one_and_by_bytes_elsewhere() {
        let second = 1_000_000_000;
        let timed =
            Progress { elapsed_ns: 20 * second, total_ns: 30 * second, ..Default::default() };
        assert_eq!(left_ns(&timed), Some(10 * second));
        let bytes = Progress {
            elapsed_ns: 5 * second,
            done_bytes: 1,
            total_bytes: 2,
            ..Default::default()
        };
        assert_eq!(left_ns(&bytes), Some(5 * second));
        assert_eq!(left_ns(&Progress::default()), None);
    }

    #[test]
    fn times_read_as_people_say_them() {
        let second = 1_000_000_000;
        assert_eq!(minutes(500_000_000), "1 s");
        assert_eq!(minutes(75 * second), "1:15 min");
        assert_eq!(minutes(7_260 * second), "2:01 h");
    }
}
