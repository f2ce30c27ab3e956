//! `[[event]]`.

use crate::read::list::{List, OneOrMore};
use crate::read::section::section;
use crate::read::value::Name;
use crate::units::{DurationNs, Share};

section! {
    /// Event that happens once during the measurement, such as a failure, a repair, or the load of
    /// a neighbour. It runs a command, asks the operator, or starts the streams with `start =
    /// "event:NAME"`. On a model it makes a component fail or slows it down instead. Use
    /// `[[event]]` for several events. See [events.md](events.md).
    EventRaw {
        /// Name of the event in the report, and in the fields `after` and `start`.
        name: Name | "required";
        /// Time of the event in the measured phase.
        at_time as "at": DurationNs | "required: `at` or `after`";
        /// Earlier event. This event follows `delay` after the command of the earlier event has
        /// ended.
        after: Name | "required: `at` or `after`";
        /// Delay after the earlier event (`after`).
        delay: DurationNs | "none";
        /// Program and arguments, without a shell. Only plans on the command line may contain
        /// commands; the web page and agents need `--allow-event`.
        run: List<Name> | "none";
        /// Agent of the fleet that runs `run` and `undo`. The operator of that agent must allow
        /// both commands with `--allow-event`. In the commands, `{host}` is replaced by the agent's
        /// name.
        host: Name | "the host of `plimsoll run`";
        /// Agents of the fleet that the event stops permanently. Their loss is part of the test:
        /// the other hosts continue, and only these count in totals and windows.
        expect_lost: OneOrMore<Name> | "none";
        /// Time limit for the command and for its undo. A command that exceeds it is killed and
        /// counts as failed.
        timeout: DurationNs = "1m";
        /// Instruction for the operator, who presses Enter when it is done.
        prompt: Name | "none";
        /// On a model: component that fails at this time and recovers at `undo_at`, such as
        /// `node:3` or `drive:7`. If the component is unknown, the error lists those of the model.
        fail: Name | "none";
        /// On a model: component that is slowed down to `speed` until `undo_at`, such as `drive:7`,
        /// `drive` (all drives), `node1.hdd` or `node:1`.
        throttle: Name | "none";
        /// Speed of the throttled component, as a share of the normal speed.
        speed: Share | "required with `throttle`";
        /// Command that reverses the event: program and arguments.
        undo: List<Name> | "none";
        /// Time of the undo in the measured phase. The streams of the event end then, too. Without
        /// `undo_at`, a component of a model stays failed or slow.
        undo_at: DurationNs | "the end of the measured phase";
    }
}
