//! Facts about a case, known from its construction before any measurement.

/// Allowed and forbidden results of a case.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Why a PASS would be false.
    pub no_pass: Option<String>,
    /// Claims that are not so, with the reason.
    pub refuted: Vec<(&'static str, String)>,
    /// The case is honest: INVALID would be a false accusation.
    pub honest: bool,
    /// The load far exceeds the capacity: a verdict other than FAIL needs its own reason, and PASS
    /// is wrong.
    pub exit_codes: &'static [i32],
    /// The command gets a signal, and may end with 130, whatever else is true.
    pub interrupted: bool,
    /// Text that must appear, or a finding of one of these rules.
    pub says: Option<&'static str>,
}

impl Truth {
    /// The case is honest.
    pub fn honest() -> Self {
        Self { honest: true, ..Self::default() }
    }

    /// The case is false: it must not pass.
    pub fn no_pass(why: impl Into<String>) -> Self {
        Self { no_pass: Some(why.into()), ..Self::default() }
    }

    /// The same, of one more claim.
    #[must_use]
    pub fn not(mut self, claim: &'static str, why: &str) -> Self {
        self.refuted.push((claim, why.to_owned()));
        self
    }

    /// The same, and a PASS is false as well.
    #[must_use]
    pub fn and_no_pass(mut self, why: impl Into<String>) -> Self {
        self.no_pass.get_or_insert_with(|| why.into());
        self
    }

    /// Ends with one of these codes, and no other.
    #[must_use]
    pub fn exits(mut self, codes: &'static [i32]) -> Self {
        self.exit_codes = codes;
        self
    }
}
