//! Damage of a Parquet file that the library does not bear: it takes memory by what a footer or a page says of itself, and the process
//! ends where there is none.

use std::fmt::Display;
use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt as _;

use polars::prelude::{FileMetadata, PolarsError};
use polars_parquet::parquet::metadata::ColumnChunkMetadata;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::parquet::read::{PageReader, deserialize_metadata};
use polars_parquet_format::FileMetaData;
use polars_parquet_format::thrift::protocol::{TCompactInputProtocol, TCompactOutputProtocol};

/// Length of a footer and the word behind it, which end a file.
const END_BYTES: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
/// What a footer is read within, in its own lengths: an entry of a list has a byte at least, and is counted as nine.
const READ_LENGTHS: usize = 9;

/// What the footer of a file says. It is read with care and written anew before the library reads it, for which a list has as many
/// entries as it says.
pub(crate) fn metadata(file: &File, memory_bytes: u64) -> Result<FileMetadata, PolarsError> {
    let before_end = file.metadata()?.len().checked_sub(END_BYTES).ok_or_else(|| damaged("it is too short"))?;
    let mut end = [0; END_BYTES as usize];
    file.read_exact_at(&mut end, before_end)?;
    let (length, magic) = end.split_at(4);
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | u64::from(*byte));
    if magic != MAGIC {
        return Err(damaged("it does not end as Parquet does"));
    }
    let begin = before_end.checked_sub(length).filter(|_| length <= memory_bytes / READ_LENGTHS as u64);
    let begin = begin.ok_or_else(|| damaged("its footer is longer than may be"))?;
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, begin)?;
    let mut input = TCompactInputProtocol::new(&footer[..], READ_LENGTHS * footer.len());
    let metadata = FileMetaData::read_from_in_protocol(&mut input).map_err(unreadable)?;
    let mut bytes = Vec::new();
    metadata.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut bytes)).map_err(unreadable)?;
    deserialize_metadata(bytes.into()).map_err(unreadable)
}

fn unreadable(source: impl Display) -> PolarsError {
    PolarsError::ComputeError(source.to_string().into())
}

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
    // No page, and no header of one, is longer than they are together.
    let longest = bytes.len();
    let mut reader = PageReader::new(Cursor::new(bytes.into()), column, Vec::new(), longest);
    while left > 0 {
        let page = reader.next().ok_or_else(|| damaged("a column has less values than its row group has rows"))?;
        let page = page.map_err(unreadable)?;
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
