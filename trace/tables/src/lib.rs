//! Reads and writes the tables of a trace, and any other table of rows, as Parquet. The only crate that uses polars.

mod damage;
pub mod describe;
mod error;
mod quiet;
mod read;
mod row_group;
mod table_file;

use std::borrow::Borrow;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use serde::Deserialize;
use trace::folder::read_named;
use trace::ids::{ConnectionId, ProcessId};
use trace::manifest::TraceManifest;
use trace::rows::{Cell as _, Column, MessageRow, Row, Trace};

use describe::{TableDescription, trace_tables};
pub use error::TableError;
use read::read_rows_if_there;
pub use read::{read_rows, read_rows_within};
use row_group::RowGroup;
use table_file::{TableFile, ragged};

/// Of columns that are in memory as a whole: as many as polars' own writer puts into one.
const ROW_GROUP_ROWS: usize = 512 * 512;

/// Of rows that are made as they are written: so many of a table are in memory, once as columns and once as pages.
const STREAMED_ROW_GROUP_ROWS: usize = 1 << 15;

/// Rows of it that are made at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Entries of a folder that is no trace that are looked at.
const MAX_ENTRIES: usize = 1000;

/// The largest manifest, bytes: a hundred thousand links take some 20 MiB.
const MAX_MANIFEST: u64 = 256 << 20;

/// Reads a trace from its folder.
///
/// # Errors
/// If a table or the manifest is missing, cut off or of another version.
pub fn read_trace(folder: &Path) -> Result<Trace, TableError> {
    let causal = read_causal_trace(folder)?;
    Ok(Trace {
        limits: read_rows_if_there(folder)?,
        spans: read_rows(folder)?,
        steps: read_rows_if_there(folder)?,
        ..causal
    })
}

/// Reads a trace without limits, spans and steps, which no execution of its causal graph needs.
///
/// # Errors
/// As [`read_trace`].
pub fn read_causal_trace(folder: &Path) -> Result<Trace, TableError> {
    Ok(Trace {
        manifest: read_manifest(folder)?,
        hosts: read_rows(folder)?,
        processes: read_rows(folder)?,
        connections: read_rows(folder)?,
        limits: Vec::new(),
        messages: read_rows(folder)?,
        spans: Vec::new(),
        steps: Vec::new(),
        events: read_rows(folder)?,
        dependencies: read_rows(folder)?,
        timers: read_rows(folder)?,
        tasks: read_rows(folder)?,
        jobs: read_rows(folder)?,
    })
}

/// Writes a trace into a folder, which is made where it is missing.
///
/// # Errors
/// If something cannot be written.
pub fn write_trace(folder: &Path, trace: &Trace) -> Result<(), TableError> {
    begin_trace(folder)?;
    let network = || {
        write_rows(folder, &trace.hosts)?;
        write_rows(folder, &trace.processes)?;
        write_rows(folder, &trace.connections)?;
        write_rows(folder, &trace.limits)?;
        let processes_of = |connection: ConnectionId| {
            let row = trace.connections.get(connection.index());
            row.map_or([None; 2], |row| [row.client_process, row.server_process])
        };
        write_message_iter(folder, processes_of, &trace.messages)?;
        write_rows(folder, &trace.spans)?;
        write_rows(folder, &trace.steps)
    };
    let causal = || {
        write_rows(folder, &trace.events)?;
        write_rows(folder, &trace.dependencies)?;
        write_rows(folder, &trace.timers)?;
        write_rows(folder, &trace.tasks)?;
        write_rows(folder, &trace.jobs)
    };
    // Both take about as long.
    let written = thread::scope(|scope| {
        let causal = scope.spawn(causal);
        let network = network();
        network.and(causal.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    written?;
    write_manifest(folder, &trace.manifest)
}

fn read_manifest(folder: &Path) -> Result<TraceManifest, TableError> {
    let path = folder.join("manifest.json");
    let text = read_named(&path, MAX_MANIFEST).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if folder.is_dir() => TableError::NoTrace {
            folder: folder.into(),
            hint: if is_capture(folder) { of_capture(folder) } else { String::new() },
        },
        _ => TableError::Io { path: path.clone(), source },
    })?;
    let wrong = |reason: String| TableError::Manifest { path: path.clone(), reason };
    // Another version may have other keys.
    let Version { version } = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if version != 1 {
        let reason = format!("format version {version}, this program reads version 1; merge the capture again");
        return Err(wrong(reason));
    }
    serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
}

/// What each version's manifest says.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Whether a folder holds a trace, perhaps one of another version.
#[must_use]
pub fn is_trace(folder: &Path) -> bool {
    let manifest = read_named(&folder.join("manifest.json"), MAX_MANIFEST).ok();
    let is_manifest = manifest.is_some_and(|text| serde_json::from_slice::<TraceManifest>(&text).is_ok());
    is_manifest && folder.join("hosts.parquet").is_file()
}

/// Whether a folder has a folder of a host, as agents or people who record leave them.
fn is_capture(folder: &Path) -> bool {
    let has_manifest =
        |host: &Path| ["sniffer.json", "dumpingd.json", "manifest.json"].iter().any(|name| host.join(name).is_file());
    let hosts = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).filter_map(Result::ok);
    has_manifest(folder) || hosts.map(|host| host.path()).any(|host| has_manifest(&host))
}

fn of_capture(folder: &Path) -> String {
    format!("; it is a capture: make a trace of it with `merger build {} --out TRACE`", folder.display())
}

/// Whether a folder holds tables of a trace and nothing else: the writing of one was not finished.
#[must_use]
pub fn is_unfinished_trace(folder: &Path) -> bool {
    let tables: Vec<String> = trace_tables().iter().map(|table| format!("{}.parquet", table.name)).collect();
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_table = |entry: io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        // Not what a link leads to.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && entry.file_name().to_str().is_some_and(|name| tables.iter().any(|table| table == name))
    };
    let mut entries = entries.peekable();
    entries.peek().is_some() && entries.all(is_table)
}

/// Makes a folder for a trace where it is missing, and has it hold no trace until [`write_manifest`]: tables of an older one give way one by
/// one, and would be read beside newer ones.
///
/// # Errors
/// If the folder cannot be made, or the manifest of an older trace not be removed.
pub fn begin_trace(folder: &Path) -> Result<(), TableError> {
    fs::create_dir_all(folder).map_err(|source| TableError::Io { path: folder.into(), source })?;
    let path = folder.join("manifest.json");
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(TableError::Io { path, source }),
        _ => Ok(()),
    }
}

/// Writes `FOLDER/manifest.json`, which makes a trace of a folder with all tables.
///
/// # Errors
/// If it cannot be written.
pub fn write_manifest(folder: &Path, manifest: &TraceManifest) -> Result<(), TableError> {
    let path = folder.join("manifest.json");
    serde_json::to_vec_pretty(manifest)
        .map_err(io::Error::other)
        .and_then(|text| fs::write(&path, text))
        .map_err(|source| TableError::Io { path, source })
}

/// Writes `FOLDER/NAME.parquet`, packed with zstd. What the table and its columns mean stands in the file's metadata, under
/// `hadoptic.table` and `hadoptic.columns`.
///
/// # Errors
/// If it cannot be written.
pub fn write_rows<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TableError> {
    write_appended(folder, &TableDescription::of::<R>(), rows, R::empty_columns, |row, columns| row.append_to(columns))
}

/// Writes the same file from rows that are made as they are written: no more of them are in memory at a time than a row group has.
///
/// # Errors
/// As [`write_rows`].
pub fn write_row_iter<R: Row>(folder: &Path, rows: impl IntoIterator<Item = R>) -> Result<(), TableError> {
    write_appended(folder, &TableDescription::of::<R>(), rows, R::empty_columns, |row, columns| row.append_to(columns))
}

/// Writes messages, with the processes at both ends, from rows that may be made as they are written. `processes_of` tells those of
/// a connection, the client's first.
///
/// # Errors
/// As [`write_rows`].
pub fn write_message_iter(
    folder: &Path,
    processes_of: impl Fn(ConnectionId) -> [Option<ProcessId>; 2],
    messages: impl IntoIterator<Item = impl Borrow<MessageRow>>,
) -> Result<(), TableError> {
    let empty = || {
        let mut columns = MessageRow::empty_columns();
        columns.extend([Column::U32(Vec::new()), Column::U32(Vec::new())]);
        columns
    };
    write_appended(folder, &describe::messages(), messages, empty, |message, columns| {
        let message: &MessageRow = message.borrow();
        message.append_to(columns);
        let behind = columns.len().saturating_sub(2);
        let [client, server] = processes_of(message.connection);
        let sender_first = if message.from_client { [client, server] } else { [server, client] };
        for (column, process) in columns[behind..].iter_mut().zip(sender_first) {
            process.push(column);
        }
    })
}

/// Writes `FOLDER/NAME.parquet`, with what it means in its footer, row group by row group, from columns to which each row is
/// appended as it comes.
fn write_appended<R>(
    folder: &Path,
    table: &TableDescription,
    rows: impl IntoIterator<Item = R>,
    empty: impl Fn() -> Vec<Column>,
    append: impl Fn(&R, &mut [Column]),
) -> Result<(), TableError> {
    let path = folder.join(format!("{}.parquet", table.name));
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let file = TableFile::create(&path, &names, &empty())?;
    let mut rows = rows.into_iter();
    // Cells take twice as much memory before they are in a row group.
    let mut few = |most: usize| {
        let (mut columns, mut height) = (empty(), 0);
        for row in rows.by_ref().take(most) {
            append(&row, &mut columns);
            height += 1;
        }
        (columns, height)
    };
    let groups = std::iter::from_fn(|| {
        let mut group = RowGroup::of(&empty());
        while let (columns, height) = few(ROWS_AT_ONCE.min(STREAMED_ROW_GROUP_ROWS - group.height))
            && height > 0
        {
            if !group.append(&columns, 0..height) {
                return Some(Err(ragged(&path)));
            }
        }
        (group.height > 0).then_some(Ok(group))
    });
    file.write_all(groups, table.metadata())
}

/// Writes named columns of `height` rows as `FOLDER/NAME.parquet` of a table, with what it means in the footer. There may be more columns
/// than the table names.
///
/// # Errors
/// As [`write_columns`].
pub fn write_described(
    folder: &Path,
    table: &TableDescription,
    columns: Vec<(String, Column)>,
    height: usize,
) -> Result<(), TableError> {
    write_with_metadata(&folder.join(format!("{}.parquet", table.name)), columns, height, table.metadata())
}

/// Writes named columns of `height` rows as a Parquet file, packed with zstd at its default level.
///
/// Others read these files with what they have, so that the types are the plainest: text is `string`, and 64 bits are
/// signed, for differences of times must be able to fall below zero. A number beyond `i64::MAX` (the block ids of Hadoop
/// 1.x are negative numbers) is written as the negative number of the same bits.
///
/// # Errors
/// If it cannot be written, or the columns differ in length.
pub fn write_columns(path: &Path, columns: Vec<(String, Column)>, height: usize) -> Result<(), TableError> {
    write_with_metadata(path, columns, height, Vec::new())
}

fn write_with_metadata(
    path: &Path,
    columns: Vec<(String, Column)>,
    height: usize,
    metadata: Vec<(String, String)>,
) -> Result<(), TableError> {
    let (names, columns): (Vec<String>, Vec<Column>) = columns.into_iter().unzip();
    let file = TableFile::create(path, &names, &columns)?;
    if columns.iter().any(|column| column.len() != height) {
        return Err(ragged(path));
    }
    let groups = (0..height).step_by(ROW_GROUP_ROWS).map(|first| {
        let mut group = RowGroup::of(&columns);
        let is_whole = group.append(&columns, first..height.min(first + ROW_GROUP_ROWS));
        is_whole.then_some(group).ok_or_else(|| ragged(path))
    });
    file.write_all(groups, metadata)
}

/// Writes `FOLDER/NAME.csv`, with the columns' names in the first line; a null is an empty cell.
///
/// # Errors
/// If it cannot be written.
pub fn write_csv<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TableError> {
    let columns = R::to_columns(rows);
    let names = R::COLUMNS.iter().map(|name| (*name).to_owned()).collect();
    let cells = |row| columns.iter().map(|column| cell_text(column, row)).collect();
    let records = std::iter::once(names).chain((0..rows.len()).map(cells));
    write_csv_records(&folder.join(format!("{}.csv", R::NAME)), records)
}

/// Writes records as a CSV file; cells are quoted where they have to be.
///
/// # Errors
/// If it cannot be written.
pub fn write_csv_records(path: &Path, records: impl IntoIterator<Item = Vec<String>>) -> Result<(), TableError> {
    let written = File::create(path).and_then(|file| {
        let mut writer = csv::Writer::from_writer(BufWriter::new(file));
        for record in records {
            writer.write_record(record)?;
        }
        writer.flush()
    });
    written.map_err(|source| TableError::Io { path: path.into(), source })
}

fn cell_text(column: &Column, row: usize) -> String {
    fn text<T: ToString>(cells: &[Option<T>], row: usize) -> String {
        cells.get(row).and_then(Option::as_ref).map_or_else(String::new, ToString::to_string)
    }
    match column {
        Column::Bool(cells) => text(cells, row),
        Column::U32(cells) => text(cells, row),
        Column::U64(cells) => text(cells, row),
        Column::I64(cells) => text(cells, row),
        Column::F64(cells) => text(cells, row),
        Column::Text(cells) => cells.get(row).flatten().unwrap_or_default().to_owned(),
    }
}
