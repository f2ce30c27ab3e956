//! A key or certificate: its text, or the file that contains it.

use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_runner::error::RunnerError;
use plimsoll_runner::private_file;
use serde::{Deserialize, Serialize};

/// Fewest consecutive letters and digits that are not shown in a message: half of an nkey's seed.
const SECRET_WORD_MIN: usize = 24;

/// A key or certificate. `fleet init` writes texts; operators may specify files instead.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Credential(String);

impl fmt::Debug for Credential {
    /// Does not print the text of the credential, because it may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.resembles_secret() { "text" } else { &self.0 })
    }
}

impl Credential {
    /// Creates a credential from its text: a PEM text, or the seed of an nkey.
    #[must_use]
    pub fn text(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self(path.display().to_string())
    }

    /// Returns true if the value is the text of the credential, not a file name.
    pub(crate) fn is_text(&self) -> bool {
        let is_seed = self.0.len() == 58 && self.0.starts_with("SU") && !self.0.contains('.');
        is_seed || self.0.trim_start().starts_with("-----BEGIN")
    }

    /// Returns true if a message must not contain the value. A key that was mistyped is neither a
    /// valid text nor a file.
    fn resembles_secret(&self) -> bool {
        let mut words = self.0.split(|c: char| !c.is_ascii_alphanumeric());
        self.is_text() || self.0.contains('\n') || words.any(|word| word.len() >= SECRET_WORD_MIN)
    }

    /// If the value is a relative file name, prefixes it with `directory`.
    pub(crate) fn beside(&mut self, directory: &Path) {
        if !self.is_text() {
            *self = Self::file(&directory.join(&self.0));
        }
    }

    /// Returns the name of the credential for messages.
    pub(crate) fn name(&self) -> &str {
        if self.resembles_secret() { "the key or certificate" } else { &self.0 }
    }

    /// Returns the text of the credential.
    ///
    /// # Errors
    /// The file cannot be read, or its content is secret and other users can read it.
    pub fn read(&self, is_secret: bool) -> Result<String, RunnerError> {
        if self.is_text() {
            return Ok(self.0.clone());
        }
        let path = PathBuf::from(&self.0);
        if is_secret {
            private_file::check(&path)?;
        }
        std::fs::read_to_string(&path).map_err(|error| {
            let says = RunnerError::usage(format!("cannot read {}: {error}", self.name()));
            match self.resembles_secret() {
                true => says.hint(
                    "the value is neither the text of a key or certificate nor the name of a \
                     file: check that it is complete",
                ),
                false => says,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_are_told_from_files_and_not_shown() {
        let seed = nkeys::KeyPair::new_user().seed().unwrap();
        let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".to_owned();
        for text in [seed, pem] {
            let mut one = Credential::text(text.clone());
            one.beside(Path::new("/d"));
            assert_eq!(one.read(true).unwrap(), text);
            assert!(!format!("{one:?} {}", one.name()).contains(&text));
        }
        let mut file = Credential::text("SU.nk".to_owned());
        file.beside(Path::new("/gone"));
        assert_eq!(file.name(), "/gone/SU.nk");
        assert!(file.read(true).unwrap_err().to_string().contains("cannot read /gone/SU.nk"));
    }

    #[test]
    fn a_mistyped_key_is_not_shown() {
        let seed = nkeys::KeyPair::new_user().seed().unwrap();
        let (half, pem) = (&seed[..30], "----BEGIN PRIVATE KEY-----\nMIIB/abc\n");
        let mistyped = [
            (seed[..57].to_owned(), half),
            (format!("{seed}A"), half),
            (seed.to_lowercase(), &seed.to_lowercase()[..30]),
            (format!("{}.{}", &seed[..29], &seed[30..]), &seed[..29]),
            (pem.to_owned(), "MIIB"),
        ];
        for (value, secret) in mistyped {
            let mut one = Credential::text(value.clone());
            one.beside(Path::new("/d"));
            let error = one.read(true).unwrap_err();
            let shown = format!("{error:?} {error} {one:?} {}", one.name());
            assert!(!shown.contains(secret), "{shown}");
            assert!(error.to_string().contains("cannot read the key or certificate"), "{error}");
        }
    }
}
