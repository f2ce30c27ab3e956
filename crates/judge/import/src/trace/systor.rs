//! Traces of a virtual desktop infrastructure (Lee et al., "Understanding storage traffic
//! characteristics on enterprise virtual desktop infrastructure", SYSTOR 2017):
//! `Timestamp,Response,IOType,LUN,Offset,Size`. Times are in seconds, and offsets and sizes in
//! bytes.

use super::fields::{seconds_ns, whole};
use super::{Form, Line, Operation};

pub(super) struct Systor;

fn fields(line: &str) -> Option<[&str; 6]> {
    let mut parts = line.split(',').map(str::trim);
    let fields = [(); 6].map(|()| parts.next());
    let all = fields.iter().all(Option::is_some) && parts.next().is_none();
    all.then(|| fields.map(Option::unwrap_or_default))
}

fn is_read(word: &str) -> Option<bool> {
    match word {
        "R" | "r" => Some(true),
        "W" | "w" => Some(false),
        _ => None,
    }
}

pub(super) fn is_line(line: &str) -> bool {
    fields(line).is_some_and(|[at, _, word, lun, offset, size]| {
        is_read(word).is_some()
            && seconds_ns(at).is_some()
            && [lun, offset, size].iter().all(|text| whole(text).is_some())
    })
}

impl Form for Systor {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.to_ascii_lowercase().starts_with("timestamp") {
            return Line::Nothing;
        }
        let Some([at, _, word, lun, offset, size]) = fields(line) else {
            return Line::Unreadable;
        };
        // Some commands transfer no data. They have no type.
        let Some(is_read) = is_read(word) else {
            return if word.is_empty() {
                Line::Left("operations without a type")
            } else {
                Line::Unreadable
            };
        };
        let operation = if is_read { Operation::Read } else { Operation::Write };
        let (Some(at_ns), Some(offset_bytes), Some(size_bytes)) =
            (seconds_ns(at), whole(offset), whole(size))
        else {
            return Line::Unreadable;
        };
        volume.push_str(lun);
        Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before: false }
    }
}
