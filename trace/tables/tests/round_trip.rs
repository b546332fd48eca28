//! What is written as Parquet is read back the same, and what is no such table is refused by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::path::Path;

use polars::prelude::{DataType, ParquetReader, ParquetWriter, SerReader};
use trace::ids::{ConnectionId, EventId, JobId, TimerId};
use trace::rows::{Carrier, Column, DependencyRow, Evidence, JobRow, On, Row, TimerRow, Trace};
use trace_tables::{
    TableError, read_rows, read_rows_within, read_trace, write_columns, write_row_iter, write_rows, write_trace,
};

fn dependencies() -> Vec<DependencyRow> {
    vec![
        DependencyRow {
            event: EventId(3),
            on_event: EventId(1),
            on: On::Delivered,
            timer: Some(TimerId(2)),
            carrier: Some(Carrier::Response),
            evidence: Evidence::Protocol,
        },
        DependencyRow {
            event: EventId(4),
            on_event: EventId(3),
            on: On::Sent,
            timer: None,
            carrier: None,
            evidence: Evidence::Stream,
        },
    ]
}

#[test]
fn rows_survive_parquet_with_nulls_and_names() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &dependencies()).unwrap();
    assert_eq!(read_rows::<DependencyRow>(folder.path()).unwrap(), dependencies());
}

/// Parquet packs what is the same in each row: a hundred thousand names of a kilobyte are some kilobytes of file.
#[test]
fn a_small_file_with_much_in_it_is_refused_before_memory_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let timer = |number: u32| TimerRow { name: "x".repeat(1_000), ..timer(u64::from(number)) };
    write_rows(folder.path(), &(0..100_000).map(timer).collect::<Vec<_>>()).unwrap();
    let file = fs::metadata(folder.path().join("timers.parquet")).unwrap().len();
    assert!(file < 4_000_000, "{file}");
    assert_eq!(read_rows_within::<TimerRow>(folder.path(), 200_000_000).unwrap().len(), 100_000);
    // The names alone are 100 MB, all cells without them more than 10 MB.
    for (limit, least) in [(100_000_000, 100_000_000), (10_000_000, 10_000_000)] {
        let error = read_rows_within::<TimerRow>(folder.path(), limit).unwrap_err();
        let TableError::TooLarge { rows, bytes, memory_bytes, .. } = &error else { panic!("{error}") };
        assert_eq!((*rows, *memory_bytes), (100_000, limit));
        assert!(*bytes > least, "{error}");
        assert!(error.to_string().contains("timers.parquet: its 100000 rows take "), "{error}");
    }
}

/// More than are read at once.
#[test]
fn rows_of_many_row_groups_are_read_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let timers = || (0..300_000).map(timer);
    write_row_iter(folder.path(), timers()).unwrap();
    assert!(read_rows::<TimerRow>(folder.path()).unwrap().into_iter().eq(timers()));
}

/// As many words as rows, a word for a few rows each, the same word in all, and none: text is packed in another way where words are many.
#[test]
fn text_comes_back_however_often_its_words_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dependencies.parquet");
    for (rows, rows_of_a_word) in [(100, 1), (40_000, 1), (40_000, 2), (300_000, 7), (40_000, 40_000)] {
        let word = |row: usize| (!row.is_multiple_of(5)).then(|| format!("word {} of them", row / rows_of_a_word));
        let cells: Vec<Option<String>> = (0..rows).map(word).collect();
        let nulls = Column::Text((0..rows).map(|_| None::<&str>).collect());
        let columns = vec![("a".to_owned(), Column::Text(cells.iter().cloned().collect())), ("b".to_owned(), nulls)];
        write_columns(&path, columns, rows).unwrap();
        let frame = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
        let there = |name: &str| {
            frame.column(name).unwrap().str().unwrap().iter().map(|cell| cell.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert!(there("a") == cells && there("b") == vec![None; rows], "{rows} rows, {rows_of_a_word} of a word");
    }
}

#[test]
fn columns_that_are_no_table_are_refused_by_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let column = |name: &str, cells: usize| (name.to_owned(), Column::U32(vec![Some(7); cells]));
    let refused = [
        (vec![column("a", 3), column("b", 2)], 3),
        (vec![column("a", 3), column("b", 4)], 3),
        (vec![column("a", 4)], 3),
        (vec![column("a", 3), column("a", 3)], 3),
    ];
    for (columns, height) in refused {
        let error = write_columns(&path, columns, height).unwrap_err();
        assert!(matches!(error, TableError::Parquet { .. }) && error.to_string().contains("table.parquet"), "{error}");
    }
    write_columns(&path, vec![column("a", 3), column("b", 3)], 3).unwrap();
}

#[test]
fn a_cell_without_meaning_is_named_by_its_row_however_many_are_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<DependencyRow> = dependencies().into_iter().cycle().take(700_000).collect();
    let mut columns = DependencyRow::to_columns(&rows);
    let evidence = DependencyRow::COLUMNS.iter().position(|name| *name == "evidence").unwrap();
    let cell = |row: usize| Some(if row == 600_000 { "rumour" } else { "stream" });
    columns[evidence] = Column::Text((0..rows.len()).map(cell).collect());
    let named = DependencyRow::COLUMNS.iter().map(|name| (*name).to_owned()).zip(columns).collect();
    write_columns(&folder.path().join("dependencies.parquet"), named, rows.len()).unwrap();
    let TableError::Cell { source, .. } = read_rows::<DependencyRow>(folder.path()).unwrap_err() else { panic!() };
    assert_eq!((source.row, source.column), (600_000, "evidence"));
}

#[test]
fn an_empty_trace_survives() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = Trace::default();
    trace.manifest.version = 1;
    write_trace(folder.path(), &trace).unwrap();
    assert_eq!(read_trace(folder.path()).unwrap(), trace);
}

#[test]
fn a_cut_table_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &dependencies()).unwrap();
    let path = folder.path().join("dependencies.parquet");
    let whole = fs::read(&path).unwrap();
    for cut in [0, 3, 8, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = read_rows::<DependencyRow>(folder.path()).unwrap_err();
        assert!(matches!(error, TableError::Parquet { .. }), "{error:?}");
        assert!(error.to_string().contains("dependencies.parquet"), "{error}");
    }
}

/// Bytes of tables changed at random, the same ones each time: their rows are others then, or there is an error that names the file.
fn damage<R: Row>(rows: &[R]) {
    const TIMES: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), rows).unwrap();
    let name = format!("{}.parquet", R::NAME);
    let path = folder.path().join(&name);
    let whole = fs::read(&path).unwrap();
    let mut state = 1u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let mut refused = 0;
    for _ in 0..TIMES {
        let mut damaged = whole.clone();
        for _ in 0..[1, 3, 20][below(3)] {
            // Single bytes, or what a number of any length may be at most.
            let (begin, length) = (below(whole.len()), [1, 1, 5, 10][below(4)]);
            let most = [0xff, 0x7f, below(256) as u8][if length == 1 { 2 } else { below(3) }];
            damaged[begin..].iter_mut().take(length).for_each(|byte| *byte = most);
        }
        fs::write(&path, damaged).unwrap();
        if let Err(error) = read_rows_within::<R>(folder.path(), 10_000_000) {
            assert!(error.to_string().contains(&name), "{error}");
            refused += 1;
        }
    }
    assert!(refused > TIMES / 2, "{refused}");
}

#[test]
fn a_damaged_table_is_refused_or_read_and_never_a_panic() {
    damage(&(0..300).flat_map(|_| dependencies()).collect::<Vec<_>>());
    damage(
        &(0..300).map(|number| TimerRow { name: format!("timer {}", number % 7), ..timer(number) }).collect::<Vec<_>>(),
    );
}

#[test]
fn a_nullable_column_that_came_later_is_null_and_any_other_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let job = JobRow {
        job: JobId(0),
        id: "job_1_0001".into(),
        name: String::new(),
        submit_ns: 1,
        launch_ns: 2,
        finish_ns: 3,
        maps: 4,
        reduces: 5,
        shuffle_bytes: Some(6),
        hdfs_bytes_read: None,
        hdfs_bytes_written: None,
        split_hosts: Some(7),
        input_hosts: Some(8),
        succeeded: true,
    };
    write_rows(folder.path(), std::slice::from_ref(&job)).unwrap();
    let path = folder.path().join("jobs.parquet");
    let mut frame = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
    frame = frame.drop("split_hosts").unwrap();
    ParquetWriter::new(File::create(&path).unwrap()).finish(&mut frame).unwrap();
    assert_eq!(read_rows::<JobRow>(folder.path()).unwrap(), [JobRow { split_hosts: None, ..job }]);
    frame = frame.drop("maps").unwrap();
    ParquetWriter::new(File::create(&path).unwrap()).finish(&mut frame).unwrap();
    let error = read_rows::<JobRow>(folder.path()).unwrap_err().to_string();
    assert!(error.contains("column `maps` is missing"), "{error}");
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = Trace::default();
    trace.manifest.version = 99;
    write_trace(folder.path(), &trace).unwrap();
    let error = read_trace(folder.path()).unwrap_err().to_string();
    assert!(error.contains("version 99"), "{error}");
}

fn timer(pause_ns: u64) -> TimerRow {
    TimerRow {
        timer: TimerId(0),
        name: "allocate".into(),
        process: None,
        connection: ConnectionId(7),
        pause_ns,
        service_ns: 1_795_357_070_653_000_000,
        request_bytes: 40,
        response_bytes: 0,
        beats: 3,
    }
}

/// The columns as a reader sees them that knows Parquet alone.
fn types(path: &Path) -> Vec<(String, DataType)> {
    let frame = ParquetReader::new(File::open(path).unwrap()).finish().unwrap();
    let types = frame.schema().iter().map(|(name, kind)| (name.to_string(), kind.clone()));
    types.collect()
}

#[test]
fn text_is_plain_and_numbers_of_64_bits_are_signed() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &[timer(5)]).unwrap();
    let path = folder.path().join("timers.parquet");
    for (name, kind) in types(&path) {
        let expected = match name.as_str() {
            "name" => DataType::String,
            "pause_ns" | "service_ns" | "request_bytes" | "response_bytes" => DataType::Int64,
            _ => DataType::UInt32,
        };
        assert_eq!(kind, expected, "{name}");
    }
    // Where it is, others take their types from it: text as `string_view`.
    let bytes = fs::read(&path).unwrap();
    assert!(!bytes.windows(12).any(|window| window == b"ARROW:schema"));
}

#[test]
fn numbers_that_only_an_unsigned_column_could_hold_survive() {
    let folder = tempfile::tempdir().unwrap();
    for number in [0, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        write_rows(folder.path(), &[timer(number)]).unwrap();
        assert_eq!(read_rows::<TimerRow>(folder.path()).unwrap(), [timer(number)]);
    }
}

#[test]
fn more_rows_than_a_row_group_holds_survive() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<DependencyRow> = (0..300_000)
        .map(|number| DependencyRow { event: EventId(number), ..dependencies()[number as usize % 2].clone() })
        .collect();
    write_rows(folder.path(), &rows).unwrap();
    assert!(read_rows::<DependencyRow>(folder.path()).unwrap() == rows);
    // Made as they are written, they come to the same file.
    let other = tempfile::tempdir().unwrap();
    for number in [0, 1, rows.len()] {
        write_rows(folder.path(), &rows[..number]).unwrap();
        write_row_iter(other.path(), rows[..number].iter().cloned()).unwrap();
        let bytes = |folder: &Path| fs::read(folder.join(format!("{}.parquet", DependencyRow::NAME))).unwrap();
        assert!(bytes(folder.path()) == bytes(other.path()), "{number} rows");
    }
}

#[test]
fn a_table_with_unsigned_numbers_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &[timer(5)]).unwrap();
    let path = folder.path().join("timers.parquet");
    let mut frame = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
    for name in ["pause_ns", "service_ns", "request_bytes", "response_bytes"] {
        let unsigned = frame.column(name).unwrap().cast(&DataType::UInt64).unwrap();
        frame.with_column(unsigned).unwrap();
    }
    ParquetWriter::new(File::create(&path).unwrap()).finish(&mut frame).unwrap();
    assert!(types(&path).contains(&("pause_ns".to_owned(), DataType::UInt64)));
    assert_eq!(read_rows::<TimerRow>(folder.path()).unwrap(), [timer(5)]);
}
