//! `sniffer`: records the TCP segments of a host's interfaces.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use man_pages::ManArgs;
use sniffer::agent::{self, FollowSettings, RunSettings};
use sniffer::capture::CaptureSettings;
use sniffer::disk_quota::{Limits, WhenFull};
use sniffer::keep::{FullPayloadOf, KeepRule};
use sniffer::pending::HoldRule;
use sniffer::privileges::RunAs;
use sniffer::redact::Secrets;
use sniffer::{DEFAULT_FILTER, HEADER_ROOM_BYTES, interfaces, show};
use trace::budget::Budget;
use trace::quantity::{parse_bytes, parse_duration};
use trace::signals::Signals;

/// Records the TCP segments that a host sends and receives: addresses, ports, lengths, sequence and acknowledgement
/// numbers, flags, and the beginning of what they carry.
///
/// Needs root, or the capability CAP_NET_RAW.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit code: 0 = done, 1 = packets were lost or something else went wrong (it is said what), 2 = could not run.";

const INTERFACES_EXAMPLES: &str = "\
Examples:
  sniffer interfaces
  sniffer interfaces --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  sniffer show packets-eth0.hpk | grep :9866
  sniffer show packets-eth0.hpk --json";

const RUN_EXAMPLES: &str = "\
Examples:
  sniffer run --out /var/log/capture/$(hostname)
  sniffer run --out DIR --follow --hadoop-conf /etc/hadoop/conf \\
      --disk-limit 20GiB --when-full drop-oldest";

#[derive(Subcommand)]
enum Command {
    /// Record until SIGTERM, SIGINT or the end of --duration.
    ///
    /// Writes DIR/packets-INTERFACE.hpk and DIR/sniffer.json; the latter says "ready": true as soon as packets are
    /// recorded, and holds the final counts after the end. Files of an earlier run are continued. SIGUSR1 prints the
    /// counts so far. Records the network namespace in which it is started.
    ///
    /// With --follow only what is Hadoop's is recorded. Its ports are the defaults of all versions, those in the
    /// configurations that --hadoop-conf names, and those that dumpingd (DIR/ports.json) and the JVMs
    /// (--jvm-records) tell of while they come and go. What may turn out to be Hadoop's is held until it is known.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<Run>),
    /// List the interfaces, and which of them `run` records unless told otherwise.
    #[command(after_help = INTERFACES_EXAMPLES)]
    Interfaces {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print what a packet file holds: a line for each packet, and a summary on stderr.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// A file packets-INTERFACE.hpk.
        file: PathBuf,
        /// Print the summary only, as a JSON object.
        #[arg(long)]
        json: bool,
    },
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
    /// Folder of this host; made if missing. Nobody but root and whoever goes on (--user) may write into it.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// An interface to record; may be given several times. Default: all that are up, loopback included, except those
    /// whose packets another one shows as well (ports of a bond or bridge, VLAN devices).
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// What to record, in the syntax of pcap-filter(7); "" = everything. `port X` alone does not match frames with a
    /// VLAN tag: add `or (vlan and port X)`.
    #[arg(long, value_name = "EXPR", default_value = DEFAULT_FILTER, conflicts_with = "follow")]
    filter: String,
    /// Record only what is Hadoop's: its servers' ports, as they come and go, and its processes' connections.
    #[arg(long)]
    follow: bool,
    /// Where JVMs write their records, each user's in a folder of its own (DIR/UID/jvm-*.jsonl). Default: OUT/jvm.
    #[arg(long, value_name = "DIR")]
    jvm_records: Option<PathBuf>,
    /// With --follow: a folder with Hadoop's *-site.xml; may be given several times.
    #[arg(long, value_name = "DIR", requires = "follow")]
    hadoop_conf: Vec<PathBuf>,
    /// With --follow: one more port; may be given several times.
    #[arg(long, value_name = "PORT", requires = "follow")]
    port: Vec<u16>,
    /// With --follow: packets between two ports of which nothing is known yet wait so long for news.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    hold: Duration,
    /// With --follow: memory for such packets, for each interface; the oldest give way, and are counted.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    hold_memory: u64,
    /// Write DIR/packets-INTERFACE.pcapng as well, for Wireshark: the same packets, cut where they are cut in the record,
    /// with host and process as comments.
    #[arg(long)]
    pcapng: bool,
    /// All packet files of DIR together take no more; 0 = no limit. Default: five eighths of the host's budget, which is
    /// 5 GiB or a tenth of DIR's file system, whichever is less.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    disk_limit: Option<u64>,
    /// So much of DIR's file system stays free; 0 = nothing. Default: a tenth of it.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// What happens at either limit: `stop` ends the recording, `drop-oldest` removes the oldest closed files.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = AtLimit::Stop)]
    when_full: AtLimit,
    /// Close a packet file at this size, and begin another one. Default: never; with drop-oldest a sixteenth of the limit.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_bytes, hide_default_value = true)]
    file_size: u64,
    /// Go on as this user, without any capability, once everything is open; DIR is given to it. Default: the user hadoptic,
    /// if there is one and we are root.
    #[arg(long, value_name = "NAME", conflicts_with = "keep_rights")]
    user: Option<String>,
    /// Keep all rights. Default: capabilities are given up once everything is open, except those that reading the files
    /// of others in DIR needs.
    #[arg(long)]
    keep_rights: bool,
    /// Record an interface that vanishes on when it comes back. The right to open it (CAP_NET_RAW) is kept for that, out of
    /// effect until then. Default: it is given up, and the recording of that interface ends.
    #[arg(long)]
    reopen: bool,
    /// Record interfaces that come up for the first time during the run as well, from then on, and do what --reopen does:
    /// CAP_NET_RAW is kept for both. Each takes a ring (--ring) of memory and a thread.
    #[arg(long, conflicts_with = "interface")]
    new_interfaces: bool,
    /// Bytes of a frame that the kernel copies. Default: what --payload needs, and 128 for headers.
    #[arg(long, value_name = "BYTES")]
    snap_length: Option<u32>,
    /// Ring for each interface in which the kernel keeps packets until they are read. 128 MiB hold about 1 s of
    /// 300,000 packets a second; less for a quiet host.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_bytes)]
    ring: u64,
    /// Payload bytes kept of each segment shorter than --full-segment. 0 = no payload at all, unless --full-payload or
    /// --full-payload-of says otherwise.
    #[arg(long, value_name = "BYTES", default_value_t = KeepRule::default().payload_bytes)]
    payload: u32,
    /// Segments with at least so many bytes of payload are full-sized.
    #[arg(long, value_name = "BYTES", default_value_t = KeepRule::default().full_segment_bytes)]
    full_segment: u32,
    /// Payload bytes kept of full-sized segments, of those that --full-payload-of selects. Default: 64.
    #[arg(long, value_name = "BYTES")]
    full_payload: Option<u32>,
    /// Of which full-sized segments a prefix is kept. Default: bursts.
    #[arg(long, value_enum)]
    full_payload_of: Option<FullOf>,
    /// What becomes of secrets in the payload that is kept: bodies, cookies and credentials of HTTP, what RPC calls and
    /// their answers hold, tokens. `blank` writes '*' in place of each byte, before anything is recorded.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = InPayload::Blank)]
    secrets: InPayload,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Print the final manifest as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AtLimit {
    /// The recording ends, with exit code 1.
    Stop,
    /// The oldest closed packet files are removed.
    DropOldest,
}

#[derive(Clone, Copy, ValueEnum)]
enum InPayload {
    /// They are blanked.
    Blank,
    /// They are recorded.
    Keep,
}

#[derive(Clone, Copy, ValueEnum)]
enum FullOf {
    /// Of those with which a burst begins: a direction's first, after a write that ended, after a pause of 20 ms. One
    /// that answers the other side is kept as far as a short segment.
    Bursts,
    /// Of all.
    All,
    /// Of none.
    None,
}

fn main() -> ExitCode {
    execute(Cli::parse().command).unwrap_or_else(|error| trace::stderr::exit_code("sniffer", error.as_ref()))
}

fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(options) => run(&options),
        Command::Interfaces { json } => list_interfaces(json),
        Command::Show { file, json } => show_file(&file, json),
        Command::Man(man) => {
            man.write(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "sniffer", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run(options: &Run) -> Result<ExitCode> {
    let signals = Signals::listen().context("cannot listen to signals")?;
    let manifest = agent::run(&settings(options)?, &signals)?;
    trace::stderr::print(agent::describe(&manifest));
    if options.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&manifest)?)?;
    }
    Ok(if agent::is_clean(&manifest) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn settings(options: &Run) -> Result<RunSettings> {
    let keep = keep_rule(options);
    let longest_payload = keep.payload_bytes.max(keep.full_payload_bytes);
    let snap_length = options.snap_length.unwrap_or(longest_payload.saturating_add(HEADER_ROOM_BYTES));
    anyhow::ensure!(
        (64..=262_144).contains(&snap_length),
        "a snap length of {snap_length} bytes is out of range: 64 (headers) to 262144"
    );
    let ring_bytes = u32::try_from(options.ring)
        .ok()
        .filter(|ring| (1 << 18..1 << 31).contains(ring))
        .with_context(|| format!("a ring of {} bytes is out of range: 256KiB to below 2GiB", options.ring))?;
    Ok(RunSettings {
        out: options.out.clone(),
        jvm_records: options.jvm_records.clone().unwrap_or_else(|| options.out.join("jvm")),
        interfaces: options.interface.clone(),
        new_interfaces: options.new_interfaces,
        capture: CaptureSettings {
            filter: options.filter.clone(),
            snap_length,
            ring_bytes,
            keep,
            secrets: match options.secrets {
                InPayload::Blank => Secrets::Blank,
                InPayload::Keep => Secrets::Keep,
            },
            hold: HoldRule {
                longest_ns: u64::try_from(options.hold.as_nanos()).unwrap_or(u64::MAX),
                most_bytes: usize::try_from(options.hold_memory).unwrap_or(usize::MAX),
            },
            reopen: options.reopen || options.new_interfaces,
            new_interfaces: options.new_interfaces,
        },
        follow: options
            .follow
            .then(|| FollowSettings { configurations: options.hadoop_conf.clone(), ports: options.port.clone() }),
        pcapng: options.pcapng,
        limits: limits(options)?,
        run_as: RunAs::from_options(options.user.as_deref(), options.keep_rights),
        duration: options.duration,
    })
}

/// What packet files may take: as told, or our share of the host's budget.
fn limits(options: &Run) -> Result<Limits> {
    let budget = if options.disk_limit.is_some() && options.keep_free.is_some() {
        None
    } else {
        Some(Budget::default_for(&options.out).context("--disk-limit and --keep-free have no default here")?)
    };
    Ok(Limits {
        disk_bytes: options.disk_limit.or(budget.map(|budget| budget.packets())).unwrap_or(0),
        keep_free_bytes: options.keep_free.or(budget.map(|budget| budget.keep_free_bytes)).unwrap_or(0),
        file_bytes: options.file_size,
        when_full: match options.when_full {
            AtLimit::Stop => WhenFull::Stop,
            AtLimit::DropOldest => WhenFull::DropOldest,
        },
    })
}

/// What is kept of payloads. Who wants none says so by one option.
fn keep_rule(options: &Run) -> KeepRule {
    let usual = KeepRule::default();
    let no_payload = options.payload == 0 && options.full_payload.is_none() && options.full_payload_of.is_none();
    KeepRule {
        payload_bytes: options.payload,
        full_segment_bytes: options.full_segment,
        full_payload_bytes: options.full_payload.unwrap_or(if no_payload { 0 } else { usual.full_payload_bytes }),
        full_of: match options.full_payload_of {
            None if no_payload => FullPayloadOf::None,
            None => usual.full_of,
            Some(FullOf::Bursts) => FullPayloadOf::Bursts,
            Some(FullOf::All) => FullPayloadOf::All,
            Some(FullOf::None) => FullPayloadOf::None,
        },
    }
}

fn list_interfaces(json: bool) -> Result<ExitCode> {
    let all = interfaces::list().context("cannot list the interfaces")?;
    if json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = interfaces::choose(&all, &[]).unwrap_or_default();
    for interface in &all {
        let addresses: Vec<_> = interface.addresses.iter().map(ToString::to_string).collect();
        let why = match (&interface.seen_on, interface.up) {
            _ if chosen.contains(interface) => "recorded".to_owned(),
            (_, false) => "down".to_owned(),
            (Some(other), true) => format!("left out: its packets are seen on {other}"),
            (None, true) => "left out".to_owned(),
        };
        writeln!(io::stdout(), "{:<16} {:<40} {}", interface.name, why, addresses.join(" "))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_file(file: &std::path::Path, json: bool) -> Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let lines: Option<&mut dyn Write> = if json { None } else { Some(&mut out) };
    let summary = show::show(file, lines).with_context(|| format!("{}", file.display()))?;
    let text = serde_json::to_string_pretty(&summary)?;
    if json {
        writeln!(out, "{text}")?;
    } else {
        trace::stderr::print(text);
    }
    out.flush()?;
    let whole = summary.truncated_bytes == 0 && summary.malformed_records == 0;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
