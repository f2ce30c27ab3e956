//! The NATS server: how it is reached, and what Plimsoll keeps there.
//!
//! | what | name | holds |
//! |---|---|---|
//! | bucket of keys | `plimsoll-agents` | each agent's card, written anew each second; gone some seconds after its last |
//! | stream | `plimsoll` | `plimsoll.order.AGENT` signed plans, `plimsoll.told.RUN.AGENT` what agents tell, `plimsoll.go.RUN.AGENT` when phases begin; for a day |
//! | bucket of objects for each agent | `plimsoll-evidence-AGENT` | `RUN`: a host's bundle on its way; for a day |
//!
//! Every name ends in the agent's, so that a server can allow each agent its own and nothing else ([`crate::permissions`]):
//! who coordinates makes streams and buckets, answers come to a prefix of one's own, and what follows a subject has the
//! agent's name.
//! | subject | `plimsoll.clock.AGENT` | answers with the agent's clock |
//! | subject | `plimsoll.live.RUN.AGENT` | progress, kept nowhere |

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, Stream};
use async_nats::jetstream::{Context, kv};
use async_nats::{Client, ConnectOptions, jetstream};
use plimsoll_runner::error::RunnerError;
use serde::Serialize;

use crate::order::nonce;

/// The stream of orders and of what is told.
pub(crate) const STREAM: &str = "plimsoll";
/// The bucket of cards.
pub(crate) const CARDS: &str = "plimsoll-agents";
/// How long a card stays after it was written.
pub const CARD_TTL: Duration = Duration::from_secs(10);
/// What is on its way stays for so long.
const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// How long a server is waited for that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What others make at the same moment is there after this time.
const CREATE_TIMEOUT: Duration = Duration::from_secs(2);
/// It is tried this often.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// An answer to a question that asks for nothing takes no longer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// How the server is reached.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Its addresses, `nats://host:port` or `tls://host:port`, with commas between several; without a user or password.
    pub url: String,
    /// A file with credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// Authorities that the server's certificate is checked against, beside the host's own.
    pub authorities: Option<PathBuf>,
    /// This side's certificate and its key, where the server asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Who connects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role<'a> {
    /// The agent of this name.
    Agent(&'a str),
    /// Who runs plans.
    Coordinator,
}

impl Role<'_> {
    /// What its answers come to.
    pub(crate) fn inbox(self) -> String {
        match self {
            Self::Agent(name) => format!("_INBOX.agent-{name}"),
            Self::Coordinator => "_INBOX.coordinator".to_owned(),
        }
    }

    fn client_name(self) -> String {
        match self {
            Self::Agent(name) => format!("plimsoll agent {name}"),
            Self::Coordinator => "plimsoll".to_owned(),
        }
    }
}

/// A connection, with what Plimsoll keeps on the server.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) stream: Stream,
    pub(crate) agents: kv::Store,
    /// Stands before what identifies messages: who could guess that would have others' messages taken for repeated ones.
    salt: String,
}

impl Broker {
    /// Connects. Who coordinates makes what is not there yet; an agent waits for it, where it may not make it itself.
    pub(crate) async fn connect(server: &Server, role: Role<'_>) -> Result<Self, RunnerError> {
        let urls: Vec<&str> = server.url.split(',').map(str::trim).collect();
        let client = options(server)?
            .name(role.client_name())
            .custom_inbox_prefix(role.inbox())
            .connect(&urls[..])
            .await;
        let client = client.map_err(|error| {
            RunnerError::environment(format!("cannot connect to {}: {error}", server.url))
                .hint("check that nats-server runs there and accepts this host")
        })?;
        let jetstream = jetstream::new(client.clone());
        let salt = nonce()?;
        let began = Instant::now();
        loop {
            let opened = match role {
                Role::Agent(_) => open_storage(&jetstream).await,
                Role::Coordinator => Err(String::new()),
            };
            let opened = match opened {
                Ok(opened) => Ok(opened),
                Err(_) => match create_storage(&jetstream).await {
                    Ok(()) => open_storage(&jetstream).await,
                    Err(error) => Err(error),
                },
            };
            let error = match opened {
                Ok((stream, agents)) => {
                    return Ok(Self { client, jetstream, stream, agents, salt });
                }
                Err(error) => error,
            };
            // Who makes the stream at the same moment as another may be told that it is in its own way.
            let timeout = match role {
                Role::Coordinator => CREATE_TIMEOUT,
                Role::Agent(_) => CONNECT_TIMEOUT,
            };
            if began.elapsed() > timeout {
                let error = RunnerError::environment(format!("cannot use JetStream on {}: {error}", server.url)).hint(
                    "start the server with JetStream (`nats-server -js`), and allow this user to use it",
                );
                return Err(match role {
                    Role::Agent(_) => error.hint(
                        "if agents may not create streams, run `plimsoll fleet status` once as the coordinator",
                    ),
                    Role::Coordinator => error,
                });
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Where an agent's evidence lies on its way.
    pub(crate) async fn evidence_store(&self, agent: &str) -> Result<ObjectStore, String> {
        let store = self.jetstream.get_object_store(bucket(agent)).await;
        store.map_err(|error| error.to_string())
    }

    /// Makes the place where an agent's evidence lies on its way.
    pub(crate) async fn create_evidence_store(&self, agent: &str) -> Result<(), String> {
        if self.evidence_store(agent).await.is_ok() {
            return Ok(());
        }
        let config = object_store::Config {
            bucket: bucket(agent),
            max_age: RETENTION,
            ..object_store::Config::default()
        };
        let made = self.jetstream.create_object_store(config).await;
        made.map(drop).map_err(|error| error.to_string())
    }

    /// Leaves a message in the stream. One with an identity that is there already is not left twice.
    pub(crate) async fn publish(
        &self,
        subject: String,
        message: &impl Serialize,
        id: &str,
    ) -> Result<(), String> {
        let text = serde_json::to_vec(message).map_err(|error| error.to_string())?;
        let message = jetstream::message::PublishMessage::build().payload(text.into());
        let id = format!("{}-{id}", self.salt);
        let sent = self.jetstream.send_publish(subject, message.message_id(&id));
        sent.await.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Whether the server answers now: there and back, through what keeps the messages.
    pub(crate) async fn is_answering(&self) -> bool {
        let request = self.client.request(format!("$JS.API.STREAM.INFO.{STREAM}"), "".into());
        matches!(tokio::time::timeout(CHECK_TIMEOUT, request).await, Ok(Ok(_)))
    }

    /// How often the connection was made. Who follows something follows it anew on a new one: by itself the client
    /// notices only after two heartbeats, a minute, that a server that was started again does not know it any more.
    pub(crate) fn connections(&self) -> u64 {
        self.client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// What an agent is told of its run after a message: by a consumer of its own name, as the server allows it no other.
    pub(crate) async fn follow_own(
        &self,
        agent: &str,
        subject: String,
        sequence: u64,
    ) -> Result<pull::Stream, RunnerError> {
        let name = format!("go-{agent}");
        // Of an earlier run, or from before an outage: it began at another message.
        let _ = self.stream.delete_consumer(&name).await;
        let config = pull::Config {
            durable_name: Some(name),
            filter_subject: subject,
            ack_policy: AckPolicy::None,
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            inactive_threshold: RETENTION,
            ..pull::Config::default()
        };
        let failed = |error: String| {
            RunnerError::environment(format!("cannot read messages from the NATS server: {error}"))
        };
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(error.to_string()))?;
        consumer.messages().await.map_err(|error| failed(error.to_string()))
    }

    /// The messages of a subject in the stream, from the first on.
    pub(crate) async fn follow(
        &self,
        subject: String,
    ) -> Result<jetstream::consumer::pull::Ordered, RunnerError> {
        self.follow_after(subject, 0).await
    }

    /// The messages of a subject that come after one in the stream.
    pub(crate) async fn follow_after(
        &self,
        subject: String,
        sequence: u64,
    ) -> Result<jetstream::consumer::pull::Ordered, RunnerError> {
        let config = jetstream::consumer::pull::OrderedConfig {
            filter_subject: subject,
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            ..Default::default()
        };
        let failed = |error: String| {
            RunnerError::environment(format!("cannot read messages from the NATS server: {error}"))
        };
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(error.to_string()))?;
        consumer.messages().await.map_err(|error| failed(error.to_string()))
    }
}

/// The bucket of an agent's evidence.
pub(crate) fn bucket(agent: &str) -> String {
    format!("plimsoll-evidence-{agent}")
}

/// Makes the stream and the bucket of cards.
async fn create_storage(jetstream: &Context) -> Result<(), String> {
    let stream = jetstream.get_or_create_stream(stream::Config {
        name: STREAM.to_owned(),
        subjects: ["order", "told", "go"].map(|part| format!("plimsoll.{part}.>")).to_vec(),
        max_age: RETENTION,
        ..stream::Config::default()
    });
    stream.await.map_err(|error| format!("the stream `{STREAM}`: {error}"))?;
    // As the client's own call makes it, but for a question that servers before 2.10 answer in another form, and for
    // roll-ups: with one message an agent could remove the cards of all others.
    let cards = jetstream.get_or_create_stream(stream::Config {
        name: format!("KV_{CARDS}"),
        subjects: vec![format!("$KV.{CARDS}.>")],
        max_messages_per_subject: 1,
        max_age: CARD_TTL,
        discard: stream::DiscardPolicy::New,
        deny_delete: true,
        allow_direct: true,
        ..stream::Config::default()
    });
    cards.await.map(drop).map_err(|error| format!("the bucket `{CARDS}`: {error}"))
}

/// Opens them.
async fn open_storage(jetstream: &Context) -> Result<(Stream, kv::Store), String> {
    let stream = jetstream.get_stream(STREAM).await;
    let stream = stream.map_err(|error| format!("the stream `{STREAM}`: {error}"))?;
    let agents = jetstream.get_key_value(CARDS).await;
    Ok((stream, agents.map_err(|error| format!("the bucket `{CARDS}`: {error}"))?))
}

fn options(server: &Server) -> Result<ConnectOptions, RunnerError> {
    // The client leaves them out where there are options, and addresses are shown in messages.
    if server.url.contains('@') {
        let error = "the NATS server address contains a user or password";
        return Err(RunnerError::usage(error).hint("remove them, and pass --creds or --nkey"));
    }
    let mut options =
        ConnectOptions::new().connection_timeout(CONNECT_TIMEOUT).max_reconnects(None);
    let unreadable = |path: &PathBuf, error: &dyn std::fmt::Display| {
        RunnerError::usage(format!("cannot read {}: {error}", path.display()))
    };
    if let Some(path) = &server.credentials {
        // Small, and read once.
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        options = options.credentials(&text).map_err(|error| unreadable(path, &error))?;
    }
    if let Some(path) = &server.nkey {
        let seed = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        options = options.nkey(seed.trim().to_owned());
    }
    if let Some(path) = &server.authorities {
        options = options.add_root_certificates(path.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &server.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
        options = options.require_tls(true);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_password_in_the_address_is_refused_and_not_shown() {
        let of = |url: &str| options(&Server { url: url.to_owned(), ..Server::default() });
        let error = of("nats://one:4222,nats://user:secret@two").unwrap_err().to_string();
        assert!(error.contains("contains a user or password"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert!(of("nats://one:4222,tls://two").is_ok());
    }
}
