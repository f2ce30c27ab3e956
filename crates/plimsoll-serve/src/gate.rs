//! Who may ask for what.
//!
//! - The name that a browser believes to talk to (`Host`) is an address, `localhost` or one that was stated: a
//!   foreign name that resolves to this host (DNS rebinding) is refused.
//! - A request that changes something holds what only a page of ours knows (`csrf`), unless it names its token
//!   itself (`Authorization: Bearer`), which no browser adds by itself.
//! - Everything but the page that asks for a token needs a role, where tokens are asked for.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use crate::answer::Problem;
use crate::tokens::{Role, Sessions, Tokens};

/// Name of the cookie.
pub const COOKIE_NAME: &str = "plimsoll";
/// What stands for the session where no token is asked for.
const OPEN: &str = "open";
/// And where nobody was let in yet.
const NOBODY: &str = "nobody";

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// What they may do.
    pub role: Role,
    /// What their forms hold.
    pub csrf: String,
    /// Their session, where they have one.
    pub session: Option<String>,
    /// They named a token with the request itself.
    pub named_token: bool,
}

/// Lets in, or does not.
#[derive(Debug)]
pub struct Gate {
    /// Who may ask; `None`: everybody.
    pub tokens: Option<Tokens>,
    /// Those who were let in.
    pub sessions: Sessions,
    /// Names of this host, in lower case.
    pub names: Vec<String>,
    /// It is asked over TLS alone, so that cookies are sent over nothing else.
    pub is_secure: bool,
}

impl Gate {
    /// Who asks.
    ///
    /// # Errors
    /// A name of this host that nobody stated, a token that is none.
    pub fn who(&self, parts: &Parts) -> Result<Who, Problem> {
        self.knows_host(parts)?;
        let Some(tokens) = &self.tokens else {
            let csrf = self.sessions.form_token(OPEN);
            return Ok(Who { role: Role::Run, csrf, session: None, named_token: false });
        };
        if let Some(token) = bearer(&parts.headers) {
            let Some(role) = tokens.role(token) else { return Err(self.wrong_token()) };
            return Ok(Who { role, csrf: String::new(), session: None, named_token: true });
        }
        let session = cookie(&parts.headers).filter(|id| self.sessions.role(id).is_some());
        let role = session.and_then(|id| self.sessions.role(id)).unwrap_or(Role::Anyone);
        let csrf = self.sessions.form_token(session.unwrap_or(NOBODY));
        Ok(Who { role, csrf, session: session.map(str::to_owned), named_token: false })
    }

    /// Lets somebody in who knows a token or a password; what the cookie holds. A password takes some tens of
    /// milliseconds to compare.
    ///
    /// # Errors
    /// What is neither, too many of these.
    pub fn let_in(&self, secret: &str) -> Result<String, Problem> {
        let tokens = self.tokens.as_ref();
        let role = tokens.and_then(|tokens| match tokens.role(secret) {
            // Comparing a password costs so much that it is not done for whoever has tried too often.
            None if self.sessions.is_open() => tokens.role_of_password(secret),
            role => role,
        });
        let Some(role) = role else { return Err(self.wrong_token()) };
        let begun = self.sessions.begin(role);
        begun.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    fn wrong_token(&self) -> Problem {
        match self.sessions.may_be_wrong() {
            true => Problem::new(StatusCode::UNAUTHORIZED, "this opens nothing here"),
            false => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong ones")
                .hint("wait a minute"),
        }
    }

    fn knows_host(&self, parts: &Parts) -> Result<(), Problem> {
        let given = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let given = given.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let Some(host) = given else {
            return Err(Problem::wrong("the request does not say whom it is for (Host)"));
        };
        let name = without_port(host).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let known =
            bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.names.contains(&name);
        match known {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this server is not known by the name that the request is for",
            )
            .hint("name it with `--name`, or use its address")),
        }
    }
}

/// Refuses a request that changes something and that no page of ours sent.
///
/// # Errors
/// Such a request.
pub fn sent_by_our_page(
    who: &Who,
    headers: &HeaderMap,
    form: &[(String, String)],
) -> Result<(), Problem> {
    if who.named_token {
        return Ok(());
    }
    let from = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if from.is_some_and(|from| from != "same-origin" && from != "none") {
        return Err(Problem::refused("the request comes from a page of another site"));
    }
    let header = headers.get("x-csrf-token").and_then(|value| value.to_str().ok());
    let field = form.iter().find(|(name, _)| name == "csrf").map(|(_, value)| value.as_str());
    match header.or(field) {
        Some(given) if !who.csrf.is_empty() && alike(given, &who.csrf) => Ok(()),
        _ => Err(Problem::refused("the form is not one of this page, or is too old")
            .hint("load the page again and send the form once more")
            .hint(
                "programs name what GET /api/session gives as `csrf` in the header X-CSRF-Token",
            )),
    }
}

/// Compares in a time that does not tell where two differ.
fn alike(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.contains(':') => {
            name
        }
        Some((name, port)) if name.ends_with(']') && port.bytes().all(|b| b.is_ascii_digit()) => {
            name
        }
        _ => host,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then_some(token)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|one| one.split_once('='));
    pairs.find(|(name, _)| name.trim() == COOKIE_NAME).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use axum::http::Request;

    use super::*;

    fn gate(names: &[&str]) -> Gate {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Gate { tokens: None, sessions: Sessions::new().unwrap(), names, is_secure: false }
    }

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_addresses_and_stated_names_are_this_host() {
        let gate = gate(&["lab.example"]);
        for host in ["127.0.0.1:7460", "localhost", "localhost:80", "[::1]:7460", "LAB.example:1"] {
            assert!(gate.who(&parts(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:7460", "localhost.evil", "", "lab"] {
            let problem = gate.who(&parts(&[("host", host)])).unwrap_err();
            assert_eq!(problem.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        assert_eq!(gate.who(&parts(&[])).unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        let gate = gate(&[]);
        let who = gate.who(&parts(&[("host", "localhost")])).unwrap();
        let sent = |headers: &[(&str, &str)], csrf: &str| {
            let form = [("csrf".to_owned(), csrf.to_owned())];
            sent_by_our_page(&who, &parts(headers).headers, &form)
        };
        assert!(sent(&[], &who.csrf).is_ok());
        assert!(sent(&[("sec-fetch-site", "same-origin")], &who.csrf).is_ok());
        assert!(sent(&[("x-csrf-token", &who.csrf)], "").is_ok());
        assert!(sent(&[], "").is_err() && sent(&[], "x").is_err());
        assert!(sent(&[("sec-fetch-site", "cross-site")], &who.csrf).is_err());
        assert!(sent(&[("sec-fetch-site", "same-site")], &who.csrf).is_err());
    }
}
