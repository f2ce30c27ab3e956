//! Signed statements about a ledger. A statement contains the ledger's length and the hash of its
//! last line. Once the owner has given the statement to another person, this person can detect
//! every change or truncation of the signed lines.
//!
//! A statement is a small text file, such as `ledger-000057.txt`. Its signature,
//! `ledger-000057.txt.minisig`, can be checked with minisign. The owner can add an RFC 3161
//! timestamp token (`ledger-000057.txt.tsr`), which proves that the statement already existed at
//! that time.

use std::fs;
use std::path::{Path, PathBuf};

use super::Link;
use crate::EvidenceError;
use crate::seal::sha256_hex;
use crate::signature::{self, Signer};

/// First line in the text of a statement.
const TITLE: &str = "Plimsoll ledger statement 1";

/// A signed statement about a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Path of the statement's file.
    pub path: PathBuf,
    /// Time of the ledger's first line, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// SHA-256 of the ledger's first line.
    pub first_sha256: String,
    /// Number of lines in the ledger.
    pub lines: u64,
    /// SHA-256 of the ledger's last line.
    pub last_sha256: String,
    /// Public key, as the statement contains it.
    pub key: String,
    /// Time when the statement was signed, according to the signer's clock, in nanoseconds since
    /// 1970.
    pub signed_unix_ns: u64,
    text: String,
    signature: String,
}

impl Statement {
    /// Writes and signs a statement about the ledger. Creates the directory `directory`, and stores
    /// the statement in it.
    ///
    /// # Errors
    /// The ledger is empty, the key cannot sign, or the files cannot be written.
    pub fn sign(
        chain: &[Link],
        ledger: &Path,
        directory: &Path,
        signer: &Signer,
        unix_ns: u64,
    ) -> Result<Self, EvidenceError> {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
            let reason = "it is empty: there is nothing to sign".to_owned();
            return Err(EvidenceError::Malformed { path: ledger.to_path_buf(), reason });
        };
        let text = format!(
            "{TITLE}\nbegan_unix_ns {}\nfirst_sha256 {}\nlines {}\nlast_sha256 {}\nkey \
             {}\nsigned_unix_ns {unix_ns}\n",
            first.entry.unix_ns,
            first.sha256,
            chain.len(),
            last.sha256,
            signer.public()
        );
        let comment = format!("ledger of {} lines, last {}", chain.len(), last.sha256);
        let signature = signer.sign(text.as_bytes(), &comment)?;
        let io = |doing, path: &Path| {
            let path = path.to_path_buf();
            move |source| EvidenceError::Io { doing, path, source }
        };
        fs::create_dir_all(directory).map_err(io("create", directory))?;
        let path = directory.join(format!("ledger-{:06}.txt", chain.len()));
        let beside = with_suffix(&path, signature::SUFFIX);
        fs::write(&path, &text).map_err(io("write", &path))?;
        fs::write(&beside, &signature).map_err(io("write", &beside))?;
        Self::read(&path)
    }

    /// Reads a statement, and checks its signature with the key that the statement contains. The
    /// caller must know from another source who owns the key.
    ///
    /// # Errors
    /// The file is not a statement, or the signature is not valid.
    pub fn read(path: &Path) -> Result<Self, EvidenceError> {
        let io = |error| EvidenceError::io("read", path, error);
        let text = fs::read_to_string(path).map_err(io)?;
        let beside = with_suffix(path, signature::SUFFIX);
        let signature = fs::read_to_string(&beside)
            .map_err(|error| EvidenceError::io("read", &beside, error))?;
        let malformed = |reason: &str| EvidenceError::Malformed {
            path: path.to_path_buf(),
            reason: reason.to_owned(),
        };
        let lines: Vec<&str> = text.lines().collect();
        let [TITLE, rest @ ..] = &lines[..] else {
            return Err(malformed("it is not a ledger statement of this version"));
        };
        let names =
            ["began_unix_ns", "first_sha256", "lines", "last_sha256", "key", "signed_unix_ns"];
        let values: Option<Vec<&str>> = rest
            .iter()
            .zip(names)
            .map(|(line, name)| line.strip_prefix(name)?.strip_prefix(' '))
            .collect();
        let Some([began, first, count, last, key, signed]) =
            values.as_deref().filter(|_| rest.len() == names.len())
        else {
            return Err(malformed("a line is missing or in the wrong order"));
        };
        let number =
            |text: &str| text.parse().map_err(|_| malformed("it contains an invalid number"));
        signature::check(key, text.as_bytes(), &signature)
            .map_err(|reason| EvidenceError::Signature { path: path.to_path_buf(), reason })?;
        Ok(Self {
            path: path.to_path_buf(),
            began_unix_ns: number(began)?,
            first_sha256: (*first).to_owned(),
            lines: number(count)?,
            last_sha256: (*last).to_owned(),
            key: (*key).to_owned(),
            signed_unix_ns: number(signed)?,
            signature,
            text: text.clone(),
        })
    }

    /// Checks that the ledger still matches the statement.
    ///
    /// # Errors
    /// Returns a text that describes the mismatch.
    pub fn holds_for(&self, chain: &[Link]) -> Result<(), String> {
        let lines = chain.len() as u64;
        if chain.first().is_some_and(|first| first.sha256 != self.first_sha256) {
            return Err(
                "its first line is not the one that was signed: the ledger was restarted".into()
            );
        }
        if lines < self.lines {
            return Err(format!(
                "it was cut short: {} lines were signed, but the ledger has {lines}",
                self.lines
            ));
        }
        let last = usize::try_from(self.lines).ok().and_then(|n| chain.get(n.checked_sub(1)?));
        match last.is_some_and(|link| link.sha256 == self.last_sha256) {
            true => Ok(()),
            false => Err(format!(
                "it was rewritten: line {} differs from the line that was signed",
                self.lines
            )),
        }
    }

    /// Returns true if this key signed the statement.
    #[must_use]
    pub fn is_signed_by(&self, public: &str) -> bool {
        self.key == public
            && signature::check(public, self.text.as_bytes(), &self.signature).is_ok()
    }

    /// Returns the path of the timestamp token, if the statement has a token.
    #[must_use]
    pub fn token(&self) -> Option<PathBuf> {
        Some(with_suffix(&self.path, ".tsr")).filter(|path| path.is_file())
    }

    /// Copies a timestamp token (RFC 3161) next to the statement. The function only checks that the
    /// token contains the SHA-256 of the statement. The signature of the timestamp authority can be
    /// checked with `openssl ts -verify`.
    ///
    /// # Errors
    /// The token cannot be read, or it belongs to another file.
    pub fn stamp(&self, token: &Path) -> Result<PathBuf, EvidenceError> {
        let bytes = fs::read(token).map_err(|error| EvidenceError::io("read", token, error))?;
        let imprint = imprint(self.text.as_bytes());
        if !bytes.windows(imprint.len()).any(|window| window == imprint) {
            let reason = format!(
                "it does not contain the SHA-256 of {}, so it is a token for a different file",
                self.path.display()
            );
            return Err(EvidenceError::Malformed { path: token.to_path_buf(), reason });
        }
        let beside = with_suffix(&self.path, ".tsr");
        fs::write(&beside, &bytes).map_err(|error| EvidenceError::io("write", &beside, error))?;
        Ok(beside)
    }
}

/// Returns the message imprint in a token. It is the SHA-256 of the signed file, encoded as a DER
/// octet string of 32 bytes.
fn imprint(bytes: &[u8]) -> Vec<u8> {
    let hex = sha256_hex(bytes);
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2).unwrap_or("00"), 16).unwrap_or(0);
    [0x04, 0x20].into_iter().chain((0..64).step_by(2).map(byte)).collect()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads the statements in a directory. The oldest statement is first.
#[must_use]
pub fn statements(directory: &Path) -> Vec<Result<Statement, EvidenceError>> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    paths.iter().map(|path| Statement::read(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Ledger, Start, head};
    use super::*;

    struct Fixture {
        directory: tempfile::TempDir,
        ledger: Ledger,
        signer: Signer,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let ledger = Ledger::at(directory.path().join("ledger.jsonl"));
            let key = directory.path().join("key");
            signature::make_keys(&key, None).unwrap();
            let signer = Signer::read(&key, || None).unwrap();
            let kept = Self { directory, ledger, signer };
            kept.enter("a");
            kept
        }

        fn enter(&self, run_id: &str) {
            self.ledger.start(&Start { run_id, unix_ns: 5, ..Start::default() }).unwrap();
        }

        fn sign(&self) -> Statement {
            let chain = self.ledger.read_chain().unwrap();
            let to = self.directory.path().join("signed");
            Statement::sign(&chain, self.ledger.path(), &to, &self.signer, 9).unwrap()
        }

        #[track_caller]
        fn says(&self, statement: &Statement, sentence: &str) {
            let says = statement.holds_for(&self.ledger.read_chain().unwrap()).unwrap_err();
            assert!(says.contains(sentence), "{says}");
        }
    }

    #[test]
    fn a_statement_stays_valid_while_the_ledger_grows() {
        let kept = Fixture::new();
        let statement = kept.sign();
        assert_eq!((statement.lines, statement.began_unix_ns), (1, 5));
        kept.enter("b");
        statement.holds_for(&kept.ledger.read_chain().unwrap()).unwrap();
        assert!(statement.is_signed_by(kept.signer.public()));
        assert!(!statement.is_signed_by("another"));
        kept.sign();
        let all = statements(&kept.directory.path().join("signed"));
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].as_ref().unwrap().lines, 2);
    }

    #[test]
    fn a_truncated_rewritten_or_restarted_ledger_does_not_match_its_statement() {
        let kept = Fixture::new();
        kept.enter("b");
        let statement = kept.sign();
        let text = fs::read_to_string(kept.ledger.path()).unwrap();
        let first = text.lines().next().unwrap();
        // The attacker also knows about the head and removes it.
        let head = head::path_of(kept.ledger.path());
        fs::write(kept.ledger.path(), format!("{first}\n")).unwrap();
        fs::remove_file(&head).unwrap();
        kept.says(&statement, "cut short: 2 lines were signed, but the ledger has 1");
        kept.enter("c");
        kept.says(&statement, "rewritten: line 2");
        fs::remove_file(kept.ledger.path()).unwrap();
        kept.enter("d");
        kept.says(&statement, "restarted");
        fs::remove_file(kept.ledger.path()).unwrap();
        fs::remove_file(&head).unwrap();
        kept.says(&statement, "cut short: 2 lines were signed, but the ledger has 0");
    }

    #[test]
    fn rejects_a_changed_statement() {
        let statement = Fixture::new();
        let path = statement.sign().path;
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in
            [("lines 1", "lines 2"), ("key ", "key R"), ("statement 1", "statement 2")]
        {
            fs::write(&path, text.replace(from, to)).unwrap();
            assert!(Statement::read(&path).is_err(), "{to}");
        }
        fs::write(&path, format!("{text}more\n")).unwrap();
        assert!(Statement::read(&path).is_err());
    }

    #[test]
    fn rejects_a_token_of_another_file() {
        let kept = Fixture::new();
        let statement = kept.sign();
        let token = kept.directory.path().join("token");
        fs::write(&token, b"a token of something else").unwrap();
        assert!(statement.stamp(&token).unwrap_err().to_string().contains("different file"));
        assert_eq!(statement.token(), None);
        let imprint = imprint(&fs::read(&statement.path).unwrap());
        fs::write(&token, [b"DER".to_vec(), imprint].concat()).unwrap();
        assert_eq!(statement.stamp(&token).unwrap(), statement.token().unwrap());
    }
}
