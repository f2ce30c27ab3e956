//! Submits operations. It checks each operation, fills a slot and encodes the call.

use crate::call::{encode_commit, encode_metadata, encode_transfer};
use crate::core::{Core, Object};
use crate::error::SubmitError;
use crate::handle::{Handle, ObjectId, ServerId};
use crate::op::{Op, Procedure};
use crate::slot::{NONE, Owner, Payload, State};

/// Maximum length of a name, in bytes. Common file systems have the same limit.
const NAME_BYTES_MAX: usize = 255;

impl Core {
    /// Submits an operation. [`Core::hand_over`] sends it.
    ///
    /// # Errors
    /// Returns a [`SubmitError`] if the operation is rejected. A rejected operation has no
    /// completion.
    pub fn submit(&mut self, token: u64, op: &Op<'_>) -> Result<(), SubmitError> {
        self.submit_kept(token, op, false).map(|_| ())
    }

    /// Submits an operation as [`Core::submit`] does. With `keep_reply`, the results are stored in
    /// `kept`.
    pub(crate) fn submit_kept(
        &mut self,
        token: u64,
        op: &Op<'_>,
        keep_reply: bool,
    ) -> Result<u32, SubmitError> {
        if self.outstanding >= self.config.depth_max {
            return Err(SubmitError::Full);
        }
        self.check(op)?;
        let (object, second, into) = targets(op);
        let server = match *op {
            Op::Null { server } => server,
            _ => self.object(object)?.server,
        };
        if server.0 as usize >= self.servers.len() {
            return Err(SubmitError::NoHandle);
        }
        for id in [second, into].into_iter().flatten() {
            self.objects.get(id.0 as usize).ok_or(SubmitError::NoHandle)?;
        }
        let index = self.slots.take().ok_or(SubmitError::Full)?;
        self.fill(index, token, op, (server, object, into));
        self.slots.get_mut(index).keep_reply = keep_reply;
        if let Err(error) = self.encode(index, op, second) {
            self.slots.release(index);
            return Err(error);
        }
        self.fresh.push(index);
        self.outstanding += 1;
        self.outstanding_bytes += self.slots.get(index).moves_bytes();
        Ok(index)
    }

    fn check(&mut self, op: &Op<'_>) -> Result<(), SubmitError> {
        let name = |name: &[u8]| match name.len() {
            1..=NAME_BYTES_MAX => Ok(()),
            size => Err(SubmitError::Name { size_bytes: u32::try_from(size).unwrap_or(u32::MAX) }),
        };
        match *op {
            Op::Read { size_bytes, buffer_offset_bytes, .. }
            | Op::Write { size_bytes, buffer_offset_bytes, .. } => {
                let limit_bytes = self.config.size_bytes_max;
                if size_bytes == 0 || size_bytes > limit_bytes {
                    return Err(SubmitError::Size { size_bytes, limit_bytes });
                }
                let end = buffer_offset_bytes.saturating_add(u64::from(size_bytes));
                self.arena_bytes_needed = self.arena_bytes_needed.max(end);
                Ok(())
            }
            Op::Lookup { name: one, .. }
            | Op::Create { name: one, .. }
            | Op::MakeDir { name: one, .. }
            | Op::Remove { name: one, .. }
            | Op::RemoveDir { name: one, .. } => name(one),
            Op::Rename { from, to, .. } => name(from).and_then(|()| name(to)),
            _ => Ok(()),
        }
    }

    fn object(&self, id: Option<ObjectId>) -> Result<&Object, SubmitError> {
        let object = id.and_then(|id| self.objects.get(id.0 as usize));
        object.filter(|object| !object.handle.is_empty()).ok_or(SubmitError::NoHandle)
    }

    #[inline]
    fn fill(
        &mut self,
        index: u32,
        token: u64,
        op: &Op<'_>,
        (server, object, into): (ServerId, Option<ObjectId>, Option<ObjectId>),
    ) {
        self.sequence += 1;
        let sequence = self.sequence;
        let slot = self.slots.get_mut(index);
        slot.state = State::Fresh;
        slot.owner = Owner::Caller;
        slot.procedure = op.procedure();
        slot.token = token;
        slot.server = server;
        slot.object = object.map_or(NONE, |id| id.0);
        slot.into = into.map_or(NONE, |id| id.0);
        slot.done_bytes = 0;
        slot.size_bytes = 0;
        slot.entry = None;
        slot.sequence = sequence;
        slot.submitted_ns = 0;
        slot.retransmissions = 0;
        match *op {
            Op::Read { offset_bytes, size_bytes, buffer_offset_bytes, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
                slot.total_bytes = size_bytes;
                slot.payload = Payload::Arena(buffer_offset_bytes);
            }
            Op::Write { offset_bytes, size_bytes, buffer_offset_bytes, stability, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
                slot.total_bytes = size_bytes;
                slot.payload = Payload::Arena(buffer_offset_bytes);
                slot.stability = stability;
            }
            Op::Commit { offset_bytes, size_bytes, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
            }
            _ => {}
        }
    }

    fn encode(
        &mut self,
        index: u32,
        op: &Op<'_>,
        second: Option<ObjectId>,
    ) -> Result<(), SubmitError> {
        if matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Commit { .. }) {
            self.encode_again(index);
            return Ok(());
        }
        let second = match second {
            Some(_) => self.object(second)?.handle,
            None => Handle::EMPTY,
        };
        let (slot, header) = self.slots.parts_mut(index);
        let first = match op {
            Op::Null { .. } => &Handle::EMPTY,
            _ => &self.objects[slot.object as usize].handle,
        };
        let template = &self.servers[slot.server.0 as usize].template;
        // Names and handles have limited lengths, and attributes have a fixed size. The space for a
        // header is therefore always sufficient.
        let end = encode_metadata(template, slot.xid, op, (first, &second), header);
        slot.header_bytes = end.ok_or(SubmitError::NoHandle)?;
        Ok(())
    }

    /// Encodes a READ, WRITE or COMMIT from the fields of the slot.
    #[inline]
    pub(crate) fn encode_again(&mut self, index: u32) {
        let (slot, header) = self.slots.parts_mut(index);
        let template = &self.servers[slot.server.0 as usize].template;
        let handle = &self.objects[slot.object as usize].handle;
        let end = if slot.procedure == Procedure::Commit {
            let range = (slot.offset_bytes, slot.size_bytes);
            encode_commit(template, slot.xid, handle, range, header)
        } else {
            encode_transfer(template, slot, handle, header)
        };
        // The header always fits, because it has at most 28 + 156 + 8 + 68 + 20 bytes.
        slot.header_bytes = end.unwrap_or(0);
    }
}

/// Returns three entries of the handle table: the object of the operation, the second directory (if
/// any), and the entry that receives a returned handle (if any).
fn targets(op: &Op<'_>) -> (Option<ObjectId>, Option<ObjectId>, Option<ObjectId>) {
    match *op {
        Op::Null { .. } => (None, None, None),
        Op::GetAttr { object }
        | Op::SetAttr { object, .. }
        | Op::Access { object, .. }
        | Op::FsStat { object }
        | Op::FsInfo { object }
        | Op::PathConf { object } => (Some(object), None, None),
        Op::Read { file, .. } | Op::Write { file, .. } | Op::Commit { file, .. } => {
            (Some(file), None, None)
        }
        Op::Lookup { dir, into, .. }
        | Op::Create { dir, into, .. }
        | Op::MakeDir { dir, into, .. } => (Some(dir), None, into),
        Op::Remove { dir, .. }
        | Op::RemoveDir { dir, .. }
        | Op::ReadDir { dir, .. }
        | Op::ReadDirPlus { dir, .. } => (Some(dir), None, None),
        Op::Rename { from_dir, to_dir, .. } => (Some(from_dir), Some(to_dir), None),
    }
}
