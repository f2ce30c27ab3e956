//! A PostgreSQL connection that executes one query at a time and has a timeout for each query.
//! Without the timeout, a query would wait forever if the server hangs or the network drops
//! packets, because the connection stays open.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// Timeout of a query. A query transfers at most 4 MiB of a bundle.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of the query that checks the connection.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Failure of a query or connection.
#[derive(Debug)]
pub(super) enum ConnectionError {
    /// Error from the server or the client library.
    Database(tokio_postgres::Error),
    /// The server did not answer within this time.
    TimedOut(Duration),
    /// The asynchronous runtime could not be started.
    Runtime(std::io::Error),
}

impl From<tokio_postgres::Error> for ConnectionError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl ConnectionError {
    /// Returns the error as one sentence.
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

/// Parameters of a query.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection. The asynchronous work of the connection runs only during a query, on the calling
/// thread.
pub(super) struct Connection {
    runtime: Runtime,
    client: Client,
    /// True if a query has timed out. The connection is then not usable, because the next response
    /// would belong to that query.
    is_out_of_sync: bool,
}

impl Connection {
    /// Opens a connection with `connect` and starts its driver task.
    ///
    /// # Errors
    /// `connect` failed or took longer than `timeout`.
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
            // The result of this task is ignored, because the client detects the end of the task.
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

    /// Returns true if the connection is lost. Sends a query as a check, because a server that is
    /// shutting down may not have closed the connection yet.
    pub(super) fn is_disconnected(&mut self) -> bool {
        self.client.is_closed()
            || self
                .run_query(CHECK_TIMEOUT, async |client| client.check_connection().await)
                .is_err()
    }

    /// Returns all rows of the response.
    pub(super) fn rows(
        &mut self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query(sql, values).await)
    }

    /// Returns the only row of the response.
    pub(super) fn row(&mut self, sql: &str, values: Values<'_>) -> Result<Row, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query_one(sql, values).await)
    }

    /// Returns the only row of the response; `None` if the response has no row.
    pub(super) fn row_if_any(
        &mut self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.query_opt(sql, values).await)
    }

    /// Executes a statement.
    pub(super) fn execute(&mut self, sql: &str, values: Values<'_>) -> Result<(), ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.execute(sql, values).await).map(drop)
    }

    /// Executes several statements in order.
    pub(super) fn execute_all(&mut self, sql: &str) -> Result<(), ConnectionError> {
        self.run_query(QUERY_TIMEOUT, async |client| client.batch_execute(sql).await)
    }

    /// Runs `work` in a transaction, and rolls the transaction back if `work` fails.
    ///
    /// # Errors
    /// Errors of `work` and of the connection.
    pub(super) fn transaction<T, E: From<ConnectionError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.execute_all("BEGIN")?;
        let done = work(self);
        match &done {
            Ok(_) => self.execute_all("COMMIT")?,
            // If the connection is lost, the server rolls back by itself.
            Err(_) => drop(self.execute_all("ROLLBACK")),
        }
        done
    }
}
