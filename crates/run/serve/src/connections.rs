//! Open connections, with limits per address. Clients with and without a valid token have separate
//! limits, so clients without a token cannot displace clients that have one. If a limit is reached,
//! the server closes an idle connection for each new connection. It closes the oldest idle
//! connection of the address with the most connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// Maximum number of connections without a valid token from one address.
const ANONYMOUS_PER_ADDRESS_MAX: usize = 32;
/// Maximum number of connections without a valid token from all addresses.
const ANONYMOUS_MAX: usize = 128;
/// Maximum number of connections with a valid token.
const KNOWN_MAX: usize = 256;
/// If a client has no token, it must finish the TLS handshake and send its request within this
/// time.
const ANONYMOUS_IDLE_MAX: Duration = Duration::from_secs(5);
/// If a client has a token, it must send its request within this time. It exceeds the maximum time
/// for receiving a body.
const KNOWN_IDLE_MAX: Duration = Duration::from_secs(40);
/// Interval at which the server checks whether a busy connection has become idle.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Connection {
    /// Address of the client.
    pub address: IpAddr,
    /// True after a request with a valid token or session. If the server requires no tokens, every
    /// request counts as valid.
    is_known: AtomicBool,
    /// True while the server computes a response or sends events. A busy connection is not closed.
    is_busy: AtomicBool,
    last_active: Mutex<Instant>,
    closing: Notify,
}

/// The open connections.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<Vec<Arc<Connection>>>,
}

/// Removes the connection from the list when dropped.
pub struct OpenConnection {
    pub connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().retain(|one| !Arc::ptr_eq(one, &self.connection));
    }
}

/// Marks a connection as idle when dropped.
#[derive(Debug)]
pub struct BusyGuard(Option<Arc<Connection>>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.is_busy.store(false, Ordering::Relaxed);
            connection.touch();
        }
    }
}

impl BusyGuard {
    /// Marks the connection as busy until the body has been sent.
    pub fn until_sent(self, body: Body) -> Body {
        Body::new(BusyBody { body, _busy: self })
    }
}

/// A response body. The connection is busy while this body is being sent.
struct BusyBody {
    body: Body,
    _busy: BusyGuard,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the network to which the limits apply. For IPv6 this is a /64 network, because a single
/// client usually has a whole one.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Connection {
    fn new(address: IpAddr) -> Self {
        Self {
            address: address.to_canonical(),
            is_known: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            last_active: Mutex::new(Instant::now()),
            closing: Notify::new(),
        }
    }

    fn touch(&self) {
        *self.last_active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_active(&self) -> Instant {
        *self.last_active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request of this connection had a valid token or session.
    pub fn mark_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Marks the connection as busy until the guard is dropped.
    pub fn busy(connection: Option<&Arc<Self>>) -> BusyGuard {
        if let Some(connection) = connection {
            connection.is_busy.store(true, Ordering::Relaxed);
        }
        BusyGuard(connection.cloned())
    }

    #[cfg(test)]
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Waits until the connection must be closed, because it was idle for too long, or because a
    /// new connection replaces it.
    pub async fn closed(&self) {
        loop {
            let is_known = self.is_known.load(Ordering::Relaxed);
            let idle_max = if is_known { KNOWN_IDLE_MAX } else { ANONYMOUS_IDLE_MAX };
            let is_busy = self.is_busy.load(Ordering::Relaxed);
            let left = idle_max.saturating_sub(self.last_active().elapsed());
            if left.is_zero() && !is_busy {
                return;
            }
            let pause = if is_busy { BUSY_INTERVAL } else { left };
            tokio::select! {
                () = self.closing.notified() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Connections {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If a limit is reached, closes the oldest idle connection. Returns `None`
    /// if all connections are busy.
    pub fn open(self: &Arc<Self>, address: IpAddr) -> Option<OpenConnection> {
        let mut open = self.lock();
        let is_known = |one: &Arc<Connection>| one.is_known.load(Ordering::Relaxed);
        let anonymous: Vec<Arc<Connection>> =
            open.iter().filter(|one| !is_known(one)).cloned().collect();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for one in &anonymous {
            *counts.entry(network(one.address)).or_default() += 1;
        }
        let own = network(address);
        let victim = if counts.get(&own).is_some_and(|count| *count >= ANONYMOUS_PER_ADDRESS_MAX) {
            Some(oldest_idle(anonymous.iter().filter(|one| network(one.address) == own))?)
        } else if anonymous.len() >= ANONYMOUS_MAX {
            let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(at, _)| at);
            let of_most = anonymous.iter().filter(|one| Some(network(one.address)) == most);
            Some(oldest_idle(of_most).or_else(|| oldest_idle(anonymous.iter()))?)
        } else if open.len() - anonymous.len() >= KNOWN_MAX {
            Some(oldest_idle(open.iter().filter(|one| is_known(one)))?)
        } else {
            None
        };
        if let Some(victim) = victim {
            victim.closing.notify_one();
            open.retain(|one| !Arc::ptr_eq(one, &victim));
        }
        let connection = Arc::new(Connection::new(address));
        open.push(Arc::clone(&connection));
        Some(OpenConnection { connection, connections: Arc::clone(self) })
    }
}

fn oldest_idle<'a>(of: impl Iterator<Item = &'a Arc<Connection>>) -> Option<Arc<Connection>> {
    let idle = of.filter(|one| !one.is_busy.load(Ordering::Relaxed));
    idle.min_by_key(|one| one.last_active()).cloned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn v4(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_closing(one: &OpenConnection) -> bool {
        !one.connections.lock().iter().any(|open| Arc::ptr_eq(open, &one.connection))
    }

    #[test]
    fn one_address_displaces_only_its_own_idle_connections() {
        let connections = Arc::new(Connections::default());
        let other = connections.open(v4(2)).unwrap();
        let known = connections.open(v4(1)).unwrap();
        known.connection.mark_known();
        let idle: Vec<_> =
            (0..3 * ANONYMOUS_PER_ADDRESS_MAX).map(|_| connections.open(v4(1)).unwrap()).collect();
        assert_eq!(idle.iter().filter(|one| !is_closing(one)).count(), ANONYMOUS_PER_ADDRESS_MAX);
        assert!(is_closing(&idle[0]) && !is_closing(idle.last().unwrap()), "the oldest first");
        assert!(!is_closing(&other) && !is_closing(&known));
        drop(idle);
        assert_eq!(connections.lock().len(), 2);
    }

    #[test]
    fn many_addresses_displace_each_other_and_no_client_with_a_token() {
        let connections = Arc::new(Connections::default());
        let known = connections.open(v4(1)).unwrap();
        known.connection.mark_known();
        let all: Vec<_> = (0..4 * ANONYMOUS_MAX)
            .map(|n| connections.open(v4(u8::try_from(n % 200).unwrap())).unwrap())
            .collect();
        assert_eq!(connections.lock().len(), ANONYMOUS_MAX + 1);
        assert!(!is_closing(&known) && !is_closing(all.last().unwrap()));
    }

    #[test]
    fn a_busy_connection_is_not_closed() {
        let connections = Arc::new(Connections::default());
        let busy: Vec<_> =
            (0..ANONYMOUS_PER_ADDRESS_MAX).map(|_| connections.open(v4(1)).unwrap()).collect();
        let guards: Vec<_> =
            busy.iter().map(|one| Connection::busy(Some(&one.connection))).collect();
        assert!(connections.open(v4(1)).is_none() && connections.open(v4(2)).is_some());
        drop(guards);
        assert!(connections.open(v4(1)).is_some());
    }

    #[test]
    fn limits_apply_to_the_network_of_an_ipv6_client() {
        let at = |text: &str| network(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8:0:1::1"), at("2001:db8::1"));
        assert_eq!(at("::ffff:192.0.2.1"), v4(1));
    }
}
