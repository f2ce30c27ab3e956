//! A connection to PostgreSQL, asked one thing at a time and for no longer than it may take: a server that hangs, or a
//! network that swallows what is sent, leaves a connection that is open and answers nothing.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// What is asked at a time, 4 MiB of a bundle at most, takes no longer.
const ANSWER: Duration = Duration::from_secs(60);
/// A question about nothing is answered within this time.
const NOTHING: Duration = Duration::from_secs(5);

/// What goes wrong.
#[derive(Debug)]
pub(super) enum LineError {
    /// What the server or the system said.
    Said(tokio_postgres::Error),
    /// Nothing, for so long.
    Silent(Duration),
    /// No runtime for the connection.
    System(std::io::Error),
}

impl From<tokio_postgres::Error> for LineError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Said(error)
    }
}

impl LineError {
    /// It in one sentence.
    pub(super) fn plain(&self) -> String {
        let error = match self {
            Self::Said(error) => error,
            Self::Silent(time) => return format!("it did not answer for {} s", time.as_secs()),
            Self::System(error) => return error.to_string(),
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
pub(super) struct Line {
    runtime: Runtime,
    client: Client,
    /// It was given up in the middle of a question: whatever comes next is the answer to that one.
    is_lost: bool,
}

impl Line {
    /// One that `connect` makes, with what has to be driven for it.
    ///
    /// # Errors
    /// What `connect` says, or no answer within `patience`.
    pub(super) fn open<C, D>(patience: Duration, connect: C) -> Result<Self, LineError>
    where
        C: Future<Output = Result<(Client, D), tokio_postgres::Error>>,
        D: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LineError::System)?;
        let client = runtime.block_on(async {
            let connected = tokio::time::timeout(patience, connect).await;
            let (client, driven) = connected.map_err(|_| LineError::Silent(patience))??;
            // Its end shows by the client.
            drop(tokio::spawn(driven));
            Ok::<_, LineError>(client)
        })?;
        Ok(Self { runtime, client, is_lost: false })
    }

    fn ask<T>(
        &mut self,
        patience: Duration,
        question: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, LineError> {
        if self.is_lost {
            return Err(LineError::Silent(ANSWER));
        }
        let client = &self.client;
        let answer =
            self.runtime.block_on(async { tokio::time::timeout(patience, question(client)).await });
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.is_lost = true;
                Err(LineError::Silent(patience))
            }
        }
    }

    /// Whether it leads nowhere any more. A server that says that it ends has not hung up yet, so it is asked.
    pub(super) fn is_gone(&mut self) -> bool {
        self.client.is_closed()
            || self.ask(NOTHING, async |client| client.check_connection().await).is_err()
    }

    /// The rows that answer it.
    pub(super) fn rows(&mut self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, LineError> {
        self.ask(ANSWER, async |client| client.query(sql, values).await)
    }

    /// The only row.
    pub(super) fn row(&mut self, sql: &str, values: Values<'_>) -> Result<Row, LineError> {
        self.ask(ANSWER, async |client| client.query_one(sql, values).await)
    }

    /// The only row, if there is one.
    pub(super) fn row_if_any(
        &mut self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, LineError> {
        self.ask(ANSWER, async |client| client.query_opt(sql, values).await)
    }

    /// Does it.
    pub(super) fn execute(&mut self, sql: &str, values: Values<'_>) -> Result<(), LineError> {
        self.ask(ANSWER, async |client| client.execute(sql, values).await).map(drop)
    }

    /// Does these, one after the other.
    pub(super) fn execute_all(&mut self, sql: &str) -> Result<(), LineError> {
        self.ask(ANSWER, async |client| client.batch_execute(sql).await)
    }

    /// Does all of `work` or nothing of it.
    ///
    /// # Errors
    /// What `work` fails with; what the line does.
    pub(super) fn at_once<T, E: From<LineError>>(
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
