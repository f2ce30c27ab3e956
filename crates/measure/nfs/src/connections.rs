//! Handles the connections of the client. It sends and receives data, detects the loss of
//! connections, and reconnects.

use std::io::IoSlice;
use std::net::SocketAddr;

use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::client::{Client, Clock};
use crate::error::CallError;
use crate::op::Completion;
use crate::outbound::SLICES_MAX;
use crate::socket;
use crate::stats::DisconnectReason;

/// Interval between checks for overdue calls, in ns.
const TICK_NS: u64 = 50_000_000;
/// First pause and longest pause between attempts to reconnect, in ns.
const BACKOFF_NS: (u64, u64) = (10_000_000, 250_000_000);
/// Timeout of an attempt to connect, in ns.
pub(crate) const CONNECT_NS: u64 = 5_000_000_000;
/// Maximum number of receive calls for a connection before the client serves the next connection.
const RECEIVES_MAX: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Down { retry_ns: u64 },
    Connecting { deadline_ns: u64 },
    Up,
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub address: SocketAddr,
    pub reserved_port: bool,
    pub fd: Option<OwnedFd>,
    pub phase: Phase,
    pub wants_write: bool,
    pub lost_ns: u64,
    pub backoff_ns: u64,
}

impl<C: Clock> Client<C> {
    /// Handles epoll events. Returns the time at which it last read the clock.
    pub(crate) fn serve(
        &mut self,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> u64 {
        let mut now_ns = now_ns;
        for number in 0..self.events.len() {
            let (index, flags) = self.events[number];
            match self.sockets[index].phase {
                Phase::Connecting { .. } => self.connected(index, now_ns),
                Phase::Up => {
                    if flags.contains(epoll::EventFlags::OUT) {
                        self.sockets[index].wants_write = false;
                        self.interest(index, epoll::EventFlags::IN);
                    }
                    let other =
                        epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                    if flags.intersects(other) {
                        now_ns = self.receive(index, arena, now_ns, out);
                    }
                }
                Phase::Down { .. } => {}
            }
        }
        now_ns
    }

    fn interest(&self, index: usize, flags: epoll::EventFlags) {
        if let Some(fd) = &self.sockets[index].fd {
            // This call fails only for a descriptor that is not registered. Such a descriptor
            // causes no events, so the retransmission timer later replaces the connection.
            let _ = epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(index as u64), flags);
        }
    }

    #[inline]
    pub(crate) fn send(&mut self, index: usize, arena: &[u8], now_ns: u64) {
        let socket = &mut self.sockets[index];
        if socket.phase != Phase::Up || socket.wants_write {
            return;
        }
        let Some(fd) = &socket.fd else { return };
        while self.core.has_output(index) {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let used = self.core.gather(index, arena, &mut slices);
            if used == 0 {
                return;
            }
            match socket::send(fd, &slices[..used]) {
                Ok(size) => {
                    self.core.sent(index, size, now_ns);
                    self.core.stats.sends += 1;
                }
                Err(Errno::AGAIN) => {
                    socket.wants_write = true;
                    self.interest(index, epoll::EventFlags::IN | epoll::EventFlags::OUT);
                    return;
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.lost(index, DisconnectReason::Error(error.raw_os_error()), now_ns);
                    return;
                }
            }
        }
    }

    pub(crate) fn receive(
        &mut self,
        index: usize,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> u64 {
        let mut now_ns = now_ns;
        for _ in 0..RECEIVES_MAX {
            let (Some(fd), Some(inbound)) = (&self.sockets[index].fd, self.core.inbound(index))
            else {
                return now_ns;
            };
            let mut windows = inbound.windows(arena);
            let room: usize = windows.iter().map(|window| window.len()).sum();
            let size = match socket::receive(fd, &mut windows) {
                Ok(0) => {
                    self.lost(index, DisconnectReason::Closed, now_ns);
                    return now_ns;
                }
                Ok(size) => size,
                Err(Errno::AGAIN | Errno::INTR) => return now_ns,
                Err(error) => {
                    self.lost(index, DisconnectReason::Error(error.raw_os_error()), now_ns);
                    return now_ns;
                }
            };
            inbound.received(size);
            self.core.stats.receives += 1;
            now_ns = self.clock.now_ns();
            if let Err(violation) = self.core.deliver(index, arena, now_ns, out) {
                self.core.fail_link(index, CallError::Violation(violation), now_ns, out);
                self.lost(index, DisconnectReason::Violation(violation), now_ns);
                return now_ns;
            }
            if size < room {
                break;
            }
        }
        self.replace_if_broken(index, now_ns);
        now_ns
    }

    fn replace_if_broken(&mut self, index: usize, now_ns: u64) {
        if let Some(why) = self.core.broken(index)
            && self.sockets[index].phase == Phase::Up
        {
            self.lost(index, why, now_ns);
        }
    }

    /// Handles the loss of a connection. The calls on it wait until the connection is open again.
    fn lost(&mut self, index: usize, why: DisconnectReason, now_ns: u64) {
        let proven = self.core.links[index].proven;
        self.core.link_lost(index, why, now_ns);
        let socket = &mut self.sockets[index];
        socket.fd = None; // closing the descriptor removes it from epoll
        socket.wants_write = false;
        if socket.phase == Phase::Up {
            self.down += 1;
            socket.lost_ns = now_ns;
        }
        socket.backoff_ns = if proven { 0 } else { next_backoff(socket.backoff_ns) };
        socket.phase = Phase::Down { retry_ns: now_ns + socket.backoff_ns };
        self.next_tick_ns = self.next_tick_ns.min(now_ns + socket.backoff_ns);
    }

    /// Handles overdue calls, broken connections and due reconnections.
    pub(crate) fn housekeeping(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        self.core.tick(now_ns, out);
        self.next_tick_ns = now_ns + TICK_NS;
        for index in 0..self.sockets.len() {
            self.replace_if_broken(index, now_ns);
            match self.sockets[index].phase {
                Phase::Down { retry_ns } if retry_ns <= now_ns => self.reconnect(index, now_ns),
                Phase::Down { retry_ns } => self.next_tick_ns = self.next_tick_ns.min(retry_ns),
                Phase::Connecting { deadline_ns } if deadline_ns <= now_ns => {
                    self.not_connected(index, now_ns);
                }
                _ => {}
            }
        }
    }

    fn reconnect(&mut self, index: usize, now_ns: u64) {
        let socket = &mut self.sockets[index];
        let data = epoll::EventData::new_u64(index as u64);
        let started = socket::start(socket.address, socket.reserved_port).and_then(|fd| {
            epoll::add(&self.epoll, &fd, data, epoll::EventFlags::OUT)?;
            Ok(fd)
        });
        match started {
            Ok(fd) => {
                socket.fd = Some(fd);
                socket.phase = Phase::Connecting { deadline_ns: now_ns + CONNECT_NS };
            }
            Err(_) => self.not_connected(index, now_ns),
        }
    }

    fn not_connected(&mut self, index: usize, now_ns: u64) {
        let socket = &mut self.sockets[index];
        socket.fd = None;
        socket.backoff_ns = next_backoff(socket.backoff_ns);
        socket.phase = Phase::Down { retry_ns: now_ns + socket.backoff_ns };
        self.next_tick_ns = self.next_tick_ns.min(now_ns + socket.backoff_ns);
    }

    fn connected(&mut self, index: usize, now_ns: u64) {
        let socket = &mut self.sockets[index];
        let outcome = socket.fd.as_ref().map(socket::finish);
        if outcome != Some(Ok(())) {
            self.not_connected(index, now_ns);
            return;
        }
        socket.phase = Phase::Up;
        socket.wants_write = false;
        self.down -= 1;
        let outage_ns = now_ns.saturating_sub(socket.lost_ns);
        self.interest(index, epoll::EventFlags::IN);
        self.core.link_restored(index, outage_ns, now_ns);
    }
}

fn next_backoff(backoff_ns: u64) -> u64 {
    (backoff_ns * 2).clamp(BACKOFF_NS.0, BACKOFF_NS.1)
}
