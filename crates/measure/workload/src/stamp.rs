//! Stamps, which identify the content of a block and show whether it is the content that was
//! written.
//!
//! A unit of content starts with a [`Stamp`]: run, target, address, generation, shape. The stamp
//! determines all other bytes (see [`crate::content`]). A unit can therefore be checked without
//! further information ([`inspect`]). If a [`Verifier`] also knows the written [`Generations`], it
//! determines the kind of damage:
//!
//! | kind | content of the unit |
//! |---|---|
//! | lost | the data from before the last acknowledged write |
//! | stale | data that is at least two writes old, or older than data that was already read back |
//! | torn | undamaged sectors from two or more writes to this address |
//! | misdirected | data that was written for another address |
//! | corrupt | at least one sector is not from any known write |
//! | unwritten | zeros |
//!
//! Sectors need no separate mark. The generator can be inverted ([`plimsoll_sys::simd::invert`]),
//! so any 16 bytes of its output identify the write that produced them.

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
