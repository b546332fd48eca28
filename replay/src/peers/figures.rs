//! A peer's table.

use super::error::PeersError;
use crate::experiment::Override;
use netsim::files;
use std::path::Path;

/// Bytes of a table at most, and rows.
pub const MAX_BYTES: u64 = 1 << 20;
const MAX_ROWS: usize = 1_000;

/// What a peer gave, and its standard error where that is known.
pub type Value = Option<(f64, Option<f64>)>;

/// A row of a peer's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its file and line.
    pub at: String,
    /// Its keys, as people read them.
    pub label: String,
    /// Its keys.
    pub overrides: Vec<Override>,
    /// Accepted load, latency, latency within the network, and the time of a burst.
    pub values: [Value; 4],
    /// Runs behind it.
    pub runs: u64,
    /// Cycles that the peer does not count.
    pub apart: f64,
    /// Why a difference stays.
    pub mechanism: Option<String>,
}

/// The names of the figures.
pub(super) const MEASURES: [&str; 4] = ["accepted", "latency", "network_latency", "burst"];

/// A peer's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Figures {
    /// Reads a table.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than [`MAX_BYTES`], or something in it is wrong.
    pub fn read(path: &Path) -> Result<Self, PeersError> {
        let wrong = |reason: String| PeersError::Read { path: path.into(), reason };
        let text = files::read_text(path, MAX_BYTES).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the table `text`, which errors call `file`.
    ///
    /// # Errors
    /// If something in it is wrong.
    pub fn parse(text: &str, file: &str) -> Result<Self, PeersError> {
        let wrong = |line: u64, reason: String| PeersError::Wrong { file: file.to_owned(), line, reason };
        let mut reader =
            csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|error| wrong(error.position().map_or(1, csv::Position::line), error.to_string()))?;
            let line = record.position().map_or(1, |position| line_of(text, position));
            if rows.len() == MAX_ROWS {
                return Err(wrong(line, format!("more than {MAX_ROWS} rows")));
            }
            let mut row = row(&header, &record).map_err(|reason| wrong(line, reason))?;
            row.at = format!("{file}:{line}");
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(wrong(1, "no rows: a header, and a row for each run of the peer, are needed".to_owned()));
        }
        Ok(Self { rows })
    }
}

/// The line of a record, which begins behind the comments at `position`.
fn line_of(text: &str, position: &csv::Position) -> u64 {
    let rest = usize::try_from(position.byte()).ok().and_then(|byte| text.get(byte..)).unwrap_or_default();
    let passed = rest.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
    position.line() + passed.count() as u64
}

fn row(header: &csv::StringRecord, record: &csv::StringRecord) -> Result<Row, String> {
    let mut values: [(Option<f64>, Option<f64>); 4] = [(None, None); 4];
    let mut row = Row {
        at: String::new(),
        label: String::new(),
        overrides: Vec::new(),
        values: [None; 4],
        runs: 1,
        apart: 0.0,
        mechanism: None,
    };
    let mut label = Vec::new();
    for (name, cell) in header.iter().zip(record).filter(|(_, cell)| !cell.is_empty()) {
        let figure = MEASURES.iter().position(|measure| name == *measure);
        let error = MEASURES.iter().position(|measure| name.strip_suffix("_error") == Some(measure));
        match (figure, error, name) {
            (Some(figure), _, _) => values[figure].0 = Some(positive(name, cell)?),
            (_, Some(figure), _) => values[figure].1 = Some(number(name, cell)?),
            (_, _, "apart") => row.apart = number(name, cell)?,
            (_, _, "runs") => {
                let runs = cell.parse().ok().filter(|runs| *runs > 0);
                row.runs = runs.ok_or_else(|| format!("runs = {cell}: a whole number from 1 on is needed"))?;
            }
            (_, _, "mechanism") => row.mechanism = Some(cell.to_owned()),
            (_, _, path) if path.contains('.') => {
                row.overrides.push(format!("{path}={cell}").parse()?);
                label.push(format!("{} {}", path.rsplit('.').next().unwrap_or(path), short(cell)));
            }
            _ => {
                return Err(format!(
                    "column {name}: keys (such as traffic.load), {}, their _error, runs, apart and mechanism are known",
                    MEASURES.join(", ")
                ));
            }
        }
    }
    row.label = if label.is_empty() { "as the file says".to_owned() } else { label.join(", ") };
    for (value, (figure, error)) in row.values.iter_mut().zip(values) {
        *value = figure.map(|figure| (figure, error));
    }
    if row.values.iter().all(Option::is_none) {
        return Err(format!("none of {} is given", MEASURES.join(", ")));
    }
    Ok(row)
}

/// A cell for people: of a table only what its shape is.
fn short(cell: &str) -> String {
    let shape = cell.split("shape = \"").nth(1).and_then(|rest| rest.split('"').next());
    shape.unwrap_or(cell).to_owned()
}

/// A figure, of which ours is a share.
fn positive(name: &str, cell: &str) -> Result<f64, String> {
    let number = number(name, cell)?;
    if number > 0.0 { Ok(number) } else { Err(format!("{name} = {cell}: a number above 0 is needed")) }
}

fn number(name: &str, cell: &str) -> Result<f64, String> {
    let number = cell.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("{name} = {cell}: a number that is not below 0 is needed"))
}
