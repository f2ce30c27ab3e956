//! Converts the condition that ends a fio job. It is a run time, an amount of work, or a steady
//! state.

use super::steady::{ROUNDS, SteadyState};
use super::stream::Reader;
use super::values;

const S: u64 = 1_000_000_000;
/// Minimum length of the steady-state window. A shorter window contains too few intervals.
const WINDOW_NS_MIN: u64 = 2 * S;

impl Reader<'_> {
    /// Adds notes or errors for options that end a job after an amount of work, or at other
    /// conditions that plans do not support.
    pub(super) fn endings(&mut self) {
        let timed =
            self.text_of("runtime").and_then(|t| values::time(t, S)).is_some_and(|ns| ns > 0);
        for name in ["io_size", "number_ios", "loops"] {
            let counts = self.text_of(name).is_some_and(|t| !matches!(t.trim(), "0" | "1"));
            if counts && timed {
                self.remark(
                    name,
                    "ends the job after an amount of work in fio; the plan ends after runtime",
                );
            } else if counts {
                self.reject(
                    name,
                    "ends the job after an amount of work, but a plan ends after a fixed time",
                    "add runtime=, or use runtime= instead of this option",
                );
            }
        }
        if self.get("read_iolog").is_some() {
            self.reject(
                "read_iolog",
                "replays a trace, so the job's other options have no effect",
                "replay the trace directly: plimsoll run --trace FILE",
            );
        }
        self.commands();
        self.pauses();
        for (name, why) in [
            ("create_only", "makes fio create the files without any I/O"),
            ("verify_only", "makes fio verify the data of an earlier run without writing"),
            ("profile", "replaces the job's options with those of a built-in test"),
        ] {
            if self.is_set(name) {
                self.reject(name, why, "remove this option, or use fio for this job");
            }
        }
        if self.get("wait_for").is_some() {
            self.reject(
                "wait_for",
                "makes the job wait for one other job; in Plimsoll, a section either runs at the \
                 same time as the sections before it or waits for all of them",
                "use stonewall instead",
            );
        }
        if self.text_of("latency_target").is_some_and(|t| t.trim() != "0") {
            self.reject(
                "latency_target",
                "makes fio search for the queue depth that meets a latency, so the depth is not \
                 known before the run",
                "remove this option, set the latency limit in the plan's [requirement], and run \
                 plimsoll tune",
            );
        }
    }

    /// Rejects pauses that do not follow each operation.
    fn pauses(&mut self) {
        let blocks = self.int("thinktime_blocks").is_some_and(|blocks| blocks > 1);
        let io_time = self.time("thinktime_iotime", S).is_some_and(|ns| ns > 0);
        if !self.has_think_time() {
            for name in ["thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime"] {
                if self.get(name).is_some() {
                    self.remark(name, "has no effect without thinktime, as in fio");
                }
            }
            return;
        }
        for (name, is_used) in [("thinktime_blocks", blocks), ("thinktime_iotime", io_time)] {
            if is_used {
                self.reject(
                    name,
                    "makes fio issue many operations between two pauses, but in a plan a client \
                     pauses after each operation",
                    "remove this option, or write a plan with arrival = \"bursts\"",
                );
            }
        }
    }

    /// Returns true if the job pauses between operations.
    pub(super) fn has_think_time(&self) -> bool {
        self.text_of("thinktime").and_then(|text| values::time(text, 1000)).is_some_and(|ns| ns > 0)
    }

    /// Rejects options that send commands other than reads and writes, and options that control
    /// data placement.
    fn commands(&mut self) {
        for (name, usual) in
            [("write_mode", "write"), ("read_mode", "read"), ("verify_mode", "read")]
        {
            if self.text_of(name).is_some_and(|mode| mode.trim() != usual) {
                self.reject(
                    name,
                    "sends a device command that Plimsoll does not support",
                    "remove this option, or use fio for this job",
                );
            } else if self.get(name).is_some() {
                self.remark(
                    name,
                    "has its default value: the job sends ordinary commands, as Plimsoll does",
                );
            }
        }
        if self.is_set("sprandom") {
            self.reject(
                "sprandom",
                "prepares the device by writing all of it in a special order, and no Plimsoll \
                 pattern writes in this order",
                "let fio prepare the device, or set condition in [phases]",
            );
        }
        for name in ["fdp", "dataplacement"] {
            if self.text_of(name).is_some_and(|kind| !matches!(kind.trim(), "0" | "none")) {
                self.reject(
                    name,
                    "directs writes to streams on the device, which Plimsoll does not support",
                    "remove this option, or use fio for this job",
                );
            }
        }
        if self.int("num_range").is_some_and(|ranges| ranges > 1) {
            self.remark(
                "num_range",
                "discards several ranges with a single command in fio; Plimsoll ignores this option",
            );
        }
    }

    /// Returns the steady state at which the job ends, if the job has such a condition.
    pub(super) fn steady(&mut self) -> Option<SteadyState> {
        let criterion = self.text_of("steadystate")?;
        let followed = criterion.split([':', ',']).next().unwrap_or("").trim();
        let window = self.time("steadystate_duration", S).unwrap_or(0);
        let ramp_ns = self.time("steadystate_ramp_time", S).unwrap_or(0);
        if window == 0 {
            self.remark("steadystate", "has no effect without steadystate_duration, as in fio");
            return None;
        }
        if self.get("steadystate_check_interval").is_some() {
            self.remark(
                "steadystate_check_interval",
                "sets the time between two checks of the steady state in fio; Plimsoll checks after \
                 each round",
            );
        }
        match followed {
            "iops" | "iops_slope" | "bw" | "bw_slope" => {}
            "lat" | "lat_slope" => {
                self.reject(
                    "steadystate",
                    "ends the job at a steady latency, but in Plimsoll only a steady rate can end a \
                     measurement",
                    "use iops:LIMIT or iops_slope:LIMIT, or remove steadystate and set runtime=",
                );
                return None;
            }
            _ => {
                self.fail("steadystate", "a criterion such as iops:2% or iops_slope:0.3%");
                return None;
            }
        }
        if window < WINDOW_NS_MIN {
            self.reject(
                "steadystate_duration",
                "is too short to detect a steady state",
                "use 2s or more",
            );
            return None;
        }
        let longest = self.text_of("runtime").and_then(|text| values::time(text, S));
        if longest.is_some_and(|ns| ns > 0 && ns < window) {
            self.reject(
                "steadystate_duration",
                "is longer than the job's runtime, so a steady state could never be detected",
                "use a shorter window, or a longer runtime=",
            );
            return None;
        }
        self.remark(
            "steadystate",
            "is converted to measure = \"until-steady\". SNIA's rule then replaces the job's own \
             limit, over a window of the same length: five rounds must be within 20 % of their \
             mean, and their slope must be at most 10 %",
        );
        Some(SteadyState { round_ns: window / ROUNDS, ramp_ns })
    }
}
