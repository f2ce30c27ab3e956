//! Metadata operations, which work on names and attributes.

use plimsoll_plan::MetadataMix;

/// Returns the weights of a mix. They are in the order of
/// [`MetadataKind::ALL`](super::MetadataKind::ALL).
pub fn weights(mix: &MetadataMix) -> [f64; 8] {
    [
        mix.getattr_percent,
        mix.lookup_percent,
        mix.access_percent,
        mix.readdir_percent,
        mix.create_percent,
        mix.remove_percent,
        mix.rename_percent,
        mix.setattr_percent,
    ]
}
