//! Chooses ports for the test servers of all crates.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a free port below 32768. The kernel assigns only higher ports to other sockets, so a
/// restarted server can get its old port again.
pub fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        let requested = ASKED.fetch_add(1, Ordering::Relaxed);
        // Concurrent tests start the search at different ports, and so does each module that
        // includes this file.
        let module = module_path!()
            .bytes()
            .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let begin = std::process::id().wrapping_mul(97).wrapping_add(module % PORTS);
        let place = begin.wrapping_add(requested) % PORTS;
        let port = PORT_FIRST + place as u16;
        if ["0.0.0.0", "::"].iter().all(|any| TcpListener::bind((*any, port)).is_ok()) {
            return port;
        }
    }
    panic!("no port from {PORT_FIRST} on is free");
}

const PORT_FIRST: u16 = 20_000;
const PORTS: u32 = 12_000;
