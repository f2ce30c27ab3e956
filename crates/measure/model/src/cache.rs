//! Caches: replacement policies over flat memory, and a theory of their hit ratios.

mod che;
mod index;
mod policy;
mod recent;
mod store;

pub use che::lru_hit_ratio;
pub(crate) use index::Index;
pub use policy::{Access, Cache, Eviction, Policy};
pub(crate) use recent::Recent;
