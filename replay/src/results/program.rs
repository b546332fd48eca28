//! What programs over fabrics leave behind.
//!
//! | file | what |
//! |---|---|
//! | `program.json` | [`ProgramDetail`] |
//! | `program_messages.parquet` | a row for each message over each fabric |
//! | `program_ranks.parquet` | a row for each rank over each fabric |

use std::path::Path;

use netsim::network::HostIndex;
use netsim::time::SimTime;
use program::{Driver, Operation, Program};
use serde::Serialize;
use trace_tables::write_rows;

use super::StoreError;
use super::store::{make_folder, write_json};
use super::tables::{ProgramMessageResult, ProgramRankResult};

/// The file of all figures.
const DETAIL: &str = "program.json";

/// A program over fabrics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramDetail {
    /// The file of the program, or its kernel.
    pub program: String,
    /// Ranks.
    pub ranks: u32,
    /// Operations.
    pub operations: usize,
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What came out, fabric by fabric.
    pub fabrics: Vec<ProgramSummary>,
}

/// What a program was over one fabric. Times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramSummary {
    /// The experiment's name.
    pub fabric: String,
    /// When the last rank had ended.
    pub time_s: f64,
    /// When the last rank of each application had ended, in their order; empty of one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applications_s: Vec<f64>,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// From sends to arrivals: the mean of the messages; null without messages.
    pub message_mean_s: Option<f64>,
    /// What half of the messages do not exceed, by nearest rank.
    pub message_median_s: Option<f64>,
    /// What 99% do not exceed.
    pub message_p99_s: Option<f64>,
    /// The longest.
    pub message_max_s: Option<f64>,
    /// Packets that the fabric lost.
    pub drops: u64,
    /// Events of the fabric.
    pub events: u64,
}

/// A run of a program over one fabric, as figures and rows.
#[derive(Debug)]
pub struct ProgramRun {
    /// The figures.
    pub summary: ProgramSummary,
    messages: Vec<ProgramMessageResult>,
    ranks: Vec<ProgramRankResult>,
}

impl ProgramRun {
    /// Of a driver that came to its end at `end` on the fabric `name`; `hosts` has each rank's.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "times and counts as figures")]
    pub fn new(
        name: &str,
        program: &Program,
        driver: &Driver,
        hosts: &[HostIndex],
        end: SimTime,
        figures: &netsim::network::NetworkFigures,
        of_hosts: u32,
    ) -> Self {
        let mut ways: Vec<u64> = driver.messages().iter().map(|times| times.delivered.since_ps(times.sent)).collect();
        ways.sort_unstable();
        let seconds = |ps: u64| SimTime(ps).as_secs_f64();
        let at = |percent: usize| {
            let rank = (ways.len() * percent).div_ceil(100);
            ways.get(rank.saturating_sub(1)).map(|ps| seconds(*ps))
        };
        let sum: u128 = ways.iter().map(|ps| u128::from(*ps)).sum();
        let summary = ProgramSummary {
            fabric: name.to_owned(),
            time_s: end.as_secs_f64(),
            applications_s: applications(program, driver),
            hosts: of_hosts,
            message_mean_s: (!ways.is_empty()).then(|| sum as f64 / ways.len() as f64 / 1e12),
            message_median_s: at(50),
            message_p99_s: at(99),
            message_max_s: at(100),
            drops: figures.drops,
            events: figures.events,
        };
        let message = |times: &program::MessageTimes| {
            let (from, operation) = program.operation(times.send)?;
            let Operation::Send { to, bytes, tag } = operation else { return None };
            Some(ProgramMessageResult {
                fabric: name.to_owned(),
                operation: times.send.0,
                from_rank: from.0,
                to_rank: to.0,
                tag,
                bytes,
                sent_s: times.sent.as_secs_f64(),
                delivered_s: times.delivered.as_secs_f64(),
            })
        };
        let rank = |(rank, end): (usize, &SimTime)| ProgramRankResult {
            fabric: name.to_owned(),
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            host: hosts.get(rank).map_or(0, |host| host.0),
            end_s: end.as_secs_f64(),
        };
        Self {
            summary,
            messages: driver.messages().iter().filter_map(message).collect(),
            ranks: driver.ranks_end().iter().enumerate().map(rank).collect(),
        }
    }
}

/// When the last rank of each of several applications had ended, in seconds.
fn applications(program: &Program, driver: &Driver) -> Vec<f64> {
    let (ranks, mut ends) = (program.applications(), driver.ranks_end().iter());
    if ranks.len() < 2 {
        return Vec::new();
    }
    let last = |ranks: &u32| ends.by_ref().take(*ranks as usize).max().map_or(0.0, |end| end.as_secs_f64());
    ranks.iter().map(last).collect()
}

/// A program over fabrics, as figures and rows.
#[derive(Debug)]
pub struct ProgramResults {
    /// The figures.
    pub detail: ProgramDetail,
    messages: Vec<ProgramMessageResult>,
    ranks: Vec<ProgramRankResult>,
}

impl ProgramResults {
    /// Of runs of a program that comes from `source`.
    #[must_use]
    pub fn new(source: String, program: &Program, runs: Vec<ProgramRun>) -> Self {
        let (mut fabrics, mut messages, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
        for run in runs {
            fabrics.push(run.summary);
            messages.extend(run.messages);
            ranks.extend(run.ranks);
        }
        let detail = ProgramDetail {
            program: source,
            ranks: program.ranks(),
            operations: program.operations(),
            messages: program.messages(),
            bytes: program.bytes(),
            fabrics,
        };
        Self { detail, messages, ranks }
    }

    /// Writes them into a folder, which is made where it is missing.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), StoreError> {
        make_folder(folder)?;
        write_json(&folder.join(DETAIL), &self.detail)?;
        write_rows(folder, &self.messages)?;
        Ok(write_rows(folder, &self.ranks)?)
    }
}
