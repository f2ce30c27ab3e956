//! Signatures in minisign's form: Ed25519 over BLAKE2b of what is signed, as `minisign -S` makes them and
//! `minisign -V` checks them.
//!
//! A seal shows that files fit each other; whoever can write them can seal them again. A signature shows who
//! sealed them, to everyone who has the public key from elsewhere.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use minisign::{KeyPair, PublicKey, SecretKeyBox, SignatureBox};

use crate::EvidenceError;

/// What minisign calls a signature's file: the name of what is signed with this at its end.
pub const SUFFIX: &str = ".minisig";

/// The remark in a signature's first line, which nothing guards: it has this one form.
const REMARK: &str = "signature of evidence sealed by Plimsoll";

/// Length of a signature's second and fourth line: 74 and 64 bytes in base 64.
const LINES: [(usize, usize); 2] = [(1, 100), (3, 88)];

/// A secret key that can sign.
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
    /// Reads a secret key as minisign writes it. `password` is asked for where the key has one.
    ///
    /// # Errors
    /// A file that is no secret key, or a wrong password.
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

    /// The public key, in one line as minisign writes it.
    #[must_use]
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs. The comment is signed too.
    ///
    /// # Errors
    /// No randomness to be had.
    pub fn sign(&self, bytes: &[u8], comment: &str) -> Result<String, EvidenceError> {
        let signed =
            minisign::sign(None, &self.secret, Cursor::new(bytes), Some(comment), Some(REMARK));
        signed.map(SignatureBox::into_string).map_err(|error| EvidenceError::Key {
            path: PathBuf::from(&self.public),
            reason: error.to_string(),
        })
    }
}

/// Makes a pair of keys: the secret one at `path`, readable for its owner only, and the public one beside it
/// with `.pub`. Returns the public one in one line.
///
/// # Errors
/// Files that are there already or can't be written.
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

/// Reads a public key: one line as minisign writes it, or a file that holds it.
///
/// # Errors
/// Neither.
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

/// Checks a signature; returns the comment that was signed with it.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check(public: &str, bytes: &[u8], signature: &str) -> Result<String, String> {
    let lines: Vec<&str> = signature.lines().collect();
    let long = |(at, length): (usize, usize)| lines.get(at).is_some_and(|l| l.len() == length);
    if lines.len() != 4 || !LINES.into_iter().all(long) {
        return Err("it is not in the form that minisign writes".to_owned());
    }
    let key = PublicKey::from_base64(public).map_err(|error| error.to_string())?;
    let read = SignatureBox::from_string(signature).map_err(|error| error.to_string())?;
    // What is not signed has one form, so that nothing else can be said in it.
    if read.to_string() != signature {
        return Err("it is not in the form in which it is written".to_owned());
    }
    minisign::verify(&key, &read, Cursor::new(bytes), true, false, false)
        .map_err(|error| error.to_string())?;
    read.trusted_comment().map_err(|error| error.to_string())
}

/// Whether a signature's remark is the one that [`Signer::sign`] writes: nothing guards it.
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
    fn what_was_signed_checks_and_nothing_else_does() {
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
    fn what_is_no_signature_is_told() {
        let public = keys(None).2;
        for text in ["", "a\nb\nc\nd\n", "untrusted comment: x\n\n\n\n"] {
            assert!(check(&public, b"", text).is_err(), "{text}");
        }
    }
}
