//! Operations on names and attributes.

/// Kind of a metadata operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetadataKind {
    /// Reads the attributes of a data file.
    Getattr,
    /// Looks up the name of a data file.
    Lookup,
    /// Asks for permission to a data file.
    Access,
    /// Lists the share's directory of small files.
    Readdir,
    /// Makes a small file.
    Create,
    /// Removes a small file.
    Remove,
    /// Renames a small file.
    Rename,
    /// Sets the mode of a data file, to what it is.
    Setattr,
}

impl MetadataKind {
    /// All, in the order of [`MetadataMix::weights`].
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

    /// The word in plans and reports.
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
    /// Attributes read.
    pub getattr: f64,
    /// Names looked up.
    pub lookup: f64,
    /// Permissions asked.
    pub access: f64,
    /// Directories listed.
    pub readdir: f64,
    /// Small files made.
    pub create: f64,
    /// Such files removed.
    pub remove: f64,
    /// Such files renamed.
    pub rename: f64,
    /// Attributes set.
    pub setattr: f64,
}

impl MetadataMix {
    /// The weights in the order of [`MetadataKind::ALL`].
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
