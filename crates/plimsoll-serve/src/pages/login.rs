//! Lets people in who know a token.

use minijinja::context;

use crate::answer::{Answer, Problem};
use crate::ask::Ask;
use crate::gate::COOKIE_NAME;
use crate::site::Site;

/// Asks for a token.
///
/// # Errors
/// None but a defect.
pub fn ask(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    site.page("login.html", "Log in", "", ask, context! {})
}

/// Lets in who knows one.
///
/// # Errors
/// A token that is none.
pub fn enter(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let session = site.gate.let_in(ask.field("token").unwrap_or_default())?;
    let cookie = format!("{COOKIE_NAME}={session}; Path=/; HttpOnly; SameSite=Strict");
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
    let cookie = format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    Ok(Answer::ToWith("/login".to_owned(), cookie))
}
