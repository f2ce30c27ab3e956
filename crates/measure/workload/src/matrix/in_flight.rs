//! Handle of an operation that is tracked while it is in flight.

/// Handle of an operation that the tracker follows. The caller returns the handle to the tracker
/// when the operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(pub(super) u32);

impl InFlight {
    /// Converts the handle to a number, which can be stored in the operation.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Creates the handle again from the result of [`InFlight::number`].
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}
