//! `coflow`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, bail};
use clap::builder::{ArgPredicate, PossibleValue};
use clap::{Args, ValueEnum};
use coflow::Workload;
use coflow::benchmark::{self, Megabyte};
use coflow::packet::Clock;
use comfy_table::Cell;
use netsim::files;
use netsim::units::{DurationPs, Rate};
use rayon::prelude::*;
use replay::coflows::{CoflowRun, Scheduler, Switch, run, run_on_fabric};
use replay::experiment::Experiment;
use replay::report;
use replay::results::coflow::{CoflowDetail, CoflowResults, Figures};
use replay::results::{check_folder, remove_results};

use super::common::{say, tell_of_left_out, threads};
use super::progress::Bars;
use super::table::{new_table, right};

/// Bytes that a file of coflows may have.
const MAX_FILE: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(super) struct CoflowArgs {
    /// Coflows in the form of coflow-benchmark: what `merger export --to coflow` writes, or FB2010-1Hr-150-0.txt.
    file: PathBuf,
    /// Who decides when flows may send; several with commas between them.
    #[arg(
        long,
        short = 's',
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "fair,fifo,varys,sunflow,solstice,birkhoff",
        default_value_if("fabric", ArgPredicate::IsPresent, None)
    )]
    scheduler: Vec<SchedulerName>,
    /// Also sends the coflows over the fabric of this experiment, with a host for each port; may be given more than once. Its
    /// rates are its own; without --scheduler no other runs.
    #[arg(long, value_name = "EXPERIMENT", conflicts_with_all = ["alone", "epoch"])]
    fabric: Vec<PathBuf>,
    /// How many ports of a fabric are in a rack.
    #[arg(long, value_name = "PORTS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    rack_size: u16,
    /// The rate of each port, in each direction.
    #[arg(long, default_value = "1Gbps")]
    rate: Rate,
    /// How long a circuit is set up, in which it carries nothing.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    delay: DurationPs,
    /// Gives each coflow the switch to itself, in place of arrivals.
    #[arg(long)]
    alone: bool,
    /// Takes the first N coflows by arrival.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    first: Option<u32>,
    /// What a megabyte of the file is: 10^6 or 2^20 bytes.
    #[arg(long, value_enum, default_value = "decimal")]
    megabyte: MegabyteName,
    /// How long max-weight and rotor hold a matching.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    slot: DurationPs,
    /// Packet-switched schedulers see ends of flows at multiples of this, as CoflowSim does [default: at once].
    #[arg(long, value_name = "TIME", default_value = "0ns", hide_default_value = true)]
    tick: DurationPs,
    /// Packet-switched coflows begin at the last multiple of this before they arrive, as in CoflowSim, and their time counts
    /// from there [default: when they arrive].
    #[arg(long, value_name = "TIME", default_value = "0ns", hide_default_value = true, requires = "tick")]
    epoch: DurationPs,
    /// Threads, on which no result depends [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Prints all figures as one JSON object.
    #[arg(long)]
    json: bool,
    /// Writes a report, all figures and a table of all coflows into this folder, too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replaces results that are in that folder.
    #[arg(long, requires = "out")]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchedulerName(Scheduler);

impl ValueEnum for SchedulerName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [SchedulerName; Scheduler::ALL.len()] = {
            let mut all = [SchedulerName(Scheduler::Fair); Scheduler::ALL.len()];
            let mut place = 0;
            while place < all.len() {
                all[place] = SchedulerName(Scheduler::ALL[place]);
                place += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Scheduler::Fair => "packets: max-min fairness among flows",
            Scheduler::EqualShare => "packets: the smaller of two ports' equal parts (CoflowSim's FAIR)",
            Scheduler::Fifo => "packets: coflows by arrival, all flows of one ending together (MADD)",
            Scheduler::Varys => "packets: coflows by their smallest bottleneck (SEBF with MADD)",
            Scheduler::VarysCoflowSim => {
                "packets: Varys with CoflowSim's arithmetic (its SEBF), for --rate 1048576000bps --megabyte binary"
            }
            Scheduler::Sunflow => "circuits one by one, coflows by their smallest bottleneck",
            Scheduler::SunflowFifo => "circuits one by one, coflows by arrival",
            Scheduler::Solstice => "all circuits anew: matchings of slices that are halved",
            Scheduler::Birkhoff => "all circuits anew: the matchings of Birkhoff and von Neumann",
            Scheduler::MaxWeight => "all circuits anew: the matching with the most that waits, slot by slot",
            Scheduler::Rotor => "all circuits anew: all ports in turn, whatever waits, slot by slot",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MegabyteName {
    /// 10^6 bytes, as Sunflow's authors have it.
    Decimal,
    /// 2^20 bytes, as CoflowSim has it.
    Binary,
}

/// Runs coflows under schedulers.
pub(super) fn show(args: &CoflowArgs) -> Result<ExitCode, Error> {
    let workload = read(args)?;
    let switch = Switch {
        rate: args.rate,
        delay: args.delay,
        slot: args.slot,
        clock: Clock { tick: args.tick, epoch: args.epoch },
        alone: args.alone,
    };
    let mut schedulers: Vec<Scheduler> = Vec::new();
    for SchedulerName(scheduler) in &args.scheduler {
        if !schedulers.contains(scheduler) {
            schedulers.push(*scheduler);
        }
    }
    if let Some(folder) = &args.out {
        check_folder(folder, args.force)?;
    }
    let bars = Bars::new();
    let fabrics = fabrics(&args.fabric)?;
    let bar = bars.jobs(schedulers.len() + fabrics.len() * workload.coflows().len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let one = |&scheduler: &Scheduler| {
        let done =
            run(&workload, &switch, scheduler).with_context(|| format!("{scheduler} on {}", args.file.display()));
        bar.inc(1);
        done
    };
    let over = |(path, experiment): &(&PathBuf, Experiment)| {
        let Experiment { name, fabric, .. } = experiment;
        run_on_fabric(&workload, name, fabric, args.rack_size.into(), || bar.inc(1))
            .with_context(|| format!("{} over {}", args.file.display(), path.display()))
    };
    let runs: Vec<CoflowRun> = pool.install(|| {
        let over_ports = schedulers.par_iter().map(one);
        over_ports.chain(fabrics.par_iter().map(over)).collect::<Result<_, Error>>()
    })?;
    bar.finish_and_clear();
    let results = CoflowResults::new(args.file.display().to_string(), &workload, &switch, &runs);
    if let Some(folder) = &args.out {
        remove_results(folder)?;
        results.write(folder)?;
        report::write_coflows(folder, &results.detail)?;
    }
    if args.json {
        say(&serde_json::to_string_pretty(&results.detail)?)?;
    } else {
        say(&table(&results.detail))?;
    }
    if let Some(folder) = &args.out {
        trace::stderr::print(format!("replay: report: {}", folder.join("report.html").display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiments whose fabrics are simulated, by different names.
fn fabrics(paths: &[PathBuf]) -> Result<Vec<(&PathBuf, Experiment)>, Error> {
    let mut fabrics: Vec<(&PathBuf, Experiment)> = Vec::new();
    for path in paths {
        let experiment = Experiment::read(path, &[])?;
        tell_of_left_out(&experiment.fabric);
        let is_scheduler = Scheduler::ALL.iter().any(|scheduler| scheduler.name() == experiment.name);
        if is_scheduler || fabrics.iter().any(|(_, other)| other.name == experiment.name) {
            bail!("{}: the name {} is there already: change `name`", path.display(), experiment.name);
        }
        fabrics.push((path, experiment));
    }
    Ok(fabrics)
}

fn read(args: &CoflowArgs) -> Result<Workload, Error> {
    let text = files::read_text(&args.file, MAX_FILE).with_context(|| args.file.display().to_string())?;
    let megabyte = match args.megabyte {
        MegabyteName::Decimal => Megabyte::Decimal,
        MegabyteName::Binary => Megabyte::Binary,
    };
    let workload = benchmark::parse(&text, megabyte).with_context(|| args.file.display().to_string())?;
    if workload.coflows().is_empty() {
        bail!("{}: there are no coflows in it", args.file.display());
    }
    let first = args.first.map_or(usize::MAX, |first| usize::try_from(first).unwrap_or(usize::MAX));
    Ok(workload.first(first))
}

fn table(detail: &CoflowDetail) -> String {
    let mut table = new_table(&["scheduler", "mean CCT", "median", "95%", "over bound", "95%", "last end", "set up"]);
    let seconds =
        |value: f64| right(if value < 1.0 { format!("{:.3} ms", value * 1e3) } else { format!("{value:.3} s") });
    for one in &detail.schedulers {
        let bound = one.over_circuit_bound.or(one.over_packet_bound);
        let over_bound = |of: fn(&Figures) -> f64| {
            right(bound.as_ref().map_or_else(|| "–".to_owned(), |figures| format!("{:.3}", of(figures))))
        };
        table.add_row([
            Cell::new(&one.scheduler),
            seconds(one.cct_s.mean),
            seconds(one.cct_s.median),
            seconds(one.cct_s.p95),
            over_bound(|figures| figures.mean),
            over_bound(|figures| figures.p95),
            one.end_s.map_or_else(|| right("–".to_owned()), seconds),
            right(one.set_up_share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", share * 100.0))),
        ]);
    }
    let how = if detail.alone { "each by itself" } else { "as they arrive" };
    format!(
        "{} coflows of {} flows over {} ports, {how}\n{table}\n\
         bound: the coflow's least time with the switch to itself, of circuits with their set-up",
        detail.coflows, detail.flows, detail.ports
    )
}
