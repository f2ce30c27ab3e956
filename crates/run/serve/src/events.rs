//! Server-sent events for the viewers of a run.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::Stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch;

/// Keep-alive interval for idle viewers.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Latest events of a run, already encoded for viewers.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// Status and tables of the run, as an event.
    pub now: Bytes,
    pub charts: Bytes,
    /// Number of updates so far that included the charts.
    pub charts_number: u64,
    /// Events that are sent only once, when the run has ended.
    pub end: Option<Bytes>,
}

/// Formats a server-sent event (WHATWG HTML, 9.2): each line of the text follows `data: `.
pub fn event(name: &str, text: &str) -> Bytes {
    let mut event = format!("event: {name}\n");
    for line in text.split('\n') {
        event.push_str("data: ");
        event.push_str(line.trim_end_matches('\r'));
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

#[derive(Debug)]
pub struct Viewer {
    frames: watch::Receiver<Frames>,
    has_started: bool,
    charts_number: u64,
    has_ended: bool,
    _slot: OwnedSemaphorePermit,
}

impl Viewer {
    /// Adds a viewer. The number of viewers is limited.
    pub fn new(frames: watch::Receiver<Frames>, slot: OwnedSemaphorePermit) -> Self {
        Self { frames, has_started: false, charts_number: 0, has_ended: false, _slot: slot }
    }

    /// Returns the stream of events. A slow viewer skips intermediate states and receives the
    /// latest state.
    pub fn stream(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
        futures_util::stream::unfold(self, |mut viewer| async move {
            let next = viewer.next().await?;
            Some((Ok(next), viewer))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        if self.has_started {
            match tokio::time::timeout(KEEP_ALIVE, self.frames.changed()).await {
                Ok(Ok(())) => {}
                // A later run has replaced this run.
                Ok(Err(_)) => return None,
                Err(_) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
        self.has_started = true;
        let frames = self.frames.borrow_and_update();
        let mut all = frames.now.to_vec();
        if frames.charts_number != self.charts_number {
            self.charts_number = frames.charts_number;
            all.extend_from_slice(&frames.charts);
        }
        if let Some(end) = &frames.end {
            self.has_ended = true;
            all.extend_from_slice(end);
        }
        Some(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_can_hold_no_event_of_its_own() {
        let sent = event("now", "a\r\n\nevent: end\n");
        assert_eq!(sent, "event: now\ndata: a\ndata: \ndata: event: end\ndata: \n\n");
    }
}
