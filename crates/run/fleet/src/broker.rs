//! The NATS server: the connection to it, and the streams and buckets that Plimsoll stores on it.
//!
//! - Key-value bucket `plimsoll-agents`: the card of each agent, which the agent writes every
//!   second. A card expires some seconds after the last write.
//! - Stream `plimsoll`, whose messages are stored for a day: `plimsoll.order.AGENT` contains signed
//!   plans, `plimsoll.told.RUN.AGENT` contains messages of agents, and `plimsoll.go.RUN.AGENT`
//!   contains messages of the coordinator.
//! - Object bucket `plimsoll-evidence-AGENT` of each agent: the object `RUN` is the host's bundle.
//!   It is stored until the coordinator has fetched it, at most for a day.
//! - Subject `plimsoll.clock.AGENT`: requests for the agent's clock.
//! - Subject `plimsoll.live.RUN.AGENT`: progress, not stored.
//!
//! Every name ends with the name of the agent, so that a server can restrict each agent to its own
//! subjects ([`crate::permissions`]). The coordinator creates the streams and buckets. Each user
//! has a separate inbox prefix, and each consumer is named after its agent.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, Stream};
use async_nats::jetstream::{Context, kv};
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::{ClientConfig, RootCertStore};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, jetstream};
use plimsoll_runner::error::RunnerError;
use rustls_native_certs::load_native_certs;
use serde::Serialize;

use crate::credential::Credential;
use crate::order::nonce;

/// Stream of orders and messages.
pub(crate) const STREAM: &str = "plimsoll";
/// Bucket of agent cards.
pub(crate) const CARDS: &str = "plimsoll-agents";
/// Time after the last write at which a card expires.
pub const CARD_TTL: Duration = Duration::from_secs(10);
/// Time for which the server stores messages and evidence.
const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Maximum size on the server of one bundle, and of all bundles of one agent.
pub(crate) const BUNDLE_BYTES_MAX: u64 = 128 << 20;
/// Maximum size of all messages on the server. The server drops the oldest messages first.
const STREAM_BYTES_MAX: i64 = 256 << 20;
/// Maximum size of a card; the server stores one card for each agent.
const CARD_BYTES_MAX: i32 = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the creation of the stream is retried if another process creates it at the same
/// moment.
const CREATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which an agent checks whether the streams exist.
const WAIT_INTERVAL: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for the server's response to a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Address and credentials of the server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Addresses `nats://host:port` or `tls://host:port`, separated by commas, without user or
    /// password.
    pub url: String,
    /// File with credentials, in the format of `nsc`.
    pub credentials: Option<PathBuf>,
    /// Seed of an nkey, or the file that contains it.
    pub nkey: Option<Credential>,
    /// Certificate authorities for the server's certificate; `None` to use those that this host
    /// trusts.
    pub authorities: Option<Credential>,
    /// Certificate of this host or coordinator and its key, if the server requires a client
    /// certificate.
    pub certificate: Option<(Credential, Credential)>,
    /// Names of the fleet's hosts; empty if they are not known. If a run selects no agents, it
    /// requires all of these hosts.
    pub hosts: Vec<String>,
    /// Names of hosts that runs must not use.
    pub without: Vec<String>,
}

/// Role of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role<'a> {
    Agent(&'a str),
    /// The coordinator, which starts runs.
    Coordinator,
}

impl Role<'_> {
    /// Prefix of the subjects for responses.
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

/// A connection to the server, with Plimsoll's stream and the bucket of cards.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) stream: Stream,
    pub(crate) agents: kv::Store,
    /// Address of the server, for messages.
    pub(crate) url: String,
    /// Random prefix of message ids. Without this prefix, an agent could guess the message ids of
    /// other agents. The server would then discard their messages as duplicates.
    salt: String,
}

/// Part of the server that is still missing while an agent waits to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingPart {
    Server,
    /// The streams and buckets, which the coordinator has not created yet.
    Storage,
    /// JetStream: the server runs without it, or does not permit this agent to use it.
    JetStream,
}

/// Returns true if the server cannot be reached at the moment, or its name cannot be resolved.
fn is_unreachable(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::Dns | ConnectErrorKind::TimedOut => true,
        ConnectErrorKind::Io => {
            let source = std::error::Error::source(error);
            let io = source.and_then(|source| source.downcast_ref::<io::Error>());
            io.is_some_and(|io| {
                use io::ErrorKind as Kind;
                matches!(
                    io.kind(),
                    Kind::ConnectionRefused
                        | Kind::HostUnreachable
                        | Kind::NetworkUnreachable
                        | Kind::NetworkDown
                        | Kind::TimedOut
                )
            })
        }
        _ => false,
    }
}

impl Broker {
    /// Connects. The coordinator creates missing streams and buckets. An agent that has no
    /// permission to create them waits for the coordinator. An agent also waits for a server that
    /// it cannot reach, because the agent may start before its network or the server. Once a
    /// second, `is_waiting` is called with the missing part and the error, and returns false to
    /// give up.
    pub(crate) async fn connect(
        server: &Server,
        role: Role<'_>,
        is_waiting: &mut dyn FnMut(MissingPart, &str) -> bool,
    ) -> Result<Self, RunnerError> {
        let urls: Vec<&str> = server.url.split(',').map(str::trim).collect();
        let is_agent = matches!(role, Role::Agent(_));
        let client = loop {
            let options =
                connect_options(server)?.name(role.client_name()).custom_inbox_prefix(role.inbox());
            let error = match options.connect(&urls[..]).await {
                Ok(client) => break client,
                Err(error) => error,
            };
            let waits = is_agent && is_unreachable(&error);
            if !waits || !is_waiting(MissingPart::Server, &error.to_string()) {
                let says = format!("cannot connect to {}: {error}", server.url);
                return Err(RunnerError::environment(says).hint(
                    "check that nats-server runs at this address and accepts connections from this \
                     host",
                ));
            }
            tokio::time::sleep(WAIT_INTERVAL).await;
        };
        let jetstream = jetstream::new(client.clone());
        let salt = nonce()?;
        let began = Instant::now();
        let mut may_create = true;
        loop {
            let opened = match role {
                Role::Agent(_) => open_storage(&jetstream).await,
                Role::Coordinator => Err(String::new()),
            };
            let opened = match opened {
                Err(_) if may_create => match create_storage(&jetstream).await {
                    Ok(()) => open_storage(&jetstream).await,
                    // An agent may be permitted to open the streams, but not to create them.
                    Err(error) => open_storage(&jetstream).await.map_err(|opening| match role {
                        Role::Agent(_) => opening,
                        Role::Coordinator => error,
                    }),
                },
                opened => opened,
            };
            // If an agent is not allowed to create the streams, the server does not respond to its
            // request, and the timeout takes seconds.
            may_create = !is_agent;
            let error = match opened {
                Ok((stream, agents)) => {
                    let url = server.url.clone();
                    return Ok(Self { client, jetstream, stream, agents, url, salt });
                }
                Err(error) => error,
            };
            // If two processes create the stream at the same moment, the server may reject one
            // request.
            let missing = missing_part(&error);
            let says = match missing {
                MissingPart::JetStream => format!("{error}; {}", storage_hint(&error)),
                _ => error.clone(),
            };
            let waits = is_agent && is_waiting(missing, &says);
            if began.elapsed() > CREATE_TIMEOUT && !waits {
                let says = format!("cannot use JetStream on {}: {error}", server.url);
                let error = RunnerError::environment(says).hint(storage_hint(&error));
                return Err(error);
            }
            tokio::time::sleep(if waits { WAIT_INTERVAL } else { RETRY_INTERVAL }).await;
        }
    }

    /// Returns the error for a failed request to the server.
    pub(crate) fn error(&self, failed: &str, error: &dyn std::fmt::Display) -> RunnerError {
        RunnerError::environment(format!("cannot {failed} ({}): {error}", self.url))
            .hint("check that nats-server runs at this address and responds")
    }

    /// Opens the bucket for an agent's evidence.
    pub(crate) async fn evidence_store(&self, agent: &str) -> Result<ObjectStore, String> {
        let store = self.jetstream.get_object_store(bucket(agent)).await;
        store.map_err(|error| error.to_string())
    }

    /// Creates the bucket for an agent's evidence, unless it exists.
    pub(crate) async fn create_evidence_store(&self, agent: &str) -> Result<(), String> {
        if self.evidence_store(agent).await.is_ok() {
            return Ok(());
        }
        let config = |max_bytes: i64| object_store::Config {
            bucket: bucket(agent),
            max_age: RETENTION,
            max_bytes,
            ..object_store::Config::default()
        };
        let limit = i64::try_from(BUNDLE_BYTES_MAX).unwrap_or(i64::MAX);
        let made = match self.jetstream.create_object_store(config(limit)).await {
            Ok(made) => Ok(made),
            // The server reserves the maximum size of every bucket, and this fails if it has too
            // little space.
            Err(_) => self.jetstream.create_object_store(config(0)).await,
        };
        made.map(drop).map_err(|error| error.to_string())
    }

    /// Stores a message in the stream. The server discards a message whose id it has already
    /// stored.
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

    /// Returns true if the server currently responds to a request about the stream.
    pub(crate) async fn is_answering(&self) -> bool {
        let request = self.client.request(format!("$JS.API.STREAM.INFO.{STREAM}"), "".into());
        matches!(tokio::time::timeout(CHECK_TIMEOUT, request).await, Ok(Ok(_)))
    }

    /// Returns how often the connection was established. Subscriptions must be renewed on each new
    /// connection. Otherwise the client would notice only after two heartbeats (a minute) that a
    /// restarted server has lost them.
    pub(crate) fn connections(&self) -> u64 {
        self.client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Subscribes an agent to its orders. Its consumer is created if it is missing.
    pub(crate) async fn follow_orders(&self, agent: &str) -> Result<pull::Stream, String> {
        let durable = format!("agent-{agent}");
        let config = pull::Config {
            durable_name: Some(durable.clone()),
            filter_subject: format!("plimsoll.order.{agent}"),
            ack_policy: AckPolicy::Explicit,
            ..pull::Config::default()
        };
        let consumer = self.stream.get_or_create_consumer(&durable, config).await;
        let consumer = consumer.map_err(|error| error.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }

    /// Creates the stream and the bucket for cards again, if the server has lost them.
    pub(crate) async fn restore(&self) -> Result<(), String> {
        create_storage(&self.jetstream).await
    }

    /// Subscribes an agent to the coordinator's messages after `sequence`. The consumer's name
    /// contains the agent's name, because the server permits the agent no other consumer name.
    pub(crate) async fn follow_own(
        &self,
        agent: &str,
        subject: String,
        sequence: u64,
    ) -> Result<pull::Stream, RunnerError> {
        let name = format!("go-{agent}");
        // A consumer of an earlier run, or one that was created before an outage, would start at
        // another message.
        let _ = self.stream.delete_consumer(&name).await;
        let config = pull::Config {
            durable_name: Some(name),
            filter_subject: subject,
            ack_policy: AckPolicy::None,
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            inactive_threshold: RETENTION,
            ..pull::Config::default()
        };
        let failed = |error: &dyn std::fmt::Display| self.error("read messages", error);
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(&error))?;
        consumer.messages().await.map_err(|error| failed(&error))
    }

    /// Subscribes to a subject of the stream, starting with the first stored message.
    pub(crate) async fn follow(
        &self,
        subject: String,
    ) -> Result<jetstream::consumer::pull::Ordered, RunnerError> {
        self.follow_after(subject, 0).await
    }

    /// Subscribes to a subject of the stream, starting after the message with a sequence number.
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
        let failed = |error: &dyn std::fmt::Display| self.error("read messages", error);
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(&error))?;
        consumer.messages().await.map_err(|error| failed(&error))
    }
}

/// Returns the name of the bucket for an agent's evidence.
pub(crate) fn bucket(agent: &str) -> String {
    format!("plimsoll-evidence-{agent}")
}

/// Returns the part that is missing after a failed request to open the streams.
fn missing_part(error: &str) -> MissingPart {
    // Text of nats-server (server/errors.json, code 10059). The server does not respond at all if
    // it does not permit the request.
    match error.contains("stream not found") {
        true => MissingPart::Storage,
        false => MissingPart::JetStream,
    }
}

/// Returns the hint for a failed request to create or open the streams.
fn storage_hint(error: &str) -> &'static str {
    // Texts of nats-server (server/errors.json, codes 10023, 10028 and 10047) and of the client.
    if error.contains("insufficient") || error.contains("resource limits exceeded") {
        "give JetStream more space on the server (`max_file_store`, at least 1 GiB), or remove \
         streams that are no longer used"
    } else if error.contains("timed out") {
        "check that the server is not overloaded, that a majority of its cluster runs, and that \
         its permissions allow this user to use JetStream (an agent needs the key of its own name)"
    } else {
        "start the server with JetStream (`nats-server -js`), and allow this user to use it"
    }
}

/// Creates the stream and the bucket for cards.
async fn create_storage(jetstream: &Context) -> Result<(), String> {
    let stream = jetstream.get_or_create_stream(stream::Config {
        name: STREAM.to_owned(),
        subjects: ["order", "told", "go"].map(|part| format!("plimsoll.{part}.>")).to_vec(),
        max_age: RETENTION,
        max_bytes: STREAM_BYTES_MAX,
        ..stream::Config::default()
    });
    stream.await.map_err(|error| format!("the stream `{STREAM}`: {error}"))?;
    // This differs from the client library's function in two ways. It avoids a request to which
    // servers before 2.10 respond differently. It disables roll-ups, with which an agent could
    // delete the cards of all other agents.
    let cards = jetstream.get_or_create_stream(stream::Config {
        name: format!("KV_{CARDS}"),
        subjects: vec![format!("$KV.{CARDS}.>")],
        max_messages_per_subject: 1,
        max_age: CARD_TTL,
        max_message_size: CARD_BYTES_MAX,
        discard: stream::DiscardPolicy::New,
        deny_delete: true,
        allow_direct: true,
        ..stream::Config::default()
    });
    cards.await.map(drop).map_err(|error| format!("the bucket `{CARDS}`: {error}"))
}

/// Opens the stream and the bucket for cards.
async fn open_storage(jetstream: &Context) -> Result<(Stream, kv::Store), String> {
    let stream = jetstream.get_stream(STREAM).await;
    let stream = stream.map_err(|error| format!("the stream `{STREAM}`: {error}"))?;
    let agents = jetstream.get_key_value(CARDS).await;
    Ok((stream, agents.map_err(|error| format!("the bucket `{CARDS}`: {error}"))?))
}

fn connect_options(server: &Server) -> Result<ConnectOptions, RunnerError> {
    // An address with a user or password is rejected. Messages show the address, and the client
    // ignores its user and password if options are given.
    if server.url.contains('@') {
        let error = "the NATS server address contains a user or password";
        return Err(RunnerError::usage(error).hint(
            "put the address and `creds` or `nkey` into a file, and pass this file: --fleet \
             FILE.toml",
        ));
    }
    let mut options =
        ConnectOptions::new().connection_timeout(CONNECT_TIMEOUT).max_reconnects(None);
    if let Some(path) = &server.credentials {
        // The file is small and is read only once, so blocking is acceptable.
        let file = Credential::file(path);
        options = options
            .credentials(&file.read(true)?)
            .map_err(|error| RunnerError::usage(format!("cannot read {}: {error}", file.name())))?;
    }
    if let Some(nkey) = &server.nkey {
        let seed = nkey.read(true)?.trim().to_owned();
        nkeys::KeyPair::from_seed(&seed).map_err(|error| {
            let says =
                format!("cannot use {}: it is not the seed of an nkey: {error}", nkey.name());
            RunnerError::usage(says).hint("check that the seed is complete")
        })?;
        options = options.nkey(seed);
    }
    if server.authorities.is_some() || server.certificate.is_some() {
        options = options.tls_client_config(tls_config(server)?).require_tls(true);
    }
    Ok(options)
}

/// Returns the accepted certificate authorities, and the certificate of this host or coordinator.
fn tls_config(server: &Server) -> Result<ClientConfig, RunnerError> {
    let wrong = |of: &Credential, error: &dyn std::fmt::Display| {
        RunnerError::usage(format!("cannot use {}: {error}", of.name()))
            .hint("create the files of the fleet again with `plimsoll fleet init`")
    };
    let chain = |of: &Credential| -> Result<Vec<CertificateDer<'static>>, RunnerError> {
        let text = of.read(false)?;
        let all = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
        all.map_err(|error| wrong(of, &error))
    };
    let mut roots = RootCertStore::empty();
    match &server.authorities {
        Some(of) => chain(of)?
            .into_iter()
            .try_for_each(|one| roots.add(one).map_err(|error| wrong(of, &error)))?,
        None => drop(roots.add_parsable_certificates(load_native_certs().certs)),
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let Some((certificate, key)) = &server.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let text = key.read(true)?;
    let secret =
        PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| wrong(key, &error))?;
    builder
        .with_client_auth_cert(chain(certificate)?, secret)
        .map_err(|error| wrong(certificate, &error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_hint_names_what_the_server_lacks() {
        let of = |error: &str| storage_hint(&format!("the stream `plimsoll`: {error}"));
        let full = of("insufficient storage resources available, code 10047, error 503");
        assert!(full.contains("max_file_store"), "{full}");
        assert!(of("jetstream request timed out").contains("overloaded"));
        assert!(of("jetstream not enabled, code 10076").contains("nats-server -js"));
        let missing = |error: &str| missing_part(&format!("the stream `plimsoll`: {error}"));
        assert_eq!(missing("stream not found (code 404, error code 10059)"), MissingPart::Storage);
        assert_eq!(missing("jetstream request timed out"), MissingPart::JetStream);
        assert_eq!(missing("jetstream not enabled, code 10076"), MissingPart::JetStream);
    }

    #[test]
    fn a_password_in_the_address_is_rejected_and_not_displayed() {
        let of = |url: &str| connect_options(&Server { url: url.to_owned(), ..Server::default() });
        let error = of("nats://one:4222,nats://user:secret@two").unwrap_err().to_string();
        assert!(error.contains("contains a user or password"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert!(of("nats://one:4222,tls://two").is_ok());
    }

    #[test]
    fn a_wrong_seed_is_rejected_and_not_displayed() {
        let seed = nkeys::KeyPair::new_user().seed().unwrap();
        let of = |seed: &str| {
            let nkey = Some(Credential::text(seed.to_owned()));
            connect_options(&Server { nkey, ..Server::default() }).map(drop)
        };
        of(&seed).unwrap();
        let (first, rest) = seed.split_at(40);
        let wrong = format!("{first}{}", rest.chars().rev().collect::<String>());
        let error = of(&wrong).unwrap_err().to_string();
        assert!(error.contains("not the seed of an nkey") && !error.contains(first), "{error}");
    }
}
