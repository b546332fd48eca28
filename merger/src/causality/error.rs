//! Why causes could not be told.

use crate::history::HistoryError;

/// Why causes could not be told.
#[derive(Debug, thiserror::Error)]
pub enum CausalityError {
    /// The job history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// More events than ids.
    #[error("{count} events are more than the {limit} that a trace can number; merge fewer captures at a time")]
    TooManyEvents {
        /// Events.
        count: usize,
        /// Limit.
        limit: u32,
    },
}
