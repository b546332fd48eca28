//! `congestion`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, bail};
use clap::{Args, ValueEnum};
use congestion::{CongestionError, Experiment, Joined, Listed, Paths, Pattern, Sends, Subset};
use netsim::files;
use netsim::routing::RoutingConfig;
use netsim::units::Bytes;
use replay::long_messages::{LongMessages, MessageFabric};
use replay::report;
use replay::results::congestion::{
    CaseKey, CongestionCase, CongestionDetail, ShuffleCase, ShuffleDetail, write_congestion,
};
use replay::results::{check_folder, remove_results};
use replay::run::read_trace;
use replay::shuffle::Shuffle;

use super::common::{say, threads};
use super::congestion_text as text;
use super::network::{Network, NetworkArgs, write};
use super::progress::Bars;

/// Bytes that a list of hosts may have.
const MAX_SUBSET: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct CongestionArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// The routing, which has one path for a pair: file (the topology's file's), d-mod-k, s-mod-k, shortest, up-down, dor or ecmp, by
    /// a hash of the pair [default: the experiment's; without one, that of a file with routes, dor on meshes and tori, else
    /// d-mod-k]. May be given more than once.
    #[arg(long)]
    routing: Vec<String>,
    /// Who sends to whom: null, rand, bisect, bisect_fb_sym, tree, bruck, gather, scatter, ring, recdbl, 2neighbor, 4neighbor,
    /// 6neighbor, or shift:N. May be given more than once.
    #[arg(long, short = 'p', default_value = "bisect", conflicts_with = "trace")]
    pattern: Vec<Pattern>,
    /// What the ranks do that --part leaves over (ORCS' ptrnvsptrn); it begins again as long as the first pattern goes on. May be
    /// given more than once.
    #[arg(long, value_name = "PATTERN", requires = "part", conflicts_with = "trace")]
    against: Vec<Pattern>,
    /// The number of the first pattern's ranks.
    #[arg(long, value_name = "RANKS", requires = "against")]
    part: Option<u32>,
    /// Looks at the shuffle of a recorded job in place of patterns: the folder of a trace. Its hosts are mapped to the topology's
    /// as ranks are.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["metric", "level", "print_pattern", "print_hosts", "simulate", "serial_sends"])]
    trace: Option<PathBuf>,
    /// Which of the trace's jobs [default: the one that shuffled most].
    #[arg(long, value_name = "ID", requires = "trace")]
    job: Option<String>,
    /// Simulates all messages of a level as long ones on this fabric, too, and puts static estimates beside simulated times.
    #[arg(long, value_enum, value_name = "FABRIC", conflicts_with_all = ["metric", "print_pattern", "print_hosts"])]
    simulate: Option<Fabric>,
    /// The length of simulated messages.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", requires = "simulate")]
    message: Bytes,
    /// How many hosts take part [default: all]; several numbers with commas between them.
    #[arg(long, short = 's', value_name = "N", value_delimiter = ',', conflicts_with = "trace")]
    hosts: Vec<usize>,
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
    /// What is printed [default: hist_max_cong of one pattern, a table of several].
    #[arg(long, value_enum)]
    metric: Option<Metric>,
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
    /// Writes a report, tables and links as coloured DOT into this folder, too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replaces results that are in that folder.
    #[arg(long, requires = "out")]
    force: bool,
}

/// A fabric that simulates long messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// Lossless, with credits.
    Credit,
    /// Whole packets, one after the other; needs links with unlimited buffers.
    StoreAndForward,
}

impl From<Fabric> for MessageFabric {
    fn from(fabric: Fabric) -> Self {
        match fabric {
            Fabric::Credit => Self::Credit,
            Fabric::StoreAndForward => Self::StoreAndForward,
        }
    }
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

/// Patterns that one routing is looked at with.
struct Cases {
    config: RoutingConfig,
    experiments: Vec<Experiment>,
}

/// Counts messages over links.
pub(super) fn show(args: &CongestionArgs) -> Result<ExitCode, Error> {
    let network = args.network.network()?;
    let seed = args.seed.unwrap_or(network.seed);
    let experiments = experiments(args, seed)?;
    let of_routing = |config| Cases { config, experiments: experiments.clone() };
    let cases: Vec<Cases> = routings(args, &network)?.into_iter().map(of_routing).collect();
    if let Some(folder) = &args.out {
        check_folder(folder, args.force)?;
    }
    if args.metric == Some(Metric::Routequal) {
        say(evenness(args, &network, &cases, seed)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.print_hosts || args.print_pattern {
        say(first_run(args, &network, &cases, seed)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    args.out.as_deref().map_or(Ok(()), remove_results)?;
    let (detail, graphs) = match &args.trace {
        Some(trace) => (shuffle(args, trace, &network, &cases, seed)?, Vec::new()),
        None => run(args, &network, &cases, seed)?,
    };
    if let Some(folder) = &args.out {
        write_congestion(folder, &detail)?;
        report::write_congestion(folder, &detail)?;
    }
    if args.json {
        say(&serde_json::to_string_pretty(&detail)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let printed = match args.metric {
        _ if detail.shuffle.is_some() => detail.shuffle.as_ref().map(text::shuffle).unwrap_or_default(),
        None if args.simulate.is_some() => format!("{}\n{}", text::cases(&detail), text::simulated(&detail)),
        None if detail.cases.len() > 1 => text::cases(&detail),
        metric => {
            let metric = metric.unwrap_or(Metric::HistMaxCong);
            let of = |(case, graph): (&CongestionCase, &String)| match metric {
                Metric::SumMaxCong => text::counted(&case.sum_max_cong_runs, case.sum_max_cong),
                Metric::DepMaxDelay => text::counted(&case.dep_max_delay_runs, case.dep_max_delay),
                Metric::HistAccBand => text::bands(case),
                Metric::GetCableCong => graph.clone(),
                Metric::HistMaxCong | Metric::Routequal => text::weights(case),
            };
            let texts: Vec<String> = detail.cases.iter().zip(&graphs).map(of).collect();
            headed(detail.labelled().map(|(label, _)| label).zip(texts).collect())
        }
    };
    say(printed.trim_end())?;
    if let Some(folder) = &args.out {
        trace::stderr::print(format!("replay: report: {}", folder.join("report.html").display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Texts below each other, with headings if there are several.
fn headed(texts: Vec<(String, String)>) -> String {
    if let [(_, only)] = &texts[..] {
        return only.clone();
    }
    texts.into_iter().map(|(label, text)| format!("# {label}\n{text}")).collect()
}

/// Runs all cases. Their links as DOT are kept only where they are printed, and written into the folder one by one.
fn run(
    args: &CongestionArgs,
    network: &Network,
    cases: &[Cases],
    seed: u64,
) -> Result<(CongestionDetail, Vec<String>), Error> {
    let topology = &network.topology;
    let mut detail = CongestionDetail {
        topology: network.shape.to_owned(),
        topology_hosts: topology.hosts(),
        runs: args.runs,
        seed,
        cases: Vec::new(),
        shuffle: None,
    };
    let count: usize = cases.iter().map(|cases| cases.experiments.len()).sum();
    let runs = usize::try_from(args.runs).unwrap_or(usize::MAX).saturating_mul(count);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads_of(args)).build()?;
    let bars = Bars::new();
    let bar = bars.jobs(if args.simulate.is_some() { runs.saturating_mul(2) } else { runs });
    let mut graphs = Vec::new();
    for Cases { config, experiments } in cases {
        let routes = network.routes_by(config, !args.routing.is_empty(), seed)?;
        let paths = Paths::new(topology, &routes)?;
        for experiment in experiments {
            let hosts = experiment.ranks(&paths).map_err(|error| named(args, error))?;
            let results = experiment.run(&paths, || bar.inc(1)).map_err(|error| named(args, error))?;
            let mut case = CongestionCase::new(key(config, experiment, hosts), &results);
            if let Some(fabric) = args.simulate {
                let (fabric, bytes) = (fabric.into(), args.message.get());
                let messages = LongMessages { fabric, bytes, topology, routes: &routes, paths: &paths };
                let compare = || messages.compare(experiment, || bar.inc(1));
                case.simulated = Some(pool.install(compare)?);
            }
            detail.cases.push(case);
            let graph = || congestion::coloured(topology, &results.links);
            if let Some(folder) = &args.out {
                let number = if count > 1 { format!("-{}", detail.cases.len()) } else { String::new() };
                write(&folder.join(format!("congestion{number}.dot")), &graph())?;
            }
            graphs.push(if args.metric == Some(Metric::GetCableCong) { graph() } else { String::new() });
        }
    }
    bar.finish_and_clear();
    Ok((detail, graphs))
}

/// Counts the bytes of a recorded shuffle over links.
fn shuffle(
    args: &CongestionArgs,
    trace: &Path,
    network: &Network,
    cases: &[Cases],
    seed: u64,
) -> Result<CongestionDetail, Error> {
    let topology = &network.topology;
    let bars = Bars::new();
    let spinner = bars.spinner(&format!("reading {}", trace.display()));
    let recorded = Shuffle::of(&read_trace(trace)?, args.job.as_deref())?;
    spinner.finish_and_clear();
    if recorded.transfers.is_empty() {
        bail!("{} of {} has no map outputs that went from one host to another", recorded.job, trace.display());
    }
    let mut detail = ShuffleDetail {
        trace: trace.display().to_string(),
        job: recorded.job.clone(),
        hosts: recorded.hosts.len(),
        in_order: args.no_shuffle,
        pairs: recorded.transfers.len(),
        bytes: recorded.bytes(),
        local_bytes: recorded.local_bytes,
        routings: Vec::new(),
    };
    let bar = bars.jobs(usize::try_from(args.runs).unwrap_or(usize::MAX).saturating_mul(cases.len()));
    for Cases { config, experiments } in cases {
        let routes = network.routes_by(config, !args.routing.is_empty(), seed)?;
        let paths = Paths::new(topology, &routes)?;
        for experiment in experiments {
            let experiment = Experiment { hosts: Some(recorded.hosts.len()), ..experiment.clone() };
            let sharing = experiment.share(&paths, &recorded.transfers, || bar.inc(1));
            let sharing = sharing.map_err(|error| named(args, error))?;
            detail.routings.push(ShuffleCase::new(config.to_string(), topology, &sharing, args.runs));
        }
    }
    bar.finish_and_clear();
    Ok(CongestionDetail {
        topology: network.shape.to_owned(),
        topology_hosts: topology.hosts(),
        runs: args.runs,
        seed,
        cases: Vec::new(),
        shuffle: Some(detail),
    })
}

/// What tells a case from the others.
fn key(config: &RoutingConfig, experiment: &Experiment, hosts: usize) -> CaseKey {
    let Joined { first, against } = &experiment.pattern;
    CaseKey {
        routing: config.to_string(),
        pattern: first.to_string(),
        against: against.map(|(_, pattern)| pattern.to_string()),
        part: against.map(|(part, _)| part),
        hosts,
    }
}

/// The hosts or the messages of each case's first run.
fn first_run(args: &CongestionArgs, network: &Network, cases: &[Cases], seed: u64) -> Result<String, Error> {
    let topology = &network.topology;
    let mut printed = Vec::new();
    for Cases { config, experiments } in cases {
        let routes = network.routes_by(config, !args.routing.is_empty(), seed)?;
        let paths = Paths::new(topology, &routes)?;
        for experiment in experiments {
            let ranks = experiment.mapping(&paths, 0).map_err(|error| named(args, error))?;
            let of_case = if args.print_hosts {
                text::hosts(topology, &ranks)
            } else {
                text::messages(topology, experiment, &ranks)
            };
            printed.push((key(config, experiment, ranks.len()), of_case));
        }
    }
    let keys: Vec<CaseKey> = printed.iter().map(|(key, _)| key.clone()).collect();
    Ok(headed(printed.into_iter().map(|(key, text)| (key.label(&keys), text)).collect()))
}

/// How evenly each routing uses the links between switches.
fn evenness(args: &CongestionArgs, network: &Network, cases: &[Cases], seed: u64) -> Result<String, Error> {
    let mut found = BTreeMap::new();
    for Cases { config, .. } in cases {
        let routes = network.routes_by(config, !args.routing.is_empty(), seed)?;
        let paths = Paths::new(&network.topology, &routes)?;
        found.insert(config.to_string(), congestion::quality(&paths, threads_of(args))?);
    }
    let json = serde_json::to_string_pretty(&found)?;
    if let Some(folder) = &args.out {
        remove_results(folder)?;
        write(&folder.join("routequal.json"), &json)?;
    }
    let texts = found.iter().map(|(routing, quality)| (routing.clone(), text::evenness(quality)));
    Ok(if args.json { json } else { headed(texts.collect()) })
}

/// Which routings are looked at.
fn routings(args: &CongestionArgs, network: &Network) -> Result<Vec<RoutingConfig>, Error> {
    if args.routing.is_empty() {
        return Ok(vec![network.routing_config(None)?]);
    }
    args.routing.iter().map(|name| network.routing_config(Some(name))).collect()
}

fn threads_of(args: &CongestionArgs) -> usize {
    args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// All combinations of patterns and numbers of hosts.
fn experiments(args: &CongestionArgs, seed: u64) -> Result<Vec<Experiment>, Error> {
    let subset = match args.subset.as_str() {
        "linear-bfs" => Subset::LinearBfs,
        "first" => Subset::First,
        "rand" => Subset::Rand,
        file => Subset::Named(listed(file)?),
    };
    let hosts: Vec<Option<usize>> =
        if args.hosts.is_empty() { vec![None] } else { args.hosts.iter().copied().map(Some).collect() };
    let against: Vec<Option<(u32, Pattern)>> = match args.part {
        Some(part) => args.against.iter().map(|pattern| Some((part, *pattern))).collect(),
        None => vec![None],
    };
    let mut experiments = Vec::new();
    for first in &args.pattern {
        for against in &against {
            for hosts in &hosts {
                experiments.push(Experiment {
                    pattern: Joined { first: *first, against: *against },
                    hosts: *hosts,
                    subset: subset.clone(),
                    shuffled: !args.no_shuffle,
                    level: args.level,
                    runs: args.runs,
                    seed,
                    sends: if args.serial_sends { Sends::Serial } else { Sends::Free },
                    threads: threads_of(args),
                });
            }
        }
    }
    Ok(experiments)
}

/// The hosts that a file lists, one a line.
fn listed(file: &str) -> Result<Vec<Listed>, Error> {
    let wrong = || format!("--subset {file} is not linear-bfs, first or rand, and no file that can be read");
    let text = files::read_text(Path::new(file), MAX_SUBSET).with_context(wrong)?;
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
