//! Traces that fio records with `write_iolog` (fio(1), "Trace file format"). Version 2 contains
//! waits between operations instead of times. Version 3 contains a time for each operation, in
//! microseconds.

use super::fields::whole;
use super::{Form, Line, Operation};

const US: u64 = 1_000;

/// Content of a line, without the time.
enum Action<'l> {
    /// The line states that a file was added, opened or closed.
    File,
    /// The line states the file, action, offset and length of an operation.
    Io(&'l str, &'l str, u64, u64),
}

/// File names may contain spaces, so a line is parsed from its end.
fn action(line: &str) -> Option<Action<'_>> {
    let line = line.trim_end();
    let (rest, last) = line.rsplit_once(char::is_whitespace)?;
    if matches!(last, "add" | "open" | "close") {
        return Some(Action::File);
    }
    let length = whole(last)?;
    let (rest, offset) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    let (file, word) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    Some(Action::Io(file.trim(), word, whole(offset)?, length))
}

fn io(volume: &mut String, at_ns: u64, file: &str, word: &str, offset: u64, length: u64) -> Line {
    let operation = match word {
        "read" => Operation::Read,
        "write" => Operation::Write,
        "sync" => Operation::Sync,
        "datasync" => Operation::DataSync,
        // `sync_file_range(2)` waits for writes but does not flush the device.
        "sync_file_range" => return Line::Left("sync_file_range"),
        "trim" => return Line::Left("discards"),
        _ => return Line::Unreadable,
    };
    volume.push_str(file);
    if !operation.moves() {
        return Line::Flushes { at_ns, operation };
    }
    Line::Moves { at_ns, offset_bytes: offset, size_bytes: length, operation, flush_before: false }
}

/// Parser for version 2.
#[derive(Default)]
pub(super) struct V2 {
    now_ns: u64,
}

impl Form for V2 {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.starts_with("fio version") {
            return Line::Nothing;
        }
        match action(line) {
            None => Line::Unreadable,
            Some(Action::File) => Line::Nothing,
            Some(Action::Io(_, "wait", us, _)) => {
                self.now_ns = self.now_ns.saturating_add(us.saturating_mul(US));
                Line::Nothing
            }
            Some(Action::Io(file, word, offset, length)) => {
                io(volume, self.now_ns, file, word, offset, length)
            }
        }
    }
}

/// Parser for version 3.
pub(super) struct V3;

impl Form for V3 {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.starts_with("fio version") {
            return Line::Nothing;
        }
        let Some((at, rest)) = line.split_once(char::is_whitespace) else {
            return Line::Unreadable;
        };
        let Some(at_ns) = whole(at).and_then(|us| us.checked_mul(US)) else {
            return Line::Unreadable;
        };
        match action(rest.trim_start()) {
            None => Line::Unreadable,
            Some(Action::File) => Line::Nothing,
            Some(Action::Io(file, word, offset, length)) => {
                io(volume, at_ns, file, word, offset, length)
            }
        }
    }
}
