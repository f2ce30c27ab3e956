//! Errors of rendering.

/// An error of rendering.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Defect in the page's template.
    #[error("cannot render the report page: {0}; this is a defect in Plimsoll")]
    Template(#[from] minijinja::Error),
}
