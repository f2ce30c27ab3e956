//! AUTH_SYS credentials (RFC 5531, appendix A). They are encoded once for each server.

use crate::xdr::Writer;

/// Maximum number of supplementary groups in AUTH_SYS.
pub const GROUPS_MAX: usize = 16;
/// Maximum length of the machine name, in bytes. The standard allows 255 bytes, but a shorter name
/// keeps the headers of calls small.
pub const MACHINE_BYTES_MAX: usize = 64;

/// Identity that the client sends in each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups. Only the first [`GROUPS_MAX`] are sent.
    pub groups: Vec<u32>,
    /// Name of this host. Only the first [`MACHINE_BYTES_MAX`] bytes are sent.
    pub machine: String,
}

impl Default for Credential {
    /// Returns the identity of root without supplementary groups, which test exports usually
    /// accept.
    fn default() -> Self {
        Self { uid: 0, gid: 0, groups: Vec::new(), machine: "plimsoll".into() }
    }
}

impl Credential {
    /// Encodes the credential with its flavor, length and body. `stamp` may be any number.
    pub(crate) fn write(&self, writer: &mut Writer<'_>, stamp: u32) {
        const AUTH_SYS: u32 = 1;
        let mut body = [0u8; 256];
        let mut inner = Writer::new(&mut body, 0);
        inner.u32(stamp);
        let machine = self.machine.as_bytes();
        inner.opaque(&machine[..machine.len().min(MACHINE_BYTES_MAX)]);
        inner.u32(self.uid);
        inner.u32(self.gid);
        let groups = &self.groups[..self.groups.len().min(GROUPS_MAX)];
        inner.u32(groups.len() as u32);
        for group in groups {
            inner.u32(*group);
        }
        // The credential always fits, because it has at most 4 + 68 + 8 + 4 + 64 = 148 bytes.
        let end = inner.finish().unwrap_or(0);
        writer.u32(AUTH_SYS);
        writer.opaque(&body[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::rpc::{auth_unix, opaque_auth};
    use nfs3_types::xdr_codec::{Opaque, Pack};

    #[test]
    fn it_encodes_as_the_reference_codec_does() {
        let credential =
            Credential { uid: 1000, gid: 100, groups: vec![4, 27, 1000], machine: "host7".into() };
        let mut buffer = [0u8; 512];
        let mut writer = Writer::new(&mut buffer, 0);
        credential.write(&mut writer, 77);
        let end = writer.finish().unwrap();
        let mut reference = Vec::new();
        opaque_auth::auth_unix(&auth_unix {
            stamp: 77,
            machinename: Opaque::borrowed(b"host7"),
            uid: 1000,
            gid: 100,
            gids: vec![4, 27, 1000],
        })
        .pack(&mut reference)
        .unwrap();
        assert_eq!(&buffer[..end], &reference[..]);
    }

    #[test]
    fn too_many_groups_and_too_long_a_name_are_cut() {
        let credential =
            Credential { groups: vec![1; 40], machine: "x".repeat(300), uid: 0, gid: 0 };
        let mut buffer = [0u8; 512];
        let mut writer = Writer::new(&mut buffer, 0);
        credential.write(&mut writer, 0);
        assert_eq!(writer.finish(), Some(8 + 4 + 4 + 64 + 8 + 4 + 64));
    }
}
