//! Relay between client and server. It counts calls by procedure and distinct XID, independently of
//! the client's own counters.
#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Counts of relayed calls.
#[derive(Default)]
pub struct Counts {
    /// Distinct XIDs of each procedure.
    pub calls: HashMap<u32, HashSet<u32>>,
    /// Number of all records of each procedure, including retransmissions.
    pub records: HashMap<u32, u64>,
    pub connections: u64,
}

impl Counts {
    pub fn distinct(&self, procedure: u32) -> u64 {
        self.calls.get(&procedure).map_or(0, |xids| xids.len() as u64)
    }
}

/// Starts a relay to `server`. The relay runs until the test process ends.
pub fn start(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Counts>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Mutex::new(Counts::default()));
    let shared = Arc::clone(&counts);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            shared.lock().unwrap().connections += 1;
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let counts = Arc::clone(&shared);
            thread::spawn(move || forward(from, to, |bytes, rest| count(&counts, bytes, rest)));
            thread::spawn(move || forward(server, client, |_, _| ()));
        }
    });
    (address, counts)
}

fn forward(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8], &mut Vec<u8>)) {
    let mut buffer = vec![0u8; 256 * 1024];
    let mut rest = Vec::new();
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        see(&buffer[..size], &mut rest);
        if to.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Counts the complete records in `rest` + `bytes`, and stores an incomplete record in `rest`. The
/// client sends each call in one fragment.
fn count(counts: &Mutex<Counts>, bytes: &[u8], rest: &mut Vec<u8>) {
    rest.extend_from_slice(bytes);
    let mut at = 0;
    let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
    while rest.len() >= at + 4 {
        let size = (word(at) & 0x7fff_ffff) as usize;
        if rest.len() < at + 4 + size {
            break;
        }
        let (xid, procedure) = (word(at + 4), word(at + 24));
        let mut counts = counts.lock().unwrap();
        counts.calls.entry(procedure).or_default().insert(xid);
        *counts.records.entry(procedure).or_default() += 1;
        at += 4 + size;
    }
    rest.drain(..at);
}
