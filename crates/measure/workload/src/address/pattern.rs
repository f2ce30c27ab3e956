//! Access patterns by name.

/// Distribution of operations within a working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Uniform.
    Random,
    /// Each slot is used exactly once per pass, in a random order that differs between passes.
    Permutation,
    /// Sequential; the clients start at evenly spread slots.
    Sequential,
    /// Sequential, with one cursor for all clients.
    SequentialShared,
    /// Slots follow at a fixed distance; a pass visits each slot once.
    Strided {
        /// Distance from one start to the next, rounded down to whole slots, at least one.
        stride_bytes: u64,
    },
    /// Ranks by Zipf's law, scattered over the working set by a permutation.
    Zipf {
        /// The exponent, at least 0; 0 is uniform.
        exponent: f64,
    },
    /// A hot part at the start gets most operations; both parts are uniform.
    HotCold {
        /// Share of the space that is hot.
        hot_space: f64,
        /// Share of the operations in the hot part.
        hot_access: f64,
    },
    /// Normally distributed around the middle.
    Normal {
        /// Standard deviation as a fraction of the working set.
        deviation: f64,
    },
    /// Forwards from a start per client, with skips of random length. Load appliances that call a
    /// sparse pass over a large file random do this.
    Skipping {
        /// Share of the slots that a pass touches, above 0 and at most 1.
        density: f64,
    },
}

/// Reason why a space cannot be addressed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AddressError {
    /// No region has space for one transfer.
    #[error(
        "no region has room for a transfer of {transfer_bytes} bytes: \
         use smaller transfers or larger files"
    )]
    NoRoom {
        /// The largest transfer.
        transfer_bytes: u64,
    },
    /// The regions have too many slots to count.
    #[error("the regions add up to more than 2^63 - 1 bytes: use fewer or smaller files")]
    TooLarge,
    /// The distance of offsets is zero.
    #[error("offsets can't be multiples of 0 bytes: set an alignment")]
    NoGrid,
    /// A number of the pattern is out of range.
    #[error("{what} is {value}, not {range}: correct the pattern")]
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// Given value.
        value: f64,
        /// Accepted range.
        range: &'static str,
    },
}

impl Pattern {
    /// Checks the pattern's numbers.
    ///
    /// # Errors
    /// [`AddressError::OutOfRange`] names the first invalid number.
    pub fn check(&self) -> Result<(), AddressError> {
        let check = |what, value: f64, ok: bool, range| {
            if ok { Ok(()) } else { Err(AddressError::OutOfRange { what, value, range }) }
        };
        match *self {
            Self::Zipf { exponent } => {
                check("the exponent of Zipf's law", exponent, exponent >= 0.0, "0 or more")
            }
            Self::HotCold { hot_space, hot_access } => {
                let inside = hot_space > 0.0 && hot_space < 1.0;
                check("the hot share of the space", hot_space, inside, "between 0 and 1")?;
                let inside = (0.0..=1.0).contains(&hot_access);
                check("the hot share of the operations", hot_access, inside, "from 0 to 1")
            }
            Self::Normal { deviation } => {
                let above = deviation > 0.0 && deviation.is_finite();
                check("the standard deviation", deviation, above, "above 0")
            }
            Self::Skipping { density } => {
                let inside = density > 0.0 && density <= 1.0;
                check("the density of a pass", density, inside, "above 0 and at most 1")
            }
            _ => Ok(()),
        }
    }
}
