//! Login and logout.

use minijinja::context;

use crate::access::COOKIE_NAME;
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Shows the login form.
///
/// # Errors
/// Only errors in the template.
pub fn show_form(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    site.page("login.html", "Log in", "", request, context! {})
}

/// Logs in with a token.
///
/// # Errors
/// The token is wrong.
pub fn log_in(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let session =
        site.access.log_in(&request.identity, request.field("token").unwrap_or_default())?;
    let cookie = cookie(site, &session);
    Ok(PageResponse::RedirectWithCookie("/".to_owned(), cookie))
}

/// Ends the session.
///
/// # Errors
/// None.
pub fn log_out(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    if let Some(session) = &request.identity.session {
        site.access.sessions.end(session);
        site.access.record(&request.identity, "logged out");
    }
    Ok(PageResponse::RedirectWithCookie(
        "/login".to_owned(),
        format!("{}; Max-Age=0", cookie(site, "")),
    ))
}

/// Returns the session cookie, which scripts cannot read.
fn cookie(site: &Site, session: &str) -> String {
    let secure = if site.access.is_secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={session}; Path=/; HttpOnly; SameSite=Strict{secure}")
}
