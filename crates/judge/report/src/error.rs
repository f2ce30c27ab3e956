//! Errors of rendering.

/// An error while a report is rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Defect in the page's template.
    #[error("cannot render the report page: {0}; this is a defect in Plimsoll")]
    Template(#[from] minijinja::Error),
}
