//! Checks the parameters of access patterns.

use plimsoll_plan::Pattern;

/// Reason why a space or a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AddressError {
    /// Every region is smaller than one transfer.
    #[error(
        "no region is large enough for a transfer of {transfer_bytes} bytes: use smaller transfers \
         or larger files"
    )]
    NoRoom {
        /// Size of the largest transfer in bytes.
        transfer_bytes: u64,
    },
    /// The total size of the regions is too large.
    #[error("the regions add up to more than 2^63 - 1 bytes: use fewer or smaller files")]
    TooLarge,
    /// The alignment of offsets is so large that only the start of each region can be accessed.
    #[error(
        "with an alignment of {align_bytes} bytes, each file has only one possible offset: use a \
         smaller alignment, larger files, or a larger working set"
    )]
    OneAddress {
        /// The alignment.
        align_bytes: u64,
    },
    /// The distance between two offsets is zero.
    #[error("the distance between offsets is 0 bytes: set an alignment")]
    NoGrid,
    /// A parameter of the pattern is out of range.
    #[error("{what} is {value}, but must be {range}: correct the pattern")]
    OutOfRange {
        what: &'static str,
        value: f64,
        /// Accepted range.
        range: &'static str,
    },
}

/// Checks whether the parameters of a pattern are valid.
///
/// # Errors
/// Returns [`AddressError::OutOfRange`] with the name of the first invalid parameter.
pub fn check(pattern: &Pattern) -> Result<(), AddressError> {
    let check = |what, value: f64, ok: bool, range| {
        if ok { Ok(()) } else { Err(AddressError::OutOfRange { what, value, range }) }
    };
    match *pattern {
        Pattern::Zipf { exponent } => {
            check("the exponent of Zipf's law", exponent, exponent >= 0.0, "0 or more")
        }
        Pattern::HotCold { hot_space, hot_access } => {
            let inside = hot_space > 0.0 && hot_space < 1.0;
            check("the hot share of the space", hot_space, inside, "between 0 and 1")?;
            let inside = (0.0..=1.0).contains(&hot_access);
            check("the hot share of the operations", hot_access, inside, "from 0 to 1")
        }
        Pattern::Normal { deviation } => {
            let above = deviation > 0.0 && deviation.is_finite();
            check("the standard deviation", deviation, above, "above 0")
        }
        Pattern::Skipping { density } => {
            let inside = density > 0.0 && density <= 1.0;
            check("the density of a pass", density, inside, "above 0 and at most 1")
        }
        _ => Ok(()),
    }
}
