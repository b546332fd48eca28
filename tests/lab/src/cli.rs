//! The command line.

mod cluster;
mod jobs;
mod record;

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, CommandFactory, Parser, Subcommand};
use trace::truth::Truth;

use self::cluster::ClusterArgs;
use self::jobs::JobArgs;
use self::record::RecordArgs;
use crate::agents::Agents;
use crate::cost;
use crate::distribution::Distribution;
use crate::hostile::attack::HostileOptions;
use crate::hostile::tricks::Trick;
use crate::jobs::JobKind;
use crate::lease;
use crate::overhead;
use crate::pack;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::session::Lab;
use crate::setup;
use crate::ssh;
use crate::stop::Stop;
use crate::summary;

/// A real Apache Hadoop cluster on this machine: every host a network namespace, joined by shaped links.
///
/// One master (m1: NameNode, ResourceManager, JobHistoryServer) and some workers (w1, w2, ...: DataNode and
/// NodeManager each) in two racks that an uplink joins; of Hadoop 1.2.1 a NameNode, a SecondaryNameNode and a JobTracker,
/// and on each worker a DataNode and a TaskTracker. Needs root; leaves nothing behind.
#[derive(Debug, Parser)]
#[command(name = "lab", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lab run --job terasort --size 128MB --links 100mbit --uplink 50mbit --capture out/capture
  lab run --job terasort --job wordcount --quiet --tcpdump --capture out/capture
  lab run --hadoop 1.2.1 --job terasort --capture out/capture
  lab run --encrypted --job terasort --capture out/capture
  lab run --deployed-by target/release/hadoptic --job terasort --job wordcount --job putget --capture out/capture
  lab up --workers 2                    a cluster to play with, until Ctrl-C
  lab down --prefix lab                 remove what a lab that was killed has left

Exit code: 0 done, 1 it ran and something was found wrong, 2 it could not run.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing and fetch Hadoop's jars
    Setup(SetupArgs),
    /// Start a cluster, run jobs under capture, collect, and remove everything
    Run(Box<RunArgs>),
    /// Start a cluster and keep it until Ctrl-C
    Up(Box<UpArgs>),
    /// Sort on clusters with and without the agents in turns, and compare
    Overhead(Box<OverheadArgs>),
    /// Print what the agents of a capture say of their own cost
    Cost(CostArgs),
    /// Remove what a lab that was killed has left
    Down(DownArgs),
    /// What `ssh` runs to get into a lab's network: joins standard input and output to a connection to a host
    #[command(hide = true)]
    Connect(ConnectArgs),
    /// Print a completion script
    Completions {
        /// Shell that it is for
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
struct SetupArgs {
    /// Version of Hadoop
    #[arg(long, value_enum, default_value = "3.4.2")]
    hadoop: Distribution,
    /// Folder for what is fetched [default: hadoptic in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Fetch even what is there
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
struct DownArgs {
    /// Prefix of the lab
    #[arg(long, default_value = "lab")]
    prefix: String,
}

#[derive(Debug, Args)]
struct ConnectArgs {
    /// Prefix of the lab
    #[arg(long)]
    prefix: String,
    /// Address of the host
    address: IpAddr,
    /// Port
    port: u16,
}

#[derive(Debug, Args)]
struct UpArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    record: RecordArgs,
    /// Have this program `hadoptic` bring the agents onto the running cluster, as an operator does, and remove them
    #[arg(long, value_name = "PROGRAM", requires = "capture", conflicts_with_all = ["agents", "no_agents", "tcpdump"])]
    #[arg(help_heading = "Recording")]
    deployed_by: Option<PathBuf>,
    /// With --deployed-by: the first daemon of each host starts the agents there, and they end after the last
    #[arg(long, requires = "deployed_by", help_heading = "Recording")]
    agents_by_daemons: bool,
    /// With --agents-by-daemons: have hosts make digests of what they recorded too, and fetch them into this folder
    #[arg(long, value_name = "FOLDER", requires = "agents_by_daemons", help_heading = "Recording")]
    digests: Option<PathBuf>,
    /// With --deployed-by: a hostile user on each host plants and spoils what he can, while jobs run for so long
    #[arg(long, value_name = "SECONDS", requires = "deployed_by", conflicts_with = "agents_by_daemons")]
    #[arg(help_heading = "Recording")]
    hostile: Option<u64>,
    /// What hostile users do, again for more than one [default: all that they can]
    #[arg(long, value_name = "TRICK", requires = "hostile", value_enum, help_heading = "Recording")]
    hostile_trick: Vec<Trick>,
    #[command(flatten)]
    job: JobArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct OverheadArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    job: JobArgs,
    /// Pairs of sorts, one with and one without the agents
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// File to which each pair is appended; those that it has count too
    #[arg(long, value_name = "FILE", default_value = "overhead.jsonl")]
    results: PathBuf,
    /// Print all pairs and the interval as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CostArgs {
    /// Folder of the capture
    capture: PathBuf,
    /// Print the sums as one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads the command line, does it, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let done = dispatch(Cli::parse().command).map(ExitCode::from);
    done.unwrap_or_else(|error| trace::stderr::exit_code("lab", error.as_ref()))
}

fn dispatch(command: Command) -> Result<u8> {
    match command {
        Command::Setup(args) => set_up(&args),
        Command::Run(args) => run(&args),
        Command::Up(args) => up(&args),
        Command::Overhead(args) => compare(&args),
        Command::Cost(args) => tell_cost(&args),
        Command::Down(args) => down(&args),
        Command::Connect(args) => {
            ssh::connect(&args.prefix, args.address, args.port)?;
            Ok(0)
        }
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lab", &mut script);
            print(String::from_utf8_lossy(&script).trim_end())
        }
    }
}

fn set_up(args: &SetupArgs) -> Result<u8> {
    let progress = Progress::new();
    setup::tools(&progress)?;
    let (home, java) = setup::java(args.hadoop)?;
    let cache = match &args.cache {
        Some(cache) => cache.clone(),
        None => setup::default_cache()?,
    };
    let folder = setup::fetch(args.hadoop, &cache, &home, args.fresh, &progress)?;
    progress.step(&format!(
        "ready: Hadoop {} in {}, Java {java} in {}",
        args.hadoop.version(),
        folder.display(),
        home.display()
    ));
    progress.finish();
    Ok(0)
}

fn down(args: &DownArgs) -> Result<u8> {
    if lease::remove_remains(&args.prefix)? {
        trace::stderr::print(format!("removed what lab {} had left", args.prefix));
    } else {
        trace::stderr::print(format!("lab {} has left nothing", args.prefix));
    }
    Ok(0)
}

fn up(args: &UpArgs) -> Result<u8> {
    let (recorder, capture) = args.record.recorder(None)?;
    let options = args.cluster.options()?;
    let stop = Stop::on_signals()?;
    let progress = Progress::new();
    let lab = Lab::prepare(&options, &stop, &progress)?;
    let truth = lab.keep_up(&recorder, capture.as_deref(), &stop, &progress)?;
    if let (true, Some(folder)) = (args.record.pack, &capture) {
        pack_capture(folder, &truth, &progress)?;
    }
    progress.finish();
    for problem in &truth.problems {
        trace::stderr::print(format!("wrong: {problem}"));
    }
    Ok(u8::from(!truth.problems.is_empty()))
}

fn run(args: &RunArgs) -> Result<u8> {
    let options = args.cluster.options()?;
    let jobs = args.job.options(&args.cluster)?;
    let (mut recorder, capture) = args.record.recorder(args.deployed_by.as_deref())?;
    if let Recorder::Deployed(deployer) = &mut recorder {
        deployer.by_daemons = args.agents_by_daemons;
        deployer.digests.clone_from(&args.digests);
        deployer.hostile =
            args.hostile.map(|seconds| HostileOptions { seconds, seed: jobs.seed, tricks: args.hostile_trick.clone() });
    }
    let kinds = if args.job.jobs.is_empty() { &[JobKind::Terasort][..] } else { &args.job.jobs };
    let stop = Stop::on_signals()?;
    let progress = Progress::new();
    let lab = Lab::prepare(&options, &stop, &progress)?;
    let outcome =
        lab.run(kinds, &jobs, &recorder, capture.as_deref(), &stop, &progress).map_err(|error| match &capture {
            Some(folder) => anyhow::Error::from(error).context(format!(
                "the run did not end well (what was recorded until then stays in {}, without its truth)",
                folder.display()
            )),
            None => error.into(),
        })?;
    if let (true, Some(folder)) = (args.record.pack, &capture) {
        pack_capture(folder, &outcome.truth, &progress)?;
    }
    progress.finish();
    let text = if args.json { summary::json(&outcome)? } else { summary::table(&outcome) };
    print(&text)?;
    Ok(u8::from(!outcome.truth.problems.is_empty()))
}

fn compare(args: &OverheadArgs) -> Result<u8> {
    ensure!(
        args.job.jobs.is_empty()
            && args.record.capture.is_none()
            && !args.record.no_agents
            && args.cluster.work.is_none(),
        "overhead decides itself on jobs, captures and folders: leave out --job, --capture, --no-agents and --work"
    );
    let cluster = args.cluster.options()?;
    let jobs = args.job.options(&args.cluster)?;
    let agents = Agents::found(&args.record.agent_jar, &args.record.sniffer, &args.record.dumpingd)?;
    let results = overhead::check(&args.results, &cluster, &jobs)?;
    let stop = Stop::on_signals()?;
    let all = overhead::run(args.pairs, &cluster, &jobs, &agents, &results, &stop)?;
    let text = if args.json {
        let ratios: Vec<f64> = all.pairs.iter().map(overhead::Pair::ratio).collect();
        let interval = overhead::interval(&ratios);
        serde_json::to_string_pretty(
            &serde_json::json!({ "pairs": all.pairs, "interval": interval, "cost": all.cost }),
        )?
    } else {
        overhead::table(&all)
    };
    print(text.trim_end())
}

fn tell_cost(args: &CostArgs) -> Result<u8> {
    let cost = cost::of(&args.capture)?;
    let text = if args.json { serde_json::to_string_pretty(&cost)? } else { cost.table() };
    print(text.trim_end())
}

/// Prints a line, or several. That nobody reads on is no failure.
fn print(text: &str) -> Result<u8> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if !trace::stderr::is_broken_pipe(&error) => Err(error.into()),
        _ => Ok(0),
    }
}

fn pack_capture(folder: &Path, truth: &Truth, progress: &Progress) -> Result<()> {
    progress.step("packing the capture");
    let hosts: Vec<String> = truth.hosts.iter().map(|host| host.name.clone()).collect();
    let (before, after) = pack::capture(folder, &hosts)?;
    progress.step(&format!("packed {:.1} MB into {:.1} MB", before as f64 / 1e6, after as f64 / 1e6));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use anyhow::bail;

    use super::*;
    use crate::encryption::Cipher;

    fn parse_run(words: &str) -> Result<RunArgs> {
        let cli = Cli::try_parse_from(["lab", "run"].into_iter().chain(words.split_whitespace()))?;
        match cli.command {
            Command::Run(args) => Ok(*args),
            _ => bail!("not run"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn maps_and_reduces_follow_the_workers() {
        let args = parse_run("--workers 3 --output-replication 2").unwrap();
        let options = args.job.options(&args.cluster).unwrap();
        assert_eq!((options.maps, options.reduces), (3, 3));
    }

    #[test]
    fn encryption_is_by_aes_unless_told_and_not_of_a_version_without_it() {
        let args = |words: &str| parse_run(words).unwrap().cluster;
        assert_eq!(args("").encrypted, None);
        assert_eq!(args("--encrypted --quiet").encrypted, Some(Cipher::Aes));
        assert_eq!(args("--encrypted=3des").encrypted, Some(Cipher::TripleDes));
        let error = args("--hadoop 1.2.1 --encrypted").options().unwrap_err().to_string();
        assert!(error.contains("Kerberos"), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for bad in [
            "--links fast",
            "--size 128",
            "--maps 0",
            "--job sort",
            "--set novalue",
            "--tcpdump",
            "--agents --no-agents --capture x",
            "--deployed-by hadoptic",
            "--deployed-by hadoptic --tcpdump --capture x",
            "--remote-maps 1",
            "--buffer 0",
            "--encrypted=rot13",
        ] {
            assert!(parse_run(bad).is_err(), "{bad}");
        }
        for bad in [
            "--workers 2 --output-replication 3",
            "--quiet --remote-maps 1 --input-replication 2",
            "--quiet --remote-maps 4 --maps 4",
        ] {
            let args = parse_run(bad).unwrap();
            assert!(args.job.options(&args.cluster).is_err(), "{bad}");
        }
    }
}
