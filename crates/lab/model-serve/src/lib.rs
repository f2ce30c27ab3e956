//! Serves a modelled system as an NFSv3 server in real time. The server stores the data, and sends
//! each reply at the time that the model computes.
//!
//! | file | what |
//! |---|---|
//! | `pacer` | advances the system's virtual time together with the clock |
//! | `tree` | directories and files, in memory |
//! | `connection`, `calls` | limits on clients: length of calls, time, connections |
//! | `nfs` | the server's file system: each call uses the tree, then waits for the pacer |
//! | `metrics` | the internal statistics, in the Prometheus text format |
//!
//! The model itself does not read a clock. This crate reads the clock, and uses the asynchronous
//! runtime that the server requires.

mod calls;
mod connection;
mod metrics;
mod nfs;
mod pacer;
mod tree;

pub use metrics::{Gauge, Metrics};
pub use tree::{Tree, TreeError};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::spec::ModelError;
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;

use self::pacer::Pacer;

/// Interval between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// Options of the server.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Address for NFS and MOUNT; port 0 selects a free port.
    pub nfs: SocketAddr,
    /// Seed of the random choices of the system.
    pub seed: u64,
    /// Maximum memory for the data in files.
    pub memory_bytes: u64,
}

/// Error that prevented the model from being served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The address cannot be used for listening.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Threads could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Serves a model until `stop` becomes true, and updates `metrics` every second. Calls `ready` with
/// the bound address.
///
/// # Errors
/// [`ServeError`]: the model cannot be built, or the address is in use.
pub fn serve(
    model: &ConfiguredModel,
    options: ServeOptions,
    metrics: Arc<Metrics>,
    stop: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let system = model.build(options.seed)?;
    let nodes = system.compute_nodes();
    let pacer = Pacer::new(system, metrics);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Thread)?;
    let tree = Tree::new(options.memory_bytes);
    let (asks, inbox) = unbounded_channel();
    let files = nfs::ModelFiles::new(tree, asks, nodes);
    let result = runtime.block_on(async {
        let listen = |error| ServeError::Listen { address: options.nfs, error };
        let listener = TcpListener::bind(options.nfs).await.map_err(listen)?;
        let nfs = listener.local_addr().map_err(listen)?;
        ready(nfs);
        let until_stopped = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = connection::serve_all(listener, Arc::new(files)) => Ok(()),
            () = pacer.run(inbox) => Ok(()),
            () = until_stopped => Ok(()),
        }
    });
    runtime.shutdown_timeout(LOOK);
    result
}
