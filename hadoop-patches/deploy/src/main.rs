//! `hadoptic`: the agents on a cluster's hosts, from one place.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use deploy::check;
use deploy::cluster::{Merger, Programs};
use deploy::collect::{self, DigestSettings, History, host_digest};
use deploy::fleet::Fleet;
use deploy::install;
use deploy::installed::StartedBy;
use deploy::places::Places;
use deploy::report::Report;
use deploy::ssh::SshSettings;
use deploy::versions::Generation;
use deploy::{agents, hosts, quote, remove, status, units};
use man_pages::ManArgs;
use trace::privileges::SERVICE_USER;
use trace::quantity::parse_bytes;

/// Brings Hadoptic's agents to the hosts of a Hadoop cluster, looks after them, fetches what they recorded, and takes
/// them away without a trace.
///
/// Works over the OpenSSH client of this machine, without a question: keys and known_hosts have to be in order. On the
/// hosts it needs root, or sudo without a password, a POSIX shell and coreutils.
///
/// In this order: check, install, start, restart the daemons, run jobs, status, stop, collect, remove.
#[derive(Parser)]
#[command(name = "hadoptic", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  HOSTS=\"--workers /etc/hadoop/conf/workers --also master1 gateway1\"
  hadoptic check $HOSTS
  hadoptic install $HOSTS
  hadoptic start $HOSTS                 then restart Hadoop's daemons, run the job
  hadoptic stop $HOSTS
  hadoptic collect $HOSTS --out capture
  hadoptic remove $HOSTS

Exit code: 0 = done, 1 = ran and found something wrong (it is said what), 2 = could not run.";

const CHECK_EXAMPLES: &str = "\
Examples:
  hadoptic check --workers /etc/hadoop/conf/workers --also master1 gateway1
  hadoptic check --workers workers --quick --json
  hadoptic check --workers workers --programs target/static";

const INSTALL_EXAMPLES: &str = "\
Examples:
  hadoptic install --workers /etc/hadoop/conf/workers --also master1 gateway1
  hadoptic install --workers workers --systemd --disk-limit 20GiB
  hadoptic install --workers workers --sniffer-option=--payload=0";

const START_EXAMPLES: &str = "\
Examples:
  hadoptic start --workers /etc/hadoop/conf/workers --also master1 gateway1
  hadoptic start --workers workers --attach";

const STATUS_EXAMPLES: &str = "\
Examples:
  hadoptic status --workers /etc/hadoop/conf/workers --also master1 gateway1
  hadoptic status --workers workers --json";

const STOP_EXAMPLES: &str = "\
Example:
  hadoptic stop --workers /etc/hadoop/conf/workers --also master1 gateway1";

const COLLECT_EXAMPLES: &str = "\
Examples:
  hadoptic collect --workers workers --also master1 --out capture
  hadoptic collect --workers workers --out capture --compress \\
      --job-history-hdfs gateway1:/tmp/hadoop-yarn/staging/history
  merger build capture --out trace
  hadoptic collect --workers workers --also master1 --out digests --digest
  merger build digests --out trace";

const DIGEST_EXAMPLES: &str = "\
Examples:
  hadoptic digest --workers workers --also master1
  hadoptic digest --workers workers --memory 4GiB --jobs 4 --json
  hadoptic collect --workers workers --also master1 --out digests --digest
  merger build digests --out trace";

const REMOVE_EXAMPLES: &str = "\
Examples:
  hadoptic remove --workers /etc/hadoop/conf/workers --also master1 gateway1
  hadoptic remove --workers workers --keep-captures";

const UNITS_EXAMPLES: &str = "\
Examples:
  hadoptic units
  hadoptic units --packaged --out /tmp/units";

#[derive(Subcommand)]
enum Command {
    /// Look whether everything is there that install and start need; changes nothing.
    ///
    /// Copies the programs into a folder beside their later place, runs them, and takes the folder away.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Bring the programs and the jar, and have Hadoop's JVMs load it.
    ///
    /// No mapred-site.xml is touched before every host has the jar, verified: a missing jar kills every task JVM. If
    /// something fails on one host, all files of all hosts are as before. Install twice is install once.
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(Box<Install>),
    /// Start sniffer and dumpingd where they do not run, and wait until they record.
    #[command(after_help = START_EXAMPLES)]
    Start(Start),
    /// Show what the agents of each host record, lose and take.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Common),
    /// Stop sniffer and dumpingd, and wait until they have ended in order.
    #[command(after_help = STOP_EXAMPLES)]
    Stop(Stop),
    /// Fetch what was recorded into a folder that `merger build` reads.
    ///
    /// Goes on where it was broken off; every file's checksum is compared with the host's.
    #[command(after_help = COLLECT_EXAMPLES)]
    Collect(Collect),
    /// Make of what each host recorded a digest there: one file, from which `merger build` makes the same trace.
    ///
    /// Brings the program merger, which runs on all hosts at once (--jobs), with the rights of the agents' user, lowest
    /// priority, idle disk and bounded memory. A digest that is there of just these files is not made again. `collect
    /// --digest` does all that too, and fetches the digests.
    #[command(after_help = DIGEST_EXAMPLES)]
    Digest(Digest),
    /// Take everything away: lines, programs, what was recorded.
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(Remove),
    /// Print the systemd units that `install --systemd` brings.
    #[command(after_help = UNITS_EXAMPLES)]
    Units(Units),
    /// Print the manual page, or write those of all subcommands.
    Man(ManArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
struct Common {
    /// Hadoop's own file of workers (or slaves): a host a line, # begins a comment.
    #[arg(long, value_name = "FILE")]
    workers: Option<PathBuf>,
    /// One more host, or several: masters and gateways, which are not among the workers.
    #[arg(long, value_name = "HOST", num_args = 1..)]
    also: Vec<String>,
    /// Configuration of ssh (`ssh -F`).
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// An option of ssh (`ssh -o`); may be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    ssh_option: Vec<String>,
    /// As whom to log in. Who is not root needs sudo without a password.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Hosts at the same time.
    #[arg(long, value_name = "N", default_value_t = 16)]
    jobs: usize,
    /// Longest time of one step on one host, seconds; copying has no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// Longest time to connect, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    connect_timeout: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    places: PlaceOptions,
}

#[derive(Args)]
struct PlaceOptions {
    /// Hadoop's configuration on the hosts. Default: that of an earlier install, else found: /etc/hadoop/conf first.
    #[arg(long, value_name = "DIR", value_parser = conf_path, default_value = "", hide_default_value = true)]
    conf_dir: String,
    /// Where the programs and the jar lie on the hosts.
    #[arg(long, value_name = "DIR", value_parser = quote::plain_path, default_value = "/opt/hadoptic")]
    prefix: String,
    /// Where the hosts keep what is recorded.
    #[arg(long, value_name = "DIR", value_parser = quote::plain_path, default_value = "/var/lib/hadoptic/capture")]
    capture_dir: String,
    /// The Java that tries the agent on the hosts. Default: JAVA_HOME of hadoop-env.sh, then that of the search path. One that
    /// others than root can change is run with the rights of whom it belongs to, and never as root.
    #[arg(long, value_name = "FILE", value_parser = quote::plain_path)]
    java: Option<String>,
    /// Hadoop's version. Default: found out.
    #[arg(long, value_name = "1|2|3", value_enum)]
    hadoop_version: Option<Version>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Version {
    /// 1.x and 0.20.
    #[value(name = "1")]
    One,
    /// 2.x.
    #[value(name = "2")]
    Two,
    /// 3.x.
    #[value(name = "3")]
    Three,
}

fn conf_path(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        _ if text.starts_with('/') && !text.contains(|c: char| c.is_control()) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err(format!("\"{text}\" is no absolute path")),
    }
}

/// What goes out.
#[derive(Args)]
struct ProgramOptions {
    /// Where the programs sniffer and dumpingd are taken from, as target/static. Default: beside this one.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// The program sniffer. Default: that of --programs.
    #[arg(long, value_name = "FILE")]
    sniffer: Option<PathBuf>,
    /// The program dumpingd. Default: that of --programs.
    #[arg(long, value_name = "FILE")]
    dumpingd: Option<PathBuf>,
    /// The Java agent. Default: hadoptic-agent.jar beside this program, where the package has it, or where Maven leaves it.
    #[arg(long, value_name = "FILE")]
    jar: Option<PathBuf>,
}

#[derive(Args)]
struct Check {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    programs: ProgramOptions,
    /// Do not copy the programs there to try them.
    #[arg(long)]
    quick: bool,
    /// So much room is wanted in the capture folder.
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_bytes)]
    need_free: u64,
}

#[derive(Args)]
struct AgentOptions {
    /// Record all TCP of the hosts, and not only Hadoop's.
    #[arg(long)]
    all_tcp: bool,
    /// What is recorded takes no more on a host: packets 5/8 of it (the oldest give way), sockets 1/8, JVMs 1/4, and those of
    /// one user 1/16. What is not written is counted. 0 = no limit. Default: 5GiB, or 10% of the file system if that is less.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    disk_limit: Option<u64>,
    /// So much of the hosts' file system stays free: with less, nothing is recorded. 0 = nothing. Default: 10% of it.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// One more option of `sniffer run`, as in --sniffer-option=--payload=0; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sniffer_option: Vec<String>,
    /// One more option of `dumpingd run`; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    dumpingd_option: Vec<String>,
}

#[derive(Args)]
struct Install {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    programs: ProgramOptions,
    #[command(flatten)]
    agents: AgentOptions,
    /// Leave shells and other clients (`hadoop fs`) without the agent: of their messages only the other side is known.
    #[arg(long)]
    no_clients: bool,
    /// Who starts the agents.
    #[arg(long, value_enum, value_name = "WHO", default_value = "hadoptic", conflicts_with = "systemd")]
    started_by: StartedBy,
    /// The same as --started-by systemd: brings systemd units.
    #[arg(long)]
    systemd: bool,
    /// The agents go on as this user once everything is open, with few rights. Default: hadoptic, which is made where there is
    /// none, and removed by `remove`; with --started-by daemons it is the user of those daemons, and root by default.
    #[arg(long, value_name = "NAME")]
    run_as: Option<String>,
    /// The group that may start the programs with their capabilities. Default: that of --run-as.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    group: String,
    /// Bring the programs only; touch no file of Hadoop's.
    #[arg(long)]
    programs_only: bool,
}

#[derive(Args)]
struct Start {
    #[command(flatten)]
    common: Common,
    /// Load the agent into daemons that run without it (needs a JDK's attach module there). What they did before stays
    /// unknown.
    #[arg(long)]
    attach: bool,
    /// How long to wait until an agent records, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

#[derive(Args)]
struct Stop {
    #[command(flatten)]
    common: Common,
    /// How long to wait until an agent has ended, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

#[derive(Args)]
struct Collect {
    #[command(flatten)]
    common: Common,
    /// The capture: a folder with one for each host.
    #[arg(long, value_name = "CAPTURE")]
    out: PathBuf,
    /// So much is fetched of a host at most, and a quarter of it from JVMs, a sixteenth from those of one user; what is left
    /// there is said. 0 = all. Default: what the host was allowed to record (`install --disk-limit`) and a quarter more.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_bytes: Option<u64>,
    /// Fetch of each host a digest, which is made there (as by `hadoptic digest`), in place of all files.
    #[arg(long)]
    digest: bool,
    #[command(flatten)]
    digest_options: DigestOptions,
    /// Pack what goes over the network (`ssh -C`): for links slower than some 200 Mbit/s.
    #[arg(long)]
    compress: bool,
    /// Fetch the jobs' histories and configurations from this folder of a host (1.x: logs/history of the JobTracker).
    #[arg(long, value_name = "HOST:FOLDER", conflicts_with = "job_history_hdfs")]
    job_history: Option<String>,
    /// Fetch them from this folder of HDFS, with the `hadoop` of a host (2.x, 3.x: the folder above
    /// mapreduce.jobhistory.done-dir and intermediate-done-dir, where new ones are for some minutes).
    #[arg(long, value_name = "HOST:FOLDER")]
    job_history_hdfs: Option<String>,
    /// Only the files of this job.
    #[arg(long, value_name = "JOB_ID", default_value = "", hide_default_value = true)]
    job: String,
    /// The program `hadoop` there.
    #[arg(long, value_name = "FILE", default_value = "hadoop")]
    hadoop: String,
    /// As whom HDFS is read.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    hdfs_user: String,
}

/// How digests are made on the hosts.
#[derive(Args)]
struct DigestOptions {
    /// The program merger, which makes them there; it has to be of the hosts' architecture. Default: beside this one.
    #[arg(long, value_name = "FILE")]
    merger: Option<PathBuf>,
    /// So much of a host's memory it may take.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    memory: u64,
    /// Also where sniffer and dumpingd run: a digest of what is there by then, made beside the job.
    #[arg(long)]
    while_recording: bool,
}

impl DigestOptions {
    fn settings(&self) -> Result<DigestSettings> {
        ensure!(self.memory >= MIN_DIGEST_MEMORY, "--memory {}: less than 16MiB will not do", self.memory);
        Ok(DigestSettings {
            merger: Merger::read(self.merger.as_deref())?,
            memory: self.memory,
            while_recording: self.while_recording,
        })
    }
}

/// With less a digest is not begun, bytes.
const MIN_DIGEST_MEMORY: u64 = 16 << 20;

#[derive(Args)]
struct Digest {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    digest: DigestOptions,
    /// Of JVMs no more is taken than a quarter of this, of those of one user a sixteenth. 0 = all. Default: what the host was
    /// allowed to record (`install --disk-limit`) and a quarter more.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_bytes: Option<u64>,
}

#[derive(Args)]
struct Remove {
    #[command(flatten)]
    common: Common,
    /// Leave what was recorded on the hosts.
    #[arg(long)]
    keep_captures: bool,
    /// Take the jar away although jobs run that need it: their next tasks fail.
    #[arg(long)]
    force: bool,
    /// How long to wait until an agent has ended, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

#[derive(Args)]
struct Units {
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    agents: AgentOptions,
    /// The agents run as this user. Default: hadoptic.
    #[arg(long, value_name = "NAME")]
    run_as: Option<String>,
    /// Those of a package: programs of /usr/bin, folders that systemd makes, words to the journal.
    #[arg(long, conflicts_with_all = ["run_as", "prefix", "capture_dir"])]
    packaged: bool,
    /// Write each into this folder, which has to be there, in place of printing both.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    execute(Cli::parse().command).unwrap_or_else(|error| trace::stderr::exit_code("hadoptic", error.as_ref()))
}

fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Check(options) => {
            let programs = if options.quick { None } else { Some(read(&options.programs)?) };
            let settings = check::Settings {
                places: places(&options.common.places),
                need_free: options.need_free,
                most_skew_ns: 1_000_000_000,
                quick: options.quick,
            };
            over(&options.common, false, |fleet| Ok(check::check(fleet, &settings, programs.as_ref())))
        }
        Command::Install(options) => {
            let programs = read(&options.programs)?;
            let settings = install_settings(&options)?;
            over(&options.common, false, |fleet| Ok(install::install(fleet, &settings, &programs)))
        }
        Command::Start(options) => over(&options.common, false, |fleet| {
            Ok(agents::start(fleet, &places(&options.common.places), options.attach, options.wait))
        }),
        Command::Status(common) => over(&common, false, |fleet| Ok(status::status(fleet, &places(&common.places)))),
        Command::Stop(options) => {
            over(&options.common, false, |fleet| Ok(agents::stop(fleet, &places(&options.common.places), options.wait)))
        }
        Command::Collect(options) => {
            let wants = &options.digest_options;
            ensure!(
                options.digest || (wants.merger.is_none() && !wants.while_recording),
                "--merger and --while-recording are for digests: say --digest too"
            );
            let settings = collect::Settings {
                places: places(&options.common.places),
                out: options.out.clone(),
                max_bytes: options.max_bytes,
                history: history(&options)?,
                digest: options.digest.then(|| options.digest_options.settings()).transpose()?,
            };
            over(&options.common, options.compress, |fleet| Ok(collect::collect(fleet, &settings)?))
        }
        Command::Digest(options) => {
            let settings = options.digest.settings()?;
            over(&options.common, false, |fleet| {
                Ok(host_digest::digest(fleet, &places(&options.common.places), options.max_bytes, &settings))
            })
        }
        Command::Remove(options) => {
            let settings = remove::Settings {
                places: places(&options.common.places),
                keep_captures: options.keep_captures,
                force: options.force,
                wait_s: options.wait,
            };
            over(&options.common, false, |fleet| Ok(remove::remove(fleet, &settings)))
        }
        Command::Units(options) => print_units(&options),
        Command::Man(man) => {
            man.write(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            // Into memory first: the generator panics at a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hadoptic", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn places(options: &PlaceOptions) -> Places {
    Places {
        prefix: options.prefix.clone(),
        capture_dir: options.capture_dir.clone(),
        conf_dir: options.conf_dir.clone(),
        java: options.java.clone().unwrap_or_default(),
        generation: options.hadoop_version.map(|version| match version {
            Version::One => Generation::One,
            Version::Two => Generation::Two,
            Version::Three => Generation::Three,
        }),
    }
}

fn read(options: &ProgramOptions) -> Result<Programs> {
    Ok(Programs::read(
        options.programs.as_deref(),
        options.sniffer.as_deref(),
        options.dumpingd.as_deref(),
        options.jar.as_deref(),
    )?)
}

fn install_settings(options: &Install) -> Result<install::Settings> {
    let started_by = if options.systemd { StartedBy::Systemd } else { options.started_by };
    let run_as = run_as(options.run_as.as_deref(), started_by);
    for (option, name) in [("--run-as", &run_as), ("--group", &options.group)] {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && !name.starts_with('-');
        ensure!(plain, "{option} {name}: this is no name of a user or group");
    }
    Ok(install::Settings {
        places: places(&options.common.places),
        clients: !options.no_clients,
        started_by,
        run_as,
        group: options.group.clone(),
        disk_limit: options.agents.disk_limit,
        keep_free: options.agents.keep_free,
        all_tcp: options.agents.all_tcp,
        sniffer: options.agents.sniffer_option.clone(),
        dumpingd: options.agents.dumpingd_option.clone(),
        programs_only: options.programs_only,
    })
}

/// As whom the agents go on: daemons of Hadoop's start them with the rights that they have themselves.
fn run_as(named: Option<&str>, started_by: StartedBy) -> String {
    match (named, started_by) {
        (Some(name), _) => name.to_owned(),
        (None, StartedBy::Daemons) => "root".to_owned(),
        (None, StartedBy::Hadoptic | StartedBy::Systemd) => SERVICE_USER.to_owned(),
    }
}

fn history(options: &Collect) -> Result<Option<History>> {
    let (text, in_hdfs) = match (&options.job_history, &options.job_history_hdfs) {
        (Some(text), _) => (text, false),
        (None, Some(text)) => (text, true),
        (None, None) => return Ok(None),
    };
    let (host, folder) =
        text.split_once(":/").with_context(|| format!("--job-history {text}: expected HOST:/FOLDER"))?;
    Ok(Some(History {
        host: host.to_owned(),
        folder: format!("/{folder}"),
        in_hdfs,
        job: options.job.clone(),
        hadoop: options.hadoop.clone(),
        user: options.hdfs_user.clone(),
    }))
}

/// Connects, does it, prints what came of it.
fn over(common: &Common, compress: bool, command: impl FnOnce(&Fleet) -> Result<Report>) -> Result<ExitCode> {
    let hosts = hosts::all(common.workers.as_deref(), &common.also)?;
    let settings = SshSettings {
        config: common.ssh_config.clone(),
        options: common.ssh_option.clone(),
        user: common.user.clone(),
        compress,
        connect_s: common.connect_timeout,
        script_s: common.timeout,
    };
    let fleet = Fleet::connect(&hosts, settings, common.jobs)?;
    let report = command(&fleet)?;
    report.print(common.json)?;
    Ok(if report.ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Where systemd looks for the units of administrators, and of packages.
const UNITS: &str = "/etc/systemd/system";
const PACKAGED: &str = "/usr/lib/systemd/system";

fn print_units(options: &Units) -> Result<ExitCode> {
    use std::io::Write as _;
    let mut places = places(&options.places);
    if places.conf_dir.is_empty() {
        places.conf_dir = "/etc/hadoop/conf".to_owned();
    }
    let conf = places.conf_dir.clone();
    let settings = install::Settings {
        places,
        clients: true,
        started_by: StartedBy::Systemd,
        run_as: if options.packaged { "root".into() } else { run_as(options.run_as.as_deref(), StartedBy::Systemd) },
        group: String::new(),
        disk_limit: options.agents.disk_limit,
        keep_free: options.agents.keep_free,
        all_tcp: options.agents.all_tcp,
        sniffer: options.agents.sniffer_option.clone(),
        dumpingd: options.agents.dumpingd_option.clone(),
        programs_only: false,
    };
    let installed = settings.installed(Generation::Three, Some(&conf));
    let units = if options.packaged { units::packaged(&installed) } else { units::all(&installed) };
    let mut out = io::stdout().lock();
    for (name, unit) in units {
        match &options.out {
            Some(folder) => {
                let path = folder.join(&name);
                std::fs::write(&path, unit).with_context(|| path.display().to_string())?;
            }
            None => writeln!(out, "# {}/{name}\n{unit}", if options.packaged { PACKAGED } else { UNITS })?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
