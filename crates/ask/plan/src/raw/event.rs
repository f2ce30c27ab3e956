//! `[[event]]`.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::Name;
use crate::units::DurationNs;

section! {
    /// Something that happens to the storage system during the measurement, once: a failure, its
    /// repair, or a neighbour. It runs a command, asks the operator, or starts the streams with
    /// `start = "event:NAME"`. See [events.md](events.md).
    EventRaw {
        /// Name in the report, and in `after` and `start`.
        name: Name | "required";
        /// Time of the event in the measured phase.
        at_time as "at": DurationNs | "`at` or `after`";
        /// Event that it follows: `delay` after the end of that event's command.
        after: Name | "`at` or `after`";
        /// Time after the other event (`after`).
        delay: DurationNs | "none";
        /// Program and arguments. No shell interprets them. Only a plan on the command line of a
        /// local user may have commands; a page or an agent needs `--allow-event`.
        run: List<Name> | "no command";
        /// Time after which the command, or its undo, is killed and counts as failed.
        timeout: DurationNs = "1m";
        /// Text for the operator, who presses Enter when it is done.
        prompt: Name | "none";
        /// Command that ends the event: program and arguments.
        undo: List<Name> | "none";
        /// Time of the undo in the measured phase. The streams of the event end then, too.
        undo_at: DurationNs | "the end of the measured phase";
    }
}
