//! An operation that is tracked while it is in flight.

/// An operation that the tracker follows. Return it to the tracker when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(pub(super) u32);

impl InFlight {
    /// Converts the entry to a number, which can be stored in the operation.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Converts a number from [`InFlight::number`] back.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}
