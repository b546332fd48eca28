//! `predict`: a recorded job on other networks, with what makes the answer unsure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Error, bail, ensure};
use clap::Args;
use rayon::prelude::*;
use replay::experiment::{Experiment, Override};
use replay::predict::{
    Ablation, Capture, JITTER, LEVEL, NoiseFloor, Prediction, Replayed, Replays, SelfReplay, check_same_jobs, job_of,
    predict,
};
use replay::report;
use replay::results::{Detail, check_folder, remove_results, write_prediction};
use replay::run::{RunError, run_experiment};
use trace::rows::Trace;

use super::captures::read_recordings;
use super::common::{FOUND_WRONG, say, tell_of_left_out, threads};
use super::predict_text;
use super::progress::Bars;

/// More seeds tell nothing new.
const MAX_SEEDS: i64 = 1_000;

/// A job that takes so much less than recorded may have been held up by its network in more than a replay knows.
const MUCH_FASTER: f64 = 0.05;

#[derive(Debug, Args)]
pub(super) struct PredictArgs {
    /// Runs of one job: traces that `merger build` wrote, or captures, which the program `merger` beside this one merges.
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    captures: Vec<PathBuf>,
    /// A network: a TOML file of an experiment, or a name that `replay experiments` lists. May be given more than once.
    #[arg(long = "fabric", required = true, value_name = "EXPERIMENT")]
    fabrics: Vec<PathBuf>,
    /// A model of the network on which the job was recorded: how far its replay is from the recording widens the intervals
    /// [default: that of --fabric which has workload.recorded_network, else what `merger network` tells of each trace].
    #[arg(long, value_name = "EXPERIMENT")]
    recorded: Option<PathBuf>,
    /// With how many seeds each capture is replayed. With several, each thinking is up to 0.1% longer or shorter
    /// (workload.jitter): enough for other packets to be lost.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=MAX_SEEDS))]
    seeds: u32,
    /// What runs of the job on one network differ by (standard deviation), where fewer than three captures tell
    /// [default: 7.3%, measured with 17 terasorts].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    noise: Option<f64>,
    /// Also predicts without something, to show what it is worth: causality (messages leave at their recorded times), timers (news waits
    /// for no heartbeat), production (what the recorded network hid takes no time), tcp, cpu-sharing, network-work, handshakes. Several by commas.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    without: Vec<Ablation>,
    /// The job, by its name or id, where a trace has several [default: the one with the largest shuffle].
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Replaces a value of the experiments by its path; may be given more than once. Those of `fabric.` are not for --recorded.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
    /// Folder for prediction.json, the table predicted_tasks and report.html; made where it is missing.
    #[arg(long, value_name = "RESULTS")]
    out: Option<PathBuf>,
    /// Replaces results that are in that folder.
    #[arg(long, requires = "out")]
    force: bool,
    /// Prints one JSON object in place of tables.
    #[arg(long)]
    json: bool,
    /// How many replays at a time; it does not show in the results [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
}

/// A standard deviation, as "7.3%".
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.map(|percent| percent / 100.0);
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "a share from 0% to 100%, such as 7.3%".to_owned())
}

/// An experiment and where it is from.
struct Network<'a> {
    path: &'a Path,
    overrides: Vec<Override>,
    experiment: Experiment,
}

/// Runs of one job.
struct Runs {
    traces: Vec<Trace>,
    /// Networks as the packets of each tell of them.
    estimates: Vec<Option<Experiment>>,
    captures: Vec<Capture>,
}

/// Predicts a job on each network.
pub(super) fn run(args: &PredictArgs) -> Result<ExitCode, Error> {
    args.out.as_deref().map_or(Ok(()), |out| check_folder(out, args.force))?;
    let mut networks =
        args.fabrics.iter().map(|path| Network::read(path, &args.overrides)).collect::<Result<Vec<_>, _>>()?;
    check_names(&networks)?;
    let recorded = args.recorded.as_deref().map(|path| {
        let kept: Vec<Override> = args.overrides.iter().filter(|one| !one.is_of("fabric")).cloned().collect();
        Network::read(path, &kept)
    });
    let recorded = recorded.transpose()?;
    if let Some(recorded) = &recorded {
        networks.iter_mut().for_each(|network| network.recorded_on(&recorded.experiment));
    }
    let ablated = ablations(&networks, &args.without)?;
    let bars = Bars::new();
    let is_network_known =
        recorded.is_some() || networks.iter().any(|network| network.experiment.workload.recorded_network);
    let runs = read_runs(args, !is_network_known, &bars)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let replay = |network: &Network| pool.install(|| replay_all(network, &runs, args.seeds, &bars));
    let replayed = networks.iter().map(replay).collect::<Result<Vec<_>, Error>>()?;
    let estimated = runs.networks(&args.overrides)?;
    let own = match (&recorded, estimated) {
        (Some(network), _) => Some((network.experiment.name.clone(), replay(network)?.replays)),
        (None, Some(estimated)) => {
            let replayed = pool.install(|| replay_each(&estimated, &runs, args.seeds, &bars))?;
            Some(("each trace's own estimate".to_owned(), replayed.replays))
        }
        (None, None) => {
            let of_recorded = |(network, _): &(&Network, _)| network.experiment.workload.recorded_network;
            let found = networks.iter().zip(&replayed).find(of_recorded);
            found.map(|(network, replayed)| (network.experiment.name.clone(), replayed.replays.clone()))
        }
    };
    let floor = args.noise.map_or_else(NoiseFloor::default, |deviation| NoiseFloor {
        deviation,
        // Who gives it knows it.
        freedom: 1e6,
    });
    let mut prediction = Prediction {
        job_name: runs.job_name().to_owned(),
        captures: runs.captures.clone(),
        seeds: seeds(&networks[0].experiment, args.seeds).collect(),
        level: LEVEL,
        noise_floor: floor,
        self_replay: own.as_ref().and_then(|(name, own)| SelfReplay::of(name, own)),
        fabrics: Vec::new(),
        notes: Vec::new(),
    };
    let mut details = Vec::new();
    for (replayed, variants) in replayed.into_iter().zip(&ablated) {
        let without = variants.iter().map(|(without, network)| Ok((*without, replay(network)?.replays)));
        let without = without.collect::<Result<Vec<_>, Error>>()?;
        let own = own.as_ref().map(|(_, own)| own);
        let predicted = predict(&replayed.replays, own, &runs.captures, floor, &without);
        prediction.fabrics.push(predicted.context("no replay took any time")?);
        details.push(replayed.shown);
    }
    let gets_faster = prediction.fabrics.iter().any(|fabric| fabric.job.change < -MUCH_FASTER);
    let captures = runs.captures.len();
    prediction.notes = predict_text::notes(captures, own.is_some(), args.noise.is_some(), gets_faster);
    if let Some(out) = &args.out {
        remove_results(out)?;
        write_prediction(out, &prediction, &details)?;
        report::write_prediction(&out.join("report.html"), &prediction, &details)?;
    }
    if args.json {
        say(&serde_json::to_string_pretty(&prediction)?)?;
    } else {
        say(&predict_text::of(&prediction, args.out.as_deref()))?;
    }
    let doubted = prediction.fabrics.iter().any(|fabric| !fabric.doubts.is_empty());
    Ok(ExitCode::from(if doubted { FOUND_WRONG } else { 0 }))
}

impl<'a> Network<'a> {
    fn read(path: &'a Path, overrides: &[Override]) -> Result<Self, Error> {
        let mut experiment = Experiment::read(path, overrides)?;
        let wrong = |text: &str| Err(Experiment::wrong(path, overrides, text).into());
        if experiment.traffic.is_some() {
            return wrong("`[traffic]`: a prediction replays recorded jobs over the fabric of an experiment");
        }
        if experiment.workload.generate.is_some() {
            return wrong(
                "`workload.generate`: a prediction replays recorded jobs; `replay run` runs such from parameters",
            );
        }
        if experiment.workload.grow.is_some() {
            return wrong(
                "`workload.grow`: a prediction replays recorded jobs as large as they were; `replay run` runs grown ones",
            );
        }
        // Which traces and jobs is said by the command.
        (experiment.workload.trace, experiment.workload.job) = (None, None);
        tell_of_left_out(&experiment.fabric);
        Ok(Self { path, overrides: overrides.to_vec(), experiment })
    }

    /// What a byte took of processors in the recording is what it takes on the recorded network, unless the experiment says it.
    fn recorded_on(&mut self, recorded: &Experiment) {
        if let Some((here, there)) = self.experiment.cpu.as_mut().zip(recorded.cpu) {
            here.recorded_network_work.get_or_insert(there.network_work);
        }
    }

    /// An error of a key is shown where it stands.
    fn wrong(&self, capture: &Capture, error: RunError) -> Error {
        match error {
            RunError::Fabric(_) | RunError::UnknownHost { .. } | RunError::Placing(_) | RunError::Endless { .. } => {
                Experiment::wrong(self.path, &self.overrides, &error.to_string()).into()
            }
            other => Error::from(other).context(format!("{} over {}", capture.path, self.experiment.name)),
        }
    }
}

/// A network without some of what a replay does.
type Ablated<'a> = Vec<(Ablation, Network<'a>)>;

/// The networks without some of what a replay does, as far as each has it.
fn ablations<'a>(networks: &[Network<'a>], without: &[Ablation]) -> Result<Vec<Ablated<'a>>, Error> {
    let mut all: Vec<Ablated> = networks.iter().map(|_| Vec::new()).collect();
    for without in without.iter().copied().collect::<BTreeSet<_>>() {
        let mut lacking = None;
        let mut found = false;
        for (network, ablated) in networks.iter().zip(&mut all) {
            match without.leave_out(&network.experiment) {
                Ok(experiment) => {
                    let overrides = network.overrides.clone();
                    ablated.push((without, Network { path: network.path, overrides, experiment }));
                    found = true;
                }
                Err(reason) => lacking = Some(reason),
            }
        }
        if let Some(reason) = lacking.filter(|_| !found) {
            bail!(reason);
        }
    }
    Ok(all)
}

/// Answers are told apart by the names of their experiments.
fn check_names(networks: &[Network]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for network in networks {
        let name = &network.experiment.name;
        ensure!(
            names.insert(name),
            "{}: another experiment is called \"{name}\" too; give one of them another name",
            network.path.display()
        );
    }
    Ok(())
}

fn read_runs(args: &PredictArgs, with_network: bool, bars: &Bars) -> Result<Runs, Error> {
    let places: Vec<String> = args.captures.iter().map(|path| path.display().to_string()).collect();
    for (number, path) in args.captures.iter().enumerate() {
        let same = |other: &PathBuf| {
            path.canonicalize().is_ok_and(|path| other.canonicalize().is_ok_and(|other| other == path))
        };
        if args.captures[..number].iter().any(same) {
            bail!("{}: is given twice; a capture twice tells nothing new", path.display());
        }
    }
    let recordings = read_recordings(&args.captures, with_network, bars)?;
    let (traces, estimates): (Vec<Trace>, Vec<Option<Experiment>>) =
        recordings.into_iter().map(|recording| (recording.trace, recording.network)).unzip();
    let jobs = places
        .iter()
        .zip(&traces)
        .map(|(place, trace)| Ok((place.as_str(), job_of(place, trace, args.job.as_deref())?)))
        .collect::<Result<Vec<_>, Error>>()?;
    check_same_jobs(&jobs)?;
    let capture = |(path, job): &(&str, &trace::rows::JobRow)| Capture {
        path: (*path).to_owned(),
        job: job.id.clone(),
        job_name: job.name.clone(),
        recorded_s: job.finish_ns.saturating_sub(job.submit_ns) as f64 / 1e9,
    };
    let captures = jobs.iter().map(capture).collect();
    Ok(Runs { traces, estimates, captures })
}

impl Runs {
    /// The estimated network of each run, with what `--set` says of the rest; `None` if one has none.
    fn networks(&self, overrides: &[Override]) -> Result<Option<Vec<Network<'_>>>, Error> {
        let Some(estimates) = self.estimates.iter().cloned().collect::<Option<Vec<Experiment>>>() else {
            return Ok(None);
        };
        let kept: Vec<Override> = overrides.iter().filter(|one| !one.is_of("fabric")).cloned().collect();
        let network = |(experiment, capture): (Experiment, &'_ Capture)| {
            let place = format!("the network of {}", capture.path);
            let experiment = Experiment::parse(&experiment.to_toml()?, &place, &kept)?;
            Ok(Network { path: Path::new("recorded-network"), overrides: kept.clone(), experiment })
        };
        estimates.into_iter().zip(&self.captures).map(network).collect::<Result<Vec<_>, Error>>().map(Some)
    }

    fn job_name(&self) -> &str {
        self.captures.first().map_or("", |capture| &capture.job_name)
    }

    /// The capture whose recorded time is the median: its replay is shown in reports.
    fn median(&self) -> usize {
        let mut by_time: Vec<usize> = (0..self.captures.len()).collect();
        by_time.sort_by(|a, b| self.captures[*a].recorded_s.total_cmp(&self.captures[*b].recorded_s));
        by_time.get((by_time.len().max(1) - 1) / 2).copied().unwrap_or(0)
    }
}

fn seeds(experiment: &Experiment, count: u32) -> impl Iterator<Item = u64> + use<> {
    let first = experiment.run.seed;
    (0..u64::from(count)).map(move |number| first.saturating_add(number))
}

/// All replays on a network, and all of the one that reports show.
struct NetworkReplays {
    replays: Replays,
    shown: Detail,
}

/// Replays each capture over a network with each seed, as many at a time as there are cores.
fn replay_all(network: &Network, runs: &Runs, count: u32, bars: &Bars) -> Result<NetworkReplays, Error> {
    replay_over(|_| network, runs, count, bars)
}

/// Replays each capture over its own network.
fn replay_each(networks: &[Network], runs: &Runs, count: u32, bars: &Bars) -> Result<NetworkReplays, Error> {
    replay_over(|capture| &networks[capture], runs, count, bars)
}

fn replay_over<'n, 'a: 'n>(
    network_of: impl Fn(usize) -> &'n Network<'a> + Sync,
    runs: &Runs,
    count: u32,
    bars: &Bars,
) -> Result<NetworkReplays, Error> {
    let of_capture = |capture: usize| seeds(&network_of(capture).experiment, count).map(move |seed| (capture, seed));
    let of: Vec<(usize, u64)> = (0..runs.traces.len()).flat_map(of_capture).collect();
    let all = bars.jobs(of.len());
    let shown = of.iter().copied().find(|(capture, _)| *capture == runs.median());
    let replayed = of
        .par_iter()
        .map(|(number, seed)| {
            let (capture, network) = (&runs.captures[*number], network_of(*number));
            let mut experiment = network.experiment.seeded(*seed).map_err(Error::msg)?;
            let workload = &mut experiment.workload;
            workload.job = Some(capture.job.clone());
            workload.trace = Some(PathBuf::from(&capture.path));
            if count > 1 && workload.jitter == 0.0 {
                workload.jitter = JITTER;
            }
            let results = run_experiment(&experiment, &runs.traces[*number], |_| ())
                .map_err(|error| network.wrong(capture, error))?;
            all.inc(1);
            let detail = results.detail;
            let left = Replayed { summary: detail.summary.clone(), tasks: detail.tasks.clone() };
            Ok((left, (Some((*number, *seed)) == shown).then_some(detail)))
        })
        .collect::<Result<Vec<_>, Error>>();
    all.finish_and_clear();
    let mut replays: Replays = runs.traces.iter().map(|_| Vec::new()).collect();
    let mut shown = None;
    for ((capture, _), (left, detail)) in of.into_iter().zip(replayed?) {
        replays[capture].push(left);
        shown = shown.or(detail);
    }
    Ok(NetworkReplays { replays, shown: shown.context("nothing was replayed")? })
}
