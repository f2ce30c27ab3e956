//! Limits of a window (`[requirement.before]`, `[requirement.during]`, `[requirement.after]`) or of
//! a stream.

use toml::de::DeValue;

use super::latency::read_limits;
use crate::read::section::{Section, section};
use crate::read::value::{Integer, ReadValue};
use crate::read::{Cx, Located, Position};
use crate::resolved::{LatencyClass, LatencyStatistic};
use crate::units::{BytesPerS, DurationNs, OpsPerS};

section! {
    /// A plan with events can set limits for three windows: `[requirement.before]` (until the first
    /// event), `[requirement.during]` (from the first event until the recovery) and
    /// `[requirement.after]`. Each section accepts the following fields and the latency limits of
    /// `[requirement]`.
    WindowFields {
        /// Minimum number of I/Os per second.
        iops: OrShare<OpsPerS> | "none";
        /// Minimum bandwidth of reads and writes together.
        bandwidth: OrShare<BytesPerS> | "none";
        /// Maximum time during which no operation completes.
        outage_max: DurationNs | "none";
        /// Maximum time from the last event or undo until the [recovery](events.md#recovery) of the
        /// rate and the p99 latency. Only `[requirement.after]` can contain this limit.
        recovery_max: DurationNs | "none";
        /// Maximum number of failed I/Os.
        errors_max: Integer<0> | "not set: the first failed I/O ends the run";
    }
}

/// A limit. It is a value with a unit, or a share of the value that was measured before the event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OrShare<T> {
    /// The limit itself, with a unit.
    Value(T),
    /// The limit is this factor times the value that was measured before the event.
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

/// Limits of a window or stream, including latency limits.
#[derive(Clone, Debug)]
pub(crate) struct WindowRaw {
    /// Fields other than the latency limits.
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
