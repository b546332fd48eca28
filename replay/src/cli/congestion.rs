//! `congestion`.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, bail};
use clap::{Args, ValueEnum};
use congestion::{
    Bandwidths, CongestionError, Experiment, Histogram, Joined, Listed, Paths, Pattern, Quality, Sends, Subset, Summary,
};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{NodeId, Structure, Topology};
use serde::Serialize;

use super::common::{say, threads};
use super::network::{Network, NetworkArgs, write};
use super::progress::Bars;

/// Bytes that a list of hosts may have.
const MAX_SUBSET: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct CongestionArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// The routing, which has one path for a pair: d-mod-k, s-mod-k, shortest, up-down, dor or ecmp, by a hash of the pair
    /// [default: the experiment's; without one, dor on meshes and tori, else d-mod-k].
    #[arg(long)]
    routing: Option<String>,
    /// Who sends to whom: null, rand, bisect, bisect_fb_sym, tree, bruck, gather, scatter, ring, recdbl, 2neighbor, 4neighbor,
    /// 6neighbor, or shift:N.
    #[arg(long, short = 'p', default_value = "bisect")]
    pattern: Pattern,
    /// What the ranks do that --part leaves over (ORCS' ptrnvsptrn); it begins again as long as the first pattern goes on.
    #[arg(long, value_name = "PATTERN", requires = "part")]
    against: Option<Pattern>,
    /// The number of the first pattern's ranks.
    #[arg(long, value_name = "RANKS", requires = "against")]
    part: Option<u32>,
    /// How many hosts take part [default: all].
    #[arg(long, short = 's', value_name = "N")]
    hosts: Option<usize>,
    /// Which hosts: linear-bfs (breadth-first from the first node), first, rand (drawn anew for each run), or a file of names,
    /// one a line.
    #[arg(long, default_value = "linear-bfs")]
    subset: String,
    /// How many runs; each maps ranks to hosts anew.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,
    /// Looks at this level alone, counted from 0.
    #[arg(long, short = 'l')]
    level: Option<usize>,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Metric::HistMaxCong)]
    metric: Metric,
    /// Keeps ranks in the order of the hosts.
    #[arg(long)]
    no_shuffle: bool,
    /// For dep_max_delay: a rank that sent goes on when its message has arrived.
    #[arg(long)]
    serial_sends: bool,
    /// Decides what is drawn [default: the experiment's].
    #[arg(long)]
    seed: Option<u64>,
    /// Threads, on which no result depends [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Prints the messages of the first run, "LEVEL: SENDER -> RECEIVER" by hosts' names, in place of a metric.
    #[arg(long, conflicts_with_all = ["json", "print_hosts"])]
    print_pattern: bool,
    /// Prints the hosts of the first run, rank by rank, in place of a metric.
    #[arg(long, conflicts_with = "json")]
    print_hosts: bool,
    /// Prints all metrics as one JSON object.
    #[arg(long)]
    json: bool,
    /// Writes congestion.json and congestion.dot into this folder, too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Metric {
    /// Levels' greatest congestion, added up; how many runs have which.
    SumMaxCong,
    /// How many messages of all runs have which congestion, and the mean bandwidth.
    HistMaxCong,
    /// Runs by their mean bandwidth.
    HistAccBand,
    /// The longest chain of messages; how many runs have which.
    DepMaxDelay,
    /// The topology as DOT, coloured by the messages over each link.
    GetCableCong,
    /// Paths over links between switches when all send to all.
    Routequal,
}

/// All that was found.
#[derive(Debug, Serialize)]
struct Found<'a> {
    topology: &'a str,
    routing: String,
    pattern: String,
    /// The second pattern, and the number of the first one's ranks.
    against: Option<(String, u32)>,
    hosts: usize,
    runs: u64,
    seed: u64,
    /// Messages of all runs that go from one host to another.
    pairs: u64,
    /// Links on all paths.
    link_visits: u64,
    /// Messages of all runs by their congestion.
    congestion: &'a Histogram,
    /// Their mean bandwidth; null without messages.
    bandwidth: Option<f64>,
    bandwidth_of_runs: Option<Summary>,
    sum_max_cong: Option<Summary>,
    dep_max_delay: Option<Summary>,
}

/// Counts messages over links.
pub(super) fn show(args: &CongestionArgs) -> Result<ExitCode, Error> {
    let network = args.network.network()?;
    let topology = &network.topology;
    let seed = args.seed.unwrap_or(network.seed);
    let config = routing(args, &network)?;
    let routes = Routes::new(&config, topology, seed).map_err(|error| network.wrong(&error.to_string()))?;
    let paths = Paths::new(topology, &routes)?;
    let experiment = experiment(args, seed)?;
    if args.metric == Metric::Routequal {
        let quality = congestion::quality(&paths, experiment.threads)?;
        say(&if args.json { serde_json::to_string_pretty(&quality)? } else { evenness(&quality) })?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = |error| named(args, error);
    let ranks = experiment.mapping(&paths, 0).map_err(named)?;
    if args.print_hosts || args.print_pattern {
        say(&if args.print_hosts { names(topology, &ranks) } else { messages(topology, &experiment, &ranks) })?;
        return Ok(ExitCode::SUCCESS);
    }
    let bars = Bars::new();
    let bar = bars.jobs(usize::try_from(args.runs).unwrap_or(usize::MAX));
    let results = experiment.run(&paths, || bar.inc(1)).map_err(named)?;
    bar.finish_and_clear();
    let found = Found {
        topology: network.shape,
        routing: config.to_string(),
        pattern: args.pattern.to_string(),
        against: args.against.zip(args.part).map(|(against, part)| (against.to_string(), part)),
        hosts: ranks.len(),
        runs: args.runs,
        seed,
        pairs: results.congestion.values().sum(),
        link_visits: results.visits,
        congestion: &results.congestion,
        bandwidth: congestion::bandwidth(&results.congestion),
        bandwidth_of_runs: results.bandwidth.summary(),
        sum_max_cong: Summary::of(&results.sum_max),
        dep_max_delay: Summary::of(&results.delay),
    };
    let json = serde_json::to_string_pretty(&found)?;
    if let Some(folder) = &args.out {
        write(&folder.join("congestion.json"), &(json.clone() + "\n"))?;
        write(&folder.join("congestion.dot"), &congestion::coloured(topology, &results.links))?;
    }
    if args.json {
        say(&json)?;
    } else {
        let text = match args.metric {
            Metric::HistMaxCong => weights(&found),
            Metric::SumMaxCong => counted(&results.sum_max, found.sum_max_cong),
            Metric::DepMaxDelay => counted(&results.delay, found.dep_max_delay),
            Metric::HistAccBand => bands(&results.bandwidth, found.bandwidth_of_runs),
            Metric::GetCableCong => congestion::coloured(topology, &results.links),
            Metric::Routequal => String::new(),
        };
        say(text.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which routing is looked at.
fn routing(args: &CongestionArgs, network: &Network) -> Result<RoutingConfig, Error> {
    if let Some(name) = &args.routing {
        let read = toml::Value::String(name.clone()).try_into::<RoutingConfig>();
        return read.map_err(|error| Error::msg(format!("--routing {name}: {}", error.message())));
    }
    let grid = matches!(network.topology.structure(), Structure::Grid(_));
    Ok(network.routing.clone().unwrap_or(if grid { RoutingConfig::Dor } else { RoutingConfig::DModK }))
}

fn experiment(args: &CongestionArgs, seed: u64) -> Result<Experiment, Error> {
    let subset = match args.subset.as_str() {
        "linear-bfs" => Subset::LinearBfs,
        "first" => Subset::First,
        "rand" => Subset::Rand,
        file => Subset::Named(listed(file)?),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Experiment {
        pattern: Joined { first: args.pattern, against: args.part.zip(args.against) },
        hosts: args.hosts,
        subset,
        shuffled: !args.no_shuffle,
        level: args.level,
        runs: args.runs,
        seed,
        sends: if args.serial_sends { Sends::Serial } else { Sends::Free },
        threads: args.threads.unwrap_or(cores),
    })
}

/// The hosts that a file lists, one a line.
fn listed(file: &str) -> Result<Vec<Listed>, Error> {
    let wrong = || format!("--subset {file} is not linear-bfs, first or rand, and no file that can be read");
    let mut text = String::new();
    File::open(file).and_then(|opened| opened.take(MAX_SUBSET + 1).read_to_string(&mut text)).with_context(wrong)?;
    if text.len() as u64 > MAX_SUBSET {
        bail!("--subset {file}: more than {MAX_SUBSET} bytes; a list of hosts has one name a line");
    }
    let lines = text.lines().map(str::trim).zip(1..).filter(|(name, _)| !name.is_empty());
    Ok(lines.map(|(name, line)| Listed { line, name: name.to_owned() }).collect())
}

/// An error about a list of hosts with the list's name.
fn named(args: &CongestionArgs, error: CongestionError) -> Error {
    match error {
        CongestionError::Host { .. } => Error::msg(format!("--subset {}: {error}", args.subset)),
        other => other.into(),
    }
}

fn names(topology: &Topology, ranks: &[NodeId]) -> String {
    ranks.iter().map(|host| topology.name(*host)).collect::<Vec<_>>().join("\n")
}

/// The messages of the first run.
fn messages(topology: &Topology, experiment: &Experiment, ranks: &[NodeId]) -> String {
    let n = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
    let name = |rank: u32| ranks.get(rank as usize).map_or("", |host| topology.name(*host));
    let mut pairs = Vec::new();
    let mut lines = Vec::new();
    for level in experiment.level.map_or(0..experiment.pattern.levels(n), |level| level..level + 1) {
        experiment.pattern.level(level, n, experiment.seed, 0, &mut pairs);
        lines.extend(pairs.iter().map(|pair| format!("{level}: {} -> {}", name(pair.from), name(pair.to))));
    }
    lines.join("\n")
}

/// ORCS' own form (the paper's listing 3).
fn weights(found: &Found<'_>) -> String {
    let lines = found.congestion.iter();
    let mut text: String =
        lines.map(|(weight, count)| format!("weight {weight}: {count} of the {} connections\n", found.pairs)).collect();
    text += &found.bandwidth.map_or("BW: –".to_owned(), |bandwidth| format!("BW: {bandwidth:.6}"));
    text
}

fn counted(runs: &Histogram, summary: Option<Summary>) -> String {
    let lines: String = runs.iter().map(|(value, runs)| format!("{value}: {runs} runs\n")).collect();
    lines + &mean(summary)
}

/// ORCS' twenty bins.
fn bands(bandwidths: &Bandwidths, summary: Option<Summary>) -> String {
    let line = |(bin, runs): (usize, &u64)| {
        format!("{:.4} to {:.4}: {runs} runs\n", Bandwidths::edge(bin), Bandwidths::edge(bin + 1))
    };
    bandwidths.bins.iter().enumerate().map(line).collect::<String>() + &mean(summary)
}

fn mean(summary: Option<Summary>) -> String {
    summary.map_or("no run has messages".to_owned(), |found| {
        format!(
            "mean {:.6} ± {:.6} (99%), deviation {:.6}, from {:.6} to {:.6}",
            found.mean, found.half_width_99, found.deviation, found.min, found.max
        )
    })
}

fn evenness(quality: &Quality) -> String {
    format!(
        "links between switches: {}\npaths over each: {:.6} in the mean, deviation {:.6}, {} at most",
        quality.links, quality.mean, quality.deviation, quality.most
    )
}
