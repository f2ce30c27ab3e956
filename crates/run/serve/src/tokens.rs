//! Tokens: what somebody has to know to be let in, and what is kept of those who were.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, Salt, SaltString};
use argon2::{Argon2, password_hash};
use sha2::{Digest, Sha256};

/// Permissions of a requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Not logged in: only the login page.
    #[default]
    Anyone,
    /// Look at everything.
    View,
    /// Start and stop runs, and note something on them.
    Run,
}

impl Role {
    /// As the token file and the API write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anyone => "none",
            Self::View => "view",
            Self::Run => "run",
        }
    }
}

/// A shorter one could be guessed.
const TOKEN_LENGTH_MIN: usize = 16;
/// Nobody has to come back within this time.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// More at a time are not kept: the one that is longest unused goes.
const SESSIONS_MAX: usize = 1_024;
/// Wrong tokens that are answered in a minute.
const FAILED_PER_MINUTE_MAX: usize = 20;

/// How the hash of a password begins in a token file.
const HASH: &str = "$argon2";
/// A shorter password could be guessed, slow as that is.
const PASSWORD_LENGTH_MIN: usize = 10;

/// The tokens of a file: a line is `view TOKEN` or `run TOKEN`, or has the hash of a password in a token's place. Only
/// digests and hashes are kept.
#[derive(Debug)]
pub struct Tokens {
    known: Vec<([u8; 32], Role)>,
    /// Hashes in the PHC form (`$argon2id$v=19$m=…`).
    passwords: Vec<(String, Role)>,
    /// Comparing takes 19 MiB: one at a time.
    comparison_lock: Mutex<()>,
}

/// Why a password was not hash_password.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The password is too short.
    #[error("the password is too short: use at least {PASSWORD_LENGTH_MIN} characters")]
    Short,
    /// The system gives no random numbers.
    #[error("cannot read random numbers: {0}")]
    Random(#[from] std::io::Error),
    /// Argon2 refuses it.
    #[error("{0}")]
    Hash(password_hash::Error),
}

/// The hash of a password for a token file: Argon2id (RFC 9106) with what OWASP's cheat sheet on password storage asks for
/// (19 MiB, two passes, one lane: the library's own choice), and a salt of 16 bytes.
///
/// # Errors
/// [`PasswordError`].
pub fn hash_password(password: &str) -> Result<String, PasswordError> {
    if password.chars().count() < PASSWORD_LENGTH_MIN {
        return Err(PasswordError::Short);
    }
    let salt = SaltString::encode_b64(&random()?[..Salt::RECOMMENDED_LENGTH]);
    let salt = salt.map_err(PasswordError::Hash)?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    Ok(hash.map_err(PasswordError::Hash)?.to_string())
}

/// Error in a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It can't be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// Others on this host can read it.
    #[error("{0} is readable by every user of this host")]
    Public(PathBuf),
    /// A line that says nothing.
    #[error("{path}, line {line}: {message}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Reason.
        message: String,
    },
    /// It holds none.
    #[error("{0} holds no token")]
    Empty(PathBuf),
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// One that can't be read, that everybody can read, or that has a line that is none.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let unreadable = |error| TokensError::Unreadable { path: path.to_path_buf(), error };
        let mut file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        if mode & 0o004 != 0 {
            return Err(TokensError::Public(path.to_path_buf()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, TokensError> {
        let (mut known, mut passwords) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |message: &str| TokensError::Line {
                path: path.to_path_buf(),
                line: number + 1,
                message: message.to_owned(),
            };
            let (role, token) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong("write a role and a token: `view TOKEN` or `run TOKEN`"))?;
            let role = match role {
                "view" => Role::View,
                "run" => Role::Run,
                _ => return Err(wrong("a role is `view` or `run`")),
            };
            let token = token.trim();
            if token.starts_with(HASH) {
                let hash = PasswordHash::new(token)
                    .map_err(|error| wrong(&format!("a password's hash: {error}")))?;
                if hash.salt.is_none() || hash.hash.is_none() {
                    return Err(wrong("a password's hash: its end is missing"));
                }
                passwords.push((token.to_owned(), role));
                continue;
            }
            if token.len() < TOKEN_LENGTH_MIN {
                return Err(wrong("a token has at least 16 characters: `openssl rand -hex 16`"));
            }
            known.push((digest(token.as_bytes()), role));
        }
        match known.is_empty() && passwords.is_empty() {
            true => Err(TokensError::Empty(path.to_path_buf())),
            false => Ok(Self { known, passwords, comparison_lock: Mutex::default() }),
        }
    }

    /// Returns the role of a token. Comparing digests makes the time independent of the token.
    pub fn role(&self, token: &str) -> Option<Role> {
        let given = digest(token.trim().as_bytes());
        let found = self.known.iter().filter(|(known, _)| *known == given).map(|(_, role)| *role);
        found.max()
    }

    /// Returns the role of a password. Takes tens of milliseconds per stored hash.
    pub fn role_of_password(&self, password: &str) -> Option<Role> {
        let _one = self.comparison_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.passwords.iter().filter_map(|(text, role)| {
            let hash = PasswordHash::new(text).ok()?;
            let same = Argon2::default().verify_password(password.as_bytes(), &hash);
            same.is_ok().then_some(*role)
        });
        known.max()
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Open sessions, and the secret that form tokens are derived from.
#[derive(Debug)]
pub struct Sessions {
    secret: [u8; 32],
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    /// By the digest of what the cookie holds.
    sessions: HashMap<[u8; 32], (Role, Instant)>,
    failed_attempts: Vec<Instant>,
}

impl Sessions {
    /// Nobody yet.
    ///
    /// # Errors
    /// A system without random numbers.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { secret: random()?, table: Mutex::default() })
    }

    /// Opens a session and returns the value of its cookie.
    ///
    /// # Errors
    /// A system without random numbers.
    pub fn begin(&self, role: Role) -> std::io::Result<String> {
        let id = hex(&random()?);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.sessions.retain(|_, (_, used)| used.elapsed() < SESSION_IDLE_MAX);
        if table.sessions.len() >= SESSIONS_MAX {
            let oldest = table.sessions.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(id, _)| *id);
            if let Some(id) = oldest {
                table.sessions.remove(&id);
            }
        }
        table.sessions.insert(digest(id.as_bytes()), (role, Instant::now()));
        Ok(id)
    }

    /// Returns the role of a session.
    pub fn role(&self, id: &str) -> Option<Role> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let (role, used) = table.sessions.get_mut(&digest(id.as_bytes()))?;
        if used.elapsed() >= SESSION_IDLE_MAX {
            return None;
        }
        *used = Instant::now();
        Some(*role)
    }

    /// Forgets somebody.
    pub fn end(&self, id: &str) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.sessions.remove(&digest(id.as_bytes()));
    }

    /// Whether less than the most of a minute were wrong.
    pub fn allows_attempts(&self) -> bool {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.failed_attempts.retain(|at| at.elapsed() < Duration::from_secs(60));
        table.failed_attempts.len() < FAILED_PER_MINUTE_MAX
    }

    /// Whether another wrong token is answered; it is counted.
    pub fn count_failed_attempt(&self) -> bool {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.failed_attempts.retain(|at| at.elapsed() < Duration::from_secs(60));
        let may = table.failed_attempts.len() < FAILED_PER_MINUTE_MAX;
        if may {
            table.failed_attempts.push(Instant::now());
        }
        may
    }

    /// Form token of a session, which other sites cannot guess.
    pub fn form_token(&self, session: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.secret);
        hasher.update(session.as_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        hex(&digest)
    }
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_has_a_role_and_a_line_that_is_none_is_named() {
        let of = |text: &str| Tokens::parse(text, Path::new("t"));
        let tokens = of("# who\nview 0123456789abcdef\n\nrun  fedcba9876543210\n").unwrap();
        assert_eq!(tokens.role("0123456789abcdef"), Some(Role::View));
        assert_eq!(tokens.role(" fedcba9876543210\n"), Some(Role::Run));
        assert_eq!(tokens.role("0123456789abcdeF"), None);
        for (text, says) in [
            ("view short", "line 1: a token has at least 16"),
            ("\nadmin 0123456789abcdef", "line 2: a role is"),
            ("0123456789abcdef", "line 1: write a role"),
            ("# nothing\n", "holds no token"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_password_is_kept_as_a_hash_and_opens_the_page() {
        let (look, run) = (
            hash_password("correct horse battery").unwrap(),
            hash_password("staple staple").unwrap(),
        );
        assert_ne!(
            look,
            hash_password("correct horse battery").unwrap(),
            "each has a salt of its own"
        );
        assert!(look.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{look}");
        let tokens = Tokens::parse(&format!("view {look}\nrun {run}\n"), Path::new("t")).unwrap();
        assert_eq!(tokens.role_of_password("correct horse battery"), Some(Role::View));
        assert_eq!(tokens.role_of_password("staple staple"), Some(Role::Run));
        assert_eq!(tokens.role_of_password("staple"), None);
        // The hash itself opens nothing.
        assert_eq!((tokens.role(&look), tokens.role_of_password(&look)), (None, None));
        assert!(matches!(hash_password("short"), Err(PasswordError::Short)));
        let cut = Tokens::parse("view $argon2id$v=19$m=1", Path::new("t")).unwrap_err().to_string();
        assert!(cut.contains("line 1: a password's hash"), "{cut}");
    }

    #[test]
    fn a_session_ends_and_its_forms_are_its_own() {
        let sessions = Sessions::new().unwrap();
        let (a, b) = (sessions.begin(Role::View).unwrap(), sessions.begin(Role::Run).unwrap());
        assert_eq!((sessions.role(&a), sessions.role(&b)), (Some(Role::View), Some(Role::Run)));
        assert_ne!(sessions.form_token(&a), sessions.form_token(&b));
        sessions.end(&a);
        assert_eq!((sessions.role(&a), sessions.role("")), (None, None));
        for _ in 0..SESSIONS_MAX + 5 {
            sessions.begin(Role::View).unwrap();
        }
        assert_eq!(sessions.role(&b), None, "the one longest unused goes");
        assert!((0..FAILED_PER_MINUTE_MAX).all(|_| sessions.count_failed_attempt()));
        assert!(!sessions.count_failed_attempt());
    }
}
