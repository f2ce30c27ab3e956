//! Traces of Microsoft Research Cambridge (Narayanan, Donnelly and Rowstron, "Write off-loading",
//! FAST 2008), in the form of SNIA's IOTTA repository:
//! `timestamp,host,disk,type,offset,size,response time`.

use super::fields::whole;
use super::{Form, Line, Operation};

/// Unit of Windows file times, which is 100 ns.
const TICK_NS: u64 = 100;

pub(super) struct Msr;

fn fields(line: &str) -> Option<[&str; 7]> {
    let mut parts = line.split(',').map(str::trim);
    let fields = [(); 7].map(|()| parts.next());
    let all = fields.iter().all(Option::is_some) && parts.next().is_none();
    all.then(|| fields.map(Option::unwrap_or_default))
}

fn is_read(word: &str) -> Option<bool> {
    match word {
        _ if word.eq_ignore_ascii_case("read") => Some(true),
        _ if word.eq_ignore_ascii_case("write") => Some(false),
        _ => None,
    }
}

pub(super) fn is_line(line: &str) -> bool {
    fields(line).is_some_and(|[at, _, disk, word, offset, size, _]| {
        is_read(word).is_some() && [at, disk, offset, size].iter().all(|text| whole(text).is_some())
    })
}

impl Form for Msr {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.to_ascii_lowercase().starts_with("timestamp") {
            return Line::Nothing;
        }
        let Some([at, host, disk, word, offset, size, _]) = fields(line) else {
            return Line::Unreadable;
        };
        let Some(is_read) = is_read(word) else { return Line::Unreadable };
        let operation = if is_read { Operation::Read } else { Operation::Write };
        let at_ns = whole(at).and_then(|ticks| ticks.checked_mul(TICK_NS));
        let (Some(at_ns), Some(offset_bytes), Some(size_bytes)) =
            (at_ns, whole(offset), whole(size))
        else {
            return Line::Unreadable;
        };
        volume.push_str(host);
        volume.push('.');
        volume.push_str(disk);
        Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before: false }
    }
}
