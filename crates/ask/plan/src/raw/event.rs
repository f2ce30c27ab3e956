//! `[[event]]`.

use crate::read::list::{List, OneOrMore};
use crate::read::section::section;
use crate::read::value::Name;
use crate::units::{DurationNs, Share};

section! {
    /// An event happens once during the measurement. Examples are a failure, a repair, or the load
    /// of another application. The event runs a command, prompts the operator, or starts the
    /// streams that have `start = "event:NAME"`. On a model, it makes a component fail or slows a
    /// component down. Use `[[event]]` for several events. See [events.md](events.md).
    EventRaw {
        /// Name of the event. The report and the fields `after` and `start` use this name.
        name: Name | "required";
        /// Time of the event, from the start of the measured phase.
        at_time as "at": DurationNs | "required: `at` or `after`";
        /// Name of an earlier event. This event starts when the command of the earlier event has
        /// ended and `delay` has passed.
        after: Name | "required: `at` or `after`";
        /// Time between the end of the earlier event's command and the start of this event. The
        /// field requires `after`.
        delay: DurationNs | "none";
        /// Command of the event. The list consists of the program and its arguments; no shell is
        /// used. A plan on the command line may contain any command. The web page and the agents
        /// accept only commands that `--allow-event` allows.
        run: List<Name> | "none";
        /// Agent of the fleet that runs the commands `run` and `undo`. The operator of this agent
        /// must allow both commands with `--allow-event`. In the commands, Plimsoll replaces
        /// `{host}` with the agent's name.
        host: Name | "the host of `plimsoll run`";
        /// Agents of the fleet that the event stops permanently. Their loss is part of the test, so
        /// the remaining hosts continue. Totals and windows include only the remaining hosts.
        expect_lost: OneOrMore<Name> | "none";
        /// Time limit for `run` and for `undo`. A command that takes longer is killed and counts as
        /// failed.
        timeout: DurationNs = "1m";
        /// Instruction for the operator, who follows it and then presses Enter.
        prompt: Name | "none";
        /// On a model: component that fails at the time of the event and recovers at `undo_at`,
        /// such as `node:3` or `drive:7`. If the name is unknown, the error lists all components of
        /// the model.
        fail: Name | "none";
        /// On a model: component that runs only at `speed` from the time of the event until
        /// `undo_at`. Examples are `drive:7`, `drive` (all drives), `node1.hdd` and `node:1`.
        throttle: Name | "none";
        /// Speed of the throttled component, as a share of the normal speed.
        speed: Share | "required with `throttle`";
        /// Command that reverses the event. The list consists of the program and its arguments.
        undo: List<Name> | "none";
        /// Time at which the event is reversed, from the start of the measured phase. The streams
        /// that the event started also end at this time. Without `undo_at`, a component of a model
        /// stays failed or slow.
        undo_at: DurationNs | "the end of the measured phase";
    }
}
