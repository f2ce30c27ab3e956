//! Checks that the lengths in a call match the size of its record. The server's decoder allocates
//! memory for a stated length before it checks that the bytes exist. Four bytes could therefore
//! make it allocate 16 GiB.
//!
//! Only fields with a length are checked here (RFC 5531 section 8.2, RFC 1813 section 3.3). The
//! decoder checks all other fields.

/// Number of bytes at the start of a record. All lengths in a record are within these bytes.
pub(super) const HEAD_BYTES: usize = 4 << 10;
/// Maximum length of a credential or verifier (RFC 5531 section 8.2).
const AUTH_BYTES_MAX: u32 = 400;
/// Maximum length of a machine name, and maximum number of groups, in a credential (RFC 5531
/// appendix A).
const MACHINE_BYTES_MAX: u32 = 255;
const GROUPS_MAX: u32 = 16;
/// Maximum length of a file handle (RFC 1813 section 2.4).
const HANDLE_BYTES_MAX: u32 = 64;
/// Maximum length of a name or path.
const NAME_BYTES_MAX: u32 = 1024;

const CALL: u32 = 0;
const AUTH_UNIX: u32 = 1;
const PROGRAM_NFS: u32 = 100_003;
const PROGRAM_MOUNT: u32 = 100_005;

/// Returns true if the decoder may receive a record of `record_bytes`. `head` is its start, up to
/// [`HEAD_BYTES`].
pub(super) fn is_sound(head: &[u8], record_bytes: usize) -> bool {
    read_call(&mut CallReader { head, at: 0, record_bytes }).is_some()
}

struct CallReader<'a> {
    head: &'a [u8],
    at: usize,
    record_bytes: usize,
}

impl CallReader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let bytes = self.head.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    fn skip(&mut self, bytes: u32) -> Option<()> {
        self.at = self.at.checked_add(bytes as usize)?;
        (self.at <= self.record_bytes).then_some(())
    }

    /// Skips an opaque field with its length and padding.
    fn opaque(&mut self, most: u32) -> Option<()> {
        let length = self.u32().filter(|length| *length <= most)?;
        self.skip(length.next_multiple_of(4))
    }

    /// Skips the attributes to be set (`sattr3`), which are unions with parts of fixed size.
    fn attributes(&mut self) -> Option<()> {
        for bytes in [4, 4, 4, 8] {
            if self.u32()? != 0 {
                self.skip(bytes)?;
            }
        }
        for _ in 0..2 {
            if self.u32()? == 2 {
                self.skip(8)?;
            }
        }
        Some(())
    }

    fn credential(&mut self) -> Option<()> {
        let flavour = self.u32()?;
        let length = self.u32().filter(|length| *length <= AUTH_BYTES_MAX)?;
        let end = self.at + length.next_multiple_of(4) as usize;
        if flavour == AUTH_UNIX {
            self.skip(4)?;
            self.opaque(MACHINE_BYTES_MAX)?;
            self.skip(8)?;
            let groups = self.u32().filter(|groups| *groups <= GROUPS_MAX)?;
            self.skip(4 * groups)?;
            if self.at > end {
                return None;
            }
        }
        self.at = end;
        (end <= self.record_bytes).then_some(())
    }
}

fn read_call(call: &mut CallReader<'_>) -> Option<()> {
    call.skip(4)?;
    if call.u32()? != CALL {
        return None;
    }
    call.skip(4)?;
    let program = call.u32()?;
    call.skip(4)?;
    let procedure = call.u32()?;
    call.credential()?;
    call.skip(4)?;
    call.opaque(AUTH_BYTES_MAX)?;
    match program {
        PROGRAM_NFS => {
            for what in arguments(procedure).bytes() {
                match what {
                    b'h' => call.opaque(HANDLE_BYTES_MAX)?,
                    b'n' => call.opaque(NAME_BYTES_MAX)?,
                    b'a' => call.attributes()?,
                    // Skips offset, count and stability of a WRITE, and its data.
                    _ => {
                        call.skip(16)?;
                        call.opaque(u32::try_from(call.record_bytes).ok()?)?;
                    }
                }
            }
            Some(())
        }
        // MNT and UMNT have a path as argument; the other procedures have no arguments.
        PROGRAM_MOUNT if matches!(procedure, 1 | 3) => call.opaque(NAME_BYTES_MAX),
        _ => Some(()),
    }
}

/// Checks the arguments of an NFS version 3 procedure, up to the last argument with a length. Such
/// arguments are handles, names, attributes, and the data of a WRITE.
fn arguments(procedure: u32) -> &'static str {
    match procedure {
        0 => "",
        3 | 8 | 9 | 11 | 12 | 13 => "hn",
        7 => "hd",
        10 => "hnan",
        14 => "hnhn",
        15 => "hhn",
        _ => "h",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a call with an empty credential, and these arguments.
    fn call(program: u32, procedure: u32, arguments: &[u32]) -> Vec<u8> {
        let head = [7, CALL, 2, program, 3, procedure, 0, 0, 0, 0];
        head.iter().chain(arguments).flat_map(|word| word.to_be_bytes()).collect()
    }

    fn sound(bytes: &[u8]) -> bool {
        is_sound(&bytes[..bytes.len().min(HEAD_BYTES)], bytes.len())
    }

    #[test]
    fn lengths_that_fit_are_sound_and_others_are_not() {
        let handle = [8, 1, 2];
        let getattr = call(PROGRAM_NFS, 1, &handle);
        assert!(sound(&getattr));
        assert!(!sound(&call(PROGRAM_NFS, 1, &[0xffff_fff0, 1])));
        assert!(
            !sound(&call(PROGRAM_NFS, 1, &[68; 18])),
            "the maximum length of a handle is 64 bytes"
        );
        let lookup = [&handle[..], &[5, 0x6162_6364, 0x6500_0000]].concat();
        assert!(sound(&call(PROGRAM_NFS, 3, &lookup)));
        assert!(!sound(&call(PROGRAM_NFS, 3, &[&handle[..], &[0x7fff_ffff]].concat())));
        let write = [&handle[..], &[0, 0, 8, 2, 8, 5, 6]].concat();
        assert!(sound(&call(PROGRAM_NFS, 7, &write)));
        let short = [&handle[..], &[0, 0, 8, 2, 1 << 20, 5, 6]].concat();
        assert!(!sound(&call(PROGRAM_NFS, 7, &short)));
        assert!(sound(&call(PROGRAM_MOUNT, 1, &[1, 0x2f00_0000])));
        assert!(!sound(&call(PROGRAM_MOUNT, 1, &[0x4000_0000])));
        assert!(sound(&call(PROGRAM_NFS, 0, &[])));
        assert!(!sound(b"GET / HTTP/1.1\r\n\r\n"));
        assert!(!sound(&[]));
    }

    #[test]
    fn a_credential_with_more_groups_than_it_has_bytes_is_not_sound() {
        let unix = |groups: u32| {
            let words = [
                7,
                CALL,
                2,
                PROGRAM_NFS,
                3,
                0,
                AUTH_UNIX,
                24,
                0,
                1,
                0x6100_0000,
                0,
                0,
                groups,
                0,
                0,
            ];
            words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect::<Vec<u8>>()
        };
        assert!(sound(&unix(0)));
        assert!(!sound(&unix(1)));
        assert!(!sound(&unix(0x4000_0000)));
    }
}
