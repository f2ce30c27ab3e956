//! Computes the offset of an agent's clock from the coordinator's clock. It uses the four time
//! stamps of a request and its response (RFC 5905, section 8). Several exchanges are made. The
//! fastest is used, because its error is the smallest.

use std::time::Duration;

use async_nats::Message;
use plimsoll_evidence::fleet::Offset;
use plimsoll_sys::clock::{monotonic_ns, realtime_ns};

use crate::broker::Broker;
use crate::message::ClockReply;

const EXCHANGES: u32 = 16;
/// Number of failed exchanges after which the measurement stops.
const FAILURES_MAX: u32 = 3;
/// Time limit for an exchange.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Computes the offset from one exchange. `asked_ns` and `answered_ns` are on the local clock.
#[must_use]
pub fn offset_from(asked_ns: u64, stamp: &ClockReply, answered_ns: u64) -> Offset {
    let away_ns = stamp.sent_ns.saturating_sub(stamp.received_ns);
    let travelled_ns = answered_ns.saturating_sub(asked_ns).saturating_sub(away_ns);
    let there = i128::from(stamp.received_ns) - i128::from(asked_ns);
    let back = i128::from(stamp.sent_ns) - i128::from(answered_ns);
    Offset {
        offset_ns: i64::try_from((there + back) / 2).unwrap_or(i64::MAX),
        // The error is rounded up, and a nanosecond is added for the rounding of the offset.
        error_ns: travelled_ns.div_ceil(2) + 1,
        at_ns: i64::try_from(asked_ns).unwrap_or(i64::MAX),
    }
}

/// Result of comparing an agent's clocks with this host's.
#[derive(Clone, Debug)]
pub(crate) struct ClockComparison {
    /// Offset of the monotonic clock.
    pub(crate) offset: Offset,
    /// The agent's time of day minus this host's time of day. `None` if it is not known.
    pub(crate) time_of_day_ns: Option<i64>,
    /// Instance of the agent that responded.
    pub(crate) instance: String,
}

/// Measures the offset of an agent's clock. `None` if the agent does not respond.
pub(crate) async fn measure(broker: &Broker, agent: &str) -> Option<Offset> {
    compare_clocks(broker, agent).await.map(|compared| compared.offset)
}

/// Like [`measure`], but also returns the time of day and the instance of the agent.
pub(crate) async fn compare_clocks(broker: &Broker, agent: &str) -> Option<ClockComparison> {
    let (mut best, mut failures): (Option<ClockComparison>, u32) = (None, 0);
    for _ in 0..EXCHANGES {
        let (asked_ns, asked_realtime_ns) = (monotonic_ns(), realtime_ns());
        let answer = request_clock(broker, agent).await;
        let answered_ns = monotonic_ns();
        let Some(answer) = answer else {
            failures += 1;
            if failures == FAILURES_MAX {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(stamp) = serde_json::from_slice::<ClockReply>(&answer.payload) else { continue };
        let offset = offset_from(asked_ns, &stamp, answered_ns);
        if best.as_ref().is_none_or(|best| offset.error_ns < best.offset.error_ns) {
            let here = i128::from(asked_realtime_ns) + i128::from(offset.error_ns);
            let difference = i64::try_from(i128::from(stamp.realtime_ns) - here).ok();
            let time_of_day_ns = difference.filter(|_| stamp.realtime_ns > 0);
            best = Some(ClockComparison { offset, time_of_day_ns, instance: stamp.instance });
        }
    }
    best
}

/// Returns the answer of an agent; `None` if no agent with this name responds.
async fn request_clock(broker: &Broker, agent: &str) -> Option<Message> {
    let requested = broker.client.request(format!("plimsoll.clock.{agent}"), "".into());
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, requested).await;
    answer.ok()?.ok()
}

/// Returns the instance of the agent process that responds under this name.
pub(crate) async fn running_instance(broker: &Broker, agent: &str) -> Option<String> {
    let answer = request_clock(broker, agent).await?;
    Some(serde_json::from_slice::<ClockReply>(&answer.payload).ok()?.instance)
}

/// Converts a time on an agent's clock to the coordinator's clock.
#[must_use]
pub fn to_coordinator_ns(agent_ns: u64, offset: Offset) -> i64 {
    i64::try_from(agent_ns).unwrap_or(i64::MAX).saturating_sub(offset.offset_ns)
}

/// Converts a time on the coordinator's clock to an agent's clock.
#[must_use]
pub fn to_agent_ns(here_ns: u64, offset: Offset) -> u64 {
    let here_ns = i64::try_from(here_ns).unwrap_or(i64::MAX);
    u64::try_from(here_ns.saturating_add(offset.offset_ns)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_offset_is_half_the_round_trip() {
        // The agent's clock is ahead by 1,000,000. The request takes 300, the processing 50, and
        // the response 100.
        for (there, back) in [(300u64, 100u64), (0, 400), (400, 0), (1, 0)] {
            let requested = 5_000u64;
            let received = requested + there + 1_000_000;
            let stamp = ClockReply {
                received_ns: received,
                sent_ns: received + 50,
                realtime_ns: 0,
                instance: String::new(),
            };
            let found = offset_from(requested, &stamp, requested + there + 50 + back);
            assert!(found.offset_ns.abs_diff(1_000_000) <= found.error_ns, "{found:?}");
            assert!(found.error_ns <= (there + back) / 2 + 2, "{found:?}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_has_a_negative_offset() {
        let stamp = ClockReply {
            received_ns: 1_100,
            sent_ns: 1_200,
            realtime_ns: 0,
            instance: String::new(),
        };
        let found = offset_from(9_000_000, &stamp, 9_000_300);
        assert_eq!(found.offset_ns, -8_999_000);
        assert_eq!(to_coordinator_ns(1_100, found), 9_000_100);
        assert_eq!(to_agent_ns(9_000_100, found), 1_100);
    }
}
