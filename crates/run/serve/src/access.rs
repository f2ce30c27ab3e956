//! Access control: identifies clients, checks roles and host names, rejects forged requests, and
//! logs logins.
//!
//! - The host name in a request (`Host`) must be an address, `localhost` or one of the configured
//!   names. Any other name that resolves to this host (DNS rebinding) is rejected.
//! - A request that changes data must contain a value (`csrf`) that only our own pages know. A
//!   request with a token in the header `Authorization: Bearer` does not need this value, because
//!   browsers never add this header by themselves.
//! - If the server requires tokens, every page except the login page requires a role.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use plimsoll_report::time::utc;

use crate::connections::{Connection, network};
use crate::response::Problem;
use crate::tokens::{Role, Sessions, Tokens};

pub const COOKIE_NAME: &str = "plimsoll";
/// Session name from which form tokens are derived if the server requires no tokens.
const OPEN: &str = "open";
/// Session name from which form tokens are derived before login.
const ANONYMOUS: &str = "nobody";

/// Identity of the client that sent a request.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Role of the requester.
    pub role: Role,
    /// Name of the token, for the log.
    pub name: String,
    /// Address of the client; `None` in tests of routes.
    pub address: Option<IpAddr>,
    /// Form token that requests of this session must contain.
    pub csrf: String,
    /// Session id; `None` without a login.
    pub session: Option<String>,
    /// True if the request had a bearer token.
    pub has_bearer_token: bool,
}

/// Function that writes a line of the log.
pub type WriteLog = Box<dyn Fn(&str) + Send + Sync>;

/// Decides which client may perform which action.
pub struct AccessControl {
    /// Accepted tokens; `None` grants every request the role `run`.
    pub tokens: Option<Tokens>,
    /// Sessions of logged-in users.
    pub sessions: Sessions,
    /// Names of this host, in lower case.
    pub names: Vec<String>,
    /// True if the server uses TLS, in which case cookies are marked `Secure`.
    pub is_secure: bool,
    /// Log of logins, wrong tokens and changes.
    pub log: WriteLog,
}

impl AccessControl {
    /// Writes an action of a client to the log.
    pub fn record(&self, who: &Identity, action: &str) {
        let name = if who.name.is_empty() { "anonymous" } else { &who.name };
        let at = who.address.map_or(String::new(), |at| format!(" at {at}"));
        (self.log)(&format!("{} {name}{at}: {action}", utc(now_unix_ns())));
    }

    /// Returns the identity of the client that sent a request.
    ///
    /// # Errors
    /// The host name is not a name of this server, or the token is unknown.
    pub fn identify(&self, parts: &Parts) -> Result<Identity, Problem> {
        self.check_host(parts)?;
        let address = parts.extensions.get::<Arc<Connection>>().map(|one| one.address);
        let anonymous = Identity { address, ..Identity::default() };
        let Some(tokens) = &self.tokens else {
            let csrf = self.sessions.form_token(OPEN);
            return Ok(Identity { role: Role::Run, csrf, ..anonymous });
        };
        if let Some(token) = bearer(&parts.headers) {
            let Some(user) = tokens.user(token) else { return Err(self.reject_token(&anonymous)) };
            let (role, name) = (user.role, user.name.clone());
            return Ok(Identity { role, name, has_bearer_token: true, ..anonymous });
        }
        let session = cookie(&parts.headers);
        let known = session.and_then(|id| self.sessions.user(id).map(|user| (id, user)));
        let Some((id, user)) = known else {
            let csrf = self.sessions.form_token(ANONYMOUS);
            return Ok(Identity { csrf, ..anonymous });
        };
        let (csrf, session) = (self.sessions.form_token(id), Some(id.to_owned()));
        Ok(Identity { role: user.role, name: user.name, csrf, session, ..anonymous })
    }

    /// Checks a token and returns the new session id.
    ///
    /// # Errors
    /// The token is wrong, or this address has sent too many wrong tokens in the last minute.
    pub fn log_in(&self, who: &Identity, token: &str) -> Result<String, Problem> {
        let user = self.tokens.as_ref().and_then(|tokens| tokens.user(token));
        let Some(user) = user.cloned() else { return Err(self.reject_token(who)) };
        let role = user.role.word();
        self.record(
            &Identity { name: user.name.clone(), ..who.clone() },
            &format!("logged in ({role})"),
        );
        let begun = self.sessions.begin(user);
        begun.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    /// Counts a wrong token from this address. The count does not affect other addresses or valid
    /// tokens.
    fn reject_token(&self, who: &Identity) -> Problem {
        let at = network(who.address.unwrap_or(IpAddr::from([127, 0, 0, 1])));
        match self.sessions.count_failed_attempt(at) {
            Some(count) => {
                self.record(who, &format!("wrong token ({count} in the last minute)"));
                Problem::new(StatusCode::UNAUTHORIZED, "wrong token")
            }
            None => Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "this address has sent too many wrong tokens",
            )
            .hint("wait a minute, then try again"),
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
                "the Host header of the request is not a name of this server",
            )
            .hint(
                "restart the server with `--name NAME`, or open the page by the server's IP \
                address",
            )),
        }
    }
}

/// Rejects a request that changes data if it was not sent by one of our pages.
///
/// # Errors
/// The request was not sent by one of our pages.
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
        _ => Err(Problem::forbidden("the form token of the request is missing or has expired")
            .hint("reload the page and submit the form again")
            .hint("programs send the `csrf` value of GET /api/session in the header X-CSRF-Token")),
    }
}

/// Compares two texts in constant time.
fn equals_in_constant_time(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
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
        let (sessions, log) = (Sessions::new().unwrap(), Box::new(|_: &str| {}));
        AccessControl { tokens: None, sessions, names, is_secure: false, log }
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
