//! Why causes could not be told.

/// Why causes could not be told.
#[derive(Debug, thiserror::Error)]
pub enum CausalityError {
    /// A temporary file cannot be read or written.
    #[error("a temporary file in TMPDIR cannot be read or written: {0}")]
    Spill(#[from] std::io::Error),
    /// More events than ids.
    #[error("{count} events are more than the {limit} that a trace can number; merge fewer captures at a time")]
    TooManyEvents {
        /// Events.
        count: usize,
        /// Limit.
        limit: u32,
    },
}
