//! What sweeps of recorded jobs and of synthetic traffic have in common: their keys, their summary, their table.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::rows::{Column, ColumnDescription};
use trace_tables::describe::TableDescription;
use trace_tables::write_described;

use super::store::StoreError;
use crate::experiment::Sweep;

/// The values of a key of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisValues {
    /// The key's path.
    pub path: String,
    /// Its values as text.
    pub values: Vec<String>,
}

impl AxisValues {
    /// The keys of a sweep.
    #[must_use]
    pub fn of(sweep: &Sweep) -> Vec<Self> {
        let of = |axis: &crate::experiment::Axis| Self {
            path: axis.path.clone(),
            values: (0..axis.values.len()).map(|index| axis.text(index)).collect(),
        };
        sweep.axes.iter().map(of).collect()
    }

    /// A value as text.
    #[must_use]
    pub fn text(&self, index: usize) -> &str {
        self.values.get(index).map_or("", String::as_str)
    }
}

/// Keys that are sizes of packets or messages: table and last part of the path, those before others.
const PACKET_SIZES: [(&str, &str); 5] = [
    ("traffic.", "size"),
    ("traffic.", "flits"),
    ("traffic.", "packets"),
    ("fabric.", "photonic_packet_max"),
    ("fabric.", "mtu"),
];

/// The number of the key by whose values pictures are grouped: the one at the path `chosen`, else a size of packets or messages; `None` if no
/// such key has several values.
#[must_use]
pub fn grouping(axes: &[AxisValues], chosen: Option<&str>) -> Option<usize> {
    if let Some(path) = chosen {
        return axes.iter().position(|axis| axis.path == path);
    }
    let of = |(table, last): &(&str, &str)| {
        axes.iter().position(|axis| {
            let key = axis.path.strip_prefix(table).and_then(|below| below.rsplit('.').next());
            key == Some(last) && axis.values.len() > 1
        })
    };
    PACKET_SIZES.iter().find_map(of)
}

/// Some keys with their values: "load = 0.3, vls = 2".
pub fn label<'a>(values: impl IntoIterator<Item = (&'a AxisValues, &'a usize)>) -> String {
    let pairs = values.into_iter().map(|(axis, index)| {
        let key = axis.path.rsplit('.').next().unwrap_or_default();
        format!("{key} = {}", axis.text(*index))
    });
    pairs.collect::<Vec<_>>().join(", ")
}

/// A combination of a sweep in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint<S> {
    /// The value of each key that has several, by path.
    pub values: BTreeMap<String, Value>,
    /// What came out.
    #[serde(flatten)]
    pub summary: S,
}

/// `summary.json` of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSummary<S> {
    /// The experiment's name.
    pub name: String,
    /// Whether it was stopped before its end.
    pub interim: bool,
    /// The keys with several values.
    pub axes: Vec<AxisValues>,
    /// The combinations that came to a result.
    pub points: Vec<SweepPoint<S>>,
    /// Combinations that came to none, each with the reason.
    pub failed: BTreeMap<String, String>,
    /// The same over a network that they are set against.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub reference: Option<S>,
}

const fn none<S>() -> Option<S> {
    None
}

/// The values of a combination as `summary.json` has them, by the path of their keys.
pub(super) fn json_values(sweep: &Sweep, values: &[usize]) -> BTreeMap<String, Value> {
    let axes = sweep.axes.iter().zip(values);
    let of = |value: &toml::Value| serde_json::to_value(value).unwrap_or(Value::Null);
    axes.map(|(axis, index)| (axis.path.clone(), axis.values.get(*index).map_or(Value::Null, of))).collect()
}

/// What a column of the table holds.
pub(super) enum Cells<S> {
    Truth(fn(&S) -> bool),
    Figure(fn(&S) -> Option<f64>),
    Count(fn(&S) -> u64),
}

/// A column of a sweep's table: its name, what it means, what it holds.
pub(super) type SweepColumn<S> = (&'static str, &'static str, Cells<S>);

/// What the table of a sweep means.
pub(super) fn described<S>(columns: &[SweepColumn<S>]) -> TableDescription {
    let column = |(name, meaning, cells): &SweepColumn<S>| ColumnDescription {
        name,
        type_name: match cells {
            Cells::Truth(_) => "bool",
            Cells::Figure(_) => "f64",
            Cells::Count(_) => "i64",
        },
        nullable: matches!(cells, Cells::Figure(_)),
        meaning: (*meaning).to_owned(),
        words: Vec::new(),
    };
    let meaning = "A combination of a sweep. Before these columns there is one for each key that is swept, by its path: f64 where all its values are \
                   numbers, else string. Also as `sweep.csv`.";
    TableDescription { name: "sweep", meaning: meaning.to_owned(), columns: columns.iter().map(column).collect() }
}

/// A column of each row's cell.
fn column<R, T: Into<Option<C>>, C>(
    rows: &[R],
    name: &str,
    make: fn(Vec<Option<C>>) -> Column,
    cell: impl Fn(&R) -> T,
) -> (String, Column) {
    (name.to_owned(), make(rows.iter().map(|row| cell(row).into()).collect()))
}

/// Writes `sweep.parquet` and `sweep.csv`: a row for each combination, its values and what came out.
pub(super) fn write_table<S>(
    folder: &Path,
    axes: &[AxisValues],
    rows: &[(&[usize], &S)],
    columns: &[SweepColumn<S>],
) -> Result<(), StoreError> {
    let mut parquet: Vec<(String, Column)> = Vec::new();
    let mut csv: Vec<Vec<String>> = vec![Vec::new(); rows.len() + 1];
    let push = |csv: &mut [Vec<String>], name: &str, cells: Vec<String>| {
        csv[0].push(name.to_owned());
        csv[1..].iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    };
    for (number, axis) in axes.iter().enumerate() {
        let cells: Vec<String> = rows.iter().map(|(values, _)| axis.text(values[number]).to_owned()).collect();
        let numbers: Option<Vec<f64>> = axis.values.iter().map(|text| text.parse().ok()).collect();
        parquet.push(match numbers {
            Some(_) => column(&cells, &axis.path, Column::F64, |cell| cell.parse::<f64>().ok()),
            None => (axis.path.clone(), Column::Text(cells.iter().map(Some).collect())),
        });
        push(&mut csv, &axis.path, cells);
    }
    for (name, _, cells) in columns {
        let texts: Vec<String> = match cells {
            Cells::Truth(of) => {
                parquet.push(column(rows, name, Column::Bool, |row| of(row.1)));
                rows.iter().map(|row| of(row.1).to_string()).collect()
            }
            Cells::Figure(of) => {
                parquet.push(column(rows, name, Column::F64, |row| of(row.1)));
                rows.iter().map(|row| of(row.1).map_or_else(String::new, |value| value.to_string())).collect()
            }
            Cells::Count(of) => {
                parquet.push(column(rows, name, Column::U64, |row| of(row.1)));
                rows.iter().map(|row| of(row.1).to_string()).collect()
            }
        };
        push(&mut csv, name, texts);
    }
    write_described(folder, &described(columns), parquet, rows.len())?;
    Ok(trace_tables::write_csv_records(&folder.join("sweep.csv"), csv)?)
}
