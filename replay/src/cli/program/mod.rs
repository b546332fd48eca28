//! `program`.

mod beside;
mod placing;
mod source;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, bail};
use clap::Args;
use comfy_table::Cell;
use netsim::fabric::{self, FabricKind as _};
use netsim::network::Simulation as _;
use netsim::units::DurationPs;
use program::{Driver, Options, Program, alog, dimemas, goal, trc};
use rayon::prelude::*;
use replay::dimemas::mapping;
use replay::experiment::{Experiment, Override};
use replay::results::program::{ProgramDetail, ProgramResults, ProgramRun};
use replay::results::{check_folder, remove_results};

use super::common::{say, tell_of_left_out, threads};
use super::progress::Bars;
use super::table::{new_table, right};
use beside::BackgroundArgs;
use placing::Placing;
use source::{Form, Source};

#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
    #[command(flatten)]
    source: Source,
    /// The fabric: an experiment's file, or a name that `replay experiments` lists; may be given more than once.
    #[arg(long, value_name = "EXPERIMENT", required_unless_present = "print")]
    fabric: Vec<PathBuf>,
    /// Prints the program in this form in place of running it.
    #[arg(long, value_enum, value_name = "FORM", conflicts_with_all = ["fabric", "out", "json"])]
    print: Option<Form>,
    #[command(flatten)]
    placing: Placing,
    #[command(flatten)]
    beside: BackgroundArgs,
    /// How many hosts the fabric has [default: those of a fat-tree; else one for each rank].
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How many racks they are spread over, evenly [default: those of a fat-tree, the fibers of LIGHTNESS; else two ToRs
    /// back to back have two, LIGHTNESS one for each host, other fabrics one].
    #[arg(long, value_name = "N")]
    racks: Option<u32>,
    /// What a send and a receive take of their rank's CPU: LogGOPSim's o.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    overhead: DurationPs,
    /// By how much calculations are longer: 0.5 for CPUs twice as fast.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    compute_factor: f64,
    /// Threads, on which no result depends [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Replaces a value of the experiments by its path; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
    /// Prints all figures as one JSON object.
    #[arg(long)]
    json: bool,
    /// Writes all figures and tables of messages and ranks into this folder, too.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replaces results that are in that folder.
    #[arg(long, requires = "out")]
    force: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| format!("\"{text}\" is no number"))?;
    if factor.is_finite() && (0.0..=1e6).contains(&factor) { Ok(factor) } else { Err("from 0 to 1,000,000".to_owned()) }
}

/// Runs a program over fabrics.
pub(super) fn show(args: &ProgramArgs) -> Result<ExitCode, Error> {
    if let Some(form) = args.print {
        return print(&args.source, form);
    }
    let program = args.placing.instances(args.source.read()?)?;
    let fabrics = fabrics(args)?;
    if let Some(folder) = &args.out {
        check_folder(folder, args.force)?;
    }
    let bar = Bars::new().jobs(fabrics.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let one = |(path, experiment): &(&PathBuf, Experiment)| {
        let done = run(&program, experiment, args).with_context(|| format!("{} over {}", args.source, path.display()));
        bar.inc(1);
        done
    };
    let runs = pool.install(|| fabrics.par_iter().map(one).collect::<Result<Vec<_>, Error>>())?;
    bar.finish_and_clear();
    let results = ProgramResults::new(args.source.to_string(), &program, runs);
    if let Some(folder) = &args.out {
        remove_results(folder)?;
        results.write(folder)?;
    }
    if args.json {
        say(&serde_json::to_string_pretty(&results.detail)?)?;
    } else {
        say(&table(&results.detail))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(source: &Source, form: Form) -> Result<ExitCode, Error> {
    let sequences = source.sequences()?;
    let mut text = Vec::new();
    match form {
        Form::Goal => goal::write(&sequences, &mut text),
        Form::Trc => trc::write(&sequences, &mut text),
        Form::Alog => alog::write(&sequences, &mut text),
        Form::Dimemas => dimemas::write(&sequences, &source.to_string(), &mut text),
    }
    .with_context(|| source.to_string())?;
    match std::io::stdout().write_all(&text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The experiments whose fabrics are simulated, by different names.
fn fabrics(args: &ProgramArgs) -> Result<Vec<(&PathBuf, Experiment)>, Error> {
    let mut fabrics: Vec<(&PathBuf, Experiment)> = Vec::new();
    for path in &args.fabric {
        let experiment = Experiment::read(path, &args.overrides)?;
        tell_of_left_out(&experiment.fabric);
        if fabrics.iter().any(|(_, other)| other.name == experiment.name) {
            bail!("{}: the name {} is there already: change `name`", path.display(), experiment.name);
        }
        fabrics.push((path, experiment));
    }
    Ok(fabrics)
}

fn run(program: &Program, experiment: &Experiment, args: &ProgramArgs) -> Result<ProgramRun, Error> {
    let ranks = program.ranks();
    let nodes = args.nodes.or_else(|| experiment.fabric.places().hosts.is_none().then_some(ranks));
    let places = mapping::hosts(&experiment.fabric, nodes, args.racks)?;
    let nodes = u32::try_from(places.len())?;
    let hosts = args.placing.hosts(program, nodes)?;
    let mut network = fabric::build(&experiment.fabric, &places)?;
    let options = Options { overhead: args.overhead, compute_factor: args.compute_factor };
    let mut driver = Driver::new(program, &hosts, options);
    if let Some(background) = args.beside.background(&hosts, nodes)? {
        driver = driver.beside(background);
    }
    let end = driver.run(&mut network)?;
    Ok(ProgramRun::new(&experiment.name, program, &driver, &hosts, end, &network.figures(), nodes))
}

fn table(detail: &ProgramDetail) -> String {
    let mut table = new_table(&["fabric", "time", "mean message", "median", "99%", "longest", "lost packets"]);
    let seconds = |value: Option<f64>| {
        right(match value {
            None => "–".to_owned(),
            Some(value) if value < 1e-3 => format!("{:.3} us", value * 1e6),
            Some(value) if value < 1.0 => format!("{:.3} ms", value * 1e3),
            Some(value) => format!("{value:.3} s"),
        })
    };
    for one in &detail.fabrics {
        table.add_row([
            Cell::new(&one.fabric),
            seconds(Some(one.time_s)),
            seconds(one.message_mean_s),
            seconds(one.message_median_s),
            seconds(one.message_p99_s),
            seconds(one.message_max_s),
            right(one.drops.to_string()),
        ]);
    }
    let ProgramDetail { ranks, operations, messages, bytes, .. } = detail;
    format!("{ranks} ranks, {operations} operations, {messages} messages of {bytes} bytes\n{table}")
}
