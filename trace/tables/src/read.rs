//! Reads a table's rows, if they have room in memory.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use polars::prelude::{DataFrame, DataType, ParquetReader, PolarsError, SerReader};
use trace::folder::open_named;
use trace::rows::{Column, Row, RowError};

use crate::damage;
use crate::error::TableError;
use crate::quiet::without_panic;
use trace::memory::machine_bytes;

/// A cell takes so much at least while rows are made of it: a number that may be null, or where a text ends.
const CELL_BYTES: u64 = 16;
/// Rows that are read at once, about: what is read and not yet made rows of takes as much as they do.
const ROWS_AT_ONCE: usize = 1 << 17;

/// Reads `FOLDER/NAME.parquet`.
///
/// # Errors
/// If it is missing, no Parquet, lacks a column, or has more rows than the machine's memory.
pub fn read_rows<R: Row>(folder: &Path) -> Result<Vec<R>, TableError> {
    read_rows_within(folder, machine_bytes().unwrap_or(u64::MAX))
}

/// As [`read_rows`], with so many bytes of memory. A small file may have many rows, or the same long text in each of them.
///
/// # Errors
/// As [`read_rows`].
pub fn read_rows_within<R: Row>(folder: &Path, memory_bytes: u64) -> Result<Vec<R>, TableError> {
    let path = folder.join(format!("{}.parquet", R::NAME));
    let file = open_named(&path).map_err(|source| io(&path, source))?;
    let mut reader = ParquetReader::new(file.try_clone().map_err(|source| io(&path, source))?);
    let metadata = Arc::new(parsed(&path, || damage::metadata(&file, memory_bytes))?);
    reader.set_metadata(Arc::clone(&metadata));
    let there = parsed(&path, || reader.schema())?;
    // Traces of earlier versions lack columns that came later; these are nullable.
    let is_nullable: Vec<bool> = R::describe_columns().iter().map(|column| column.nullable).collect();
    let lacks = |(name, is_nullable): (&&'static str, &bool)| (!there.contains(name)).then_some((*name, *is_nullable));
    let lacking: Vec<(&str, bool)> = R::COLUMNS.iter().zip(&is_nullable).filter_map(lacks).collect();
    if let Some((column, _)) = lacking.iter().find(|(_, is_nullable)| !is_nullable) {
        let found = there.iter_names().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(TableError::MissingColumn { path, column, found });
    }
    let is_there = |name: &str| lacking.iter().all(|(lacks, _)| *lacks != name);
    let groups = || metadata.row_groups.iter().map(|group| group.num_rows());
    // Both are what the file says.
    let count = groups().fold(0, usize::saturating_add).max(metadata.num_rows);
    let too_large = |bytes: u64| TableError::TooLarge { path: path.clone(), rows: count, bytes, memory_bytes };
    let mut least_bytes = (count as u64).saturating_mul(R::COLUMNS.len() as u64).saturating_mul(CELL_BYTES);
    if least_bytes > memory_bytes {
        return Err(too_large(least_bytes));
    }
    let needed: Vec<String> = R::COLUMNS.iter().filter(|name| is_there(name)).map(|name| (*name).to_owned()).collect();
    parsed(&path, || damage::check(&file, &metadata, &needed, memory_bytes))?;
    let mut rows = Vec::new();
    rows.try_reserve_exact(count).map_err(|_| too_large(least_bytes))?;
    for part in parts(groups()) {
        let mut reader = ParquetReader::new(file.try_clone().map_err(|source| io(&path, source))?);
        reader.set_metadata(Arc::clone(&metadata));
        let reader = reader.with_columns(Some(needed.clone())).with_slice(Some((part.start, part.len())));
        let frame = parsed(&path, || reader.finish())?;
        for name in &needed {
            least_bytes = least_bytes.saturating_add(text_bytes(&frame, name));
        }
        if least_bytes > memory_bytes {
            return Err(too_large(least_bytes));
        }
        let columns = R::COLUMNS
            .iter()
            .zip(R::empty_columns())
            .map(|(name, empty)| match is_there(name) {
                true => from_polars(&path, &frame, name, &empty),
                false => Ok(empty.nulls(frame.height())),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let of_part = R::from_columns(&columns, frame.height()).map_err(|source| {
            let source = RowError { row: part.start + source.row, ..source };
            TableError::Cell { path: path.clone(), source }
        })?;
        rows.extend(of_part);
    }
    Ok(rows)
}

/// Places of rows that are read at once: those of whole row groups, until there are many. At least one, if with no rows: it is then
/// that columns are looked at.
fn parts(groups: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = std::iter::once(0..0).collect();
    for rows in groups {
        match parts.last_mut() {
            Some(last) if last.len() < ROWS_AT_ONCE => last.end = last.end.saturating_add(rows),
            Some(last) => {
                let begin = last.end;
                parts.push(begin..begin.saturating_add(rows));
            }
            None => {}
        }
    }
    parts
}

/// What the Parquet library makes of a file. It does not bear all damage: where it panics, that is an error like others.
fn parsed<T>(path: &Path, parse: impl FnOnce() -> Result<T, PolarsError>) -> Result<T, TableError> {
    let gave_up = || Err(PolarsError::ComputeError("the file is damaged: the Parquet library gave up on it".into()));
    let parsed = without_panic(parse).unwrap_or_else(gave_up);
    parsed.map_err(|source| TableError::Parquet { path: path.into(), source: Box::new(source) })
}

fn io(path: &Path, source: io::Error) -> TableError {
    TableError::Io { path: path.into(), source }
}

/// As [`read_rows`], but none where there is no such file: traces of earlier versions lack the table.
pub(crate) fn read_rows_if_there<R: Row>(folder: &Path) -> Result<Vec<R>, TableError> {
    let there = folder.join(format!("{}.parquet", R::NAME)).symlink_metadata().is_ok();
    if there { read_rows(folder) } else { Ok(Vec::new()) }
}

/// What the texts of a column take one behind the other; 0 if it has none.
fn text_bytes(frame: &DataFrame, name: &str) -> u64 {
    let texts = frame.column(name).ok().and_then(|series| series.str().ok());
    texts.map_or(0, |texts| texts.iter().flatten().map(|text| text.len() as u64).fold(0, u64::saturating_add))
}

fn from_polars(path: &Path, frame: &DataFrame, name: &'static str, empty: &Column) -> Result<Column, TableError> {
    let series = frame.column(name).map_err(|_| TableError::MissingColumn {
        path: path.into(),
        column: name,
        found: frame.get_column_names().iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "),
    })?;
    let wrong = |expected: &'static str| {
        let found = series.dtype().to_string();
        move |_| TableError::Type { path: path.into(), column: name, found: found.clone(), expected }
    };
    Ok(match empty {
        Column::Bool(_) => Column::Bool(series.bool().map_err(wrong("bool"))?.iter().collect()),
        Column::U32(_) => Column::U32(series.u32().map_err(wrong("u32"))?.iter().collect()),
        // Traces of before had them unsigned.
        Column::U64(_) if *series.dtype() == DataType::UInt64 => {
            Column::U64(series.u64().map_err(wrong("u64"))?.iter().collect())
        }
        Column::U64(_) => {
            Column::U64(series.i64().map_err(wrong("i64"))?.iter().map(|cell| cell.map(i64::cast_unsigned)).collect())
        }
        Column::I64(_) => Column::I64(series.i64().map_err(wrong("i64"))?.iter().collect()),
        Column::F64(_) => Column::F64(series.f64().map_err(wrong("f64"))?.iter().collect()),
        Column::Text(_) => match series.dtype() {
            DataType::String => Column::Text(series.str().map_err(wrong("text"))?.iter().collect()),
            other => {
                return Err(TableError::Type {
                    path: path.into(),
                    column: name,
                    found: other.to_string(),
                    expected: "text",
                });
            }
        },
    })
}
