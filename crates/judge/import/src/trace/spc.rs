//! Traces of the Storage Performance Council's format ("SPC Trace File Format Specification",
//! revision 1.0.1), such as those of UMass: `ASU,LBA,size,opcode,timestamp`. Addresses are in
//! blocks of 512 bytes, sizes in bytes, and times in seconds.

use super::fields::{seconds_ns, whole};
use super::{Form, Line, Operation};

const BLOCK_BYTES: u64 = 512;

pub(super) struct Spc;

/// Returns the fields of a line. Optional fields may follow them.
fn fields(line: &str) -> Option<[&str; 5]> {
    let mut parts = line.split(',').map(str::trim);
    let fields = [(); 5].map(|()| parts.next());
    fields.iter().all(Option::is_some).then(|| fields.map(Option::unwrap_or_default))
}

fn is_read(word: &str) -> Option<bool> {
    match word {
        "R" | "r" => Some(true),
        "W" | "w" => Some(false),
        _ => None,
    }
}

/// Parses seconds. Some traces contain more than nine decimals.
fn time_ns(text: &str) -> Option<u64> {
    let end = text.find('.').map_or(text.len(), |point| (point + 10).min(text.len()));
    let rest = text.get(end..)?;
    rest.bytes().all(|byte| byte.is_ascii_digit()).then(|| seconds_ns(text.get(..end)?))?
}

pub(super) fn is_line(line: &str) -> bool {
    fields(line).is_some_and(|[asu, block, size, word, at]| {
        is_read(word).is_some()
            && [asu, block, size].iter().all(|text| whole(text).is_some())
            && time_ns(at).is_some()
    })
}

impl Form for Spc {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() {
            return Line::Nothing;
        }
        let Some([asu, block, size, word, at]) = fields(line) else { return Line::Unreadable };
        let Some(is_read) = is_read(word) else { return Line::Unreadable };
        let operation = if is_read { Operation::Read } else { Operation::Write };
        let offset_bytes = whole(block).and_then(|block| block.checked_mul(BLOCK_BYTES));
        let (Some(at_ns), Some(offset_bytes), Some(size_bytes)) =
            (time_ns(at), offset_bytes, whole(size))
        else {
            return Line::Unreadable;
        };
        volume.push_str(asu);
        Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before: false }
    }
}
