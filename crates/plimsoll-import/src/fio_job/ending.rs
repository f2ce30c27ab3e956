//! End of a fio job: its run time, its amount of work, or a steady state.

use super::steady::{ROUNDS, Steady};
use super::stream::Reader;
use super::values;

const S: u64 = 1_000_000_000;
/// Minimum window of a steady state. A shorter one has too few intervals.
const WINDOW_NS_MIN: u64 = 2 * S;

impl Reader<'_> {
    /// Notes the amount of work that ends a job, if it states no run time.
    pub(super) fn endings(&mut self) {
        let timed =
            self.text_of("runtime").and_then(|t| values::time(t, S)).is_some_and(|ns| ns > 0);
        for name in ["io_size", "number_ios", "loops"] {
            let counts = self.text_of(name).is_some_and(|t| !matches!(t.trim(), "0" | "1"));
            if counts && timed {
                self.remark(name, "would have ended the job by what it did; here runtime does");
            } else if counts {
                self.refuse(
                    name,
                    "ends the job by what it did; here what is measured has a length in time",
                    "state runtime= beside it, or in place of it",
                );
            }
        }
        if self.get("read_iolog").is_some() {
            self.refuse(
                "read_iolog",
                "replays a trace, so that nothing of what the job says beside it is done",
                "replay it as it is: plimsoll run --trace FILE",
            );
        }
        if self.get("wait_for").is_some() {
            self.refuse(
                "wait_for",
                "waits for one job of several; here sections run together, or wait for all before them",
                "write stonewall in its place",
            );
        }
        if self.text_of("latency_target").is_some_and(|t| t.trim() != "0") {
            self.refuse(
                "latency_target",
                "searches for the depth that keeps a latency, so that no depth of the job is the one measured",
                "take it away, state the latency in [requirement] of the plan, and run: plimsoll tune",
            );
        }
    }

    /// Returns the window of the steady state that ends the job, if there is one.
    pub(super) fn steady(&mut self) -> Option<Steady> {
        let criterion = self.text_of("steadystate")?;
        let followed = criterion.split([':', ',']).next().unwrap_or("").trim();
        let window = self.time("steadystate_duration", S).unwrap_or(0);
        let ramp_ns = self.time("steadystate_ramp_time", S).unwrap_or(0);
        if window == 0 {
            self.remark(
                "steadystate",
                "has no effect without steadystate_duration, in fio as here",
            );
            return None;
        }
        match followed {
            "iops" | "iops_slope" | "bw" | "bw_slope" => {}
            "lat" | "lat_slope" => {
                self.refuse(
                    "steadystate",
                    "ends the job by its latency; here a measurement ends by its rate of operations",
                    "write iops:LIMIT or iops_slope:LIMIT, or take it away and state runtime=",
                );
                return None;
            }
            _ => {
                self.fail("steadystate", "a criterion such as iops:2% or iops_slope:0.3%");
                return None;
            }
        }
        if window < WINDOW_NS_MIN {
            self.refuse(
                "steadystate_duration",
                "is too short a window to tell anything by",
                "write 2s or more",
            );
            return None;
        }
        let longest = self.text_of("runtime").and_then(|text| values::time(text, S));
        if longest.is_some_and(|ns| ns > 0 && ns < window) {
            self.refuse(
                "steadystate_duration",
                "is longer than the job's runtime: it could never be found steady",
                "write a shorter window, or a longer runtime=",
            );
            return None;
        }
        self.remark(
            "steadystate",
            "is carried over as measure = \"until-steady\": by SNIA's rule (five rounds within 20 % of their mean, with \
             a slope of 10 % at most) over the same window, in place of the job's own limit",
        );
        Some(Steady { round_ns: window / ROUNDS, ramp_ns })
    }
}
