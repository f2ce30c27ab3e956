//! Signatures in minisign's format: an Ed25519 signature over the BLAKE2b hash of the content.
//! `minisign -S` creates such signatures, and `minisign -V` checks them.
//!
//! A seal shows that the files match each other, but anyone who can change the files can also seal
//! them again. A signature shows who sealed the files, provided that the reader knows the public
//! key from another source.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use minisign::{KeyPair, PublicKey, SecretKeyBox, SignatureBox};

use crate::EvidenceError;

/// Suffix that minisign appends to the name of the signed file.
pub const SUFFIX: &str = ".minisig";

/// Untrusted comment: the first line of a signature. The signature does not protect this comment,
/// so only this exact text is accepted.
const REMARK: &str = "signature of evidence sealed by Plimsoll";

/// Lengths of the second and fourth line in a signature: 74 and 64 bytes in base 64.
const LINES: [(usize, usize); 2] = [(1, 100), (3, 88)];

/// A secret key for signing.
pub struct Signer {
    secret: minisign::SecretKey,
    public: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.public)
    }
}

impl Signer {
    /// Reads a secret key in minisign's format. Calls `password` if the key is encrypted.
    ///
    /// # Errors
    /// The file is not a secret key, or the password is wrong.
    pub fn read(
        path: &Path,
        password: impl FnOnce() -> Option<String>,
    ) -> Result<Self, EvidenceError> {
        let wrong = |reason: String| EvidenceError::Key { path: path.to_path_buf(), reason };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let key = SecretKeyBox::from(text.clone()).into_unencrypted_secret_key();
        let secret = match key {
            Ok(secret) => secret,
            Err(_) => {
                let key = SecretKeyBox::from(text);
                key.into_secret_key(password()).map_err(|error| wrong(error.to_string()))?
            }
        };
        let public = PublicKey::from_secret_key(&secret).map_err(|e| wrong(e.to_string()))?;
        Ok(Self { secret, public: public.to_base64() })
    }

    /// Returns the public key as a single line, in the form that minisign writes.
    #[must_use]
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs the content and the comment.
    ///
    /// # Errors
    /// The operating system provides no random numbers.
    pub fn sign(&self, bytes: &[u8], comment: &str) -> Result<String, EvidenceError> {
        let signed =
            minisign::sign(None, &self.secret, Cursor::new(bytes), Some(comment), Some(REMARK));
        signed.map(SignatureBox::into_string).map_err(|error| EvidenceError::Key {
            path: PathBuf::from(&self.public),
            reason: error.to_string(),
        })
    }
}

/// Creates a key pair. The secret key is written to `path`, and only the owner of the file can read
/// it. The public key is written to `path` with the suffix `.pub`. Returns the public key as a
/// single line.
///
/// # Errors
/// One of the files exists already or cannot be written.
pub fn make_keys(path: &Path, password: Option<String>) -> Result<String, EvidenceError> {
    let wrong = |error: minisign::PError| EvidenceError::Key {
        path: path.to_path_buf(),
        reason: error.to_string(),
    };
    let pair = match password {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
        None => KeyPair::generate_unencrypted_keypair(),
    };
    let pair = pair.map_err(wrong)?;
    let secret = pair.sk.to_box(Some("secret key for Plimsoll's evidence")).map_err(wrong)?;
    let public = pair.pk.to_box().map_err(wrong)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    for (path, text, mode) in
        [(path, secret.into_string(), 0o600), (Path::new(&name), public.into_string(), 0o644)]
    {
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|error| EvidenceError::io("write", path, error))?;
    }
    Ok(pair.pk.to_base64())
}

/// Reads a public key. The argument is a line in the form that minisign writes, or the path of a
/// file that contains such a line.
///
/// # Errors
/// The argument is neither a key nor a readable file.
pub fn public_key(line_or_file: &str) -> Result<String, EvidenceError> {
    if let Ok(key) = PublicKey::from_base64(line_or_file) {
        return Ok(key.to_base64());
    }
    let path = Path::new(line_or_file);
    let wrong = |reason: String| EvidenceError::Key { path: path.to_path_buf(), reason };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let key = minisign::PublicKeyBox::from(text).into_public_key();
    key.map(|key| key.to_base64()).map_err(|error| wrong(error.to_string()))
}

/// Checks a signature, and returns the comment that the signature protects.
///
/// # Errors
/// Returns a text with the reason.
pub fn check(public: &str, bytes: &[u8], signature: &str) -> Result<String, String> {
    let lines: Vec<&str> = signature.lines().collect();
    let long = |(at, length): (usize, usize)| lines.get(at).is_some_and(|l| l.len() == length);
    if lines.len() != 4 || !LINES.into_iter().all(long) {
        return Err("it is not in minisign's format".to_owned());
    }
    let key = PublicKey::from_base64(public).map_err(|error| error.to_string())?;
    let read = SignatureBox::from_string(signature).map_err(|error| error.to_string())?;
    // The parts of a signature file that are not signed must have exactly one form. Otherwise, a
    // file in which these parts were changed would still be accepted.
    if read.to_string() != signature {
        return Err("it does not have exactly the form that minisign writes".to_owned());
    }
    minisign::verify(&key, &read, Cursor::new(bytes), true, false, false)
        .map_err(|error| error.to_string())?;
    read.trusted_comment().map_err(|error| error.to_string())
}

/// Returns true if the untrusted comment is the text that [`Signer::sign`] writes. The signature
/// does not protect the untrusted comment.
#[must_use]
pub fn has_own_remark(signature: &str) -> bool {
    signature.lines().next() == Some(&format!("untrusted comment: {REMARK}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(password: Option<&str>) -> (tempfile::TempDir, PathBuf, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let public = make_keys(&path, password.map(str::to_owned)).unwrap();
        (directory, path, public)
    }

    #[test]
    fn accepts_only_the_signed_content() {
        let (_directory, path, public) = keys(None);
        let signer = Signer::read(&path, || unreachable!("it has no password")).unwrap();
        assert_eq!(signer.public(), public);
        let signature = signer.sign(b"evidence", "run a").unwrap();
        assert_eq!(check(&public, b"evidence", &signature).unwrap(), "run a");
        assert!(check(&public, b"evidencf", &signature).is_err());
        let other = keys(None).2;
        assert!(check(&other, b"evidence", &signature).is_err());
        for at in 0..signature.len() {
            let mut changed = signature.clone().into_bytes();
            changed[at] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let holds = check(&public, b"evidence", &changed).is_ok();
            assert!(!holds || !has_own_remark(&changed), "{changed}");
        }
    }

    #[test]
    fn a_key_with_a_password_needs_it() {
        let (directory, path, public) = keys(Some("secret"));
        let signer = Signer::read(&path, || Some("secret".to_owned())).unwrap();
        assert_eq!(signer.public(), public);
        assert!(Signer::read(&path, || Some("other".to_owned())).is_err());
        let file = directory.path().join("key.pub");
        assert_eq!(public_key(file.to_str().unwrap()).unwrap(), public);
        assert_eq!(public_key(&public).unwrap(), public);
        assert!(public_key("no such key").is_err());
        assert!(make_keys(&path, None).is_err(), "a key is never overwritten");
    }

    #[test]
    fn rejects_invalid_signatures() {
        let public = keys(None).2;
        for text in ["", "a\nb\nc\nd\n", "untrusted comment: x\n\n\n\n"] {
            assert!(check(&public, b"", text).is_err(), "{text}");
        }
    }
}
