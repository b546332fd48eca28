//! `merger`: from captures to a causal trace.

use std::cell::Cell;
use std::ffi::{c_int, c_long};
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use job_profile::{CoreSharing, Learn};
use man_pages::ManArgs;
use merger::build::Options;
use merger::built_trace::{trace_with, write_with};
use merger::characterise;
use merger::check::{check, show};
use merger::export;
use merger::memory::{self, Foreseen};
use merger::network;
use merger::progress::{Progress, Unit};
use merger::summary::Summary;
use merger::tables_page;
use merger::time_text::time_ns;
use merger::window::Window;
use trace::quantity;
use trace::rows::Trace;
use trace_tables::describe::{TableDescription, trace_tables};
use trace_tables::{is_trace, is_unfinished_trace, read_trace};

/// What one thread gave back another can take, and what none needs goes back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// No crate has safe functions for the allocator's options and for giving memory back. These take any number: an option that is none is left alone.
#[expect(unsafe_code, reason = "declares three functions with the types of mimalloc.h")]
unsafe extern "C" {
    safe fn mi_option_get(option: c_int) -> c_long;
    safe fn mi_option_set(option: c_int, value: c_long);
    safe fn mi_collect(force: bool);
}

/// `mi_option_purge_delay` of mimalloc 2, and what it is where nobody sets it, milliseconds.
const PURGE_DELAY: (c_int, c_long) = (15, 10);
/// What reads packets asks again for what it gave back within this time, mostly.
const DELAY_OF_PACKETS_MS: c_long = 50;
/// In other steps a tenth of what a long merge takes at most is what was given back within the usual time.
const DELAY_OF_OTHERS_MS: c_long = 2;

/// Lets memory that was given back stay with the process a little longer while packets are read: pages that the system takes and gives
/// again are cleared each time. Only where the option is what it is taken for, and nobody set it (`MIMALLOC_PURGE_DELAY`), and while
/// no other thread works.
fn keep_memory_longer(reads_packets: bool) {
    let (option, usual) = PURGE_DELAY;
    if [usual, DELAY_OF_PACKETS_MS, DELAY_OF_OTHERS_MS].contains(&mi_option_get(option)) {
        mi_option_set(option, if reads_packets { DELAY_OF_PACKETS_MS } else { DELAY_OF_OTHERS_MS });
    }
}

/// Joins the captures of all hosts of a Hadoop cluster into one causal trace: who said what to whom, and because of
/// what.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 120,
    after_help = "A capture is a folder with a folder for each host, as the agents (sniffer, dumpingd, the Java agent) \
                  leave them:\n\n    \
                  CAPTURE/HOST/packets-eth0.hpk  sockets.jsonl  jvm-PID-START.jsonl  sniffer.json  dumpingd.json\n    \
                  CAPTURE/job/*.jhist\n\n\
                  Captures of tcpdump, ss and lsof do as well, with a HOST/manifest.json that says which file is \
                  what:\n\n    \
                  { \"host\": \"w1\", \"addresses\": [\"10.1.0.11\"], \"rack\": \"/r1\",\n      \
                  \"packets\": [{ \"file\": \"eth0.pcap.zst\", \"interface\": \"eth0\" }],\n      \
                  \"sockets\": [{ \"file\": \"ss.txt\", \"format\": \"ss\" }],\n      \
                  \"processes\": [{ \"pid\": 4711, \"role\": \"DataNode\" }] }\n\n\
                  Exit code: 0 = done, 1 = ran and found something wrong, 2 = could not run."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a trace of captures.
    Build(Build),
    /// Say how complete a trace (or the trace that a capture would give) is, and how sure.
    Check(Check),
    /// Say what a trace's job puts on the network: by role, kind, call, phase, time, size and distance.
    Characterise(Characterise),
    /// Write a trace in the format of another tool.
    Export(Export),
    /// Say what the packets of a capture tell of its network, and write it as an experiment for `replay`.
    #[command(after_help = NETWORK_EXAMPLES)]
    Network(Network),
    /// Say what the tables of a trace, or of a characterisation, mean, column by column.
    Tables(Tables),
    /// Make of each host's folder a digest: one file, from which build makes the same trace.
    Digest(Digest),
    /// Copy a capture without what its packets carried, to hand it on.
    Strip(Strip),
    /// Print the manual page, or write those of all subcommands.
    Man(ManArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:
  merger build capture --out trace
  merger build capture-1 capture-2 --out trace --memory 8GiB
  merger build capture --out trace --force --json")]
struct Build {
    /// Captures: folders with a folder for each host, or the folder of one host.
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Folder for the trace's tables; made if missing.
    #[arg(long, value_name = "TRACE")]
    out: PathBuf,
    /// Replace a trace that is in that folder.
    #[arg(long)]
    force: bool,
    /// Memory that the merge may take, as 8GiB; an eighth of it, and no more than 16MiB, is for packets and an eighth of that for the
    /// segments of connections that were read, and those beyond go to temporary files (in TMPDIR), as events and messages do beyond some
    /// megabytes. A merge that needs more memory all the same, or more room for its files than there is, is refused before it begins, as far
    /// as the begins of files tell; what comes further on ends it with an error. Without it: a quarter of the machine's, or of what its
    /// control group allows.
    #[arg(long, value_name = "SIZE", value_parser = trace::quantity::parse_bytes)]
    memory: Option<u64>,
    /// Only what belongs to this job: from 10 s before it was submitted to 10 s after it ended, by its history.
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only what goes on from this time on: connections that were open then, messages, spans and jobs that end later. As
    /// 2026-01-31T12:00:00+00:00, or in seconds since the epoch.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<u64>,
    /// Only what begins by this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<u64>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  merger check trace
  merger check capture                         without writing a trace
  merger check trace --json | jq .missed

Exit code: 0 = every target is met, 1 = one is missed, 2 = could not run.")]
struct Check {
    /// Traces or captures; several captures are taken as one.
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    paths: Vec<PathBuf>,
    /// Memory that it may hold: with more it ends with an error, and a merge of captures that takes more is refused, as in build. Without it,
    /// nine tenths of what is available when it begins, and a quarter of the machine's for what a merge takes.
    #[arg(long, value_name = "SIZE", value_parser = trace::quantity::parse_bytes)]
    memory: Option<u64>,
    /// Print one JSON object instead of tables. Its keys payload_bytes, owned_both_ends_share, owned_connections_share,
    /// in_known_message_share, causality_violations, captured_vs_kernel_error, shuffle_bytes_error, hdfs_read_bytes_error,
    /// hdfs_write_bytes_error and reasons (why one of them is null) stay as they are; shares and errors are fractions.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  merger characterise TRACE                    the most of it on the terminal
  merger characterise TRACE --out DIR          tables (Parquet, CSV), flows.txt and report.html
  merger characterise TRACE --json | jq .totals")]
struct Characterise {
    /// Trace.
    trace: PathBuf,
    /// Folder for report.html, characteristics.json, flows.txt and each table as Parquet and CSV; made if missing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The job of which DIR/job.toml is, by its id [default: that with the largest shuffle].
    #[arg(long, value_name = "ID", requires = "out")]
    job: Option<String>,
    /// Cores of each recorded worker, for DIR/job.toml: its rates are then those of tasks that compete with none, and its like's
    /// tasks compete for so many [default: what tasks cost each other stays in the rates].
    #[arg(long, value_name = "N", requires = "out", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// All workers share --cores, as in a lab on one machine.
    #[arg(long, requires = "cores")]
    shared: bool,
    /// Heap of the recorded job's reduces, for DIR/job.toml (-Xmx in mapreduce.reduce.java.opts): it decides what a sort merges
    /// [default: 819MiB, Hadoop's].
    #[arg(long, value_name = "SIZE", requires = "out", value_parser = job_profile::parse_heap)]
    reduce_heap: Option<u64>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

const NETWORK_EXAMPLES: &str = "\
Examples:
  merger network TRACE
  merger network TRACE --out network.toml
  replay run network.toml --trace TRACE --out RESULTS

A link that was never full has no rate but a lower bound (\"at least\"). docs/predict.md says how both are found.

Exit code: 0 = done, 1 = no link was ever full, 2 = could not run.";

#[derive(Args)]
struct Network {
    /// Trace.
    trace: PathBuf,
    /// File of the experiment; it must not exist.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  merger tables messages
  merger tables --json | jq -r .[].name")]
struct Tables {
    /// Only this one.
    table: Option<String>,
    /// Print one JSON array instead of Markdown.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  merger export trace --to paraver --out recorded
  merger export trace --to perfetto --out trace.pftrace
  merger export trace --to otlp --out trace.otlp
  merger export trace --to goal --job job_1700000000000_0001 --out job.goal
  merger export trace --to coflow --out job.txt --json")]
struct Export {
    /// Trace.
    trace: PathBuf,
    /// Format.
    #[arg(long, value_enum)]
    to: Format,
    /// File to write; Paraver's other files get the same name with their own ending.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Which job, by its id, in what LogGOPSim, Dimemas or OpaSim replay [default: the one with the largest shuffle].
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Prints how much was written and what was left out as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(
    after_help = "What stays: every packet's headers, lengths and times, sockets and their owners, what the JVMs \
                        said (methods, names of tasks and clients, block ids, sizes), manifests, the job's history and \
                        configuration. What goes: all payload, and every file that this program does not know. merger \
                        build joins such a capture by what the JVMs said.\n\n\
                        Examples:\n  \
                        merger strip capture --out stripped\n  \
                        merger build stripped --out trace\n\n\
                        Exit code: 0 = done, 1 = something was refused, 2 = could not run."
)]
struct Strip {
    /// Capture: a folder with a folder for each host, or the folder of one host.
    capture: PathBuf,
    /// Folder for the copy; made if missing.
    #[arg(long, value_name = "STRIPPED")]
    out: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(
    after_help = "A host's digest, DIGESTS/HOST/digest.hdg.zst, holds all that a merge takes from the host's folder: packets \
                        by connection with the payload that is looked at, sockets and their owners, what the JVMs said, and \
                        what was lost. merger build and check take digests, folders, and both \
                        beside each other.\n\n\
                        Examples:\n  \
                        merger digest capture --out digests\n  \
                        merger digest capture/w1 --out digests      one host, on that host\n  \
                        merger build digests --out trace\n\n\
                        Exit code: 0 = done, 1 = something was refused, 2 = could not run."
)]
struct Digest {
    /// Capture: a folder with a folder for each host, or the folder of one host.
    capture: PathBuf,
    /// Folder for the digests, and for a copy of the jobs' histories; made if missing.
    #[arg(long, value_name = "DIGESTS")]
    out: PathBuf,
    /// Memory that it may take, as 1GiB; an eighth of it, and no more than 16MiB, is for packets, and those beyond go to a temporary file (in TMPDIR).
    /// Without it: a quarter of the machine's, or of what its control group allows.
    #[arg(long, value_name = "SIZE", value_parser = trace::quantity::parse_bytes)]
    memory: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Paraver: PATH.prv, PATH.pcf, PATH.row, and ready views in the folder PATH.views.
    Paraver,
    /// Perfetto (ui.perfetto.dev): processes, threads, spans, and messages as flows.
    Perfetto,
    /// OpenTelemetry (OTLP): jobs, tasks and calls as spans, messages as links; in JSON if PATH ends in .json.
    Otlp,
    /// A line each message between hosts: source, destination, bytes, start in nanoseconds (htsim). PATH.hosts names the hosts.
    Flows,
    /// The shuffle of each job as a line of a coflow-benchmark file.
    Coflow,
    /// A schedule in GOAL for LogGOPSim and ATLAHS: a rank each process, calculations, sends, receives.
    Goal,
    /// A program of messages for Dimemas: PATH.dim and PATH.cfg, and PATH.tasks for `replay dimemas --task-mapping`.
    Dimemas,
    /// A VEF trace for OpaSim: messages that wait for messages, and PATH.ranks for `replay program --task-mapping`.
    Vef,
}

fn main() -> ExitCode {
    memory::take_no_huge_pages();
    keep_memory_longer(true);
    let cli = Cli::parse();
    one_pool();
    let done = match cli.command {
        Command::Build(build) => run_build(&build),
        Command::Check(check) => run_check(&check),
        Command::Characterise(characterise) => run_characterise(&characterise),
        Command::Export(export) => run_export(&export),
        Command::Network(network) => run_network(&network),
        Command::Tables(tables) => run_tables(&tables),
        Command::Digest(digest) => run_digest(&digest),
        Command::Strip(strip) => run_strip(&strip),
        Command::Man(man) => man.write(Cli::command()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "merger", &mut script);
            print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| trace::stderr::exit_code("merger", error.as_ref()))
}

/// Lets this thread be one of those that work in parallel: what one gave back of memory another cannot take again, and the steps in
/// between are this one's. Where there are no more threads to be had, the pool is made as ever.
fn one_pool() {
    let _ = rayon::ThreadPoolBuilder::new().use_current_thread().build_global();
}

/// Names in it come from captures, where users choose them: control characters, which could steer a terminal, become U+FFFD.
fn print(text: &str) -> Result<()> {
    io::stdout().lock().write_all(plain(text).as_bytes())?;
    Ok(())
}

fn plain(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'), "\u{fffd}")
}

/// The words of a verdict in their colours.
fn coloured(text: &str) -> String {
    let bold = |word: &str, colour: AnsiColor| {
        let style = Style::new().bold().fg_color(Some(colour.into()));
        format!("{style}{word}{style:#}")
    };
    let (verdict, rest) = text.split_once(':').unwrap_or((text, ""));
    let colour = if verdict == "PASS" { AnsiColor::Green } else { AnsiColor::Red };
    format!("{}:{}", bold(verdict, colour), rest.replace("MISSED", &bold("MISSED", AnsiColor::Red)))
}

fn parse_time(text: &str) -> Result<u64, String> {
    let reason = "no time: write 2026-01-31T12:00:00+00:00, or seconds since the epoch (1769860800 or 1769860800.5)";
    time_ns(text).ok_or_else(|| reason.to_owned())
}

fn run_build(build: &Build) -> Result<ExitCode> {
    prepare(&build.out, build.force)?;
    let began = Instant::now();
    if build.from.zip(build.to).is_some_and(|(from, to)| from > to) {
        bail!("--from lies behind --to");
    }
    let limit = merge_limit(build.memory);
    let (foreseen, options) = look(&build.captures, limit)?;
    memory::watch(limit)?;
    let options =
        Options { window: Window { from_ns: build.from, to_ns: build.to, job: build.job.clone() }, ..options };
    let written = write_with(&build.captures, &options, &build.out, &GivingBack(Bars::default()))?;
    let summary = Summary::new(written, build.out.clone(), began.elapsed().as_secs_f64(), foreseen);
    if build.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&summary)?))?;
    } else {
        print(&summary.show())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder with anything but a trace is left alone; a trace only gives way with --force.
fn prepare(out: &Path, force: bool) -> Result<()> {
    let occupied = match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| out.display().to_string()),
    };
    let held = match occupied {
        false => return Ok(()),
        true if is_trace(out) => "a trace",
        true if is_unfinished_trace(out) => "a trace that was not finished",
        true => bail!("{}: holds something that is no trace; choose another folder", out.display()),
    };
    if !force {
        bail!("{}: holds {held}; replace it with --force, or choose another folder", out.display());
    }
    Ok(())
}

/// Packets of which a merge takes long enough for people to be told beforehand.
const MANY_PACKETS: u64 = 20_000_000;

/// Memory that a merge may take, bytes.
fn merge_limit(memory: Option<u64>) -> u64 {
    memory.or_else(memory::default_limit).unwrap_or(u64::MAX)
}

/// Looks at what captures hold, and refuses what takes more memory than may be taken, or more room for temporary files than there is.
fn look(captures: &[PathBuf], limit: u64) -> Result<(Foreseen, Options)> {
    let foreseen = memory::check(captures, limit, &Bars::default())?;
    let options = Options { packet_bytes: memory::for_packets(limit), ..Options::default() };
    if foreseen.packets >= MANY_PACKETS && io::stderr().is_terminal() {
        trace::stderr::print(format!(
            "about {} million packets: up to {} of memory, and {} of room for temporary files in {}",
            foreseen.packets / 1_000_000,
            quantity::show_bytes(foreseen.memory_bytes),
            quantity::show_bytes(foreseen.temporary_bytes),
            std::env::temp_dir().display()
        ));
    }
    Ok((foreseen, options))
}

fn merge(captures: &[PathBuf], options: &Options) -> Result<Trace> {
    Ok(trace_with(captures, options, &GivingBack(Bars::default()))?.trace)
}

/// Whether a folder is meant as a trace, whatever is wrong with it.
fn has_tables(folder: &Path) -> bool {
    folder.join("hosts.parquet").is_file()
}

/// All rows of a trace are held: with too many the program ends before the kernel ends it, or another one.
fn watch_memory(limit: Option<u64>) -> Result<()> {
    const OUT_OF_MEMORY: &str = "all rows of a trace are held: merge a part of its capture (--job, --from, --to), or use a machine with more memory";
    let limit = limit.or_else(trace::memory::available_bytes);
    Ok(trace::memory::watch("merger", limit, OUT_OF_MEMORY)?)
}

fn run_check(args: &Check) -> Result<ExitCode> {
    let trace = match args.paths.as_slice() {
        [one] if has_tables(one) => {
            watch_memory(args.memory)?;
            read_trace(one)?
        }
        paths if paths.iter().any(|path| has_tables(path)) => {
            bail!("several paths, and a trace among them: check traces one by one")
        }
        captures => {
            let limit = merge_limit(args.memory);
            let (_, options) = look(captures, limit)?;
            // Its rows are held as well.
            watch_memory(args.memory)?;
            memory::watch(u64::MAX)?;
            merge(captures, &options)?
        }
    };
    let report = check(&trace);
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        let text = plain(&show(&report));
        anstream::stdout().lock().write_all(coloured(&text).as_bytes())?;
    }
    Ok(if report.missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn run_characterise(args: &Characterise) -> Result<ExitCode> {
    watch_memory(None)?;
    let trace = read_trace(&args.trace)?;
    let found = characterise::characterise(&trace);
    let mut code = ExitCode::SUCCESS;
    if let Some(folder) = &args.out {
        let sharing = args.cores.map(|cores| CoreSharing::new(cores, args.shared));
        let learn = Learn { job: args.job.as_deref(), sharing, reduce_heap: args.reduce_heap };
        if !characterise::write(folder, &trace, &found, learn)? {
            let path = folder.join("job.toml");
            let job = args.job.as_deref().map_or_else(
                || "the trace has no job whose maps read".to_owned(),
                |job| format!("the maps of {job} do not read"),
            );
            trace::stderr::print(format!(
                "merger: {}: not written: {job} what they work on from HDFS\n",
                path.display()
            ));
            // Whoever names a job wants its file.
            code = if args.job.is_some() { ExitCode::from(1) } else { code };
        }
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&found)?))?;
    } else {
        print(&characterise::show(&found))?;
        if let Some(folder) = &args.out {
            print(&format!("\n{}\n", folder.join("report.html").display()))?;
        }
    }
    Ok(code)
}

fn run_network(args: &Network) -> Result<ExitCode> {
    watch_memory(None)?;
    let trace = read_trace(&args.trace)?;
    let Some(network) = &trace.manifest.network else {
        bail!(
            "{}: tells nothing of its network: it was merged by an older version, or was never recorded; merge its capture again",
            args.trace.display()
        );
    };
    if let Some(out) = &args.out {
        let text = network::file::experiment(network, &trace.hosts, &args.trace.display().to_string());
        let mut file = std::fs::File::create_new(out).with_context(|| out.display().to_string())?;
        file.write_all(text.as_bytes()).with_context(|| out.display().to_string())?;
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(network)?))?;
    } else {
        print(&network::show(network))?;
    }
    let any_full = network.links.iter().any(|link| !link.at_least);
    Ok(if any_full { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn run_tables(args: &Tables) -> Result<ExitCode> {
    let (of_trace, of_characterise) = (trace_tables(), characterise::describe());
    if args.table.is_none() && !args.json {
        print(&tables_page::page(&of_trace, &of_characterise))?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = of_trace.iter().chain(&of_characterise);
    let chosen: Vec<&TableDescription> =
        all.clone().filter(|table| args.table.as_ref().is_none_or(|name| table.name == name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.map(|table| table.name).collect();
        bail!("{}: no such table; there are {}", args.table.as_deref().unwrap_or_default(), names.join(", "));
    }
    if args.json {
        let tables: Vec<serde_json::Value> = chosen.into_iter().map(TableDescription::to_json).collect();
        print(&format!("{}\n", serde_json::to_string_pretty(&tables)?))?;
    } else {
        chosen.into_iter().try_for_each(|table| print(&table.to_markdown()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_export(args: &Export) -> Result<ExitCode> {
    if args.job.is_some() && !matches!(args.to, Format::Goal | Format::Dimemas | Format::Vef) {
        bail!("--job chooses what --to goal, --to dimemas and --to vef write; other formats hold the whole trace");
    }
    watch_memory(None)?;
    let trace = read_trace(&args.trace)?;
    let written = match args.to {
        Format::Paraver => serde_json::to_value(export::paraver(&trace, &args.out)?)?,
        Format::Perfetto => serde_json::to_value(export::perfetto(&trace, &args.out)?)?,
        Format::Otlp => serde_json::to_value(export::otlp(&trace, &args.out)?)?,
        Format::Flows => serde_json::to_value(export::flows(&trace, &args.out)?)?,
        Format::Goal => serde_json::to_value(export::goal(&trace, args.job.as_deref(), &args.out)?)?,
        Format::Dimemas => serde_json::to_value(export::dimemas(&trace, args.job.as_deref(), &args.out)?)?,
        Format::Vef => serde_json::to_value(export::vef(&trace, args.job.as_deref(), &args.out)?)?,
        Format::Coflow => serde_json::to_value(export::coflow(&trace, &args.out)?)?,
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&written)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let counts = written.as_object().into_iter().flatten();
    let counts: Vec<String> = counts.map(|(what, count)| format!("{count} {}", what.replace('_', " "))).collect();
    print(&format!("{}: {}\n", args.out.display(), counts.join(", ")))?;
    Ok(ExitCode::SUCCESS)
}

fn run_digest(args: &Digest) -> Result<ExitCode> {
    let (limit, bars) = (merge_limit(args.memory), Bars::default());
    memory::check_digest(std::slice::from_ref(&args.capture), limit, &bars)?;
    memory::watch(limit)?;
    let for_packets = memory::for_packets(limit);
    let digests = merger::digest::digest(&args.capture, &args.out, for_packets, &bars)?;
    let code = if digests.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&digests)?))?;
        return Ok(code);
    }
    let mut text: String = digests.refused.iter().map(|refused| format!("refused: {refused}\n")).collect();
    for host in &digests.hosts {
        text.extend(host.losses.iter().map(|loss| format!("lost: {loss}\n")));
        text += &format!(
            "{}: {} packets, {} of {}\n",
            host.file.display(),
            host.packets,
            quantity::show_bytes(host.digest_bytes),
            quantity::show_bytes(host.capture_bytes)
        );
    }
    print(&text)?;
    Ok(code)
}

fn run_strip(args: &Strip) -> Result<ExitCode> {
    let stripped = merger::strip::strip(&args.capture, &args.out)?;
    let code = if stripped.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&stripped)?))?;
        return Ok(code);
    }
    let mut text = String::new();
    for refused in &stripped.refused {
        text += &format!("refused: {refused}\n");
    }
    for path in &stripped.left_out {
        text += &format!("left out: {}\n", path.display());
    }
    if stripped.unreadable_records > 0 {
        text += &format!("left out: {} records that could not be read\n", stripped.unreadable_records);
    }
    text += &format!(
        "{}: {} packets of {} hosts, without {} bytes of payload\n",
        stripped.out.display(),
        stripped.packets,
        stripped.hosts,
        stripped.payload_bytes
    );
    print(&text)?;
    Ok(code)
}

/// Before each step, and in long ones from time to time, gives memory back to the system. What one thread gave up of another's memory lies
/// there until that one looks, which it does not while it has nothing to do.
struct GivingBack<P>(P);

/// A thread that reports progress gives memory back after so long: often enough to keep little, and seldom enough to take no time.
const GIVING_BACK_PERIOD: Duration = Duration::from_millis(300);

thread_local! {
    /// When this thread last gave memory back.
    static GAVE_BACK: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl<P: Progress> Progress for GivingBack<P> {
    fn step(&self, what: &str, parts: u64, unit: Unit) {
        rayon::broadcast(|_| mi_collect(true));
        keep_memory_longer(unit != Unit::Nothing);
        self.0.step(what, parts, unit);
    }

    fn done(&self, parts: u64) {
        let now = Instant::now();
        if GAVE_BACK.get().is_none_or(|last| now.duration_since(last) > GIVING_BACK_PERIOD) {
            GAVE_BACK.set(Some(now));
            mi_collect(true);
        }
        self.0.done(parts);
    }
}

/// A bar for the step that is running, if standard error is a terminal.
#[derive(Default)]
struct Bars {
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress for Bars {
    fn step(&self, what: &str, parts: u64, unit: Unit) {
        if !io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::new(parts);
        let style = match unit {
            Unit::Bytes => "{bar:40} {msg} {bytes} of {total_bytes}, {eta} to go",
            Unit::Packets => "{bar:40} {msg} {human_pos} of {human_len} packets, {eta} to go",
            Unit::Nothing => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        if let Ok(mut current) = self.bar.lock()
            && let Some(last) = current.replace(bar)
        {
            last.finish_and_clear();
        }
    }

    fn done(&self, parts: u64) {
        if let Ok(current) = self.bar.lock()
            && let Some(bar) = &*current
        {
            bar.inc(parts);
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        if let Ok(Some(bar)) = self.bar.get_mut().map(|bar| bar.take()) {
            bar.finish_and_clear();
        }
    }
}
