//! Context of a step. It contains the time, the memory, the I/Os to issue, and the tokens of I/Os.

use crate::step::{Arena, Completion, Io, IoKind};

use super::poison::{Failure, Finding, Place};

/// State of one step. The step passes it to each function that it calls.
pub struct Ctx<'a> {
    pub now_ns: u64,
    pub arena: &'a mut dyn Arena,
    pub out: &'a mut Vec<Io>,
    pub poison: &'a mut Option<Finding>,
}

impl Ctx<'_> {
    /// Records a failure, if no failure was recorded before.
    pub fn fail(&mut self, database: u32, place: Place, trouble: Failure) {
        self.poison.get_or_insert(Finding { database, place, trouble });
    }
}

/// Returns a failure if the completion is an error, or if fewer than `wanted_bytes` were
/// transferred.
pub(crate) fn trouble(completion: &Completion, wanted_bytes: u32) -> Option<Failure> {
    match completion.result {
        Err(errno) => Some(Failure::Io(errno)),
        Ok(got_bytes) if got_bytes < wanted_bytes => {
            Some(Failure::Short { got_bytes, wanted_bytes })
        }
        Ok(_) => None,
    }
}

/// Purpose of an I/O. It is stored in the top byte of the I/O's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    PageRead = 1,
    PageWrite,
    DatabaseFlush,
    LogWrite,
    LogFlush,
    Maintenance,
    Replication,
}

/// Parts of a token: the purpose of the I/O, the position of the database in the group, and an
/// index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub purpose: Purpose,
    pub place: usize,
    pub index: u32,
}

impl Token {
    pub fn pack(purpose: Purpose, place: usize, index: u32) -> u64 {
        (purpose as u64) << 56 | (place as u64 & 0xff_ffff) << 32 | u64::from(index)
    }

    pub fn unpack(token: u64) -> Option<Self> {
        let purpose = match token >> 56 {
            1 => Purpose::PageRead,
            2 => Purpose::PageWrite,
            3 => Purpose::DatabaseFlush,
            4 => Purpose::LogWrite,
            5 => Purpose::LogFlush,
            6 => Purpose::Maintenance,
            7 => Purpose::Replication,
            _ => return None,
        };
        Some(Self { purpose, place: (token >> 32 & 0xff_ffff) as usize, index: token as u32 })
    }
}

pub(crate) fn flush(token: u64, file: u32, class: u16, now_ns: u64) -> Io {
    Io {
        token,
        kind: IoKind::Flush,
        file,
        class,
        offset_bytes: 0,
        size_bytes: 0,
        buffer_offset_bytes: 0,
        intended_ns: now_ns,
    }
}
