//! `[[event]]`.

use crate::read::list::{List, OneOrMore};
use crate::read::section::section;
use crate::read::value::Name;
use crate::units::{DurationNs, Share};

section! {
    /// Event during the measurement, once: a failure, its repair, or a neighbour. It runs a command,
    /// asks the operator, or starts the streams with `start = "event:NAME"`. On a model it fails or
    /// throttles a component instead. Use `[[event]]` for several. See [events.md](events.md).
    EventRaw {
        /// Name in the report, and in `after` and `start`.
        name: Name | "required";
        /// Time of the event in the measured phase.
        at_time as "at": DurationNs | "required: `at` or `after`";
        /// Earlier event: this one follows `delay` after the end of its command.
        after: Name | "required: `at` or `after`";
        /// Time after the other event (`after`).
        delay: DurationNs | "none";
        /// Program and arguments, without a shell. Only plans on the command line may have
        /// commands; a page or an agent needs `--allow-event`.
        run: List<Name> | "none";
        /// Agent of the fleet that runs `run` and `undo`. The operator of that agent must allow both
        /// commands with `--allow-event`. Commands may contain `{host}`, the agent's name.
        host: Name | "the host of `plimsoll run`";
        /// Agents of the fleet that the event stops for good. Their loss is part of the test: the
        /// other hosts continue, and totals and windows count only these.
        expect_lost: OneOrMore<Name> | "none";
        /// Time after which the command, or its undo, is killed and has failed.
        timeout: DurationNs = "1m";
        /// Text for the operator, who presses Enter when it is done.
        prompt: Name | "none";
        /// On a model: component that is lost at this time and returns at `undo_at`, such as
        /// `node:3` or `drive:7`. A plan with an unknown component lists those of its model.
        fail: Name | "none";
        /// On a model: component whose speed falls to `speed` until `undo_at`, such as `drive:7`,
        /// `drive` (all drives), `node1.hdd` or `node:1`.
        throttle: Name | "none";
        /// Speed of the throttled component, as a share of its normal speed.
        speed: Share | "required with `throttle`";
        /// Command that ends the event: program and arguments.
        undo: List<Name> | "none";
        /// Time of the undo in the measured phase, when the event's streams end too. Without it, a
        /// component of a model stays lost or slow.
        undo_at: DurationNs | "the end of the measured phase";
    }
}
