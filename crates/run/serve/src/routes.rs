//! Every route, with the role that it requires. The router is built only from this table, so tests
//! of all its rows cover the whole router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode};
use axum::routing::{get, post};

use crate::access::check_csrf;
use crate::connections::Connection;
use crate::pages::{api, assets, audit, compare, live, login, models, overview, run, runs, start};
use crate::request::{PageRequest, pairs};
use crate::response::{PageResponse, Problem};
use crate::site::Site;
use crate::tokens::Role;

/// Format of a route's responses, including errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page for people.
    Page,
    /// JSON.
    Api,
}

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Requests that do not change data.
    Get,
    /// Requests that may change data.
    Post,
}

#[derive(Clone, Copy)]
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Path in axum's syntax.
    pub path: &'static str,
    /// Minimum role.
    pub role: Role,
    /// Format of the response.
    pub form: Form,
    /// Function that creates the response.
    pub answer: fn(&Site, &PageRequest) -> Result<PageResponse, Problem>,
}

/// Maximum size of a request body. The largest bodies are results to audit.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a request body from a client that has no token. Such a request can only be a
/// login.
const ANONYMOUS_BODY_BYTES_MAX: usize = 16 << 10;
/// Maximum time for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Content security policy. Scripts and styles must be files of this server, and images may be
/// embedded in a page. Nothing is loaded from other servers, and no page of another server can
/// embed one of these pages. Style attributes are allowed, because charts use them to show values
/// under the pointer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr \
                      'unsafe-inline'; img-src 'self' data:; connect-src 'self'; form-action \
                      'self'; base-uri 'none'; frame-ancestors 'none'";

const fn page(
    method: Method,
    path: &'static str,
    role: Role,
    answer: fn(&Site, &PageRequest) -> Result<PageResponse, Problem>,
) -> Route {
    Route { method, path, role, form: Form::Page, answer }
}

const fn api(
    method: Method,
    path: &'static str,
    answer: fn(&Site, &PageRequest) -> Result<PageResponse, Problem>,
) -> Route {
    Route { method, path, role: Role::View, form: Form::Api, answer }
}

const fn api_run(
    path: &'static str,
    answer: fn(&Site, &PageRequest) -> Result<PageResponse, Problem>,
) -> Route {
    Route { method: Method::Post, path, role: Role::Run, form: Form::Api, answer }
}

pub const ROUTES: &[Route] = &[
    page(Method::Get, "/", Role::View, overview::show),
    page(Method::Get, "/runs", Role::View, runs::show),
    page(Method::Get, "/runs/{id}", Role::View, run::show),
    page(Method::Get, "/runs/{id}/evidence", Role::View, run::evidence),
    page(Method::Post, "/runs/{id}/labels", Role::Run, run::label),
    page(Method::Get, "/compare", Role::View, compare::show),
    page(Method::Get, "/audit", Role::View, audit::show_form),
    page(Method::Post, "/audit", Role::View, audit::show),
    page(Method::Get, "/live", Role::View, live::show),
    page(Method::Post, "/live/stop", Role::Run, live::stop),
    page(Method::Post, "/live/mark", Role::Run, live::mark),
    page(Method::Get, "/start", Role::Run, start::show_form),
    page(Method::Post, "/start", Role::Run, start::start),
    page(Method::Get, "/models", Role::View, models::list),
    page(Method::Get, "/models/{id}", Role::View, models::one),
    page(Method::Post, "/models/{id}", Role::Run, models::show),
    page(Method::Get, "/login", Role::Anyone, login::show_form),
    page(Method::Post, "/login", Role::Anyone, login::log_in),
    page(Method::Post, "/logout", Role::View, login::log_out),
    page(Method::Get, "/assets/style.css", Role::Anyone, assets::style),
    page(Method::Get, "/assets/script.js", Role::Anyone, assets::script),
    api(Method::Get, "/api/session", api::session),
    api(Method::Get, "/api/runs", api::runs),
    api(Method::Get, "/api/runs/{id}", api::one),
    api(Method::Get, "/api/compare", api::compare),
    api(Method::Post, "/api/audit", api::audit),
    api(Method::Get, "/api/live", live::state_json),
    api(Method::Get, "/api/live/events", live::events),
    api(Method::Get, "/api/live/others", live::others),
    api_run("/api/live/stop", live::stop_json),
    api_run("/api/mark", live::mark_json),
    api_run("/api/plans/check", start::check),
    api_run("/api/runs", start::start_json),
    api(Method::Get, "/api/models", models::list_json),
    api_run("/api/models/{id}", models::answer_json),
    api(Method::Get, "/api/openapi.json", api::description),
    api(Method::Get, "/metrics", api::metrics),
];

pub fn router(site: &Arc<Site>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let site = Arc::clone(site);
        let handler = move |params: RawPathParams, request: Request| {
            let parts = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            handle(Arc::clone(&site), *route, parts.collect(), request)
        };
        let method = match route.method {
            Method::Get => get(handler),
            Method::Post => post(handler),
        };
        router = router.route(route.path, method);
    }
    let site = Arc::clone(site);
    let nowhere = move |request: Request| {
        let route = Route {
            method: Method::Get,
            path: "",
            role: Role::View,
            form: form_of(request.uri().path()),
            answer: |_, _| Err(Problem::not_found("page not found")),
        };
        handle(Arc::clone(&site), route, Vec::new(), request)
    };
    router.fallback(nowhere).layer(axum::middleware::map_response(secured))
}

fn form_of(path: &str) -> Form {
    if path.starts_with("/api/") { Form::Api } else { Form::Page }
}

async fn secured(mut response: Response<Body>) -> Response<Body> {
    let all = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ];
    for (name, value) in all {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn handle(
    site: Arc<Site>,
    route: Route,
    named: Vec<(String, String)>,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let connection = parts.extensions.get::<Arc<Connection>>().cloned();
    let mut page_request = PageRequest { parts: named, ..PageRequest::default() };
    let identified = site.access.identify(&parts).map(|identity| page_request.identity = identity);
    // A client with a token may take until `BODY_TIMEOUT` to send its body, so its connection is
    // busy from now on. The connection of a client without a token is busy only once the body has
    // arrived.
    let known = connection.as_ref().filter(|_| page_request.identity.role > Role::Anyone);
    let receiving = known.map(|connection| {
        connection.mark_known();
        Connection::busy(Some(connection))
    });
    let admitted = match identified {
        Ok(()) => admit(route, &parts, body, &mut page_request).await,
        Err(problem) => Err(problem),
    };
    let busy = receiving.unwrap_or_else(|| Connection::busy(connection.as_ref()));
    let made = match admitted {
        Ok(Some(elsewhere)) => return elsewhere.into_response(StatusCode::OK),
        Ok(None) => {
            let (site, requested) = (Arc::clone(&site), page_request);
            // The response is computed on another thread, because it may wait for disks, and this
            // thread serves the connections.
            let made = tokio::task::spawn_blocking(move || {
                let made = (route.answer)(&site, &requested);
                (made, requested)
            });
            match made.await {
                Ok((made, requested)) => {
                    page_request = requested;
                    made
                }
                Err(_) => {
                    page_request = PageRequest::default();
                    let says = "internal error: please report it";
                    Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, says))
                }
            }
        }
        Err(problem) => Err(problem),
    };
    let is_known = page_request.identity.role > Role::Anyone;
    let response = match made {
        Ok(answer) => answer.into_response(StatusCode::OK),
        Err(problem) => {
            let answer = match route.form {
                Form::Api => PageResponse::Json(problem.json()),
                Form::Page => site.problem(&problem, &page_request),
            };
            answer.into_response(problem.status)
        }
    };
    // The connection of a slow client without a token is closed.
    match is_known {
        true => response.map(|body| busy.until_sent(body)),
        false => response,
    }
}

/// Checks that the user may use the route, and reads the request's body. If a login is required,
/// returns the login page instead.
async fn admit(
    route: Route,
    parts: &Parts,
    body: Body,
    page_request: &mut PageRequest,
) -> Result<Option<PageResponse>, Problem> {
    if page_request.identity.role < route.role {
        if page_request.identity.role == Role::Anyone {
            let asks_for_page = route.form == Form::Page && route.method == Method::Get;
            return match asks_for_page {
                true => Ok(Some(PageResponse::Redirect("/login".to_owned()))),
                false => {
                    Err(Problem::new(StatusCode::UNAUTHORIZED, "this request requires a token")
                        .hint("send it as `Authorization: Bearer TOKEN`"))
                }
            };
        }
        return Err(Problem::forbidden("this request requires a token of the role `run`"));
    }
    page_request.query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
    if route.method == Method::Get {
        return Ok(None);
    }
    let is_known = page_request.identity.role > Role::Anyone;
    let bytes_max = if is_known { BODY_BYTES_MAX } else { ANONYMOUS_BODY_BYTES_MAX };
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let too_long = || {
        let kib = bytes_max >> 10;
        let limit = if is_known { format!("{} MiB", kib >> 10) } else { format!("{kib} KiB") };
        let says = format!("the request body is larger than {limit}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, says).hint(match is_known {
            true => "`plimsoll audit FILE` reads larger results",
            false => "log in before you send larger requests",
        })
    };
    if length.and_then(|length| length.parse::<u64>().ok()) > Some(bytes_max as u64) {
        return Err(too_long());
    }
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, bytes_max)).await;
    let read = read.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time")
    })?;
    page_request.body = read.map_err(|_| too_long())?.into();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
        page_request.form = pairs(&page_request.body);
    }
    check_csrf(&page_request.identity, &parts.headers, &page_request.form)?;
    Ok(None)
}

#[cfg(test)]
mod tests;
