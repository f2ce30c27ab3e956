//! Limits for clients of the NFS server. No client can use more memory than a valid call, keep an
//! idle connection open, or block other clients for a long time.
//!
//! The server reads and writes through a [`GuardedStream`], which checks the record marks (RFC 5531
//! section 11) in the received bytes, and closes the connection if they are not valid for calls.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nfs3_server::test_reexports::{RPCContext, TransactionTracker, process_socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use crate::calls::{HEAD_BYTES, is_sound};
use crate::nfs::ModelFiles;

/// Maximum length of a record: a call that writes 1 MiB.
const RECORD_BYTES_MAX: usize = (1 << 20) + HEAD_BYTES;
/// Maximum number of fragments of a record.
const FRAGMENTS_MAX: u32 = 1024;
/// Maximum number of connections. The server closes further connections immediately.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// Maximum number of calls on a connection that wait for their replies. At this limit, the server
/// reads no further calls until it has sent a reply.
const CALLS_MAX: u64 = 256;
/// Timeout for receiving a complete record, and for sending a reply.
const RECORD_TIME: Duration = Duration::from_secs(30);
/// Idle timeout of a connection. Linux clients close idle connections after 5 minutes.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// Pause after an accept that failed, for example because no file descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);
/// To recognise retransmissions, each connection stores its recent calls: for this time, and at
/// most this number of calls.
const REMEMBERED: (Duration, usize) = (Duration::from_secs(60), 2048);

/// Accepts connections forever.
pub(super) async fn serve_all(listener: TcpListener, files: Arc<ModelFiles>) {
    let shared = RPCContext::test_ctx("", files);
    let port = listener.local_addr().map_or(0, |address| address.port());
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let mut context = shared.clone();
        (context.local_port, context.client_addr) = (port, peer.to_string());
        let (time, calls) = REMEMBERED;
        let most = u16::try_from(CALLS_MAX).unwrap_or(u16::MAX);
        context.transaction_tracker = Arc::new(TransactionTracker::new(time, most, calls));
        tokio::spawn(async move {
            // A reply must not be delayed in order to send it together with other replies.
            let _ = stream.set_nodelay(true);
            // An error is ignored, because only the client knows why the connection ended.
            let _ = process_socket(GuardedStream::new(stream), context).await;
            drop(place);
        });
    }
}

/// State of the parser for the records that arrive on a connection.
#[derive(Debug, Default)]
struct Records {
    /// The record mark that is being read, and its received bytes.
    mark: [u8; 4],
    mark_bytes: usize,
    /// Number of bytes of the current fragment that have not arrived yet. `last` is true if this is
    /// the last fragment of the record.
    left: usize,
    last: bool,
    fragments: u32,
    record_bytes: usize,
    /// First bytes of the record.
    head: Vec<u8>,
    /// Number of complete records.
    whole: u64,
}

impl Records {
    /// Returns true if a record is incomplete.
    fn is_within(&self) -> bool {
        self.mark_bytes > 0 || self.fragments > 0
    }

    /// Processes the next bytes. `checked` is true if the bytes are from a client.
    fn take(&mut self, mut bytes: &[u8], checked: bool) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (now, later) = bytes.split_at(self.left.min(bytes.len()));
                let room = HEAD_BYTES.saturating_sub(self.head.len()).min(now.len());
                if checked {
                    self.head.extend_from_slice(&now[..room]);
                }
                self.left -= now.len();
                bytes = later;
            } else {
                let (now, later) = bytes.split_at((4 - self.mark_bytes).min(bytes.len()));
                self.mark[self.mark_bytes..self.mark_bytes + now.len()].copy_from_slice(now);
                self.mark_bytes += now.len();
                bytes = later;
                if self.mark_bytes < 4 {
                    continue;
                }
                let mark = u32::from_be_bytes(self.mark);
                (self.left, self.last) = ((mark & 0x7fff_ffff) as usize, mark >> 31 == 1);
                self.mark_bytes = 0;
                self.fragments += 1;
                self.record_bytes = self.record_bytes.saturating_add(self.left);
                let too_much =
                    self.record_bytes > RECORD_BYTES_MAX || self.fragments > FRAGMENTS_MAX;
                if checked && too_much {
                    return Err(refused("a record exceeds the maximum length of a call"));
                }
            }
            if self.left == 0 && self.mark_bytes == 0 && self.last && self.fragments > 0 {
                if checked && !is_sound(&self.head, self.record_bytes) {
                    return Err(refused("a record is not a call"));
                }
                self.head.clear();
                (self.fragments, self.record_bytes) = (0, 0);
                self.whole += 1;
            }
        }
        Ok(())
    }
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A connection with limits on the length of calls and on the idle time. See the description of the
/// module.
struct GuardedStream {
    stream: TcpStream,
    calls: Records,
    answers: Records,
    /// Time at which an idle connection is closed.
    due: Instant,
    timer: Pin<Box<Sleep>>,
    /// True if a reply waits to be sent.
    held_up: bool,
}

impl GuardedStream {
    fn new(stream: TcpStream) -> Self {
        let due = Instant::now() + IDLE_TIME;
        let timer = Box::pin(tokio::time::sleep_until(due));
        let (calls, answers) = (Records::default(), Records::default());
        Self { stream, calls, answers, due, timer, held_up: false }
    }

    /// Fails once the connection has timed out. Most calls only change `due`; the timer itself is
    /// reset only when it fires.
    fn in_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.due {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let due = self.due;
            self.timer.as_mut().reset(due);
        }
        Ok(())
    }

    /// Sets the time limit of the connection, and updates the timer.
    fn allow(&mut self, time: Duration, cx: &mut Context<'_>) -> io::Result<()> {
        let due = Instant::now() + time;
        let sooner = due < self.timer.deadline();
        self.due = due;
        if sooner && self.timer.deadline() - due > RECORD_TIME {
            self.timer.as_mut().reset(due);
        }
        self.in_time(cx)
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.in_time(cx)?;
        if this.calls.whole.saturating_sub(this.answers.whole) >= CALLS_MAX {
            // The same task calls this function again after it has written a reply.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let (within, whole) = (this.calls.is_within(), this.calls.whole);
        this.calls.take(&buf.filled()[before..], true)?;
        if !this.calls.is_within() {
            this.allow(IDLE_TIME, cx)?;
        } else if !within || this.calls.whole > whole {
            // The time limit is extended only if another record has started, not for further bytes
            // of the same record.
            this.allow(RECORD_TIME, cx)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => {
                this.answers.take(&bytes[..written], false)?;
                this.held_up = false;
                this.allow(IDLE_TIME, cx)?;
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                if this.held_up {
                    this.in_time(cx)?;
                } else {
                    this.held_up = true;
                    this.allow(RECORD_TIME, cx)?;
                }
                Poll::Pending
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 | 1 << 31).to_be_bytes()[..], body].concat()
    }

    /// A NULL call of NFS.
    fn null() -> Vec<u8> {
        let words: [u32; 10] = [7, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
        record(&words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn calls_are_counted_however_they_come() {
        let two = [null(), null()].concat();
        for step in [1, 3, 7, two.len()] {
            let mut records = Records::default();
            two.chunks(step).for_each(|bytes| records.take(bytes, true).unwrap());
            assert_eq!(records.whole, 2);
            assert!(!records.is_within());
        }
    }

    #[test]
    fn a_record_is_refused_by_its_mark_and_garbage_by_its_lengths() {
        let mut records = Records::default();
        assert!(records.take(&0x7fff_ffffu32.to_be_bytes(), true).is_err());
        let mut records = Records::default();
        let fragment = [&(1u32 << 19).to_be_bytes()[..], &vec![0; 1 << 19]].concat();
        records.take(&fragment, true).unwrap();
        records.take(&fragment, true).unwrap();
        assert!(records.take(&fragment, true).is_err(), "all fragments together count");
        let mut records = Records::default();
        assert!(records.take(&record(&[0xff; 200]), true).is_err());
        let mut records = Records::default();
        let empty = [0; 4].repeat(FRAGMENTS_MAX as usize + 1);
        assert!(records.take(&empty, true).is_err(), "fragments of nothing have an end");
    }
}
