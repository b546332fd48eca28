//! `peers`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Error, bail};
use clap::Args;
use comfy_table::Cell;
use netsim::traffic::{RunOptions, TrafficConfig};
use rayon::prelude::*;
use replay::experiment::{Experiment, Override};
use replay::peers::{self, Figures, MIN_SEEDS, PEERS, Row, RowOutcome, Verdict};
use replay::results::synthetic::TrafficSummary;
use replay::run::run_traffic;
use serde_json::json;

use super::common::{FOUND_WRONG, say, stopped_by_signals};
use super::progress::Bars;
use super::table::{new_table, right, signed_percent};

#[derive(Debug, Args)]
pub(super) struct PeersArgs {
    /// Experiments with a peer's router [default: all that are built in as peers/...].
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<PathBuf>,
    /// The peer's figures, as CSV, for one experiment; those that are built in have their own.
    #[arg(long, value_name = "FILE", requires = "experiments")]
    figures: Option<PathBuf>,
    /// Runs of each row here.
    #[arg(long, value_name = "N", default_value_t = MIN_SEEDS, value_parser = clap::value_parser!(u64).range(MIN_SEEDS..=1000))]
    seeds: u64,
    /// Prints JSON in place of tables.
    #[arg(long)]
    json: bool,
    /// Replaces a value of each row by its path, such as traffic.measurement="20000 cycles"; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
}

/// What came out for a peer.
struct Outcome {
    name: String,
    rows: Vec<RowOutcome>,
}

/// Runs each row with each seed and puts both side by side.
pub(super) fn show(args: &PeersArgs) -> Result<ExitCode, Error> {
    if args.figures.is_some() && args.experiments.len() != 1 {
        bail!("--figures: a table belongs to one experiment");
    }
    let built_in = || PEERS.iter().map(|peer| PathBuf::from(peer.name)).collect();
    let paths: Vec<PathBuf> = if args.experiments.is_empty() { built_in() } else { args.experiments.clone() };
    let mut outcomes = Vec::new();
    for path in &paths {
        let rows = run(path, &figures_of(path, args)?, args)?;
        outcomes.push(Outcome { name: path.display().to_string(), rows });
    }
    if args.json {
        let all = outcomes.iter().map(|outcome| json!({ "peer": outcome.name, "rows": outcome.rows }));
        say(&serde_json::to_string_pretty(&json!({ "seeds": args.seeds, "peers": all.collect::<Vec<_>>() }))?)?;
    } else {
        say(outcomes.iter().map(of_outcome).collect::<String>().trim_end())?;
    }
    let differs = outcomes.iter().flat_map(|outcome| &outcome.rows).any(|row| row.verdict() == Verdict::Differs);
    Ok(ExitCode::from(if differs { FOUND_WRONG } else { 0 }))
}

fn figures_of(path: &Path, args: &PeersArgs) -> Result<Figures, Error> {
    if let Some(file) = &args.figures {
        return Ok(Figures::read(file)?);
    }
    let Some(peer) = PEERS.iter().find(|peer| path == Path::new(peer.name)) else {
        let names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        bail!(
            "{}: no figures are built in for it; give them with --figures, or take {}",
            path.display(),
            names.join(", ")
        );
    };
    Ok(Figures::parse(peer.figures, peer.file)?)
}

fn run(path: &Path, figures: &Figures, args: &PeersArgs) -> Result<Vec<RowOutcome>, Error> {
    let experiments = figures.rows.iter().map(|row| peers::experiment(path, row, &args.overrides));
    let experiments: Vec<Experiment> = experiments.collect::<Result<_, _>>()?;
    let bars = Bars::new();
    let done = bars.jobs(experiments.len());
    let stop = stopped_by_signals()?;
    let of_row = |(row, experiment): (&Row, &Experiment)| -> Result<RowOutcome, Error> {
        let mut runs = Vec::new();
        for seed in 1..=args.seeds {
            let seeded = experiment.seeded(seed).map_err(Error::msg)?;
            let run = run_traffic(&seeded, RunOptions::default(), &stop, |_| {})?;
            if stop.load(Ordering::Relaxed) {
                bail!("{}: stopped before all rows had run", path.display());
            }
            runs.extend(TrafficSummary::new(&seeded, &[run]));
        }
        done.inc(1);
        let stops = |traffic: &&TrafficConfig| traffic.injection_queue.is_some() || traffic.network_limit.is_some();
        let wanted = experiment.traffic.as_ref().filter(stops).and_then(|traffic| traffic.load);
        let outcome = RowOutcome::new(row, &runs, wanted);
        outcome.ok_or_else(|| Error::msg(format!("{}: {}: nothing was measured", path.display(), row.label)))
    };
    let rows = figures.rows.par_iter().zip(&experiments).map(of_row).collect();
    done.finish_and_clear();
    rows
}

fn of_outcome(outcome: &Outcome) -> String {
    let mut table = new_table(&["row", "figure", "peer", "here", "difference", "standard error", "verdict"]);
    for row in &outcome.rows {
        for (number, figure) in row.figures.iter().enumerate() {
            let digits = if figure.measure == "accepted" { 4 } else { 2 };
            let verdict = match figure.verdict {
                Verdict::Agrees => "agrees",
                Verdict::WithinErrors => "within three standard errors",
                Verdict::NotJudged => "saturated",
                Verdict::Explained => row.mechanism.as_deref().unwrap_or_default(),
                Verdict::Differs => "DIFFERS",
            };
            table.add_row([
                Cell::new(if number == 0 { row.row.as_str() } else { "" }),
                Cell::new(figure.measure.replace('_', " ")),
                right(format!("{:.digits$}", figure.peer)),
                right(format!("{:.digits$}", figure.ours)),
                right(signed_percent(figure.difference, 2)),
                right(format!("{:.2}%", figure.standard_error * 100.0)),
                Cell::new(verdict),
            ]);
        }
    }
    format!("{}\n{table}\n\n", outcome.name)
}
