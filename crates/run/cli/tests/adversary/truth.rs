//! Facts about a case, known from its construction before any measurement.

/// Results that are correct for a case, and results that would be mistakes.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Reason why a PASS would be false; `None` if it may be true.
    pub no_pass: Option<String>,
    /// Claims that are false, each with the reason.
    pub refuted: Vec<(&'static str, String)>,
    /// True if the case is honest: INVALID would then be a mistake.
    pub honest: bool,
    /// Exit codes that are allowed for the case; any code is allowed if the list is empty. If the
    /// load far exceeds the capacity, PASS is wrong, and any verdict except FAIL needs its own
    /// reason.
    pub exit_codes: &'static [i32],
    /// True if the command receives a signal. It may then exit with 130 in every case.
    pub interrupted: bool,
    /// Text that the verdict must contain.
    pub says: Option<&'static str>,
}

impl Truth {
    /// Returns the truth of an honest case.
    pub fn honest() -> Self {
        Self { honest: true, ..Self::default() }
    }

    /// Returns the truth of a misleading case, which must not pass.
    pub fn no_pass(why: impl Into<String>) -> Self {
        Self { no_pass: Some(why.into()), ..Self::default() }
    }

    /// Adds a claim that is false.
    #[must_use]
    pub fn not(mut self, claim: &'static str, why: &str) -> Self {
        self.refuted.push((claim, why.to_owned()));
        self
    }

    /// Adds that a PASS would be false.
    #[must_use]
    pub fn and_no_pass(mut self, why: impl Into<String>) -> Self {
        self.no_pass.get_or_insert_with(|| why.into());
        self
    }

    /// Sets the allowed exit codes.
    #[must_use]
    pub fn exits(mut self, codes: &'static [i32]) -> Self {
        self.exit_codes = codes;
        self
    }
}
