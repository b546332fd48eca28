//! What is wrong with a table or a trace.

use std::io;
use std::path::PathBuf;

use polars::prelude::PolarsError;
use trace::rows::RowError;

/// Why a table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A file is missing or cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder that holds none of a trace's files.
    #[error("{folder}: holds no trace (manifest.json is missing){hint}", folder = folder.display())]
    NoTrace {
        /// The folder that the error is about.
        folder: PathBuf,
        /// What it is instead, and what to do; "" = not known.
        hint: String,
    },
    /// Not Parquet, or cut off.
    #[error("{path}: {source}", path = path.display())]
    Parquet {
        /// The file that the error is about.
        path: PathBuf,
        /// The Parquet library's error.
        source: Box<PolarsError>,
    },
    /// The table lacks a column.
    #[error("{path}: column `{column}` is missing; it has: {found}", path = path.display())]
    MissingColumn {
        /// The file that the error is about.
        path: PathBuf,
        /// Column.
        column: &'static str,
        /// Columns that are there.
        found: String,
    },
    /// A column has another type.
    #[error("{path}: column `{column}` has type {found}, expected {expected}", path = path.display())]
    Type {
        /// The file that the error is about.
        path: PathBuf,
        /// Column.
        column: &'static str,
        /// Type that is there.
        found: String,
        /// Type that should be there.
        expected: &'static str,
    },
    /// There is no memory for its rows.
    #[error("{path}: its {rows} rows take {bytes} bytes of memory at least, and the machine has {memory_bytes}", path = path.display())]
    TooLarge {
        /// The file that the error is about.
        path: PathBuf,
        /// Rows that it says it has.
        rows: usize,
        /// What they take.
        bytes: u64,
        /// What they may take.
        memory_bytes: u64,
    },
    /// A cell has no meaning.
    #[error("{path}: {source}", path = path.display())]
    Cell {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with a row.
        source: RowError,
    },
    /// The manifest cannot be understood.
    #[error("{path}: {reason}", path = path.display())]
    Manifest {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with it, as a clause.
        reason: String,
    },
}
