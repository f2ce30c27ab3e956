//! NFS server with programmed delays that records its response times. The relay forwards calls to
//! another server. It answers READ itself, after a drawn time, with data from earlier WRITEs.
//!
//! For each READ it records the time at which it received the last byte and the time at which it
//! passed the answer to the socket. The relay causes all delay in between. Any further delay at the
//! client is due to loopback and the client.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nfs3_types::nfs3::{READ3args, READ3resok, WRITE3args, post_op_attr};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};
use plimsoll_sys::clock::monotonic_ns;

use super::law::Draws;
use super::target::DeviceTimes;

/// Last fragment of a record (RFC 5531 section 11).
const LAST: u32 = 0x8000_0000;
const NFS: u32 = 100_003;
const READ: u32 = 6;
const WRITE: u32 = 7;
/// Time after the last READ during which the relay watches a connection without sleeping.
const WATCH_NS: u64 = 200_000_000;
const NAP: Duration = Duration::from_micros(200);

/// State that all connections share.
struct State {
    files: HashMap<Vec<u8>, Vec<u8>>,
    draws: Draws,
    /// Time at which each server becomes free; empty without a limit.
    free_ns: BinaryHeap<Reverse<u64>>,
    known: Vec<DeviceTimes>,
}

/// Relay, which ends with the process.
#[derive(Clone)]
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    pub fn start(server: SocketAddr, draws: Draws) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (files, known, free_ns) = (HashMap::new(), Vec::new(), BinaryHeap::new());
        let state = Arc::new(Mutex::new(State { files, draws, free_ns, known }));
        let relay = Self { address, state };
        let accepting = relay.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let relay = accepting.clone();
                std::thread::spawn(move || relay.serve(client, server));
            }
        });
        Ok(relay)
    }

    /// Changes the service times and servers. Returns the times of the READs until now, in order of
    /// arrival.
    pub fn reset(&self, draws: Draws, servers: Option<u32>) -> Vec<DeviceTimes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.draws = draws;
        state.free_ns = (0..servers.unwrap_or(0)).map(|_| Reverse(0)).collect();
        std::mem::take(&mut state.known)
    }

    fn serve(&self, client: TcpStream, server: TcpStream) {
        let ready = |stream: &TcpStream| {
            stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).is_ok()
        };
        if ready(&client) && ready(&server) {
            Connection {
                relay: self,
                calls: Records::of(client),
                answers: Records::of(server),
                due: BinaryHeap::new(),
                read_ns: 0,
            }
            .serve();
        }
    }
}

/// One end of a connection, and its received bytes.
struct Records {
    stream: TcpStream,
    bytes: Vec<u8>,
    buffer: Vec<u8>,
}

impl Records {
    fn of(stream: TcpStream) -> Self {
        Self { stream, bytes: Vec::new(), buffer: vec![0; 256 << 10] }
    }

    /// Receives available bytes. Returns `false` if none were available, and `None` once the other
    /// end is closed.
    fn receive(&mut self) -> Option<bool> {
        match self.stream.read(&mut self.buffer) {
            Ok(0) => None,
            Ok(size) => {
                self.bytes.extend_from_slice(&self.buffer[..size]);
                Some(true)
            }
            Err(error) => (error.kind() == ErrorKind::WouldBlock).then_some(false),
        }
    }

    /// Returns the length of the first whole record with its mark, if one is available. Both sides
    /// send whole records in one fragment here, or the relay forwards the fragments one by one.
    fn whole(&self) -> Option<usize> {
        let mark = u32::from_be_bytes(self.bytes.get(..4)?.try_into().ok()?);
        let end = 4 + (mark & !LAST) as usize;
        (self.bytes.len() >= end).then_some(end)
    }

    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(size) => sent += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// Answer that waits for its due time, with that time and the number of its READ.
type DueReply = Reverse<(u64, usize, Vec<u8>)>;

struct Connection<'a> {
    relay: &'a Relay,
    calls: Records,
    answers: Records,
    due: BinaryHeap<DueReply>,
    /// Arrival of the last READ.
    read_ns: u64,
}

impl Connection<'_> {
    fn serve(mut self) {
        while let Some(moved) = self.turn() {
            if !moved && self.due.is_empty() && monotonic_ns() - self.read_ns > WATCH_NS {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Receives, answers and forwards. Returns `None` at the end.
    fn turn(&mut self) -> Option<bool> {
        let mut moved = self.calls.receive()?;
        let now_ns = monotonic_ns();
        while let Some(end) = self.calls.whole() {
            let record: Vec<u8> = self.calls.bytes.drain(..end).collect();
            self.call(&record, now_ns)?;
        }
        moved |= self.answers.receive()?;
        while let Some(end) = self.answers.whole() {
            let record: Vec<u8> = self.answers.bytes.drain(..end).collect();
            self.calls.send(&record)?;
        }
        while self.due.peek().is_some_and(|Reverse((due_ns, ..))| *due_ns <= monotonic_ns()) {
            let Some(Reverse((_, number, answer))) = self.due.pop() else { break };
            let sent_ns = monotonic_ns();
            self.calls.send(&answer)?;
            let mut state = self.relay.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = state.known.get_mut(number) {
                known.done_ns = sent_ns;
            }
        }
        Some(moved)
    }

    fn call(&mut self, record: &[u8], now_ns: u64) -> Option<()> {
        let word = |at: usize| {
            let bytes = record.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_be_bytes)
        };
        // After mark, XID, direction, RPC version: program, its version, procedure, credential,
        // verifier.
        let (program, procedure) = (word(16)?, word(24)?);
        let verifier = 36 + (word(32)? as usize).next_multiple_of(4);
        let arguments = verifier + 8 + (word(verifier + 4)? as usize).next_multiple_of(4);
        let mut arguments = record.get(arguments..)?;
        if program == NFS && procedure == READ {
            let (read, _) = READ3args::unpack(&mut arguments).ok()?;
            return self.read(word(4)?, &read, now_ns);
        }
        if program == NFS && procedure == WRITE {
            let (write, _) = WRITE3args::unpack(&mut arguments).ok()?;
            let mut state = self.relay.state.lock().unwrap_or_else(PoisonError::into_inner);
            let file = state.files.entry(write.file.data.to_vec()).or_default();
            let end = write.offset as usize + write.data.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[write.offset as usize..end].copy_from_slice(&write.data);
        }
        self.answers.send(record)
    }

    fn read(&mut self, xid: u32, read: &READ3args, now_ns: u64) -> Option<()> {
        self.read_ns = now_ns;
        let mut state = self.relay.state.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn_ns = state.draws.draw_ns();
        let free_ns = state.free_ns.pop();
        let due_ns = free_ns.map_or(0, |Reverse(ns)| ns).max(now_ns) + drawn_ns;
        if free_ns.is_some() {
            state.free_ns.push(Reverse(due_ns));
        }
        let number = state.known.len();
        state.known.push(DeviceTimes { received_ns: now_ns, drawn_ns, due_ns, done_ns: 0 });
        let file = state.files.get(&*read.file.data).map_or(&[][..], Vec::as_slice);
        let start = (read.offset as usize).min(file.len());
        let end = (start + read.count as usize).min(file.len());
        let mut answer = vec![0; 4];
        // The XID, a reply, accepted, an empty verifier, success, and NFS3_OK.
        for header in [xid, 1, 0, 0, 0, 0, 0] {
            header.pack(&mut answer).ok()?;
        }
        READ3resok {
            file_attributes: post_op_attr::None,
            count: (end - start) as u32,
            eof: end == file.len(),
            data: Opaque::borrowed(&file[start..end]),
        }
        .pack(&mut answer)
        .ok()?;
        let mark = (answer.len() - 4) as u32 | LAST;
        answer[..4].copy_from_slice(&mark.to_be_bytes());
        self.due.push(Reverse((due_ns, number, answer)));
        Some(())
    }
}
