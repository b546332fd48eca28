//! What is written as Parquet is read back the same, and what is no such table is refused by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use trace::ids::{EventId, TimerId};
use trace::rows::{Carrier, DependencyRow, Evidence, On};
use trace_tables::{TableError, Trace, read_rows, write_rows};

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

#[test]
fn an_empty_trace_survives() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = Trace::default();
    trace.manifest.version = 1;
    trace.write(folder.path()).unwrap();
    assert_eq!(Trace::read(folder.path()).unwrap(), trace);
}

#[test]
fn a_cut_table_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path(), &dependencies()).unwrap();
    let path = folder.path().join("dependencies.parquet");
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 3, 8, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = read_rows::<DependencyRow>(folder.path()).unwrap_err();
        assert!(matches!(error, TableError::Parquet { .. }), "{error:?}");
        assert!(error.to_string().contains("dependencies.parquet"), "{error}");
    }
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = Trace::default();
    trace.manifest.version = 99;
    trace.write(folder.path()).unwrap();
    let error = Trace::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("version 99"), "{error}");
}
