//! Non-blocking TCP sockets. They can connect from a reserved port, which some servers require.
//! They send or receive several slices with one call.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, bind, connect,
    getpeername, getsockname, sendmsg, socket_with, sockopt,
};

/// Range of reserved ports, which is that of Linux's NFS client. The highest port is tried first.
const RESERVED_PORTS: std::ops::RangeInclusive<u16> = 665..=1023;

/// Starts to connect. The connection is open when the socket becomes writable; see [`finish`].
pub(crate) fn start(address: SocketAddr, reserved_port: bool) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let open = || {
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        Ok::<_, Errno>(fd)
    };
    let mut fd = open()?;
    let bound = reserved_port && bind_reserved(&fd, address);
    match connect(&fd, &address) {
        Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) if bound => {
            // This pair of addresses and ports is still in TIME_WAIT, so the kernel selects another
            // port.
            fd = open()?;
            match connect(&fd, &address) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
                Err(error) => Err(error),
            }
        }
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error),
    }
}

/// Binds to a reserved port, because many servers reject all other ports ("secure" exports).
/// Reserved ports require a privilege. Without this privilege, the client uses any port, and the
/// server may reject the connection.
fn bind_reserved(fd: &OwnedFd, peer: SocketAddr) -> bool {
    let local = match peer {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    for port in RESERVED_PORTS.rev() {
        match bind(fd, &SocketAddr::new(local, port)) {
            Ok(()) => return true,
            Err(Errno::ADDRINUSE) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Returns the result of an attempt to connect, after the socket became writable.
pub(crate) fn finish(fd: &OwnedFd) -> Result<(), Errno> {
    sockopt::socket_error(fd).and_then(|outcome| outcome)?;
    // The target may be a local port on which no server listens. If the kernel selects the same
    // port as the source, the socket connects to itself, and would act as its own server.
    if Some(getsockname(fd)?) == getpeername(fd)? {
        return Err(Errno::CONNREFUSED);
    }
    Ok(())
}

/// Waits until `fd` is writable; returns false after `timeout_ns`.
pub(crate) fn wait_writable(fd: &OwnedFd, timeout_ns: u64) -> Result<bool, Errno> {
    wait(fd, PollFlags::OUT, timeout_ns)
}

/// Waits until `fd` is readable; returns false after `timeout_ns`.
pub(crate) fn wait_readable(fd: &OwnedFd, timeout_ns: u64) -> Result<bool, Errno> {
    wait(fd, PollFlags::IN, timeout_ns)
}

fn wait(fd: &OwnedFd, flags: PollFlags, timeout_ns: u64) -> Result<bool, Errno> {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), flags)];
    match poll(&mut fds, Some(&timespec(timeout_ns))) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Converts a duration for the kernel.
pub(crate) fn timespec(ns: u64) -> Timespec {
    // Both parts fit, because a u64 can represent 584 years in nanoseconds.
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Sends as many bytes as the socket accepts. Never blocks and never raises SIGPIPE.
#[inline]
pub(crate) fn send(fd: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)
}

/// Receives the available data and never blocks. Returns 0 at the end of the stream.
#[inline]
pub(crate) fn receive(fd: &OwnedFd, windows: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
    rustix::io::readv(fd, windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_to_itself_is_refused() {
        // If both ends have the same port, the kernel connects a socket to itself.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let itself = SocketAddr::from(([127, 0, 0, 1], port));
        bind(&fd, &itself).unwrap();
        let _ = connect(&fd, &itself);
        assert!(wait_writable(&fd, 1_000_000_000).unwrap());
        assert_eq!(finish(&fd), Err(Errno::CONNREFUSED));
    }

    #[test]
    fn both_address_families_connect() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // On a host without IPv6, this address is skipped.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            for reserved in [false, true] {
                let fd = start(listener.local_addr().unwrap(), reserved).unwrap();
                assert!(wait_writable(&fd, 1_000_000_000).unwrap());
                assert_eq!(finish(&fd), Ok(()));
            }
        }
    }
}
