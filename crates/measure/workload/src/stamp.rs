//! Stamps, which identify the content of a block and show whether it is the content that was
//! written.
//!
//! A unit of content starts with a [`Stamp`]: run, target, address, generation, shape. The stamp
//! determines all other bytes (see [`crate::content`]). A unit can therefore be checked without
//! further information ([`inspect`]). A [`Verifier`] that also has the written [`Generations`]
//! determines the kind of damage:
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
//! Sectors need no mark of their own. The generator can be inverted
//! ([`plimsoll_sys::simd::invert`]), so any 16 bytes of its output identify their write.

mod damage;
mod evidence;
mod format;
mod generations;
mod verify;

pub use damage::{Damage, DamageCounts, ExpectedContent, Finding, ReadStart, Verdict};
pub use format::{Origin, Stamp};
pub(crate) use format::{filler_of, key_of};
pub use generations::{Generations, Ticket};
pub use verify::{Inspection, Verifier, inspect};
