//! What is true of a case, known by how it was made, before anything is measured.

/// What may be shown of a case, and what may not.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Why a PASS would be false.
    pub no_pass: Option<String>,
    /// Claims that are not so, with the reason.
    pub refuted: Vec<(&'static str, String)>,
    /// Nothing is wrong with it: INVALID would accuse falsely.
    pub honest: bool,
    /// It is not carried by far: a verdict other than FAIL needs a reason of its own, and PASS is false.
    pub exit_codes: &'static [i32],
    /// It gets a signal, and may end with 130, whatever else is true.
    pub interrupted: bool,
    /// What has to be found by one of these rules, or said in these words.
    pub says: Option<&'static str>,
}

impl Truth {
    /// Nothing is wrong with it.
    pub fn honest() -> Self {
        Self { honest: true, ..Self::default() }
    }

    /// Something is wrong with it: it must not pass.
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
