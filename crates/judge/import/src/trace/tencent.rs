//! Block traces of Tencent's cloud (Zhang et al., "OSCA: an online-model based cache allocation
//! scheme in cloud block storage systems", USENIX ATC 2020): `timestamp,offset,size,type,volume`.
//! Times are in seconds since 1970, and offsets and sizes in sectors of 512 bytes. Type 0 is a
//! read, and type 1 a write.

use super::fields::whole;
use super::{Form, Line, Operation};

const SECTOR_BYTES: u64 = 512;
const S: u64 = 1_000_000_000;
/// Range of valid times (2001 to 2286). By these times, a trace is distinguished from other tables
/// of numbers.
const UNIX_S: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

pub(super) struct Tencent;

fn fields(line: &str) -> Option<[u64; 5]> {
    let mut parts = line.split(',').map(whole);
    let mut next = || parts.next().flatten();
    let fields = [next()?, next()?, next()?, next()?, next()?];
    (parts.next().is_none() && fields[3] <= 1).then_some(fields)
}

pub(super) fn is_line(line: &str) -> bool {
    fields(line).is_some_and(|[at, _, size, ..]| UNIX_S.contains(&at) && size > 0)
}

impl Form for Tencent {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let line = line.trim();
        if line.is_empty() || line.to_ascii_lowercase().starts_with("timestamp") {
            return Line::Nothing;
        }
        let Some([at, offset, size, kind, name]) = fields(line) else { return Line::Unreadable };
        let operation = if kind == 0 { Operation::Read } else { Operation::Write };
        let bytes = |sectors: u64| sectors.checked_mul(SECTOR_BYTES);
        let (Some(at_ns), Some(offset_bytes), Some(size_bytes)) =
            (at.checked_mul(S), bytes(offset), bytes(size))
        else {
            return Line::Unreadable;
        };
        volume.push_str(&name.to_string());
        Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before: false }
    }
}
