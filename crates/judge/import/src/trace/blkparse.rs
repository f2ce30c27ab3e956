//! Default output of blkparse: `major,minor cpu sequence time pid action rwbs sector + sectors
//! [process]` (blkparse(1)). An operation has a line for each stage. Only the lines of one stage
//! represent the operations.

use super::fields::{seconds_ns, whole};
use super::{Form, Line, Operation, Stage};

/// Sector size of the block layer.
const SECTOR_BYTES: u64 = 512;

pub(super) struct Blkparse {
    stage: char,
}

/// Fields of a line up to its action.
struct Event<'l> {
    device: &'l str,
    at_ns: u64,
    action: &'l str,
    rwbs: &'l str,
    rest: std::str::SplitWhitespace<'l>,
}

fn event(line: &str) -> Option<Event<'_>> {
    let mut words = line.split_whitespace();
    let device = words.next()?;
    let (major, minor) = device.split_once(',')?;
    whole(major).and(whole(minor))?;
    let (cpu, sequence) = (words.next()?, words.next()?);
    whole(cpu).and(whole(sequence))?;
    let at_ns = seconds_ns(words.next()?)?;
    whole(words.next()?)?;
    let action = words.next()?;
    // An action has one or two letters, such as Q, G, D, C, A, m and UT.
    if action.len() > 2 || !action.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let rwbs = words.next().unwrap_or("");
    Some(Event { device, at_ns, action, rwbs, rest: words })
}

/// Returns the stage of a blkparse line with a read or write. Returns `None` for stages that cannot
/// represent an operation.
pub(super) fn stage(line: &str) -> Option<Stage> {
    let event = event(line)?;
    let stages = [Stage::Queued, Stage::Issued, Stage::Completed];
    stages.into_iter().find(|stage| event.action.chars().eq([stage.letter()]))
}

impl Blkparse {
    pub(super) fn new(stage: Stage) -> Self {
        Self { stage: stage.letter() }
    }
}

impl Form for Blkparse {
    fn line(&mut self, line: &str, volume: &mut String) -> Line {
        let Some(mut event) = event(line) else { return other(line) };
        if !event.action.chars().eq([self.stage]) {
            return Line::Nothing;
        }
        // The flags are in this order: preceding flush; discard, write or read; forced unit access;
        // read-ahead; barrier; synchronous; metadata.
        let rwbs = event.rwbs.as_bytes();
        let flushes = rwbs.first() == Some(&b'F');
        let flush = |volume: &mut String| {
            volume.push_str(event.device);
            Line::Flushes { at_ns: event.at_ns, operation: Operation::DataSync }
        };
        let at = rwbs.iter().position(|flag| matches!(flag, b'R' | b'W' | b'D' | b'N' | b'Z'));
        let operation = match at.map(|at| rwbs[at]) {
            Some(b'D') => return Line::Left("discards"),
            Some(b'Z') => return Line::Left("operations on zones"),
            Some(b'R') => Operation::Read,
            Some(b'W') => {
                let after = at.map_or(&[][..], |at| &rwbs[at + 1..]);
                if after.contains(&b'F') { Operation::WriteDurable } else { Operation::Write }
            }
            _ if flushes => return flush(volume),
            _ => return Line::Left("commands that transfer no data"),
        };
        let (sector, plus, sectors) = (event.rest.next(), event.rest.next(), event.rest.next());
        let place = match (sector.and_then(whole), plus, sectors.and_then(whole)) {
            (Some(sector), Some("+"), Some(sectors)) => {
                sector.checked_mul(SECTOR_BYTES).zip(sectors.checked_mul(SECTOR_BYTES))
            }
            // An empty write only requests a flush: `FWS [process]`.
            _ if flushes => return flush(volume),
            _ => None,
        };
        let Some((offset_bytes, size_bytes)) = place else { return Line::Unreadable };
        if size_bytes == 0 && flushes {
            return flush(volume);
        }
        volume.push_str(event.device);
        Line::Moves {
            at_ns: event.at_ns,
            offset_bytes,
            size_bytes,
            operation,
            flush_before: flushes,
        }
    }
}

/// Classifies lines that are not events, such as the summary at the end.
fn other(line: &str) -> Line {
    let line = line.trim();
    let summary =
        ["CPU", "Total", "Reads", "Read ", "Write", "IO ", "Throughput", "Events", "Skips"];
    let is_said = line.is_empty() || summary.iter().any(|word| line.starts_with(word));
    let is_count = line.contains(':') && !line.contains(',');
    if is_said || is_count || line.starts_with("Input file") {
        Line::Nothing
    } else {
        Line::Unreadable
    }
}
