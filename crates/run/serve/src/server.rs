//! HTTP server, with limits on the resources of clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::access::AccessControl;
use crate::catalogue::CachedCatalogue;
use crate::connections::{Connection, Connections};
use crate::fleet::Fleet;
use crate::routes::router;
use crate::site::Site;
use crate::team::Team;
use crate::tokens::Sessions;
use crate::{ServeError, ServeOptions};

/// Interval between checks of the stop flag.
const STOP_POLL: Duration = Duration::from_millis(100);
/// Maximum number of threads that render pages.
const PAGE_THREADS_MAX: usize = 16;
/// Maximum time for receiving the head of a request. [`crate::connections`] closes idle connections
/// earlier.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves until `stop` becomes true. Calls `ready` with the bound address.
///
/// # Errors
/// [`ServeError`]: the address is in use, or other hosts can reach it without a token or without
/// TLS.
pub fn serve(
    options: ServeOptions,
    insecure: bool,
    stop: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let ServeOptions {
        listen,
        tokens,
        tls,
        names,
        allow,
        places,
        roots,
        team,
        hosts,
        fleet_runner,
        log,
    } = options;
    if tokens.is_none() && !listen.ip().is_loopback() && !insecure {
        return Err(ServeError::Open(listen));
    }
    let is_secure = tls.is_some();
    if !is_secure && !listen.ip().is_loopback() && !insecure {
        return Err(ServeError::Plain(listen));
    }
    let system = |error: std::io::Error| ServeError::System(error.to_string());
    let sessions = Sessions::new().map_err(system)?;
    let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let access = AccessControl { tokens, sessions, names, is_secure, log };
    let team = team.map(|shared| Arc::new(Team::new(shared)));
    let fleet = hosts.map(|find| Arc::new(Fleet::new(find, fleet_runner)));
    let catalogue = CachedCatalogue::new(roots, team.clone());
    let site = Arc::new(Site::new(access, catalogue, places, allow, fleet.clone())?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PAGE_THREADS_MAX)
        .thread_name("page")
        .build()
        .map_err(system)?;
    let result = runtime.block_on(async {
        let failed = |error| ServeError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let sharing = team.as_ref().map(|team| {
            let (runs, read) = (Arc::clone(&site.catalogue), Arc::clone(&site.catalogue));
            team.share(move || runs.roots(), move || read.invalidate())
        });
        drop(sharing.transpose().map_err(system)?);
        fleet.as_ref().map_or(Ok(()), |fleet| fleet.follow()).map_err(system)?;
        // Reads the catalogue before the first request. If this fails, that request reports the
        // error.
        let catalogue = Arc::clone(&site.catalogue);
        drop(tokio::task::spawn_blocking(move || catalogue.with(|_| Ok(())).is_ok()));
        ready(listener.local_addr().map_err(failed)?);
        let until_stopped = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(STOP_POLL).await;
            }
        };
        tokio::select! {
            () = accept_all(listener, &site, tls.map(|tls| tls.acceptor())) => {}
            () = until_stopped => {}
        }
        Ok(())
    });
    if let Some(team) = &team {
        team.stop();
    }
    if let Some(fleet) = &fleet {
        fleet.stop();
    }
    runtime.shutdown_timeout(STOP_POLL);
    site.live.end();
    result
}

async fn accept_all(listener: TcpListener, site: &Arc<Site>, tls: Option<TlsAcceptor>) {
    let router = router(site);
    let connections = Arc::new(Connections::default());
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // No file descriptor is free, or the client has already disconnected.
                tokio::time::sleep(STOP_POLL).await;
                continue;
            }
        };
        let Some(open) = connections.open(address.ip()) else { continue };
        let (router, tls) = (router.clone(), tls.clone());
        tokio::spawn(async move {
            let connection = &open.connection;
            let served = async {
                match tls {
                    None => serve_connection(stream, router, connection).await,
                    Some(tls) => {
                        // Clients whose TLS handshake fails are dropped.
                        if let Ok(stream) = tls.accept(stream).await {
                            serve_connection(stream, router, connection).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = connection.closed() => {}
            }
        });
    }
}

/// Serves requests on one connection until it ends.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: axum::Router,
    connection: &Arc<Connection>,
) {
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(connection));
        inner.call(request)
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
