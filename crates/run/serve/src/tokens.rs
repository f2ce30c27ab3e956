//! Tokens with which users log in, and the sessions of users who have logged in.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

/// Permissions of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A client that is not logged in. It can open only the login page.
    #[default]
    Anyone,
    /// May view everything.
    View,
    /// May start and stop runs, and add tags and notes to them.
    Run,
}

impl Role {
    /// Returns the word for the role in the token file and the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anyone => "none",
            Self::View => "view",
            Self::Run => "run",
        }
    }
}

/// Minimum length of a token. Shorter tokens could be guessed.
const TOKEN_LENGTH_MIN: usize = 16;
/// Idle time after which a session expires.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// Maximum number of sessions. If there are more sessions, the one that was unused for the longest
/// time is dropped.
const SESSIONS_MAX: usize = 1_024;
/// Maximum number of wrong tokens from one network in a minute. After that, tokens from this
/// network are not checked.
const FAILED_PER_MINUTE_MAX: usize = 20;

/// Maximum number of networks for which wrong tokens are counted.
const COUNTED_ADDRESSES_MAX: usize = 4_096;

/// Identity of the owner of a token: a role, and a name for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub role: Role,
    /// Name in the token file. A line without a name gets the name `token N`, where N is the line
    /// number.
    pub name: String,
}

/// The tokens of a file. A line is `view TOKEN` or `run TOKEN`, optionally followed by a name. Only
/// digests of the tokens are stored.
#[derive(Debug)]
pub struct Tokens {
    known: Vec<([u8; 32], User)>,
}

/// Error in a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// A line is not valid.
    #[error("{path}, line {line}: {message}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Reason.
        message: String,
    },
    /// The file contains no token.
    #[error("{0} contains no token")]
    Empty(PathBuf),
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let unreadable = |error| TokensError::Unreadable { path: path.to_path_buf(), error };
        let mut file = File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, TokensError> {
        let mut known = Vec::new();
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
            let (role, token) = line.split_once(char::is_whitespace).ok_or_else(|| {
                wrong("a line must have a role and a token: `view TOKEN` or `run TOKEN`")
            })?;
            let role = match role {
                "view" => Role::View,
                "run" => Role::Run,
                _ => return Err(wrong("the role must be `view` or `run`")),
            };
            let token = token.trim();
            let (token, name) = match token.split_once(char::is_whitespace) {
                Some((token, name)) => (token, name.trim().to_owned()),
                None => (token, format!("token {}", number + 1)),
            };
            if token.starts_with("$argon2") {
                return Err(wrong("hashes of passwords are no longer supported: use a token"));
            }
            if token.len() < TOKEN_LENGTH_MIN {
                return Err(wrong(
                    "a token must have at least 16 characters; `openssl rand -hex 16` creates one",
                ));
            }
            known.push((digest(token.as_bytes()), User { role, name }));
        }
        match known.is_empty() {
            true => Err(TokensError::Empty(path.to_path_buf())),
            false => Ok(Self { known }),
        }
    }

    /// Returns the user of a token. The function compares digests, so that its duration does not
    /// depend on the token.
    pub fn user(&self, token: &str) -> Option<&User> {
        let given = digest(token.trim().as_bytes());
        let found = self.known.iter().filter(|(known, _)| *known == given).map(|(_, user)| user);
        found.max_by_key(|user| user.role)
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Open sessions, and the secret from which form tokens are derived.
#[derive(Debug)]
pub struct Sessions {
    secret: [u8; 32],
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    /// For each session: the user, and the time of the last request. The key is the digest of the
    /// cookie.
    sessions: HashMap<[u8; 32], (User, Instant)>,
    /// Times at which wrong tokens were sent in the last minute, for each network.
    failed_attempts: HashMap<IpAddr, Vec<Instant>>,
}

impl Sessions {
    /// Nobody yet.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { secret: random()?, table: Mutex::default() })
    }

    /// Opens a session and returns the value of its cookie.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn begin(&self, user: User) -> std::io::Result<String> {
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
        table.sessions.insert(digest(id.as_bytes()), (user, Instant::now()));
        Ok(id)
    }

    pub fn user(&self, id: &str) -> Option<User> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let (user, used) = table.sessions.get_mut(&digest(id.as_bytes()))?;
        if used.elapsed() >= SESSION_IDLE_MAX {
            return None;
        }
        *used = Instant::now();
        Some(user.clone())
    }

    /// Forgets somebody.
    pub fn end(&self, id: &str) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.sessions.remove(&digest(id.as_bytes()));
    }

    /// Counts a wrong token. Returns how many wrong tokens this network sent in the last minute, or
    /// `None` if this number is too high.
    pub fn count_failed_attempt(&self, network: IpAddr) -> Option<usize> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = &mut table.failed_attempts;
        if failed.len() >= COUNTED_ADDRESSES_MAX && !failed.contains_key(&network) {
            failed.retain(|_, times| times.last().is_some_and(is_recent));
            if failed.len() >= COUNTED_ADDRESSES_MAX {
                return None;
            }
        }
        let times = failed.entry(network).or_default();
        times.retain(is_recent);
        let may = times.len() < FAILED_PER_MINUTE_MAX;
        if may {
            times.push(Instant::now());
        }
        may.then_some(times.len())
    }

    /// Returns the form token (CSRF token) of a session. Other sites cannot guess it.
    pub fn form_token(&self, session: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.secret);
        hasher.update(session.as_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        hex(&digest)
    }
}

fn is_recent(at: &Instant) -> bool {
    at.elapsed() < Duration::from_secs(60)
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
        let tokens = of("# who\nview 0123456789abcdef\n\nrun  fedcba9876543210 ann\n").unwrap();
        let user = |token: &str| tokens.user(token).map(|user| (user.role, user.name.as_str()));
        assert_eq!(user("0123456789abcdef"), Some((Role::View, "token 2")));
        assert_eq!(user(" fedcba9876543210\n"), Some((Role::Run, "ann")));
        assert_eq!(user("0123456789abcdeF"), None);
        for (text, says) in [
            ("view short", "line 1: a token must have at least 16"),
            ("\nadmin 0123456789abcdef", "line 2: the role must be"),
            ("0123456789abcdef", "line 1: a line must have a role"),
            ("# nothing\n", "contains no token"),
            ("run $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH", "line 1: hashes of passwords"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_session_ends_and_its_forms_are_its_own() {
        let sessions = Sessions::new().unwrap();
        let begin = |role| sessions.begin(User { role, name: String::new() }).unwrap();
        let role = |id: &str| sessions.user(id).map(|user| user.role);
        let (a, b) = (begin(Role::View), begin(Role::Run));
        assert_eq!((role(&a), role(&b)), (Some(Role::View), Some(Role::Run)));
        assert_ne!(sessions.form_token(&a), sessions.form_token(&b));
        sessions.end(&a);
        assert_eq!((role(&a), role("")), (None, None));
        for _ in 0..SESSIONS_MAX + 5 {
            begin(Role::View);
        }
        assert_eq!(role(&b), None, "the one longest unused goes");
    }

    #[test]
    fn wrong_tokens_are_counted_per_address() {
        let sessions = Sessions::new().unwrap();
        let at = |last: u8| IpAddr::from([192, 0, 2, last]);
        assert!((0..FAILED_PER_MINUTE_MAX).all(|_| sessions.count_failed_attempt(at(1)).is_some()));
        assert_eq!(sessions.count_failed_attempt(at(1)), None);
        assert_eq!(sessions.count_failed_attempt(at(2)), Some(1));
    }
}
