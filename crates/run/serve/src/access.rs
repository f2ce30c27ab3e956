//! Identity may ask for what.
//!
//! - The name that a browser believes to talk to (`Host`) is an address, `localhost` or one that was stated: a
//!   foreign name that resolves to this host (DNS rebinding) is refused.
//! - A request that changes something holds what only a page of ours knows (`csrf`), unless it names its token
//!   itself (`Authorization: Bearer`), which no browser adds by itself.
//! - If the server requires tokens, every page except the login page needs a role.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use crate::response::Problem;
use crate::tokens::{Role, Sessions, Tokens};

/// Name of the cookie.
pub const COOKIE_NAME: &str = "plimsoll";
/// Session name for form tokens when the server requires no tokens.
const OPEN: &str = "open";
/// Session name for form tokens before login.
const ANONYMOUS: &str = "nobody";

/// Identity asks.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Role of the requester.
    pub role: Role,
    /// Form token that requests from this session must contain.
    pub csrf: String,
    /// Session id; `None` without a login.
    pub session: Option<String>,
    /// True if the request carried a bearer token.
    pub has_bearer_token: bool,
}

/// Lets in, or does not.
#[derive(Debug)]
pub struct AccessControl {
    /// Identity may ask; `None`: everybody.
    pub tokens: Option<Tokens>,
    /// Sessions of logged-in users.
    pub sessions: Sessions,
    /// Names of this host, in lower case.
    pub names: Vec<String>,
    /// True if the server uses TLS, so that cookies are marked `Secure`.
    pub is_secure: bool,
}

impl AccessControl {
    /// Identity asks.
    ///
    /// # Errors
    /// Unknown host name or unknown token.
    pub fn identify(&self, parts: &Parts) -> Result<Identity, Problem> {
        self.check_host(parts)?;
        let Some(tokens) = &self.tokens else {
            let csrf = self.sessions.form_token(OPEN);
            return Ok(Identity { role: Role::Run, csrf, session: None, has_bearer_token: false });
        };
        if let Some(token) = bearer(&parts.headers) {
            let Some(role) = tokens.role(token) else { return Err(self.reject_token()) };
            return Ok(Identity {
                role,
                csrf: String::new(),
                session: None,
                has_bearer_token: true,
            });
        }
        let session = cookie(&parts.headers).filter(|id| self.sessions.role(id).is_some());
        let role = session.and_then(|id| self.sessions.role(id)).unwrap_or(Role::Anyone);
        let csrf = self.sessions.form_token(session.unwrap_or(ANONYMOUS));
        Ok(Identity { role, csrf, session: session.map(str::to_owned), has_bearer_token: false })
    }

    /// Checks a token or password and returns the new session id. Checking a password takes tens of
    /// milliseconds.
    ///
    /// # Errors
    /// Wrong secret, or too many wrong secrets in the last minute.
    pub fn log_in(&self, secret: &str) -> Result<String, Problem> {
        let tokens = self.tokens.as_ref();
        let role = tokens.and_then(|tokens| match tokens.role(secret) {
            // Checking a password is expensive, so it is skipped after too many failed attempts.
            None if self.sessions.allows_attempts() => tokens.role_of_password(secret),
            role => role,
        });
        let Some(role) = role else { return Err(self.reject_token()) };
        let begun = self.sessions.begin(role);
        begun.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    fn reject_token(&self) -> Problem {
        match self.sessions.count_failed_attempt() {
            true => Problem::new(StatusCode::UNAUTHORIZED, "wrong token or password"),
            false => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens or passwords")
                    .hint("wait a minute")
            }
        }
    }

    fn check_host(&self, parts: &Parts) -> Result<(), Problem> {
        let given = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let given = given.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let Some(host) = given else {
            return Err(Problem::bad_request("the request has no Host header"));
        };
        let name = without_port(host).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let known =
            bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.names.contains(&name);
        match known {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "the request's Host is not a name of this server",
            )
            .hint("restart the server with `--name NAME`, or use its address")),
        }
    }
}

/// Refuses a request that changes something and that no page of ours sent.
///
/// # Errors
/// Such a request.
pub fn check_csrf(
    identity: &Identity,
    headers: &HeaderMap,
    form: &[(String, String)],
) -> Result<(), Problem> {
    if identity.has_bearer_token {
        return Ok(());
    }
    let from = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if from.is_some_and(|from| from != "same-origin" && from != "none") {
        return Err(Problem::forbidden("the request was sent by a page of another site"));
    }
    let header = headers.get("x-csrf-token").and_then(|value| value.to_str().ok());
    let field = form.iter().find(|(name, _)| name == "csrf").map(|(_, value)| value.as_str());
    match header.or(field) {
        Some(given)
            if !identity.csrf.is_empty() && equals_in_constant_time(given, &identity.csrf) =>
        {
            Ok(())
        }
        _ => Err(Problem::forbidden("the form token is missing or has expired")
            .hint("reload the page and submit the form again")
            .hint("programs send the `csrf` value of GET /api/session in the header X-CSRF-Token")),
    }
}

/// Compares in constant time.
fn equals_in_constant_time(a: &str, b: &str) -> bool {
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

    fn access(names: &[&str]) -> AccessControl {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        AccessControl { tokens: None, sessions: Sessions::new().unwrap(), names, is_secure: false }
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
        let access = access(&["lab.example"]);
        for host in ["127.0.0.1:7460", "localhost", "localhost:80", "[::1]:7460", "LAB.example:1"] {
            assert!(access.identify(&parts(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:7460", "localhost.evil", "", "lab"] {
            let problem = access.identify(&parts(&[("host", host)])).unwrap_err();
            assert_eq!(problem.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        assert_eq!(access.identify(&parts(&[])).unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        let access = access(&[]);
        let identity = access.identify(&parts(&[("host", "localhost")])).unwrap();
        let sent = |headers: &[(&str, &str)], csrf: &str| {
            let form = [("csrf".to_owned(), csrf.to_owned())];
            check_csrf(&identity, &parts(headers).headers, &form)
        };
        assert!(sent(&[], &identity.csrf).is_ok());
        assert!(sent(&[("sec-fetch-site", "same-origin")], &identity.csrf).is_ok());
        assert!(sent(&[("x-csrf-token", &identity.csrf)], "").is_ok());
        assert!(sent(&[], "").is_err() && sent(&[], "x").is_err());
        assert!(sent(&[("sec-fetch-site", "cross-site")], &identity.csrf).is_err());
        assert!(sent(&[("sec-fetch-site", "same-site")], &identity.csrf).is_err());
    }
}
