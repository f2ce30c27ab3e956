//! Requests to the hosts of a run that has ended: fetches their bundles, and measures their clocks
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_evidence::fleet::Offset;
use tokio::io::AsyncReadExt;

use super::host_state::{HostState, POLL_INTERVAL, SILENCE_TIMEOUT};
use crate::broker::{BUNDLE_BYTES_MAX, Broker};
use crate::offset::measure;
use crate::server_health::{OUTAGE_TIMEOUT, ServerHealth};

/// Maximum number of attempts to fetch a bundle. Attempts during an outage of the server do not
/// count.
const FETCH_ATTEMPTS: u32 = 3;
/// Time limit for one attempt to fetch a bundle.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Measures a host's clock after the run. After an outage, waits some seconds for the host to
/// reconnect.
pub(super) async fn measure_again(
    broker: &Broker,
    server_health: &ServerHealth,
    host: &HostState,
    interrupt: &AtomicBool,
) -> Option<Offset> {
    let mut began = Instant::now();
    loop {
        let offset = measure(broker, &host.card.name).await;
        if offset.is_some()
            || began.elapsed() > SILENCE_TIMEOUT
            || server_health.silence() > OUTAGE_TIMEOUT
            || interrupt.load(Ordering::Relaxed)
        {
            return offset;
        }
        if server_health.is_failing() {
            server_health.wait_for_answer(interrupt).await;
            began = Instant::now();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Fetches a bundle. If the server is unavailable, waits until it responds again.
pub(super) async fn fetch_with_retries(
    broker: &Broker,
    server_health: &ServerHealth,
    agent: &str,
    object: &str,
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, String> {
    let mut tries = 0;
    loop {
        let was_failing = server_health.is_failing();
        let error = match tokio::time::timeout(FETCH_TIMEOUT, fetch(broker, agent, object)).await {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) => error,
            Err(_) => format!("the transfer was not complete after {} s", FETCH_TIMEOUT.as_secs()),
        };
        let is_failing = server_health.is_failing();
        tries += u32::from(!was_failing && !is_failing);
        let is_given_up = is_failing && interrupt.load(Ordering::Relaxed);
        if tries == FETCH_ATTEMPTS || is_given_up || server_health.silence() > OUTAGE_TIMEOUT {
            return Err(error);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn fetch(broker: &Broker, agent: &str, object: &str) -> Result<Vec<u8>, String> {
    let store = broker.evidence_store(agent).await?;
    let found = store.get(object).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut bounded = found.take(BUNDLE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    match bytes.len() as u64 > BUNDLE_BYTES_MAX {
        true => Err(format!("the bundle is larger than {} MiB", BUNDLE_BYTES_MAX >> 20)),
        false => Ok(bytes),
    }
}
