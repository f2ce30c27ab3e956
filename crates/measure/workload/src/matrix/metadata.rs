//! Operations on names and attributes.

/// Weights of the metadata operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetadataMix {
    /// Reads of attributes.
    pub getattr: f64,
    /// Lookups of names.
    pub lookup: f64,
    /// Checks of permissions.
    pub access: f64,
    /// Listings of directories.
    pub readdir: f64,
    /// Creations of small files.
    pub create: f64,
    /// Share of removals of small files.
    pub remove: f64,
    /// Share of renames of small files.
    pub rename: f64,
    /// Settings of attributes.
    pub setattr: f64,
}

impl MetadataMix {
    /// Returns the weights in the order of [`MetadataKind::ALL`](super::MetadataKind::ALL).
    #[must_use]
    pub fn weights(&self) -> [f64; 8] {
        [
            self.getattr,
            self.lookup,
            self.access,
            self.readdir,
            self.create,
            self.remove,
            self.rename,
            self.setattr,
        ]
    }
}
