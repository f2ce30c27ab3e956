//! Stamps: by which what a block holds is known, and with it whether it is what was written there.
//!
//! A unit of content starts with a [`Stamp`]: run, target, place, generation, shape. Everything after it
//! follows from it (see [`crate::content`]). So a unit needs nothing but itself to be checked
//! ([`inspect`]), and with the [`Generations`] that were written a [`Verifier`] names what went wrong:
//!
//! | named | the unit holds |
//! |---|---|
//! | lost | what was there before the last acknowledged write |
//! | stale | something older, or older than what was already read back: data came back |
//! | torn | sectors of two or more generations of this place, each whole |
//! | misdirected | what was written to another place |
//! | corrupt | something of which at least one sector is nothing that was ever written |
//! | unwritten | zeros |
//!
//! Sectors are distinguished by content and not by a mark: the generator can be inverted
//! ([`plimsoll_sys::simd::invert`]), so any 16 bytes of it identify the write that they are from.

mod damage;
mod evidence;
mod format;
mod generations;
mod verify;

pub use damage::{Damage, DamageCounts, ExpectedContent, Finding, Verdict};
pub use format::{Origin, Stamp};
pub(crate) use format::{filler_of, key_of};
pub use generations::{Generations, Ticket};
pub use verify::{Inspection, Verifier, inspect};
