//! Damage of a Parquet file that the library does not bear: it takes memory by what a page says of itself, and the process ends where
//! there is none.

use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt as _;

use polars::prelude::{FileMetadata, PolarsError};
use polars_parquet::parquet::metadata::ColumnChunkMetadata;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::parquet::read::PageReader;

/// Refuses a file of which a page of a needed column says that it has more values than its row group has rows, or takes more bytes
/// than `memory_bytes`.
pub(crate) fn check(
    file: &File,
    metadata: &FileMetadata,
    needed: &[String],
    memory_bytes: u64,
) -> Result<(), PolarsError> {
    let length = file.metadata()?.len();
    for group in &metadata.row_groups {
        for column in needed.iter().filter_map(|name| group.columns_under_root_iter(name)).flatten() {
            check_column(read(file, column, length, memory_bytes)?, column, group.num_rows(), memory_bytes)?;
        }
    }
    Ok(())
}

/// The bytes of a column of a file of so many.
fn read(file: &File, column: &ColumnChunkMetadata, length: u64, memory_bytes: u64) -> Result<Vec<u8>, PolarsError> {
    let place = column.byte_range();
    if place.start > place.end || place.end > length {
        return Err(damaged("a column lies beyond its end"));
    }
    if place.end - place.start > memory_bytes {
        return Err(damaged("a column takes more memory than there is"));
    }
    let mut bytes = vec![0; (place.end - place.start) as usize];
    file.read_exact_at(&mut bytes, place.start)?;
    Ok(bytes)
}

fn check_column(
    bytes: Vec<u8>,
    column: &ColumnChunkMetadata,
    rows: usize,
    memory_bytes: u64,
) -> Result<(), PolarsError> {
    // Rows of tables have one value a column.
    if usize::try_from(column.num_values()) != Ok(rows) {
        return Err(damaged("a column has not as many values as its row group has rows"));
    }
    let mut left = rows;
    let mut reader = PageReader::new(Cursor::new(bytes.into()), column, Vec::new(), usize::MAX);
    while left > 0 {
        let page = reader.next().ok_or_else(|| damaged("a column has less values than its row group has rows"))?;
        let page = page.map_err(|source| PolarsError::ComputeError(source.to_string().into()))?;
        if let CompressedPage::Data(data) = page {
            if data.uncompressed_size() as u64 > memory_bytes {
                return Err(damaged("a page takes more memory than there is"));
            }
            let behind = left.checked_sub(data.num_values());
            left = behind.ok_or_else(|| damaged("a page has more values than its row group has rows"))?;
        }
    }
    Ok(())
}

fn damaged(what: &'static str) -> PolarsError {
    PolarsError::ComputeError(format!("the file is damaged: {what}").into())
}
