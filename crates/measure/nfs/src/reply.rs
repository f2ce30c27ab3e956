//! Decodes the results in replies. Every reply is parsed completely, even if none of its fields are
//! used. A damaged reply therefore never counts as a success.

use nfs3_types::nfs3::{FSINFO3resok, FSSTAT3resok, PATHCONF3resok, fattr3, nfsstat3};

use crate::call::stability;
use crate::error::{CallError, Violation};
use crate::handle::Handle;
use crate::op::{Procedure, Stability};
use crate::xdr::{HANDLE_BYTES_MAX, NAME_BYTES_MAX, Reader, status};

/// Fields of a reply that the client uses itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Access mask, or number of directory entries.
    pub value: u32,
    /// Handle that the reply contains.
    pub handle: Option<Handle>,
}

/// Result of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteReply {
    pub count: u32,
    pub committed: Stability,
    pub verifier: [u8; 8],
}

/// Fields of a successful READ before the data. After they are parsed, the reader is at the start
/// of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadHead<'a> {
    pub count: u32,
    pub eof: bool,
    pub data: Reader<'a>,
}

/// Reads the NFS status of a reply.
#[inline]
pub(crate) fn check_status(reader: &mut Reader<'_>) -> Result<(), CallError> {
    match reader.u32("status")? {
        0 => Ok(()),
        code => Err(CallError::Status(status(code)?)),
    }
}

/// Parses the reply to a READ up to the data. `asked` is the requested size.
#[inline]
pub(crate) fn read_head<'a>(
    mut reader: Reader<'a>,
    requested: u32,
) -> Result<ReadHead<'a>, CallError> {
    check_status(&mut reader)?;
    reader.skip_attributes()?;
    let count = reader.u32("count")?;
    let eof = reader.bool("eof")?;
    let data_bytes = reader.u32("data")?;
    if data_bytes != count {
        return Err(Violation::CountMismatch { count, data_bytes }.into());
    }
    if count > requested {
        return Err(Violation::TooLong {
            field: "data",
            size_bytes: count,
            limit_bytes: requested,
        }
        .into());
    }
    Ok(ReadHead { count, eof, data: reader })
}

/// Parses the reply to a WRITE. `asked` contains the requested size and stability.
#[inline]
pub(crate) fn written(
    mut reader: Reader<'_>,
    (size_bytes, requested): (u32, Stability),
) -> Result<WriteReply, CallError> {
    check_status(&mut reader)?;
    reader.skip_wcc()?;
    let count = reader.u32("count")?;
    let code = reader.u32("committed")?;
    let verifier = *reader.array::<8>("verifier")?;
    reader.end()?;
    if count > size_bytes {
        return Err(Violation::CountTooLarge { count, size_bytes }.into());
    }
    let committed =
        stability(code).ok_or(Violation::BadValue { field: "committed", value: code })?;
    if committed < requested {
        return Err(
            Violation::WeakerStability { committed: code, requested: requested as u32 }.into()
        );
    }
    Ok(WriteReply { count, committed, verifier })
}

/// Parses the reply to a COMMIT. Returns the write verifier.
pub(crate) fn committed(mut reader: Reader<'_>) -> Result<[u8; 8], CallError> {
    check_status(&mut reader)?;
    reader.skip_wcc()?;
    let verifier = *reader.array::<8>("verifier")?;
    reader.end()?;
    Ok(verifier)
}

/// Parses the reply to any other procedure.
pub(crate) fn metadata(procedure: Procedure, mut reader: Reader<'_>) -> Result<Outcome, CallError> {
    let mut outcome = Outcome::default();
    if procedure != Procedure::Null {
        check_status(&mut reader)?;
    }
    match procedure {
        Procedure::Null | Procedure::Read | Procedure::Write | Procedure::Commit => {}
        Procedure::GetAttr => reader.skip_fixed::<fattr3>("attributes")?,
        Procedure::SetAttr | Procedure::Remove | Procedure::RemoveDir => reader.skip_wcc()?,
        Procedure::Lookup => {
            outcome.handle = Some(handle(&mut reader)?);
            reader.skip_attributes()?;
            reader.skip_attributes()?;
        }
        Procedure::Access => {
            reader.skip_attributes()?;
            outcome.value = reader.u32("access")?;
        }
        Procedure::Create | Procedure::MakeDir => {
            if reader.bool("handle_follows")? {
                outcome.handle = Some(handle(&mut reader)?);
            }
            reader.skip_attributes()?;
            reader.skip_wcc()?;
        }
        Procedure::Rename => {
            reader.skip_wcc()?;
            reader.skip_wcc()?;
        }
        Procedure::ReadDir | Procedure::ReadDirPlus => {
            let list = DirList::new(reader, procedure == Procedure::ReadDirPlus)?;
            outcome.value = list.walk(|_| ())?.entries;
            return Ok(outcome);
        }
        Procedure::FsStat => reader.skip_fixed::<FSSTAT3resok>("fsstat")?,
        Procedure::FsInfo => reader.skip_fixed::<FSINFO3resok>("fsinfo")?,
        Procedure::PathConf => reader.skip_fixed::<PATHCONF3resok>("pathconf")?,
    }
    reader.end()?;
    Ok(outcome)
}

fn handle(reader: &mut Reader<'_>) -> Result<Handle, Violation> {
    let bytes = reader.opaque(HANDLE_BYTES_MAX, "handle")?;
    // The field cannot be longer than a handle, so it is invalid only if it is empty.
    match Handle::new(bytes) {
        Some(handle) if !handle.is_empty() => Ok(handle),
        _ => Err(Violation::BadValue { field: "handle", value: bytes.len() as u32 }),
    }
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// Number that identifies the object on its file system.
    pub file_id: u64,
    /// File name.
    pub name: &'a [u8],
    /// Cookie with which a later READDIR continues after this entry.
    pub cookie: u64,
    /// Handle of the entry, if READDIRPLUS returned it.
    pub handle: Option<Handle>,
}

/// Summary of a list of directory entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEnd {
    /// Number of entries in this reply.
    pub entries: u32,
    /// True if the directory has no more entries.
    pub eof: bool,
    /// Verifier to pass with the next cookie.
    pub verifier: [u8; 8],
}

/// Parses the results of a READDIR or READDIRPLUS after the status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirList<'a> {
    reader: Reader<'a>,
    verifier: [u8; 8],
    plus: bool,
}

impl<'a> DirList<'a> {
    pub fn new(mut reader: Reader<'a>, plus: bool) -> Result<Self, Violation> {
        reader.skip_attributes()?;
        let verifier = *reader.array::<8>("cookie verifier")?;
        Ok(Self { reader, verifier, plus })
    }

    /// Calls `each` for every entry. The size of the record limits the number of iterations,
    /// because an entry has at least 24 bytes.
    pub fn walk(mut self, mut each: impl FnMut(DirEntry<'a>)) -> Result<DirEnd, Violation> {
        let mut entries = 0;
        while self.reader.bool("entry follows")? {
            each(self.entry()?);
            entries += 1;
        }
        let eof = self.reader.bool("eof")?;
        self.reader.end()?;
        Ok(DirEnd { entries, eof, verifier: self.verifier })
    }

    fn entry(&mut self) -> Result<DirEntry<'a>, Violation> {
        let reader = &mut self.reader;
        let file_id = reader.u64("fileid")?;
        let name = reader.opaque(NAME_BYTES_MAX, "name")?;
        let cookie = reader.u64("cookie")?;
        let mut found = None;
        if self.plus {
            reader.skip_attributes()?;
            if reader.bool("handle_follows")? {
                found = Some(handle(reader)?);
            }
        }
        Ok(DirEntry { file_id, name, cookie, handle: found })
    }
}

/// Returns true if the status means that the server executed an earlier transmission of the call.
pub(crate) fn says_done_before(procedure: Procedure, status: nfsstat3) -> bool {
    match procedure {
        Procedure::Create | Procedure::MakeDir => status == nfsstat3::NFS3ERR_EXIST,
        Procedure::Remove | Procedure::RemoveDir | Procedure::Rename => {
            status == nfsstat3::NFS3ERR_NOENT
        }
        _ => false,
    }
}
