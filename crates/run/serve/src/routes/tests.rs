//! Sends requests to every route of the table.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, LOCATION, SET_COOKIE};
use hyper::body::Frame;
use plimsoll_catalogue::Roots;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;
use tower::ServiceExt;

use super::*;
use crate::access::AccessControl;
use crate::catalogue::CachedCatalogue;
use crate::connections::Connections;
use crate::pages::api::DESCRIPTION;
use crate::tokens::{Sessions, Tokens};

const LOOKS: &str = "looks-0123456789abcdef";
const RUNS: &str = "runs-0123456789abcdef";

/// Creates a site without runs. If `asks` is true, the site requires a token.
fn site(directory: &Path, asks: bool) -> Arc<Site> {
    let file = directory.join("tokens");
    std::fs::write(&file, format!("view {LOOKS}\nrun {RUNS}\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, mode).unwrap();
    let tokens = asks.then(|| Tokens::read(&file).unwrap());
    let access = AccessControl {
        tokens,
        sessions: Sessions::new().unwrap(),
        names: Vec::new(),
        is_secure: false,
        log: Box::new(|_| {}),
    };
    let roots = Roots {
        directories: vec![directory.join("runs")],
        ledger: directory.join("ledger.jsonl"),
        index: directory.join("index.sqlite3"),
        is_shared: false,
    };
    let catalogue = CachedCatalogue::new(Box::new(move || roots.clone()), None);
    let state = directory.join("state");
    let (runs, cache) = (directory.join("runs"), directory.to_path_buf());
    let places = Places { state, runs, cache, signer: None };
    Arc::new(Site::new(access, catalogue, places, Allow::default(), None).unwrap())
}

/// Sends a request. Returns the status, headers and text of the response.
fn send(site: &Arc<Site>, request: Request<Body>) -> (StatusCode, axum::http::HeaderMap, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let response = router(site).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 64 << 20).await.unwrap();
        (parts.status, parts.headers, String::from_utf8_lossy(&bytes).into_owned())
    })
}

fn request(route: &Route) -> axum::http::request::Builder {
    let method = if route.method == Method::Get { "GET" } else { "POST" };
    let path = route.path.replace("{id}", "nothing");
    Request::builder().method(method).uri(path).header(HOST, "localhost:1")
}

fn empty(builder: axum::http::request::Builder) -> Request<Body> {
    builder.body(Body::empty()).unwrap()
}

#[test]
fn every_route_asks_for_its_role() {
    let directory = tempfile::tempdir().unwrap();
    for route in ROUTES {
        // The site counts wrong tokens, so each route gets a new site.
        let site = site(directory.path(), true);
        let named = |token: &str| request(route).header(AUTHORIZATION, format!("Bearer {token}"));
        let (status, headers, _) = send(&site, empty(request(route)));
        let to_login = status == StatusCode::SEE_OTHER && headers[LOCATION] == "/login";
        if route.role == Role::Anyone {
            assert!(status != StatusCode::UNAUTHORIZED && !to_login, "{}", route.path);
        } else {
            assert!(status == StatusCode::UNAUTHORIZED || to_login, "{}: {status}", route.path);
        }
        let (status, _, _) = send(&site, empty(named("no-such-token-at-all")));
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{}", route.path);
        let (status, _, _) = send(&site, empty(named(LOOKS)));
        match route.role {
            Role::Run => assert_eq!(status, StatusCode::FORBIDDEN, "{}", route.path),
            _ => assert_ne!(status, StatusCode::FORBIDDEN, "{}", route.path),
        }
        let (status, _, text) = send(&site, empty(named(RUNS)));
        let let_in = ![StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&status);
        // A login with an empty token is refused.
        assert!(let_in || route.path == "/login", "{}: {status} {text}", route.path);
        assert!(status.as_u16() < 500, "{}: {status} {text}", route.path);
    }
}

#[test]
fn every_route_that_changes_something_asks_for_what_only_a_page_knows() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), false);
    for route in ROUTES.iter().filter(|route| route.method == Method::Post) {
        let (status, _, text) = send(&site, empty(request(route)));
        assert_eq!(status, StatusCode::FORBIDDEN, "{}: {text}", route.path);
        let elsewhere = request(route).header("sec-fetch-site", "cross-site");
        let (status, _, _) = send(&site, empty(elsewhere));
        assert_eq!(status, StatusCode::FORBIDDEN, "{}", route.path);
    }
}

#[test]
fn every_answer_has_the_policy_and_none_is_for_a_foreign_name() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), false);
    for route in ROUTES {
        let (_, headers, _) = send(&site, empty(request(route)));
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("script-src 'self'") && !policy.contains("http"), "{policy}");
        assert!(!policy.contains("script-src 'self' 'unsafe"), "{policy}");
        let mut rebound = empty(request(route));
        rebound.headers_mut().insert(HOST, HeaderValue::from_static("evil.example:7460"));
        let (status, _, _) = send(&site, rebound);
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{}", route.path);
    }
    for path in ["/nowhere", "/runs/a/b/c", "/assets/../../etc/passwd", "/api/x", "/runs/%ff"] {
        let request = Request::builder().uri(path).header(HOST, "localhost");
        let (status, headers, text) = send(&site, empty(request));
        assert!((400..500).contains(&status.as_u16()), "{path}: {status} {text}");
        assert!(headers.contains_key("content-security-policy"), "{path}");
    }
}

#[test]
fn whoever_logs_in_may_what_the_token_says() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), true);
    let get = |path: &str, cookie: &str| {
        let request = Request::builder().uri(path).header(HOST, "localhost");
        send(&site, empty(request.header(COOKIE, cookie)))
    };
    let csrf = |text: &str| {
        let value = text.split("name=\"csrf\" value=\"").nth(1).unwrap();
        value.split('"').next().unwrap().to_owned()
    };
    let post = |path: &str, cookie: &str, form: String| {
        let request = Request::builder().method("POST").uri(path).header(HOST, "localhost");
        let request = request.header(COOKIE, cookie);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        send(&site, request.body(Body::from(form)).unwrap())
    };
    let (status, _, page) = get("/login", "");
    assert_eq!(status, StatusCode::OK);
    let nobody = csrf(&page);
    let (status, _, _) = post("/login", "", format!("csrf={nobody}&token=wrong"));
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let (status, headers, _) = post("/login", "", format!("csrf={nobody}&token={LOOKS}"));
    assert_eq!(status, StatusCode::SEE_OTHER);
    let cookie = headers[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let (status, _, page) = get("/", &cookie);
    assert_eq!(status, StatusCode::OK);
    let own = csrf(&page);
    assert_ne!(own, nobody);
    let (status, _, _) = post("/runs/x/labels", &cookie, format!("csrf={own}&note=x"));
    assert_eq!(status, StatusCode::FORBIDDEN, "who looks changes nothing");
    let (status, _, _) = post("/logout", &cookie, format!("csrf={nobody}"));
    assert_eq!(status, StatusCode::FORBIDDEN, "the form of somebody else");
    let (status, _, _) = post("/logout", &cookie, format!("csrf={own}"));
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(get("/", &cookie).0, StatusCode::SEE_OTHER);
}

/// Request body that records whether the connection is busy while the server reads it.
struct ObservedBody(Arc<Connection>, Arc<Mutex<Option<bool>>>);

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        *self.1.lock().unwrap() = Some(self.0.is_busy());
        Poll::Ready(None)
    }
}

#[test]
fn a_client_with_a_token_may_send_its_body_slowly_and_others_may_not() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), true);
    let is_busy_while_read = |path: &str, token: &str| {
        let open = Arc::new(Connections::default()).open([192, 0, 2, 1].into()).unwrap();
        let seen = Arc::new(Mutex::new(None));
        let body = ObservedBody(Arc::clone(&open.connection), Arc::clone(&seen));
        let request = Request::builder().method("POST").uri(path).header(HOST, "localhost");
        let request = request.header(AUTHORIZATION, token);
        let request = request.extension(Arc::clone(&open.connection));
        send(&site, request.body(Body::new(body)).unwrap());
        assert!(!open.connection.is_busy(), "after the response");
        *seen.lock().unwrap()
    };
    assert_eq!(is_busy_while_read("/api/audit", &format!("Bearer {LOOKS}")), Some(true));
    assert_eq!(is_busy_while_read("/api/audit", "Bearer wrong"), None);
    assert_eq!(is_busy_while_read("/login", "none"), Some(false));
}

#[test]
fn a_body_that_is_too_long_is_refused_with_the_limit_that_applies() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), true);
    let refused = |path: &str, token: &str, bytes: usize| {
        let request = Request::builder().method("POST").uri(path).header(HOST, "localhost");
        let request = request.header(AUTHORIZATION, token).body(Body::from(vec![b'x'; bytes]));
        let (status, _, text) = send(&site, request.unwrap());
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{text}");
        text
    };
    let text = refused("/login", "none", ANONYMOUS_BODY_BYTES_MAX + 1);
    assert!(text.contains("larger than 16 KiB"), "{text}");
    let text = refused("/api/audit", &format!("Bearer {LOOKS}"), BODY_BYTES_MAX + 1);
    assert!(text.contains("larger than 16 MiB"), "{text}");
}

#[test]
fn the_description_names_the_routes_for_programs_and_no_others() {
    let described: serde_json::Value = serde_json::from_str(DESCRIPTION).unwrap();
    let paths = described["paths"].as_object().unwrap();
    let methods = paths.iter().flat_map(|(path, of)| {
        of.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone()))
    });
    let methods: BTreeSet<(String, String)> = methods.collect();
    let routes = ROUTES.iter().filter(|route| route.form == Form::Api).map(|route| {
        let method = if route.method == Method::Get { "get" } else { "post" };
        (route.path.to_owned(), method.to_owned())
    });
    assert_eq!(methods, routes.collect());
}
