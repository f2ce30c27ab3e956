//! An operation that is tracked while it is in flight.

/// An operation that the tracker follows: hand it back when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight(pub(super) u32);

impl InFlight {
    /// As a number, to travel with the operation.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// From the number that [`InFlight::number`] gave.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}
