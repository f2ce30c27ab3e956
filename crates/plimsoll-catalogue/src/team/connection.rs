//! A connection to PostgreSQL, asked one thing at a time and for no longer than it may take: a server that hangs, or a
//! network that swallows what is sent, leaves a connection that is open and answers nothing.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// What is asked at a time, 4 MiB of a bundle at most, takes no longer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// A question about nothing is answered within this time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes wrong.
#[derive(Debug)]
pub(super) enum ConnectionError {
    /// What the server or the system said.
    Database(tokio_postgres::Error),
    /// Nothing, for so long.
    TimedOut(Duration),
    /// No runtime for the connection.
    Runtime(std::io::Error),
}

impl From<tokio_postgres::Error> for ConnectionError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl ConnectionError {
    /// It in one sentence.
    pub(super) fn message(&self) -> String {
        let error = match self {
            Self::Database(error) => error,
            Self::TimedOut(time) => return format!("no answer for {} s", time.as_secs()),
            Self::Runtime(error) => return error.to_string(),
        };
        if let Some(said) = error.as_db_error() {
            return said.message().to_owned();
        }
        let cause = std::error::Error::source(error).map(ToString::to_string);
        cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
    }
}

/// What a question is filled in with.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection. What belongs to it is done while it is asked, on the thread that asks.
pub(super) struct Connection {
    runtime: Runtime,
    client: Client,
    /// It was given up in the middle of a question: whatever comes next is the answer to that one.
    is_out_of_sync: bool,
}

impl Connection {
    /// One that `connect` makes, with what has to be driven for it.
    ///
    /// # Errors
    /// What `connect` says, or no answer within `timeout`.
    pub(super) fn open<C, D>(timeout: Duration, connect: C) -> Result<Self, ConnectionError>
    where
        C: Future<Output = Result<(Client, D), tokio_postgres::Error>>,
        D: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConnectionError::Runtime)?;
        let client = runtime.block_on(async {
            let connected = tokio::time::timeout(timeout, connect).await;
            let (client, driven) = connected.map_err(|_| ConnectionError::TimedOut(timeout))??;
            // Its end shows by the client.
            drop(tokio::spawn(driven));
            Ok::<_, ConnectionError>(client)
        })?;
        Ok(Self { runtime, client, is_out_of_sync: false })
    }

    fn run_query<T>(
        &mut self,
        timeout: Duration,
        query: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, ConnectionError> {
        if self.is_out_of_sync {
            return Err(ConnectionError::TimedOut(QUERY_TIMEOUT));
        }
        let client = &self.client;
        let answer =
            self.runtime.block_on(async { tokio::time::timeout(timeout, query(client)).await });
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.is_out_of_sync = true;
                Err(ConnectionError::TimedOut(timeout))
            }
        }
    }

    /// Whether it leads nowhere any more. A server that says that it ends has not hung up yet, so it is asked.
    pub(super) fn is_disconnected(&mut self) -> bool {
        self.client.is_closed()
            || self
                .run_query(CHECK_TIMEOUT, async |client| client.check_connection().await)
                .is_err()
    }

    /// The rows that answer it.
    pub(super) fn rows(
        &mut self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query(sql, values).await)
    }

    /// The only row.
    pub(super) fn row(&mut self, sql: &str, values: Values<'_>) -> Result<Row, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query_one(sql, values).await)
    }

    /// The only row, if there is one.
    pub(super) fn row_if_any(
        &mut self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query_opt(sql, values).await)
    }

    /// Does it.
    pub(super) fn execute(&mut self, sql: &str, values: Values<'_>) -> Result<(), ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.execute(sql, values).await).map(drop)
    }

    /// Does these, one after the other.
    pub(super) fn execute_all(&mut self, sql: &str) -> Result<(), ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.batch_execute(sql).await)
    }

    /// Does all of `work` or nothing of it.
    ///
    /// # Errors
    /// What `work` fails with; what the line does.
    pub(super) fn transaction<T, E: From<ConnectionError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.execute_all("BEGIN")?;
        let done = work(self);
        match &done {
            Ok(_) => self.execute_all("COMMIT")?,
            // The server does it by itself where the connection is gone.
            Err(_) => drop(self.execute_all("ROLLBACK")),
        }
        done
    }
}
