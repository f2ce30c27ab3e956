//! Handle for an operation that a tracker follows while the operation is in flight.

/// Handle for an operation that the tracker follows. The caller passes the handle back to the
/// tracker when the operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(pub(super) u32);

impl InFlight {
    /// Converts the handle to a number, which can be stored with the operation.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Creates the handle from a number that [`InFlight::number`] returned.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}
