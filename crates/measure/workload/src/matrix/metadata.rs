//! Operations on names and attributes.

/// Kind of a metadata operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetadataKind {
    /// Reads the attributes of a data file.
    Getattr,
    /// Looks up the name of a data file.
    Lookup,
    /// Checks the permissions of a data file.
    Access,
    /// Lists the share's directory of small files.
    Readdir,
    /// Creates a small file.
    Create,
    /// Removes a small file.
    Remove,
    /// Renames a small file.
    Rename,
    /// Sets the mode of a data file to its current mode.
    Setattr,
}

impl MetadataKind {
    /// All kinds, in the order of [`MetadataMix::weights`].
    pub const ALL: [Self; 8] = [
        Self::Getattr,
        Self::Lookup,
        Self::Access,
        Self::Readdir,
        Self::Create,
        Self::Remove,
        Self::Rename,
        Self::Setattr,
    ];

    /// Returns the word in plans and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Getattr => "getattr",
            Self::Lookup => "lookup",
            Self::Access => "access",
            Self::Readdir => "readdir",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Setattr => "setattr",
        }
    }
}

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
    /// Returns the weights in the order of [`MetadataKind::ALL`].
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
