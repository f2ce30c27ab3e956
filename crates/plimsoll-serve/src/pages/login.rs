//! Lets people in who know a token or a password.

use minijinja::context;

use crate::answer::{Answer, Problem};
use crate::ask::Ask;
use crate::gate::COOKIE_NAME;
use crate::site::Site;

/// Asks for it.
///
/// # Errors
/// None but a defect.
pub fn ask(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    site.page("login.html", "Log in", "", ask, context! {})
}

/// Lets in who knows one.
///
/// # Errors
/// What opens nothing.
pub fn enter(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let session = site.gate.let_in(ask.field("token").unwrap_or_default())?;
    let cookie = cookie(site, &session);
    Ok(Answer::ToWith("/".to_owned(), cookie))
}

/// Forgets whoever asks.
///
/// # Errors
/// None.
pub fn leave(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    if let Some(session) = &ask.who.session {
        site.gate.sessions.end(session);
    }
    Ok(Answer::ToWith("/login".to_owned(), format!("{}; Max-Age=0", cookie(site, ""))))
}

/// What a browser sends back with every request, and lets no script read.
fn cookie(site: &Site, session: &str) -> String {
    let secure = if site.gate.is_secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={session}; Path=/; HttpOnly; SameSite=Strict{secure}")
}
