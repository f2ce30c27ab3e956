//! The RPC layer (RFC 5531). It encodes the headers of calls and parses the headers of replies.

use crate::credential::Credential;
use crate::error::{CallError, RpcError, Violation};
use crate::xdr::{Reader, Writer};

/// Offset of the XID in an encoded call, after the record mark.
pub(crate) const XID_AT: usize = 4;
/// Offset of the procedure number in an encoded call.
pub(crate) const PROCEDURE_AT: usize = 24;
/// Bit of a record mark that identifies the last fragment of a record (RFC 5531, 11).
pub const LAST_FRAGMENT: u32 = 0x8000_0000;
/// Maximum length of the verifier in a reply (RFC 5531, 8.2).
const VERIFIER_BYTES_MAX: u32 = 400;

/// Template for the part of a call that is the same for all calls to a server. This is the header
/// without the record mark, the XID and the procedure.
#[derive(Clone, Debug)]
pub struct CallTemplate {
    bytes: Vec<u8>,
}

impl CallTemplate {
    /// Creates a template for calls to version `version` of `program`, with `credential`.
    #[must_use]
    pub fn new(program: u32, version: u32, credential: &Credential, stamp: u32) -> Self {
        const CALL: u32 = 0;
        const RPC_VERSION: u32 = 2;
        let mut buffer = [0u8; 512];
        let mut writer = Writer::new(&mut buffer, 0);
        for word in [0, 0, CALL, RPC_VERSION, program, version, 0] {
            writer.u32(word);
        }
        credential.write(&mut writer, stamp);
        writer.u32(0); // verifier: AUTH_NONE
        writer.u32(0);
        // The template always fits, because it has at most 28 + 156 + 8 bytes.
        let end = writer.finish().unwrap_or(0);
        Self { bytes: buffer[..end].to_vec() }
    }

    /// Writes the header of a call at the front of `into`. Returns a writer for the arguments.
    #[inline]
    pub fn start<'a>(&self, into: &'a mut [u8], xid: u32, procedure: u32) -> Writer<'a> {
        let mut writer = Writer::new(into, 0);
        writer.bytes(&self.bytes);
        let at = self.bytes.len();
        let mut patch = Writer::new(into, XID_AT);
        patch.u32(xid);
        let mut patch = Writer::new(into, PROCEDURE_AT);
        patch.u32(procedure);
        Writer::new(into, at)
    }
}

/// Writes the record mark of a call that has `record_bytes` without the mark.
pub(crate) fn set_record_mark(call: &mut [u8], record_bytes: usize) {
    // The client's `size_bytes_max` limits transfers to far less than 2 GiB.
    let size = u32::try_from(record_bytes).unwrap_or(0) | LAST_FRAGMENT;
    Writer::new(call, 0).u32(size);
}

/// Header of a reply.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The call was executed; the results follow.
    Accepted(Reader<'a>),
    /// The RPC layer rejected the call.
    Refused(RpcError),
}

/// Returns the XID of a record, which must be a reply.
///
/// # Errors
/// Returns a [`Violation`] if the record is too short or is not a reply.
#[inline]
pub fn read_xid(reader: &mut Reader<'_>) -> Result<u32, Violation> {
    let xid = reader.u32("xid")?;
    match reader.u32("message type")? {
        1 => Ok(xid),
        value => Err(Violation::BadValue { field: "message type", value }),
    }
}

/// Parses the header of a reply after the XID.
///
/// # Errors
/// Returns a [`Violation`] if the header is not valid according to RFC 5531.
#[inline]
pub fn read_answer<'a>(mut reader: Reader<'a>) -> Result<Answer<'a>, Violation> {
    match reader.u32("reply status")? {
        0 => {}
        1 => return read_rejection(reader).map(Answer::Refused),
        value => return Err(Violation::BadValue { field: "reply status", value }),
    }
    reader.u32("verifier flavor")?;
    reader.opaque(VERIFIER_BYTES_MAX, "verifier")?;
    let error = match reader.u32("accept status")? {
        0 => return Ok(Answer::Accepted(reader)),
        1 => RpcError::ProgramUnavailable,
        2 => RpcError::ProgramMismatch { low: reader.u32("low")?, high: reader.u32("high")? },
        3 => RpcError::ProcedureUnavailable,
        4 => RpcError::GarbageArguments,
        5 => RpcError::SystemError,
        value => return Err(Violation::BadValue { field: "accept status", value }),
    };
    reader.end()?;
    Ok(Answer::Refused(error))
}

fn read_rejection(mut reader: Reader<'_>) -> Result<RpcError, Violation> {
    let error = match reader.u32("reject status")? {
        0 => RpcError::RpcMismatch { low: reader.u32("low")?, high: reader.u32("high")? },
        1 => RpcError::Auth(reader.u32("auth status")?),
        value => return Err(Violation::BadValue { field: "reject status", value }),
    };
    reader.end()?;
    Ok(error)
}

/// Returns the results in a reply if the RPC layer accepted the call.
///
/// # Errors
/// Returns the rejection if the RPC layer rejected the call, or a [`Violation`].
pub fn results(record: &[u8]) -> Result<(u32, Reader<'_>), CallError> {
    let mut reader = Reader::new(record);
    let xid = read_xid(&mut reader)?;
    match read_answer(reader)? {
        Answer::Accepted(reader) => Ok((xid, reader)),
        Answer::Refused(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::rpc::{
        accept_stat_data, accepted_reply, auth_stat, call_body, msg_body, opaque_auth,
        rejected_reply, reply_body, rpc_msg,
    };
    use nfs3_types::xdr_codec::{Pack, Unpack};

    fn packed(body: reply_body<'static>) -> Vec<u8> {
        let mut bytes = Vec::new();
        rpc_msg { xid: 9, body: msg_body::REPLY(body) }.pack(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_call_header_is_read_by_the_reference_codec() {
        let template = CallTemplate::new(100_003, 3, &Credential::default(), 5);
        let mut buffer = [0u8; 512];
        let end = template.start(&mut buffer, 0xdead_beef, 7).finish().unwrap();
        set_record_mark(&mut buffer, end - 4);
        assert_eq!(&buffer[..4], &(LAST_FRAGMENT | (end as u32 - 4)).to_be_bytes());
        let (xid, _) = u32::unpack(&mut &buffer[4..]).unwrap();
        assert_eq!(xid, 0xdead_beef);
        let (call, size) = call_body::unpack(&mut &buffer[12..end]).unwrap();
        assert_eq!(size, end - 12);
        assert_eq!((call.rpcvers, call.prog, call.vers, call.proc), (2, 100_003, 3, 7));
    }

    #[test]
    fn every_kind_of_reply_of_the_reference_codec_is_read() {
        let accepted = |reply_data| {
            packed(reply_body::MSG_ACCEPTED(accepted_reply {
                verf: opaque_auth::default(),
                reply_data,
            }))
        };
        let cases = [
            (accepted(accept_stat_data::PROG_UNAVAIL), RpcError::ProgramUnavailable),
            (
                accepted(accept_stat_data::PROG_MISMATCH { low: 2, high: 4 }),
                RpcError::ProgramMismatch { low: 2, high: 4 },
            ),
            (accepted(accept_stat_data::PROC_UNAVAIL), RpcError::ProcedureUnavailable),
            (accepted(accept_stat_data::GARBAGE_ARGS), RpcError::GarbageArguments),
            (accepted(accept_stat_data::SYSTEM_ERR), RpcError::SystemError),
            (
                packed(reply_body::MSG_DENIED(rejected_reply::rpc_mismatch(2, 2))),
                RpcError::RpcMismatch { low: 2, high: 2 },
            ),
            (
                packed(reply_body::MSG_DENIED(rejected_reply::auth_error(auth_stat::AUTH_TOOWEAK))),
                RpcError::Auth(5),
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(results(&bytes).unwrap_err(), CallError::Rpc(expected));
            for cut in 0..bytes.len() {
                assert!(matches!(results(&bytes[..cut]), Err(CallError::Violation(_))));
            }
        }
        let success = accepted(accept_stat_data::SUCCESS);
        assert_eq!(results(&success).unwrap().0, 9);
    }
}
