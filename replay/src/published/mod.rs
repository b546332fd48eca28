//! Published figures against simulated ones: messages from a table over a fabric, in place of a recorded job.
//!
//! ```toml
//! title = "Figure 16: what one collision costs ten packets"
//! notes = ["what the reader should know"]
//! racks = 2                            # default: 2
//! hosts_per_rack = 1                   # default: 1; hosts are numbered rack by rack, from 0
//!
//! [fabric]                             # as in experiments
//! kind = "lightness"
//!
//! [[message]]                          # handed over in this order where times are equal
//! at = "0s"                            # default: 0s
//! from = 0
//! to = 1
//! bytes = "1500B"                      # default: the row's
//! count = 10                           # default: 1
//!
//! [[row]]                              # one run each
//! what = "no cables"
//! fabric = { kind = "ideal" }          # optional: another fabric for this run
//! set = { drop = [1] }                 # keys of the fabric for this run
//! beyond = {}                          # optional: this run's time less that of a run with these keys
//! bytes = "32KiB"                      # optional: the messages' size
//! message = 1                          # whose time counts, from 1; default: the last one's
//! all = true                           # or: from the first hand-over until all messages are there; default: false
//! published = "3276ns"                 # optional: what was published
//! arithmetic = "3276ns"                # optional: what the model's arithmetic gives; must come out to the ps
//! less = [{ than = "OPS", percent = 15.0 }]    # optional: how much less time than that of earlier rows; percent = published
//! ```
//!
//! A message's time lasts from its handing over to its delivery.

mod chosen;
mod figure;
pub mod fit;

pub use chosen::Chosen;
pub use figure::svg;

use crate::experiment::culprit::culprit;
use crate::experiment::{ExperimentError, Override, locate};
use netsim::engine::{self, Departure, Departures};
use netsim::fabric::{self, FabricConfig};
use netsim::files;
use netsim::network::HostIndex;
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::units::{Bytes, DurationPs};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What LIGHTNESS' deliverable published, as files of this form: name and text.
pub const LIGHTNESS: [(&str, &str); 7] = [
    ("table-1-tor.toml", include_str!("../../experiments/lightness/table-1-tor.toml")),
    ("figure-15-ops.toml", include_str!("../../experiments/lightness/figure-15-ops.toml")),
    ("figure-16-collision.toml", include_str!("../../experiments/lightness/figure-16-collision.toml")),
    ("figure-18-ocs.toml", include_str!("../../experiments/lightness/figure-18-ocs.toml")),
    ("figure-19-ops-ocs.toml", include_str!("../../experiments/lightness/figure-19-ops-ocs.toml")),
    ("figure-21-infiniband.toml", include_str!("../../experiments/lightness/figure-21-infiniband.toml")),
    ("mixed-fabrics.toml", include_str!("../../experiments/lightness/mixed-fabrics.toml")),
];

/// The largest file, bytes.
const MAX_FILE: u64 = 16 << 20;

/// So many messages a row at most.
const MAX_MESSAGES: u64 = 1_000_000;

/// Why a file cannot be run.
#[derive(Debug, Error)]
pub enum PublishedError {
    /// It cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Read {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// It is not of this form.
    #[error(transparent)]
    Form(#[from] ExperimentError),
    /// A value makes no sense.
    #[error("{file}: {reason}")]
    Wrong {
        /// The file that the error is about.
        file: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(default)]
    at: Option<DurationPs>,
    from: u32,
    to: u32,
    #[serde(default)]
    bytes: Option<Bytes>,
    #[serde(default = "one")]
    count: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    what: String,
    fabric: Option<toml::Table>,
    #[serde(default)]
    set: toml::Table,
    beyond: Option<toml::Table>,
    bytes: Option<Bytes>,
    message: Option<usize>,
    #[serde(default)]
    all: bool,
    published: Option<DurationPs>,
    arithmetic: Option<DurationPs>,
    #[serde(default)]
    less: Vec<Than>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Than {
    than: String,
    percent: Option<f64>,
}

/// A file of published figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    title: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "two")]
    racks: u32,
    #[serde(default = "one")]
    hosts_per_rack: u32,
    fabric: toml::Table,
    #[serde(rename = "message")]
    messages: Vec<Message>,
    #[serde(rename = "row")]
    rows: Vec<Row>,
    #[serde(skip)]
    file: String,
    /// For errors: what the file says, and what was changed.
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    overrides: Vec<Override>,
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

/// What came out of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// Its title.
    pub title: String,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Each row.
    pub rows: Vec<RowOutcome>,
}

/// What came out of a row; times in picoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowOutcome {
    /// What it is.
    pub what: String,
    /// What was published, where it is known.
    pub published_ps: Option<u64>,
    /// What the model's arithmetic gives, where it is given.
    pub arithmetic_ps: Option<u64>,
    /// What the simulation gives.
    pub simulated_ps: u64,
    /// Whether the simulation gives what the arithmetic gives; true where that is not given.
    pub as_computed: bool,
    /// How much less time it takes than others.
    pub less: Vec<Less>,
}

/// What is wrong with a row, and the key of the row that says it.
struct Wrong {
    reason: String,
    key: &'static str,
}

impl Wrong {
    fn of(key: &'static str) -> impl Fn(String) -> Self {
        move |reason| Self { reason, key }
    }
}

/// How much less time a row takes than another one, in percent of that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Less {
    /// The other row.
    pub than: String,
    /// What was published, where it is known.
    pub published_percent: Option<f64>,
    /// What the simulation gives.
    pub simulated_percent: f64,
}

impl Less {
    /// Simulated less published, in points.
    #[must_use]
    pub fn points(&self) -> Option<f64> {
        self.published_percent.map(|published| self.simulated_percent - published)
    }
}

impl RowOutcome {
    /// (simulated - published) / published.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn deviation(&self) -> Option<f64> {
        let published = self.published_ps.filter(|published| *published > 0)? as f64;
        Some(self.simulated_ps as f64 / published - 1.0)
    }
}

impl Than {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn of(&self, simulated_ps: u64, earlier: &[RowOutcome]) -> Result<Less, String> {
        let other = earlier.iter().find(|row| row.what == self.than);
        let other = other.ok_or_else(|| format!("less than \"{}\": no row above has that name", self.than))?;
        Ok(Less {
            than: self.than.clone(),
            published_percent: self.percent,
            simulated_percent: 100.0 * (1.0 - simulated_ps as f64 / other.simulated_ps.max(1) as f64),
        })
    }
}

impl Published {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not of this form.
    pub fn read(path: &Path, overrides: &[Override]) -> Result<Self, PublishedError> {
        let text =
            files::read_text(path, MAX_FILE).map_err(|reason| PublishedError::Read { path: path.into(), reason })?;
        Self::parse(&text, &path.display().to_string(), overrides)
    }

    /// Reads `text`, which errors call `file`, and applies `overrides`.
    ///
    /// # Errors
    /// When it, or an override, is not of this form.
    pub fn parse(text: &str, file: &str, overrides: &[Override]) -> Result<Self, PublishedError> {
        let wrong = |reason: String| PublishedError::Wrong { file: file.to_owned(), reason };
        let read = |table: toml::Table| {
            table.clone().try_into::<Self>().map(|_| table).map_err(|error| error.message().to_owned())
        };
        // Read once as it is, for errors with their line.
        let mut published: Self =
            toml::from_str(text).map_err(|error: toml::de::Error| match text.parse::<toml::Table>() {
                Ok(table) if error.message().starts_with("unknown field") => {
                    locate::unreadable(file, text, &[], (&table, &read), error.message())
                }
                _ => locate::syntax_error(file, text, &error),
            })?;
        if !overrides.is_empty() {
            let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
            for change in overrides {
                change.apply(&mut table)?;
            }
            published = table.clone().try_into().map_err(|error: toml::de::Error| {
                locate::unreadable(file, text, overrides, (&table, &read), error.message())
            })?;
        }
        file.clone_into(&mut published.file);
        text.clone_into(&mut published.text);
        overrides.clone_into(&mut published.overrides);
        let hosts = u64::from(published.racks) * u64::from(published.hosts_per_rack);
        if hosts == 0 || hosts > 65_536 {
            return Err(wrong(format!("{hosts} hosts (racks x hosts_per_rack): from 1 to 65536 are possible")));
        }
        for (number, message) in published.messages.iter().enumerate() {
            let ends = [("from", message.from), ("to", message.to)];
            if let Some((key, host)) = ends.into_iter().find(|(_, host)| u64::from(*host) >= hosts) {
                let reason = format!("host {host} of a message is not there: hosts are 0 to {}", hosts - 1);
                let number = number.to_string();
                return Err(locate::wrong_at(file, text, &[&["message", &number, key]], &reason).into());
            }
        }
        let messages: u64 = published.messages.iter().map(|message| u64::from(message.count)).sum();
        if messages == 0 || messages > MAX_MESSAGES {
            return Err(wrong(format!("{messages} messages: from 1 to {MAX_MESSAGES} are possible")));
        }
        Ok(published)
    }

    /// Runs every row.
    ///
    /// # Errors
    /// When a row's fabric cannot be built, or a message has no size or is never delivered.
    pub fn run(&self) -> Result<Outcome, PublishedError> {
        let mut rows = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let outcome = self.run_row(row, &rows).map_err(|wrong| self.wrong(number, row, &wrong))?;
            rows.push(outcome);
        }
        Ok(Outcome { file: self.file.clone(), title: self.title.clone(), notes: self.notes.clone(), rows })
    }

    /// What is wrong with a row, at its key where that stands in the row, else in `[fabric]` or an override.
    fn wrong(&self, number: usize, row: &Row, Wrong { reason, key }: &Wrong) -> PublishedError {
        let (file, text, number) = (self.file.as_str(), self.text.as_str(), number.to_string());
        let of_row = |key: &str| locate::wrong_below(file, text, &["row", &number, key], reason);
        let error = of_row(key).or_else(|| of_row("fabric")).unwrap_or_else(|| {
            let error = locate::wrong(file, text, &self.overrides, reason);
            let is_without_line = matches!(&error, ExperimentError::Wrong { place, .. } if place == file);
            let places: [&[&str]; 2] = [&["row", &number, key], &["row", &number]];
            if is_without_line { locate::wrong_at(file, text, &places, reason) } else { error }
        });
        match error {
            ExperimentError::Wrong { place, reason } => {
                PublishedError::Wrong { file: place, reason: format!("row \"{}\": {reason}", row.what) }
            }
            other => other.into(),
        }
    }

    fn run_row(&self, row: &Row, earlier: &[RowOutcome]) -> Result<RowOutcome, Wrong> {
        let time = self.time(row, "set", &row.set)?;
        let simulated_ps = match &row.beyond {
            Some(keys) => {
                let without = self.time(row, "beyond", keys)?;
                let less = "it takes less time than the run that it is compared with (beyond)";
                time.checked_sub(without).ok_or_else(|| Wrong::of("beyond")(less.to_owned()))?
            }
            None => time,
        };
        let arithmetic_ps = row.arithmetic.map(DurationPs::ps);
        Ok(RowOutcome {
            what: row.what.clone(),
            published_ps: row.published.map(DurationPs::ps),
            arithmetic_ps,
            simulated_ps,
            as_computed: arithmetic_ps.is_none_or(|arithmetic| arithmetic == simulated_ps),
            less: row
                .less
                .iter()
                .map(|than| than.of(simulated_ps, earlier))
                .collect::<Result<_, _>>()
                .map_err(Wrong::of("less"))?,
        })
    }

    /// The time of the message that counts, in a run with the keys of `of` in the fabric, which are `keys`.
    fn time(&self, row: &Row, of: &'static str, keys: &toml::Table) -> Result<u64, Wrong> {
        let mut table = row.fabric.as_ref().unwrap_or(&self.fabric).clone();
        table.extend(keys.clone());
        let config = fabric_of(table).map_err(Wrong::of(of))?;
        let built = fabric::build(&config, &self.hosts());
        let mut network = built.map_err(|error| Wrong::of(of)(error.to_string()))?;
        let handed_over = self.hand_overs(row).map_err(Wrong::of("bytes"))?;
        let wrong = |reason: String| Wrong::of("message")(reason);
        let mut departures = Departures::new(&handed_over);
        engine::run(&mut network, &mut departures, SimTime::LATEST);
        let delivered = departures.delivered;
        if row.all {
            let last = delivered.values().max().filter(|_| delivered.len() == handed_over.len());
            let few = || wrong(format!("{} of {} messages were delivered", delivered.len(), handed_over.len()));
            let last = last.ok_or_else(few)?;
            return Ok(last.since_ps(handed_over[0].at));
        }
        let number = row.message.unwrap_or(handed_over.len());
        let index = number.checked_sub(1).filter(|index| *index < handed_over.len());
        let index = index.ok_or_else(|| wrong(format!("message = {number}: there are 1 to {}", handed_over.len())))?;
        let never = || wrong("the message that counts was never delivered".to_owned());
        let arrived = delivered.get(&index).ok_or_else(never)?;
        Ok(arrived.since_ps(handed_over[index].at))
    }

    fn hosts(&self) -> Vec<HostPlace> {
        let hosts = 0..self.racks * self.hosts_per_rack;
        let place = |host| HostPlace { name: format!("s{host}"), rack: format!("tor{}", host / self.hosts_per_rack) };
        hosts.map(place).collect()
    }

    /// What is handed over when, in the order of time.
    fn hand_overs(&self, row: &Row) -> Result<Vec<Departure>, String> {
        let mut all = Vec::new();
        for message in &self.messages {
            let bytes = row.bytes.or(message.bytes).ok_or("neither the row nor a message says how many bytes")?;
            let at = SimTime(message.at.map_or(0, DurationPs::ps));
            let (source, destination) = (HostIndex(message.from), HostIndex(message.to));
            all.extend((0..message.count).map(|_| Departure { at, source, destination, bytes: bytes.get() }));
        }
        all.sort_by_key(|departure| departure.at);
        Ok(all)
    }
}

/// The fabric of a table; what is wrong with it begins with its key.
fn fabric_of(table: toml::Table) -> Result<FabricConfig, String> {
    let read = |table: toml::Table| {
        let config: FabricConfig = table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        toml::Table::try_from(&config).map_err(|error| error.to_string())
    };
    table.clone().try_into().map_err(|error: toml::de::Error| {
        let message = error.message();
        match culprit(&table, &read, message).filter(|_| locate::key_of(message).is_none()) {
            Some(found) => format!("fabric.{}: {}", found.path.join("."), found.explain(message)),
            None => message.to_owned(),
        }
    })
}

/// Nanoseconds with their thousands apart, and with picoseconds where there are any.
#[must_use]
pub fn nanoseconds(ps: u64) -> String {
    let digits = (ps / 1_000).to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !ps.is_multiple_of(1_000) {
        text.push_str(format!(".{:03}", ps % 1_000).trim_end_matches('0'));
    }
    text + " ns"
}
