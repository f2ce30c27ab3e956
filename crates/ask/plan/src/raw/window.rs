//! `[requirement.before]`, `[requirement.during]`, `[requirement.after]`, and the limits of a stream.

use toml::de::DeValue;

use super::latency::read_limits;
use crate::read::section::{Section, section};
use crate::read::value::{Integer, ReadValue};
use crate::read::{Cx, Located, Position};
use crate::resolved::{LatencyClass, LatencyStatistic};
use crate::units::{BytesPerS, DurationNs, OpsPerS};

section! {
    /// Limits that apply in one window of a plan with events: `[requirement.before]` (until the
    /// first event), `[requirement.during]` (from the first event until the recovery) and
    /// `[requirement.after]`. Latency limits have the same names as in `[requirement]`.
    WindowFields {
        /// Minimum I/Os per second.
        iops: OrShare<OpsPerS> | "none";
        /// Minimum bytes per second, for reads and writes together.
        bandwidth: OrShare<BytesPerS> | "none";
        /// Longest time without any completion.
        outage_max: DurationNs | "none";
        /// Longest time until rate and p99 have recovered, from the event or from its undo
        /// (`after`). [events.md](events.md#recovery) defines recovery.
        recovery_max: DurationNs | "none";
        /// Maximum number of failed I/Os. If it is set, the run continues after a failed I/O.
        errors_max: Integer<0> | "none: a failed I/O ends the run";
    }
}

/// Limit as a value with a unit, or as a share of the value measured before the event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OrShare<T> {
    /// Value with a unit.
    Value(T),
    /// Factor of the value measured before the event.
    OfBefore(f64),
}

impl<T: ReadValue> ReadValue for OrShare<T> {
    fn kind() -> String {
        format!("{}, or `\"70% of before\"`", T::kind())
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let share = value.as_str().and_then(|text| text.trim().strip_suffix("of before"));
        let Some(share) = share else { return T::read(value, at, cx).map(Self::Value) };
        let percent = share.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
        match percent.filter(|percent| percent.is_finite() && *percent > 0.0) {
            Some(percent) => Some(Self::OfBefore(percent / 100.0)),
            None => {
                cx.fail(
                    at,
                    "is not a share of the value before the events",
                    "use a share such as \"70% of before\"",
                );
                None
            }
        }
    }
}

/// Limits with their latencies.
#[derive(Clone, Debug)]
pub(crate) struct WindowRaw {
    /// Fields with fixed names.
    pub(crate) fields: WindowFields,
    /// Latency limits.
    pub(crate) limits: Vec<(LatencyClass, LatencyStatistic, Located<OrShare<DurationNs>>)>,
}

impl ReadValue for WindowRaw {
    fn kind() -> String {
        "table".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let Some(table) = value.as_table() else {
            cx.fail(at, "is not a table", "use a table such as { read_latency_p99 = \"5ms\" }");
            return None;
        };
        let limits = read_limits(table, WindowFields::FIELDS, at, cx);
        Some(Self { fields: WindowFields::read_table(table, at, cx)?, limits })
    }
}
