//! `dumpingd`: records who has which TCP socket open, and what the kernel counted on it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use dumpingd::agent::{self, RunSettings};
use dumpingd::network_namespace::SourceKind;
use man_pages::ManArgs;
use trace::privileges::RunAs;
use trace::quantity::{parse_bytes, parse_duration};
use trace::signals::Signals;

/// Records the TCP sockets of a host: state, owner, the kernel's counters; and the processes that own them, Hadoop's
/// by their main class and role.
///
/// Of command lines only the main class is kept. Runs without root as well, and then knows the owners of its own
/// user's sockets only.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit code: 0 = done, 1 = ran, but not all could be recorded (it is said what), 2 = could not run.";

const RUN_EXAMPLES: &str = "\
Examples:
  dumpingd run --out /var/log/capture/$(hostname)
  dumpingd run --out DIR --interval 200ms --duration 10min --json";

#[derive(Subcommand)]
enum Command {
    /// Record until SIGTERM, SIGINT or the end of --duration.
    ///
    /// Writes DIR/sockets.jsonl (one JSON object a line) and DIR/dumpingd.json; the latter says "ready": true after
    /// the first scan. A file of an earlier run is continued; a large one is closed as DIR/sockets.NNNNNN.jsonl. SIGUSR1 prints the counts so far. Records the network namespace in which it is started.
    /// Between two scans the kernel tells of sockets that open, with their owner (its tracepoint
    /// sock:inet_sock_set_state, where tracefs is allowed), and of those that die, with their last counters.
    /// DIR/ports.json says what is Hadoop's now, for `sniffer run --follow`.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Print the manual page, or write those of all subcommands.
    Man(ManArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
struct Run {
    /// Folder of this host; made if missing.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Time from scan to scan. Default: 5s where the kernel tells of what opens and dies between two scans (sooner, after
    /// 1s, when that leaves an owner open), 1s where it does not, with --source and with --namespaces. Without the
    /// tracepoint a connection that lives shorter has an owner only if it is caught by chance, or one of its ends listens.
    /// Longer while a scan takes more than a tenth of it.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Option<Duration>,
    /// Where sockets are read from. `proc` and `lsof` know no counters and hear of no deaths.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ReadFrom::Netlink)]
    source: ReadFrom,
    /// Which network namespaces are scanned: that in which dumpingd runs, or also those of Hadoop's containers on this
    /// machine (it needs CAP_SYS_ADMIN).
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Namespaces::Own)]
    namespaces: Namespaces,
    /// Leave the kernel's tracepoint alone.
    #[arg(long)]
    no_tracepoint: bool,
    /// All files of records in DIR together take no more: the oldest go, and are counted. 0 = no limit. Default: an eighth of
    /// the host's budget, which is 5GiB or a tenth of the file system, whichever is less.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    disk_limit: Option<u64>,
    /// So much of DIR's file system stays free. 0 = nothing. Default: a tenth of it.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// Go on as this user once everything is open, with the capabilities only that looking into the processes of others
    /// needs; DIR is given to it. Default: `hadoptic`, if root starts it and there is such a user.
    #[arg(long, value_name = "NAME", conflicts_with = "keep_rights")]
    user: Option<String>,
    /// Keep all rights and the user, and build no sandbox. Default: once everything is open, capabilities are given up, except
    /// those that looking into the processes of others needs; the system becomes read-only for it but DIR, and it may not
    /// start programs (seccomp), where the kernel can do that.
    #[arg(long)]
    keep_rights: bool,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Print the final manifest as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReadFrom {
    /// The kernel's sock_diag: with counters, the cheapest.
    Netlink,
    /// The text of /proc/net/tcp.
    Proc,
    /// The program lsof.
    Lsof,
}

#[derive(Clone, Copy, ValueEnum)]
enum Namespaces {
    /// That in which dumpingd runs.
    Own,
    /// Also those of Hadoop's processes.
    Hadoop,
}

fn main() -> ExitCode {
    execute(Cli::parse().command).unwrap_or_else(|error| trace::stderr::exit_code("dumpingd", error.as_ref()))
}

fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(options) => run(&options),
        Command::Man(man) => {
            man.write(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "dumpingd", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run(options: &Run) -> Result<ExitCode> {
    if let Some(interval) = options.interval {
        let shortest = Duration::from_millis(1);
        anyhow::ensure!(interval >= shortest, "an interval of {interval:?} is too short: at least 1ms");
    }
    let signals = Signals::listen().context("cannot listen to signals")?;
    let settings = RunSettings {
        out: options.out.clone(),
        interval: options.interval,
        source: match options.source {
            ReadFrom::Netlink => SourceKind::Netlink,
            ReadFrom::Proc => SourceKind::Proc,
            ReadFrom::Lsof => SourceKind::Lsof,
        },
        other_namespaces: matches!(options.namespaces, Namespaces::Hadoop),
        tracepoint: !options.no_tracepoint,
        run_as: RunAs::from_options(options.user.as_deref(), options.keep_rights),
        disk_limit: options.disk_limit,
        keep_free: options.keep_free,
        duration: options.duration,
    };
    let manifest = agent::run(&settings, &signals)?;
    trace::stderr::print(agent::describe(&manifest));
    for note in &manifest.notes {
        trace::stderr::print(format!("note: {note}"));
    }
    for problem in &manifest.problems {
        trace::stderr::print(format!("problem: {problem}"));
    }
    if options.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&manifest)?)?;
    }
    Ok(if manifest.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
