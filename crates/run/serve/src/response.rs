//! Responses of pages, and errors.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Response, StatusCode};
use plimsoll_catalogue::CatalogueError;
use plimsoll_report::ReportError;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::exit::Exit;
use serde::Serialize;

use crate::events::Viewer;

#[derive(Debug)]
pub enum PageResponse {
    Html(String),
    /// JSON text.
    Json(String),
    /// A file that is part of this program: the style sheet or script.
    Asset(&'static str, String),
    /// A text of the given media type.
    Text(&'static str, String),
    /// A download, with its file name.
    File(&'static str, String, Vec<u8>),
    /// A stream of server-sent events.
    Events(Box<Viewer>),
    /// Redirect to another page (GET).
    Redirect(String),
    /// Redirect to another page, with a cookie.
    RedirectWithCookie(String, String),
}

/// Error returned to the client.
#[derive(Debug)]
pub struct Problem {
    /// HTTP status.
    pub status: StatusCode,
    /// Message that states which action failed, and why.
    pub message: String,
    /// Hints, one per line.
    pub hints: Vec<String>,
}

impl Problem {
    /// Creates an error with this HTTP status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hints: Vec::new() }
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 403.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the error as JSON, for programs.
    pub fn json(&self) -> String {
        let Self { status, message, hints } = self;
        let error = serde_json::json!({
            "error": {"status": status.as_u16(), "message": message, "hints": hints}
        });
        format!("{error:#}\n")
    }
}

impl From<RunnerError> for Problem {
    fn from(error: RunnerError) -> Self {
        let status = match error.kind {
            Exit::Usage => StatusCode::BAD_REQUEST,
            // If reading a run ends with one of these exit codes, the directory does not contain
            // valid evidence.
            Exit::NoVerdict | Exit::Fail | Exit::Corruption => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.message, hints: error.hints }
    }
}

impl From<CatalogueError> for Problem {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::Evidence(error) => RunnerError::from(error).into(),
            CatalogueError::Name(says) => Self::bad_request(says),
            error => Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot create the report: {error}"))
    }
}

impl From<minijinja::Error> for Problem {
    fn from(error: minijinja::Error) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!(
                "cannot render the page's template: \
            {error}"
            ),
        )
    }
}

/// Returns a value as JSON.
///
/// # Errors
/// The value has no JSON form.
pub fn json(value: &impl Serialize) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Json(plimsoll_runner::render::json(value)?))
}

impl PageResponse {
    /// Converts the response to an HTTP response.
    pub fn into_response(self, status: StatusCode) -> Response<Body> {
        const HTML: &str = "text/html; charset=utf-8";
        const JSON: &str = "application/json";
        match self {
            Self::Html(text) => response(status, HTML, text),
            Self::Json(text) => response(status, JSON, text),
            Self::Text(kind, text) => response(status, kind, text),
            Self::Asset(kind, text) => {
                let mut response = response(status, kind, text);
                let cacheable = HeaderValue::from_static("private, max-age=3600");
                response.headers_mut().insert(CACHE_CONTROL, cacheable);
                response
            }
            Self::File(kind, name, bytes) => {
                let mut response = response(status, kind, bytes);
                // Names of runs consist of letters, digits and hyphens. Other characters must not
                // be written into a header.
                let bare = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
                let name: String = name.chars().filter(bare).collect();
                let value = format!("attachment; filename=\"{name}\"");
                if let Ok(value) = HeaderValue::from_str(&value) {
                    response.headers_mut().insert(CONTENT_DISPOSITION, value);
                }
                response
            }
            Self::Events(viewer) => {
                response(status, "text/event-stream", Body::from_stream(viewer.stream()))
            }
            Self::Redirect(path) => redirect(&path),
            Self::RedirectWithCookie(path, cookie) => {
                let mut response = redirect(&path);
                if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                    response.headers_mut().insert(SET_COOKIE, cookie);
                }
                response
            }
        }
    }
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn redirect(path: &str) -> Response<Body> {
    let mut response = response(StatusCode::SEE_OTHER, "text/plain", Body::empty());
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}
