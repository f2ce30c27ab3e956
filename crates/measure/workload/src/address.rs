//! Determines the file and the offset of each operation.
//!
//! An address is a pure function of the seed and of the operation's index ([`Slots::at`]). Each of
//! `n` threads gets every n-th index ([`Indices`]). The addresses of a stream therefore do not
//! depend on the number of threads. They are computed without a table, so the space can have any
//! size.
//!
//! | layer | what it determines |
//! |---|---|
//! | [`Slots`] | the order of the slot numbers `0..slots`, according to a pattern |
//! | [`Space`] | the file and the offset of each slot, if the space has several regions |
//! | [`Walk`] | the position of a client in a space: its next index or its cursor |

mod hash;
mod hot_cold;
mod indices;
mod normal;
mod pattern;
mod permutation;
mod slots;
mod space;
mod stride;
mod walk;
mod zipf;

pub use hash::mix;
pub(crate) use hash::{share_below, unit_open};
pub use hot_cold::HotCold;
pub use indices::Indices;
pub use normal::{Normal, normal_quantile};
pub use pattern::AddressError;
pub use permutation::Permutation;
pub use slots::Slots;
pub use space::{Place, Region, Space};
pub use stride::Stride;
pub use walk::{AddressWalks, Walk};
pub use zipf::Zipf;
