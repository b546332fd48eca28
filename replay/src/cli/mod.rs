//! The command line.

mod captures;
mod coflow;
mod common;
mod congestion;
mod congestion_text;
mod dimemas;
mod experiments;
mod generate;
mod grow;
mod jobs;
mod lightness;
mod network;
mod parts;
mod peers;
mod predict;
mod predict_text;
mod program;
mod progress;
mod routing;
mod run;
mod sweep;
mod synthetic;
mod table;
mod tables;
mod topology;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Error;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use man_pages::ManArgs;
use trace::memory;
use trace::stderr::error_chain;

use common::{Common, RunArgs};

/// Replays a recorded Hadoop job over a network that may not exist yet, and says how long it would have taken there, and
/// why.
///
/// Every message leaves when what caused it has happened in the simulated world, plus the time that its process really
/// thought; how long it is on its way comes from the simulated fabric.
#[derive(Debug, Parser)]
#[command(name = "replay", version, max_term_width = 120, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How much memory it may hold, such as 8GiB: with more it ends with an error, before the kernel ends it or another
    /// process [default: nine tenths of what is available when it begins].
    #[arg(long, global = true, value_name = "SIZE", value_parser = trace::quantity::parse_bytes)]
    memory: Option<u64>,
}

const OUT_OF_MEMORY: &str =
    "make the network or the job smaller, run a sweep with fewer --threads, or let it hold more (--memory)";

const EXIT_CODES: &str = "Exit codes: 0 done; 1 ran and found something wrong; 2 could not run.";

const RUN_EXAMPLES: &str = "\
Examples:
  replay run ethernet-10g --trace trace/ --out results/
  replay run my-network.toml --trace trace/ --out results/ \\
      --set fabric.topology.host_link.rate=25Gbps \\
      --set workload.cpu_factor=0.5 --json
  replay run sweeps/wavelengths-and-buffers --generate terasort --out results/ \\
      --against ethernet-10g

RESULTS holds summary.json, effective.toml, report.html and the tables messages, tasks, links, traffic and critical_path \
as Parquet.

An experiment with a [traffic] table runs synthetic traffic; a list makes a sweep, run on all cores:
  replay run synthetic/fat-tree --out results/ \\
      --set traffic.load=[0.1,0.3,0.5] --set run.seeds=5
  replay run sweeps/packet-sizes --out results/ --group-by fabric.decision
  replay run my-large-network.toml --out results/ --ranks 4
RESULTS then holds the tables links, latency and sweep, curves of latency and accepted load over the load, and bars of both \
grouped by packet size or another key. SIGINT ends it with interim results. A saturated network is a result, not a failure.

Exit codes: 0 done; 1 ran and found something wrong, or was stopped; 2 could not run.";

const COMPARE_EXAMPLES: &str = "\
Example:
  replay compare ideal gigabit ethernet-10g lightness-ops my-network.toml \\
      --trace trace/ --out results/

RESULTS holds one report.html with all experiments side by side, summary.json with their summaries, and a folder of \
results for each, by its name.

Exit codes: 0 done; 1 an experiment came to no result; 2 could not run.";

const PREDICT_EXAMPLES: &str = "\
Examples:
  replay predict capture-1/ capture-2/ capture-3/ --fabric ethernet-10g \\
      --recorded my-cluster.toml --out results/
  replay predict trace/ --fabric gigabit --fabric lightness-ops --json
  replay predict trace/ --fabric lab-10mbit --set cpu.cores=2 \\
      --set cpu.shared=true --without timers,tcp,cpu-sharing

The captures are runs of one job; others are refused with what differs. The interval holds the time of one more run with a \
probability of 80%; docs/predict.md says how, and from what.

Exit codes: 0 done; 1 a trace cannot tell what was asked of it (DOUBT); 2 could not run.";

const GENERATE_EXAMPLES: &str = "\
Examples:
  replay generate terasort --out trace/
  replay generate job.toml --out trace/ \\
      --fabric ethernet-10g --set cluster.nodes=64
  replay compare ideal ethernet-10g --generate job.toml --out results/

TRACE holds the same tables as that of a recorded job, and job.toml with the value of every key. A trace keeps the nodes on \
which tasks ran on the network of --fabric; with `run --generate` and `compare --generate` each network has the job scheduled \
anew.

Exit codes: 0 done; 2 could not run.";

const GROW_EXAMPLES: &str = "\
Examples:
  replay grow trace/ --nodes 64 --racks 16 --data 64x --out grown/
  replay grow trace/ --nodes 4x --data 8GiB --cpu 8x --out grown/ \\
      --fabric experiments/ethernet-10g.toml
  replay compare experiments/*.toml --generate grown/job.toml --out results/

TRACE holds the same tables as that of a recorded job, and job.toml, from which `run --generate` and `compare --generate` \
schedule the grown job on each network anew.

Exit codes: 0 done; 2 could not run.";

const REPORT_EXAMPLES: &str = "\
Examples:
  replay report results/
  replay report results/ --out report.html

Exit codes: 0 done; 2 could not run.";

const TABLES_EXAMPLES: &str = "\
Examples:
  replay tables messages
  replay tables --json

Exit codes: 0 done; 2 could not run.";

const EXPERIMENTS_EXAMPLES: &str = "\
Examples:
  replay experiments
  replay experiments ethernet-10g > my-network.toml
  replay run ethernet-10g --trace trace/ --out results/

Exit codes: 0 done; 2 could not run.";

const DIMEMAS_EXAMPLES: &str = "\
Example:
  replay dimemas lightness-ops --listen 127.0.0.1:4242 --nodes 16 --racks 4

Exit codes: 0 done; 1 with --once, the client did not end with FINISH; 2 could not run.";

const LIGHTNESS_EXAMPLES: &str = "\
Examples:
  replay lightness
  replay lightness --fit
  replay lightness --fit --set fabric.window=1
  replay lightness experiments/lightness/figure-16-collision.toml \\
      --json --out results/

Exit codes: 0 done; 1 a simulated figure is not what the model's arithmetic gives; 2 could not run.";

const PEERS_EXAMPLES: &str = "\
Examples:
  replay peers
  replay peers peers/caminos-basic peers/booksim2 --seeds 10
  replay peers my-network.toml --figures my-run.csv --json

Loads agree within 1% below saturation and 3% at it, latencies within 3% below it; or, below it, within three standard \
errors. docs/peers.md has the columns of tables.

Exit codes: 0 done; 1 a figure differs, and no mechanism is named; 2 could not run.";

const TOPOLOGY_EXAMPLES: &str = "\
Examples:
  replay topology --shape fat-tree --nodes 64 --racks 4 --cores 2
  replay topology --shape k-ary-n-tree --set k=4 --set n=3 --json
  replay topology --shape torus --set size=[8,8] --format dot
  replay topology --shape torus --set size=[8,4] --set 'twist={y={x=4}}'
  replay topology fat-tree --out network.edges

Shapes and their keys are in docs/topologies.md. What --format edges or dot writes can be read again as shape \"graph\".

Exit codes: 0 done; 2 could not run.";

const ROUTING_EXAMPLES: &str = "\
Examples:
  replay routing --shape fat-tree --nodes 64 --racks 4 --cores 2 \\
      --out routing.txt
  replay routing --shape fat-tree --nodes 64 --racks 4 --cores 2 \\
      --check routing.txt
  replay routing --shape torus --set size=[4,4] --routing dor --json

The file has a line for each switch, in the order of their numbers; on it, for each host, the port that leads there. Ports \
are numbered from 0 in the order of the switch's cables, those to hosts first.

Exit codes: 0 done; 1 the routing or its file has a mistake (a host not reached, a loop, a deadlock); 2 could not run.";

const CONGESTION_EXAMPLES: &str = "\
Examples:
  replay congestion --shape k-ary-n-tree --set k=4 --set n=2 \\
      --pattern bisect_fb_sym --runs 10000
  replay congestion --shape xgft --set m=[12,12,8] --set w=[1,12,12] \\
      --hosts 1142 --runs 100 --pattern tree --part 800 \\
      --against null --against bisect --out results/
  replay congestion --shape k-ary-n-tree --routing d-mod-k --routing ecmp \\
      --hosts 16,32,64 --runs 1000 --pattern bisect --pattern rand
  replay congestion --shape m-port-n-tree --set m=8 --set n=3 --metric routequal
  replay congestion --shape leaf-spine --set leaves=4 --set spines=2 \\
      --set hosts=4 --trace trace/ --runs 100 --routing d-mod-k --routing ecmp
  replay congestion --shape k-ary-n-tree --pattern bisect --pattern bruck \\
      --runs 10 --simulate credit

Patterns, routings and numbers of hosts may be several: then a table has a row for each combination. --out FOLDER writes \
report.html with their distributions over each other as pictures, congestion.json, and the tables congestion and histograms \
as Parquet.

Each run maps ranks to hosts at random. All messages of a level are sent at once; a message's congestion is the most \
messages that share a link of its path, links of hosts included, and its bandwidth the inverse.

Exit codes: 0 done; 2 could not run.";

const COFLOW_EXAMPLES: &str = "\
Examples:
  replay coflow FB2010-1Hr-150-0.txt
  replay coflow FB2010-1Hr-150-0.txt --scheduler sunflow --alone
  replay coflow FB2010-1Hr-150-0.txt --scheduler varys,sunflow \\
      --rate 10Gbps --delay 1ms --out results/
  replay coflow FB2010-1Hr-150-0.txt --scheduler equal-share,varys \\
      --first 200 --megabyte binary --rate 1048576000bps \\
      --tick 8ms --epoch 10240ms
  merger export trace/ --to coflow --out job.txt
  replay coflow job.txt --fabric ethernet-10g \\
      --fabric lightness-ops --json

--out FOLDER writes report.html with the distributions of completion times over each other, the same as cct.svg, \
coflow.json, and the table coflows as Parquet, a row for each coflow under each scheduler or fabric.

The ports of one switch are the only places where flows meet. docs/coflow.md defines the schedulers, and has published \
figures beside what comes out here.

Exit codes: 0 done; 2 could not run.";

const PROGRAM_EXAMPLES: &str = "\
Examples:
  merger export trace/ --to goal --out job.goal
  replay program job.goal --fabric ethernet-10g --fabric infiniband
  merger export trace/ --to flows --out flows.txt
  replay program flows.txt --fabric fat-tree --out results/
  replay program --kernel butterfly --ranks 64 --size 1KiB \\
      --fabric fat-tree --placement random:7
  replay program --kernel alltoall --ranks 16 --print goal
  replay program alltoall.goal --fabric lightness-ops --nodes 64 \\
      --racks 16 --overhead 500ns --json

--out FOLDER writes program.json, and the tables program_messages and program_ranks as Parquet.

docs/programs.md says what operations do.

Exit codes: 0 done; 2 could not run, or the program does not come to its end (who waits for what is said).";

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays a job, or runs synthetic traffic, as an experiment says.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Replays a job over several fabrics, and puts the results side by side with the recording.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Predicts how long a recorded job takes on other networks, and how sure that is.
    ///
    /// Each capture is replayed over each network with several seeds; the answer is a sentence with an 80% interval, beside what was
    /// recorded.
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(predict::PredictArgs),
    /// Draws the report of results again.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Makes a job from parameters: a trace of a MapReduce job that nobody recorded.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(generate::GenerateArgs),
    /// Grows a recorded job: the trace of a job with more workers, more data, or faster ones.
    ///
    /// Each task is like one of the recorded job's: its bytes, speeds and starts; calls have the recorded sizes and times. On as
    /// many nodes as recorded, blocks lie where they lay; on others, as HDFS places them. Containers are given in the simulated world.
    #[command(after_help = GROW_EXAMPLES)]
    Grow(grow::GrowArgs),
    /// Says what the tables of results mean, column by column.
    #[command(after_help = TABLES_EXAMPLES)]
    Tables(tables::TablesArgs),
    /// Lists the experiments and job files that are built in, or prints one.
    ///
    /// Their names stand for files wherever a command takes an experiment, or a job file.
    #[command(after_help = EXPERIMENTS_EXAMPLES)]
    Experiments(experiments::ExperimentsArgs),
    /// Serves Dimemas as its external network simulator.
    ///
    /// Dimemas replays a program's computation and asks this server how long each message between nodes takes on the
    /// fabric. Each client gets a new network.
    #[command(after_help = DIMEMAS_EXAMPLES)]
    Dimemas(dimemas::DimemasArgs),
    /// Simulates what LIGHTNESS' deliverable published, and puts published and simulated figures side by side.
    #[command(after_help = LIGHTNESS_EXAMPLES)]
    Lightness(lightness::LightnessArgs),
    /// Puts figures of other simulators beside ours, over several seeds.
    #[command(after_help = PEERS_EXAMPLES)]
    Peers(peers::PeersArgs),
    /// Reckons a topology (counts, distances, bisection), and writes it as a graph.
    ///
    /// The topology is that of an experiment, or of a shape and its keys.
    #[command(after_help = TOPOLOGY_EXAMPLES)]
    Topology(topology::TopologyArgs),
    /// Writes the routing file of a topology as LIGHTNESS' generator did, or reads one and checks it.
    ///
    /// Looked at are: whether every host reaches every other one, without loops, and whether links may wait for each other
    /// for ever (a deadlock, in networks that lose nothing).
    #[command(after_help = ROUTING_EXAMPLES)]
    Routing(routing::RoutingArgs),
    /// Counts how messages that are sent at once share the links of a network with static routing, as ORCS does.
    #[command(after_help = CONGESTION_EXAMPLES)]
    Congestion(congestion::CongestionArgs),
    /// Runs coflows over the ports of one switch under schedulers of packets and of circuits, or over fabrics.
    #[command(after_help = COFLOW_EXAMPLES)]
    Coflow(coflow::CoflowArgs),
    /// Runs a message-passing program over fabrics: a schedule in GOAL, a list of flows, a trace, or a kernel.
    #[command(after_help = PROGRAM_EXAMPLES)]
    Program(program::ProgramArgs),
    /// Prints the manual page, or writes those of all subcommands.
    Man(ManArgs),
    /// Prints a completion script for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// The experiments: TOML files, or names that `replay experiments` lists.
    #[arg(required_unless_present = "fabric", value_name = "EXPERIMENT")]
    experiments: Vec<PathBuf>,
    /// One more of them, by the option that `predict`, `generate`, `coflow` and `program` have for it; may be given more than once.
    #[arg(long, value_name = "EXPERIMENT")]
    fabric: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct ReportArgs {
    /// A folder of results, of `replay run` or `replay compare`.
    results: PathBuf,
    /// Where to write the page; RESULTS/report.html if not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = memory::watch("replay", cli.memory.or_else(memory::available_bytes), OUT_OF_MEMORY) {
        return trace::stderr::exit_code("replay", &error);
    }
    let done = match cli.command {
        Command::Run(mut args) => {
            args.memory = cli.memory;
            run::run(&args)
        }
        Command::Compare(args) => run::compare(&[args.experiments, args.fabric].concat(), &args.common),
        Command::Predict(args) => predict::run(&args),
        Command::Report(args) => run::report(&args.results, args.out),
        Command::Generate(args) => generate::run(&args),
        Command::Grow(args) => grow::run(&args),
        Command::Tables(args) => tables::show(&args),
        Command::Experiments(args) => experiments::show(&args),
        Command::Dimemas(args) => dimemas::serve(args),
        Command::Lightness(args) => lightness::show(&args),
        Command::Peers(args) => peers::show(&args),
        Command::Topology(args) => topology::show(&args),
        Command::Routing(args) => routing::show(&args),
        Command::Congestion(args) => congestion::show(&args),
        Command::Coflow(args) => coflow::show(&args),
        Command::Program(args) => program::show(&args),
        Command::Man(args) => args.write(Cli::command()).map(|()| ExitCode::SUCCESS).map_err(Error::from),
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "replay", &mut script);
            common::say(String::from_utf8_lossy(&script).trim_end()).map(|()| ExitCode::SUCCESS).map_err(Error::from)
        }
    };
    done.unwrap_or_else(|failure| {
        trace::stderr::print(format!("replay: {}", error_chain(failure.as_ref())));
        ExitCode::from(run::exit_code(&failure))
    })
}
