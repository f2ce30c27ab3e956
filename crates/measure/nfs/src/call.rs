//! Encodes calls with the arguments of each procedure (RFC 1813, 3.3).

use nfs3_types::nfs3::sattr3;

use crate::handle::Handle;
use crate::op::{CreateHow, Op, Procedure, Stability};
use crate::rpc::{CallTemplate, set_record_mark};
use crate::slot::Slot;
use crate::xdr::{Writer, padded};

/// Encodes a READ or WRITE from the fields of the slot. It may be a new call, the remaining part of
/// a short transfer, or a lost write that is sent again. Returns the length of the header, or
/// `None` if the space is too small.
#[inline]
pub(crate) fn encode_transfer(
    template: &CallTemplate,
    slot: &Slot,
    handle: &Handle,
    header: &mut [u8],
) -> Option<u32> {
    let mut writer = template.start(header, slot.xid, slot.procedure as u32);
    writer.opaque(handle.as_bytes());
    writer.u64(slot.offset_bytes);
    writer.u32(slot.size_bytes);
    if slot.procedure == Procedure::Write {
        writer.u32(slot.stability as u32);
        writer.u32(slot.size_bytes);
    }
    let end = writer.finish()?;
    mark(header, end, slot.payload_bytes())
}

/// Encodes COMMIT.
pub(crate) fn encode_commit(
    template: &CallTemplate,
    xid: u32,
    handle: &Handle,
    (offset_bytes, size_bytes): (u64, u32),
    header: &mut [u8],
) -> Option<u32> {
    let mut writer = template.start(header, xid, Procedure::Commit as u32);
    writer.opaque(handle.as_bytes());
    writer.u64(offset_bytes);
    writer.u32(size_bytes);
    let end = writer.finish()?;
    mark(header, end, 0)
}

/// Encodes any operation except READ, WRITE and COMMIT. `first` is the handle of the object or
/// directory, `second` the handle of the target directory of a rename.
pub(crate) fn encode_metadata(
    template: &CallTemplate,
    xid: u32,
    op: &Op<'_>,
    (first, second): (&Handle, &Handle),
    header: &mut [u8],
) -> Option<u32> {
    let mut writer = template.start(header, xid, op.procedure() as u32);
    if !matches!(op, Op::Null { .. }) {
        writer.opaque(first.as_bytes());
    }
    match *op {
        Op::SetAttr { change, .. } => {
            writer.pack(change);
            writer.u32(0); // no guard
        }
        Op::Access { mask, .. } => writer.u32(mask),
        Op::Lookup { name, .. } | Op::Remove { name, .. } | Op::RemoveDir { name, .. } => {
            writer.opaque(name);
        }
        Op::Create { name, how, .. } => {
            writer.opaque(name);
            write_how(&mut writer, how);
        }
        Op::MakeDir { name, attributes, .. } => {
            writer.opaque(name);
            writer.pack::<sattr3>(attributes);
        }
        Op::Rename { from, to, .. } => {
            writer.opaque(from);
            writer.opaque(second.as_bytes());
            writer.opaque(to);
        }
        Op::ReadDir { cookie, verifier, size_bytes, .. } => {
            writer.u64(cookie);
            writer.bytes(&verifier);
            writer.u32(size_bytes);
        }
        Op::ReadDirPlus { cookie, verifier, size_bytes, .. } => {
            writer.u64(cookie);
            writer.bytes(&verifier);
            writer.u32(size_bytes); // of names
            writer.u32(size_bytes); // in all
        }
        Op::Null { .. }
        | Op::GetAttr { .. }
        | Op::FsStat { .. }
        | Op::FsInfo { .. }
        | Op::PathConf { .. }
        | Op::Read { .. }
        | Op::Write { .. }
        | Op::Commit { .. } => {}
    }
    let end = writer.finish()?;
    mark(header, end, 0)
}

fn write_how(writer: &mut Writer<'_>, how: CreateHow<'_>) {
    match how {
        CreateHow::Unchecked(attributes) => {
            writer.u32(0);
            writer.pack(attributes);
        }
        CreateHow::Guarded(attributes) => {
            writer.u32(1);
            writer.pack(attributes);
        }
        CreateHow::Exclusive(verifier) => {
            writer.u32(2);
            writer.bytes(&verifier);
        }
    }
}

#[inline]
fn mark(header: &mut [u8], end: usize, payload_bytes: usize) -> Option<u32> {
    set_record_mark(header, end - 4 + padded(payload_bytes));
    u32::try_from(end).ok()
}

/// Converts the stability code in a reply.
pub(crate) fn stability(code: u32) -> Option<Stability> {
    match code {
        0 => Some(Stability::Unstable),
        1 => Some(Stability::DataSync),
        2 => Some(Stability::FileSync),
        _ => None,
    }
}
