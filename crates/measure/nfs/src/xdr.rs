//! XDR (RFC 4506) in bounded memory. A reader parses received bytes, and a writer encodes fields
//! into a fixed slice.
//!
//! The crate `nfs3_types` defines the types, and encodes and decodes types of fixed size. It is not
//! used to decode variable-length fields: it would allocate the size that the sender announces
//! before it checks that the data exists. This module therefore checks the length of such a field
//! first, and then reads the field as a slice of the record.

use nfs3_types::nfs3::nfsstat3;
use nfs3_types::xdr_codec::{Pack, Unpack};

use crate::error::{CallError, Violation};

/// Size of an encoded `fattr3` in bytes (RFC 1813, 2.6: 5 × 4 + 2 × 8 + 8 + 2 × 8 + 3 × 8).
pub const ATTRIBUTES_BYTES: usize = 84;
/// Size of an encoded `wcc_attr` in bytes.
pub const WCC_ATTRIBUTES_BYTES: usize = 24;
/// Maximum size of a file handle in bytes (NFS3_FHSIZE).
pub const HANDLE_BYTES_MAX: u32 = 64;
/// Maximum length of a name in a reply, in bytes. RFC 1813 sets no limit; common file systems allow
/// 255 bytes.
pub const NAME_BYTES_MAX: u32 = 4096;

/// Reads fields from the front of a record.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the unread bytes.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a 32-bit unsigned integer.
    ///
    /// # Errors
    /// [`Violation::Truncated`].
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Violation> {
        let (head, rest) =
            self.rest.split_first_chunk::<4>().ok_or(Violation::Truncated { field })?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*head))
    }

    /// Reads a 64-bit unsigned integer.
    ///
    /// # Errors
    /// [`Violation::Truncated`].
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Violation> {
        Ok(u64::from_be_bytes(*self.array::<8>(field)?))
    }

    /// Reads a boolean, which must be 0 or 1.
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::BadValue`].
    #[inline]
    pub fn bool(&mut self, field: &'static str) -> Result<bool, Violation> {
        match self.u32(field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(Violation::BadValue { field, value }),
        }
    }

    /// Reads `N` raw bytes, where `N` is a multiple of four.
    ///
    /// # Errors
    /// [`Violation::Truncated`].
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], Violation> {
        let (head, rest) =
            self.rest.split_first_chunk::<N>().ok_or(Violation::Truncated { field })?;
        self.rest = rest;
        Ok(head)
    }

    /// Skips `size_bytes`.
    ///
    /// # Errors
    /// [`Violation::Truncated`].
    #[inline]
    pub fn skip(&mut self, size_bytes: usize, field: &'static str) -> Result<(), Violation> {
        self.rest = self.rest.get(size_bytes..).ok_or(Violation::Truncated { field })?;
        Ok(())
    }

    /// Reads a variable-length opaque field of at most `limit_bytes`. Returns it as a slice of the
    /// record.
    ///
    /// # Errors
    /// [`Violation::TooLong`], [`Violation::Truncated`].
    #[inline]
    pub fn opaque(&mut self, limit_bytes: u32, field: &'static str) -> Result<&'a [u8], Violation> {
        let size_bytes = self.u32(field)?;
        if size_bytes > limit_bytes {
            return Err(Violation::TooLong { field, size_bytes, limit_bytes });
        }
        let size = size_bytes as usize;
        let bytes = self.rest.get(..size).ok_or(Violation::Truncated { field })?;
        self.skip(padded(size), field)?;
        Ok(bytes)
    }

    /// Reads a type of fixed size with the codec of `nfs3_types`. Do not use it for types with
    /// variable-length fields, because their decoder allocates memory before it checks the length.
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::BadValue`].
    pub fn fixed<T: Unpack>(&mut self, field: &'static str) -> Result<T, Violation> {
        match T::unpack(&mut self.rest) {
            Ok((value, _)) => Ok(value),
            Err(nfs3_types::xdr_codec::Error::InvalidEnumValue(value)) => {
                Err(Violation::BadValue { field, value })
            }
            Err(_) => Err(Violation::Truncated { field }),
        }
    }

    /// Skips a type of fixed size, after the same checks as [`Reader::fixed`].
    ///
    /// # Errors
    /// See [`Reader::fixed`].
    pub fn skip_fixed<T: Unpack>(&mut self, field: &'static str) -> Result<(), Violation> {
        self.fixed::<T>(field).map(|_| ())
    }

    /// Skips optional attributes (`post_op_attr`).
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::BadValue`].
    #[inline]
    pub fn skip_attributes(&mut self) -> Result<(), Violation> {
        if self.bool("attributes_follow")? {
            self.skip(ATTRIBUTES_BYTES, "attributes")?;
        }
        Ok(())
    }

    /// Skips the attributes before and after an operation (`wcc_data`).
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::BadValue`].
    #[inline]
    pub fn skip_wcc(&mut self) -> Result<(), Violation> {
        if self.bool("before_follows")? {
            self.skip(WCC_ATTRIBUTES_BYTES, "before")?;
        }
        self.skip_attributes()
    }

    /// Returns an error if not all bytes were read.
    ///
    /// # Errors
    /// [`Violation::Trailing`].
    #[inline]
    pub fn end(&self) -> Result<(), Violation> {
        match self.rest.len() {
            0 => Ok(()),
            size => Err(Violation::Trailing { size_bytes: size as u64 }),
        }
    }
}

/// Rounds `size` up to the XDR unit of four bytes.
#[inline]
#[must_use]
pub const fn padded(size: usize) -> usize {
    size.saturating_add(3) & !3
}

/// Converts the number of a status to the enum.
///
/// # Errors
/// [`CallError::UnknownStatus`].
pub fn status(code: u32) -> Result<nfsstat3, CallError> {
    match nfsstat3::unpack(&mut code.to_be_bytes().as_slice()) {
        Ok((status, _)) => Ok(status),
        Err(_) => Err(CallError::UnknownStatus(code)),
    }
}

/// Writes fields into a fixed slice. If a field does not fit, it is dropped, and [`Writer::finish`]
/// returns `None`.
#[derive(Debug)]
pub struct Writer<'a> {
    into: &'a mut [u8],
    at: usize,
    overflowed: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer that starts at the position `at` of `into`.
    pub fn new(into: &'a mut [u8], at: usize) -> Self {
        Self { into, at, overflowed: false }
    }

    /// Writes raw bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let room = self.at.checked_add(bytes.len()).and_then(|end| self.into.get_mut(self.at..end));
        match room {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.at += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// Writes a 32-bit unsigned integer.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a 64-bit unsigned integer.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a variable-length opaque field, which consists of the length, the bytes and zero
    /// padding.
    #[inline]
    pub fn opaque(&mut self, bytes: &[u8]) {
        // The conversion never saturates, because callers limit names and handles to far less than
        // 4 GiB.
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.bytes(bytes);
        self.bytes(&[0; 3][..padded(bytes.len()) - bytes.len()]);
    }

    /// Writes a type of `nfs3_types` with the codec of that crate.
    pub fn pack<T: Pack>(&mut self, value: &T) {
        if value.pack(self).is_err() {
            self.overflowed = true;
        }
    }

    /// Returns the position of the next field, or `None` if a field did not fit.
    #[must_use]
    pub fn finish(self) -> Option<usize> {
        (!self.overflowed).then_some(self.at)
    }
}

impl std::io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes(bytes);
        if self.overflowed { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::xdr_codec::Opaque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_opaque_field_reads_back_and_equals_the_reference_codec(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut buffer = [0xffu8; 400];
            let mut writer = Writer::new(&mut buffer, 0);
            writer.opaque(&bytes);
            let end = writer.finish().unwrap();
            let mut reference = Vec::new();
            Opaque::borrowed(&bytes).pack(&mut reference).unwrap();
            prop_assert_eq!(&buffer[..end], &reference[..]);
            let mut reader = Reader::new(&reference);
            prop_assert_eq!(reader.opaque(300, "x").unwrap(), &bytes[..]);
            prop_assert!(reader.end().is_ok());
            for cut in 0..reference.len() {
                let cut_off = Reader::new(&reference[..cut]).opaque(300, "x");
                prop_assert_eq!(cut_off, Err(Violation::Truncated { field: "x" }));
            }
        }
    }

    #[test]
    fn a_length_beyond_its_limit_is_refused_before_anything_is_read() {
        let bytes = u32::MAX.to_be_bytes();
        let error = Reader::new(&bytes).opaque(64, "handle").unwrap_err();
        assert!(matches!(error, Violation::TooLong { size_bytes: u32::MAX, limit_bytes: 64, .. }));
        assert!(Reader::new(&bytes).bool("flag").is_err());
    }

    #[test]
    fn a_full_writer_says_so() {
        let mut buffer = [0u8; 10];
        let mut writer = Writer::new(&mut buffer, 0);
        writer.u64(1);
        writer.u32(2);
        assert_eq!(writer.finish(), None);
    }
}
