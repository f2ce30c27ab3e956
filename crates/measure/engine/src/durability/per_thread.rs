//! Connections of threads. Each thread opens its own connection when it first needs the connection.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::EngineError;

/// Connections of all threads. Each connection is used by one thread only.
#[derive(Debug)]
pub(super) struct PerThread<T>(Mutex<HashMap<ThreadId, Arc<Mutex<T>>>>);

impl<T> PerThread<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Executes one operation on the connection of this thread. After an error, the connection is
    /// closed, because a call may still be in flight on it.
    pub(super) fn with<R>(
        &self,
        open: impl FnOnce() -> Result<T, EngineError>,
        carry_out: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let thread = thread::current().id();
        let known = lock(&self.0).get(&thread).cloned();
        let connection = match known {
            Some(known) => known,
            None => {
                let new = Arc::new(Mutex::new(open().map_err(io::Error::other)?));
                lock(&self.0).insert(thread, Arc::clone(&new));
                new
            }
        };
        let result = carry_out(&mut lock(&connection));
        if result.is_err() {
            lock(&self.0).remove(&thread);
        }
        result
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
