//! `[[event]]`.

use crate::read::list::{List, OneOrMore};
use crate::read::section::section;
use crate::read::value::Name;
use crate::units::{DurationNs, Share};

section! {
    /// An [event](events.md), such as a failure or a repair, happens once during the measurement.
    /// It runs a command, prompts the operator, or starts the streams with `start = "event:NAME"`.
    /// On a model, it makes a component fail or slows it down. Use `[[event]]` for several events.
    EventRaw {
        /// Name of the event, which the fields `after` and `start` use.
        name: Name | "required";
        /// Time of the event, from the start of the measured phase.
        at_time as "at": DurationNs | "required: `at` or `after`";
        /// Name of an earlier event. This event starts `delay` after the end of the earlier event's
        /// command.
        after: Name | "required: `at` or `after`";
        /// Delay of this event (only with `after`).
        delay: DurationNs | "none";
        /// Command of the event: the program and its arguments; no shell is used. The web page and
        /// the agents accept only commands that `--allow-event` allows.
        run: List<Name> | "none";
        /// Agent of the fleet that runs the commands `run` and `undo`. In both commands, Plimsoll
        /// replaces `{host}` with the agent's name.
        host: Name | "the host of `plimsoll run`";
        /// Agents of the fleet that the event stops permanently. The other hosts continue. Totals
        /// and windows include only these hosts.
        expect_lost: OneOrMore<Name> | "none";
        /// Time limit for `run` and for `undo`. A command that exceeds it is killed and counts as
        /// failed.
        timeout: DurationNs = "1m";
        /// Instruction for the operator, who follows it and then presses Enter.
        prompt: Name | "none";
        /// On a model: component that fails and recovers at `undo_at`, such as `node:3` or
        /// `drive:7`. For an unknown name, the error lists all components.
        fail: Name | "none";
        /// On a model: component that runs only at `speed` until `undo_at`, such as `drive:7`,
        /// `drive` (all drives), `node1.hdd` or `node:1`.
        throttle: Name | "none";
        /// Speed of the throttled component, as a share of the normal speed.
        speed: Share | "required with `throttle`";
        /// Command that reverses the event, in the same form as `run`.
        undo: List<Name> | "none";
        /// Time at which the event is reversed and its streams end, from the start of the measured
        /// phase. Without `undo_at`, a component of a model stays failed or slow.
        undo_at: DurationNs | "the end of the measured phase";
    }
}
