//! Start times that were recorded earlier.

use std::sync::Arc;

/// Recorded start times in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    starts_ns: Arc<[u64]>,
}

/// Reason why recorded start times are not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordedError {
    /// A line does not contain a number of nanoseconds.
    #[error("line {line} of the recording is not a whole number of nanoseconds: {text:?}")]
    NotANumber {
        /// Number of the line; the first line is 1.
        line: usize,
        /// First 40 characters of the line.
        text: String,
    },
    /// A start time is earlier than the start time in front of it.
    #[error(
        "start time {line} of the recording is earlier than the previous start time: sort the \
         recording"
    )]
    OutOfOrder {
        /// Position of this start time; the first start time has the number 1.
        line: usize,
    },
    #[error("the recording contains no start times")]
    Empty,
}

impl Recording {
    /// Creates a recording from start times in nanoseconds since the start of the recording. The
    /// times must be in ascending order. Two times may be equal.
    ///
    /// # Errors
    /// [`RecordedError::OutOfOrder`] if a time is too early. [`RecordedError::Empty`] if there are
    /// no times.
    pub fn new(starts_ns: Vec<u64>) -> Result<Self, RecordedError> {
        if let Some(i) = starts_ns.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(RecordedError::OutOfOrder { line: i + 2 });
        }
        if starts_ns.is_empty() {
            return Err(RecordedError::Empty);
        }
        Ok(Self { starts_ns: starts_ns.into() })
    }

    /// Parses a text with one start time on each line. Empty lines and lines that start with `#`
    /// are skipped.
    ///
    /// # Errors
    /// Any [`RecordedError`].
    pub fn parse(text: &str) -> Result<Self, RecordedError> {
        let mut starts = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let start = line.parse().map_err(|_| RecordedError::NotANumber {
                line: i + 1,
                text: line.chars().take(40).collect(),
            })?;
            starts.push(start);
        }
        Self::new(starts)
    }

    /// Returns the start time with index `i`.
    #[must_use]
    #[inline]
    pub fn get(&self, i: u64) -> Option<u64> {
        self.starts_ns.get(usize::try_from(i).ok()?).copied()
    }
}
