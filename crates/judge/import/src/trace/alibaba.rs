//! Block traces of Alibaba's cloud (Li et al., "An in-depth analysis of cloud block storage
//! workloads", IISWC 2020): `device_id,opcode,offset,length,timestamp`.

use super::fields::whole;
use super::{Form, Line, Operation};

const US: u64 = 1_000;

pub(super) struct Alibaba;

fn fields(line: &str) -> Option<[&str; 5]> {
    let mut parts = line.split(',').map(str::trim);
    let fields = [(); 5].map(|()| parts.next());
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
    fields(line).is_some_and(|[_, word, offset, size, at]| {
        is_read(word).is_some() && [offset, size, at].iter().all(|text| whole(text).is_some())
    })
}

impl Form for Alibaba {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.to_ascii_lowercase().starts_with("device_id") {
            return Line::Nothing;
        }
        let Some([device, word, offset, size, at]) = fields(line) else { return Line::Unreadable };
        let Some(is_read) = is_read(word) else { return Line::Unreadable };
        let operation = if is_read { Operation::Read } else { Operation::Write };
        let at_ns = whole(at).and_then(|us| us.checked_mul(US));
        let (Some(at_ns), Some(offset_bytes), Some(size_bytes)) =
            (at_ns, whole(offset), whole(size))
        else {
            return Line::Unreadable;
        };
        volume.push_str(device);
        Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before: false }
    }
}
