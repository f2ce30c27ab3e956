//! The client, which is a [`Core`] with real sockets. It uses epoll, and runs on the thread that
//! polls it.

use std::mem::MaybeUninit;
use std::net::SocketAddr;

use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use thiserror::Error;

use crate::config::Config;
use crate::connections::{CONNECT_NS, Phase, Socket};
use crate::core::Core;
use crate::credential::Credential;
use crate::error::SubmitError;
use crate::handle::{Handle, ObjectId, ServerId};
use crate::op::{Completion, Op};
use crate::socket;
use crate::stats::Stats;

/// Waits shorter than this time in ns use nanosecond resolution.
const FINE_WAIT_NS: u64 = 5_000_000;
/// Resolution of epoll's timeout, in ns.
const EPOLL_UNIT_NS: u64 = 1_000_000;
/// Timer slack that the thread sets before its first pause, in ns.
const TIMER_SLACK_NS: u64 = 1_000;
/// Maximum number of events that one call of epoll returns.
const EVENTS_MAX: usize = 64;

/// Source of the time. It must not go backwards.
pub trait Clock {
    /// Nanoseconds since an arbitrary start.
    fn now_ns(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    #[inline]
    fn now_ns(&self) -> u64 {
        self()
    }
}

/// The system's monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        // The time is never negative, because the clock starts at boot.
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// Maximum time that [`Client::poll`] waits for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Does not wait.
    Now,
    /// Waits until this time of the client's clock.
    Until(u64),
    /// Waits without a time limit. Returns immediately if no operation is outstanding.
    Completion,
}

/// Reason why a poll failed. A server can only cause failed completions, never these errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PollError {
    /// Waiting for sockets failed.
    #[error("waiting for sockets failed: {0}")]
    Epoll(Errno),
    /// The arena is too small for the buffers of the submitted operations.
    #[error("the buffer arena has {size_bytes} bytes, but the operations need {needed_bytes}")]
    Arena {
        /// Size of the arena in bytes.
        size_bytes: u64,
        /// Required size in bytes.
        needed_bytes: u64,
    },
}

/// Reason why a server could not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Connecting failed.
    #[error("cannot connect to the NFS server at {address}: {error}")]
    Failed {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the operating system.
        error: Errno,
    },
    /// The server did not answer.
    #[error("the NFS server at {address} did not answer within 5 s: check the address")]
    TimedOut {
        /// Address of the server.
        address: SocketAddr,
    },
}

/// A server to which a client connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// Address and port of the NFS service.
    pub address: SocketAddr,
    /// Number of connections (`nconnect`).
    pub connections: u32,
    /// Credential in each call.
    pub credential: Credential,
    /// True if the client connects from a port below 1024, when the process may use such ports.
    /// Many servers require such a port.
    pub reserved_port: bool,
}

impl ServerSpec {
    /// Creates the description of a server, with one connection and the credential of root.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self { address, connections: 1, credential: Credential::default(), reserved_port: true }
    }
}

/// A client of one or more NFS servers, owned by one thread.
pub struct Client<C: Clock = Monotonic> {
    pub(crate) core: Core,
    pub(crate) clock: C,
    pub(crate) epoll: OwnedFd,
    pub(crate) sockets: Vec<Socket>,
    /// Connection numbers, each with its epoll events. The kernel's type for events is not used,
    /// because it may contain a pointer. The client could then not be moved to another thread.
    pub(crate) events: Vec<(usize, epoll::EventFlags)>,
    pub(crate) next_tick_ns: u64,
    /// Number of connections that are not open.
    pub(crate) down: u32,
    /// True if the client paused before the last check for replies; see
    /// [`Config::reap_pause_divisor`].
    paused: bool,
    /// True if the timers of this thread have nanosecond precision.
    fine_timers: bool,
}

impl<C: Clock> Client<C> {
    /// Creates a client without servers.
    ///
    /// # Errors
    /// The kernel cannot create an epoll instance. The error is its `errno`.
    pub fn new(config: Config, clock: C) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            core: Core::new(config),
            clock,
            epoll,
            sockets: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            next_tick_ns: 0,
            down: 0,
            paused: false,
            fine_timers: false,
        })
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Returns a [`ConnectError`] if a connection fails.
    pub fn add_server(&mut self, spec: &ServerSpec) -> Result<ServerId, ConnectError> {
        let address = spec.address;
        let failed = |error| ConnectError::Failed { address, error };
        let mut made = Vec::new();
        for _ in 0..spec.connections.max(1) {
            let fd = socket::start(address, spec.reserved_port).map_err(failed)?;
            let deadline_ns = self.clock.now_ns() + CONNECT_NS;
            loop {
                let left_ns = deadline_ns.saturating_sub(self.clock.now_ns());
                if socket::wait_writable(&fd, left_ns).map_err(failed)? {
                    break;
                }
                if left_ns == 0 {
                    return Err(ConnectError::TimedOut { address });
                }
            }
            socket::finish(&fd).map_err(failed)?;
            made.push(fd);
        }
        let (server, first) = self.core.add_server(&spec.credential, spec.connections);
        for (number, fd) in made.into_iter().enumerate() {
            let data = epoll::EventData::new_u64((first + number) as u64);
            epoll::add(&self.epoll, &fd, data, epoll::EventFlags::IN).map_err(failed)?;
            self.sockets.push(Socket {
                address,
                reserved_port: spec.reserved_port,
                fd: Some(fd),
                phase: Phase::Up,
                wants_write: false,
                lost_ns: 0,
                backoff_ns: 0,
            });
        }
        Ok(server)
    }

    /// Registers a handle; see [`Core::register`].
    pub fn register(&mut self, server: ServerId, handle: Handle) -> ObjectId {
        self.core.register(server, handle)
    }

    /// Submits an operation. The next [`Client::flush`] or [`Client::poll`] sends it.
    ///
    /// # Errors
    /// See [`Core::submit`].
    #[inline]
    pub fn submit(&mut self, token: u64, op: &Op<'_>) -> Result<(), SubmitError> {
        self.core.submit(token, op)
    }

    /// Returns the protocol state: counters, handles, outstanding operations.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the protocol state as [`Client::core`] does, but mutable.
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Returns the counters and events.
    pub fn stats_mut(&mut self) -> &mut Stats {
        self.core.stats_mut()
    }

    /// Sets a condition under which outstanding calls fail, in addition to their age limit. The
    /// argument of the condition is the age of a call in ns. The client evaluates the condition
    /// every few dozen milliseconds.
    pub fn fail_calls_when(&mut self, is_over: fn(u64) -> bool) {
        self.core.is_over = Some(is_over);
    }

    /// Sets the time limit for all outstanding and future calls; see [`Config::give_up_after_ns`].
    pub fn give_up_after(&mut self, give_up_after_ns: u64) {
        self.core.config.give_up_after_ns = give_up_after_ns;
    }

    /// Returns the current time of the client's clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Returns the number of connections that are not open.
    #[must_use]
    pub fn connections_down(&self) -> u32 {
        self.down
    }

    /// Sends submitted operations until the sockets accept no more data.
    ///
    /// # Errors
    /// [`PollError::Arena`].
    pub fn flush(&mut self, arena: &[u8]) -> Result<(), PollError> {
        self.check_arena(arena)?;
        let now_ns = self.clock.now_ns();
        self.core.hand_over(now_ns);
        for index in 0..self.sockets.len() {
            self.send(index, arena, now_ns);
        }
        Ok(())
    }

    /// Sends submitted operations, receives replies, and appends completions to `out`. Returns
    /// after the first completion or at the timeout.
    ///
    /// # Errors
    /// Returns a [`PollError`], which a server can never cause.
    pub fn poll(
        &mut self,
        arena: &mut [u8],
        timeout: Timeout,
        out: &mut Vec<Completion>,
    ) -> Result<(), PollError> {
        self.check_arena(arena)?;
        let before = out.len();
        let mut now_ns = self.clock.now_ns();
        loop {
            self.core.hand_over(now_ns);
            for index in 0..self.sockets.len() {
                self.send(index, arena, now_ns);
            }
            now_ns = self.pause(timeout, now_ns);
            if !self.receive_at_once(arena, &mut now_ns, out) {
                let (wait_ns, fine) = self.wait_ns(timeout, now_ns, out.len() > before);
                self.wait(wait_ns, fine)?;
                now_ns = self.clock.now_ns();
                now_ns = self.serve(arena, now_ns, out);
            }
            if now_ns >= self.next_tick_ns {
                self.housekeeping(now_ns, out);
            }
            let expired = match timeout {
                Timeout::Now => true,
                Timeout::Until(at_ns) => now_ns >= at_ns,
                Timeout::Completion => self.core.outstanding() == 0,
            };
            if out.len() > before || expired {
                return Ok(());
            }
        }
    }

    fn check_arena(&self, arena: &[u8]) -> Result<(), PollError> {
        let (size_bytes, needed_bytes) = (arena.len() as u64, self.core.arena_bytes_needed());
        if size_bytes < needed_bytes {
            return Err(PollError::Arena { size_bytes, needed_bytes });
        }
        Ok(())
    }

    /// Pauses before the check for replies, so that several replies have arrived by then. Returns
    /// the time after the pause.
    fn pause(&mut self, timeout: Timeout, now_ns: u64) -> u64 {
        let mut pause_ns = self.core.reap_pause_ns();
        match timeout {
            Timeout::Now => return now_ns,
            Timeout::Until(at_ns) => pause_ns = pause_ns.min(at_ns.saturating_sub(now_ns)),
            Timeout::Completion => {}
        }
        self.paused = pause_ns > 0 && self.sockets.iter().all(|socket| !socket.wants_write);
        if !self.paused {
            return now_ns;
        }
        if !self.fine_timers {
            // The kernel's default timer slack of 50 us is as long as a pause. This call only
            // changes the precision of this thread's timers. If the kernel rejects the call, pauses
            // are longer than intended.
            let _ =
                rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(TIMER_SLACK_NS));
            self.fine_timers = true;
        }
        let _ = rustix::thread::nanosleep(&socket::timespec(pause_ns));
        let after_ns = self.clock.now_ns();
        self.core.stats.reap_pauses += 1;
        self.core.stats.reap_pause_ns += after_ns.saturating_sub(now_ns);
        after_ns
    }

    /// After a pause, a reply has most likely arrived. If there is only one connection, this
    /// function receives the reply without calling epoll first. Returns false if no data had
    /// arrived.
    fn receive_at_once(
        &mut self,
        arena: &mut [u8],
        now_ns: &mut u64,
        out: &mut Vec<Completion>,
    ) -> bool {
        let [Socket { phase: Phase::Up, wants_write: false, .. }] = self.sockets[..] else {
            return false;
        };
        if !self.paused {
            return false;
        }
        let receives = self.core.stats.receives;
        *now_ns = self.receive(0, arena, *now_ns, out);
        self.core.stats.receives > receives || self.down > 0
    }

    /// Returns the time to wait for an event, and whether the wait requires nanosecond resolution.
    fn wait_ns(&self, timeout: Timeout, now_ns: u64, has_completions: bool) -> (u64, bool) {
        let idle = self.core.outstanding() == 0;
        if has_completions || timeout == Timeout::Now || (idle && timeout == Timeout::Completion) {
            return (0, false);
        }
        let mut until_ns = self.next_tick_ns;
        let mut fine = false;
        if let Timeout::Until(at_ns) = timeout
            && at_ns < until_ns
        {
            fine = at_ns.saturating_sub(now_ns) < FINE_WAIT_NS;
            // A wait longer than this ends early. The client then waits for the remaining time with
            // the finer resolution.
            until_ns = if fine { at_ns } else { at_ns - 2 * EPOLL_UNIT_NS };
        }
        (until_ns.saturating_sub(now_ns), fine)
    }

    fn wait(&mut self, wait_ns: u64, fine: bool) -> Result<(), PollError> {
        // The timeout of epoll is in milliseconds. Rounding up avoids repeated calls near the end
        // of a wait.
        let mut timeout = socket::timespec(wait_ns.next_multiple_of(EPOLL_UNIT_NS));
        if fine && wait_ns > 0 {
            socket::wait_readable(&self.epoll, wait_ns).map_err(PollError::Epoll)?;
            timeout = socket::timespec(0);
        }
        self.core.stats.waits += 1;
        self.events.clear();
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => {
                let came = events.iter().map(|event| (event.data.u64() as usize, event.flags));
                self.events.extend(came);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(PollError::Epoll(error)),
        }
    }
}

impl<C: Clock> AsFd for Client<C> {
    /// Returns a descriptor that becomes readable when [`Client::poll`] has work to do. A thread
    /// that drives several clients can wait for it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_ends_before_its_time_and_the_rest_is_fine() {
        const MS: u64 = 1_000_000;
        let mut client = Client::new(Config::default(), || 0).unwrap();
        client.next_tick_ns = 1_000 * MS;
        let wait = |until_ns: u64| client.wait_ns(Timeout::Until(until_ns), 0, false);
        assert_eq!(wait(10 * MS + 300), (8 * MS + 300, false));
        // Even if epoll rounds the timeout up, the wait ends before the deadline.
        assert!(wait(10 * MS + 300).0.next_multiple_of(EPOLL_UNIT_NS) < 10 * MS + 300);
        assert_eq!(wait(3 * MS + 300), (3 * MS + 300, true));
        assert_eq!(wait(2_000 * MS), (1_000 * MS, false));
        assert_eq!(client.wait_ns(Timeout::Now, 0, false).0, 0);
    }
}
