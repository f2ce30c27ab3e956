//! Subscription to the orders for an agent. It is renewed if the connection or the server's storage
//! was lost.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use futures_util::StreamExt;
use plimsoll_runner::error::RunnerError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{POLL_INTERVAL, RETRY_INTERVAL};
use crate::Task;
use crate::broker::Broker;

/// Interval between attempts to renew the subscription.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);

/// Message of the subscription.
pub(super) enum Incoming {
    Order(Message),
    /// Line for the agent's log.
    Line(String),
}

/// Orders for an agent, received by a separate task.
pub(super) struct Orders {
    incoming: UnboundedReceiver<Incoming>,
    _task: Task,
}

impl Orders {
    /// Subscribes to an agent's orders.
    ///
    /// # Errors
    /// The server rejects the subscription.
    pub(super) async fn subscribe(broker: &Broker, agent: &str) -> Result<Self, RunnerError> {
        let connections = broker.connections();
        let stream = broker.follow_orders(agent).await.map_err(|error| {
            RunnerError::environment(format!(
                "cannot receive run orders from {}: {error}",
                broker.url
            ))
        })?;
        let (sender, incoming) = unbounded_channel();
        let forwarding = forward(broker.clone(), agent.to_owned(), stream, connections, sender);
        Ok(Self { incoming, _task: Task(tokio::spawn(forwarding)) })
    }

    /// Waits for the next message. `None` if the task has ended, which does not happen before it is
    /// dropped.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }
}

/// Forwards orders until the receiver is dropped.
async fn forward(
    broker: Broker,
    agent: String,
    mut stream: pull::Stream,
    mut connections: u64,
    sender: UnboundedSender<Incoming>,
) {
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    loop {
        let failure = tokio::select! {
            message = stream.next() => match message {
                Some(Ok(message)) => match sender.send(Incoming::Order(message)) {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                Some(Err(error)) => Some(error.to_string()),
                None => Some("the server closed the subscription".to_owned()),
            },
            _ = poll.tick() => match broker.connections() == connections {
                true => continue,
                false => None,
            },
        };
        if failure.is_some() {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        (stream, connections) = renew(&broker, &agent, failure, &sender).await;
    }
}

/// Subscribes again, after a failure or on a new connection. A server may have lost its storage, so
/// the stream and the consumer are created again if they are missing. Returns the subscription and
/// the number of the connection to which it belongs.
async fn renew(
    broker: &Broker,
    agent: &str,
    failure: Option<String>,
    sender: &UnboundedSender<Incoming>,
) -> (pull::Stream, u64) {
    // If the agent has stopped, the line is lost.
    let log = |text: String| drop(sender.send(Incoming::Line(text)));
    let is_lost = |error: &str| log(format!("agent {agent} receives no plans: {error}"));
    let mut is_logged = failure.as_deref().map(is_lost).is_some();
    let mut created_on = None;
    loop {
        let connections = broker.connections();
        match broker.follow_orders(agent).await {
            Ok(stream) => {
                if is_logged {
                    log(format!("agent {agent} receives plans again"));
                }
                return (stream, connections);
            }
            Err(error) if !is_logged => {
                is_lost(&error);
                is_logged = true;
            }
            Err(_) => {}
        }
        // If the agent is not allowed to create the stream, the server does not respond, and the
        // agent waits for a coordinator, which creates it.
        if created_on.replace(connections) != Some(connections) && broker.restore().await.is_ok() {
            continue;
        }
        tokio::time::sleep(RENEW_INTERVAL).await;
    }
}
