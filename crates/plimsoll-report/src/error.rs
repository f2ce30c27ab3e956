//! What can go wrong in drawing a report.

/// An error of drawing.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page's template is at fault, and so is Plimsoll.
    #[error("the report page cannot be drawn: {0}; this is a defect in Plimsoll")]
    Template(#[from] minijinja::Error),
}
