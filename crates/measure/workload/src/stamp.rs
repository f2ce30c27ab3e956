//! Stamps. A stamp identifies the content of a unit, and shows whether it is the content that was
//! written.
//!
//! A unit of content starts with a [`Stamp`], which contains run, target, address, generation and
//! shape. All other bytes of the unit can be computed from the stamp (see [`crate::content`]). A
//! unit can therefore be checked without further information ([`inspect`]). A [`Verifier`] that
//! also knows the written [`Generations`] determines the kind of damage:
//!
//! | kind | content of the unit |
//! |---|---|
//! | lost | the data that the address had before the last acknowledged write |
//! | stale | data that is at least two writes old, or older than data that was already read back |
//! | torn | undamaged sectors from two or more writes to this address |
//! | misdirected | data that was written for another address |
//! | corrupt | at least one sector that is not from any known write |
//! | unwritten | zeros |
//!
//! Sectors need no marks of their own. The generator can be inverted
//! ([`plimsoll_sys::simd::invert`]). Any 16 bytes of its output therefore identify the write that
//! produced them.

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
