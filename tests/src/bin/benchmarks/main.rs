//! What `make bench` shows: the simulator's speed beside that of its peers, and how it does at scale.

mod figure;
mod page;
mod queues;
mod replays;
mod routers;
mod run;
mod scale;
mod two_threads;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hadoptic_tests::options::at_least_one;

/// Benchmarks of the simulator, beside its peers and at scale.
///
/// Every figure is the median of several runs; a peer runs in turns with ours, so that a noisy machine disturbs both. Programs are those of
/// target/release, cases those of tests/bench: run it in the repository's root. It prints a table; without --only it also writes the page of
/// all figures, benchmarks.md, and benchmarks.json (a list of objects with the keys name, ours, peer, ratio, unit, and peer_name).
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  benchmarks --out docs\n  benchmarks --only goal --runs 5\n  benchmarks --only input-queued --only omni-path"
)]
struct Options {
    /// Folder of the page and its figures.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    out: PathBuf,
    /// Runs whose median is a figure, 1 at least.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = at_least_one)]
    runs: usize,
    /// Folder where the benchmarks of the event queue were left by criterion.
    #[arg(long, value_name = "FOLDER", default_value = "target/criterion")]
    criterion: PathBuf,
    /// Run only benchmarks with that in their name; may be given several times.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// INSEE's program (commit 2140aec), to run beside ours: without it our runs of its routers stand alone.
    #[arg(long, value_name = "FSIN")]
    insee: Option<PathBuf>,
}

fn main() -> Result<()> {
    let mut options = Options::parse();
    if let Some(insee) = &mut options.insee {
        *insee = fs::canonicalize(&*insee).with_context(|| format!("--insee {}", insee.display()))?;
    }
    let mut figures = Vec::new();
    for name in wanted(&routers::AGAINST_CAMINOS, &options) {
        figures.extend(routers::against_caminos(name, name, options.runs)?);
    }
    for case in routers::CAMINOS_ROUTERS {
        let name = format!("input-output-queued-{case}");
        if options.wants(&name) {
            figures.extend(routers::against_caminos(&name, case, options.runs)?);
        }
    }
    for (case, share) in routers::BOOKSIM2_ROUTERS {
        let name = format!("input-queued-{case}");
        if options.wants(&name) {
            figures.push(routers::against_booksim2(&name, case, share, options.runs)?);
        }
    }
    for name in wanted(&routers::ALONE, &options) {
        figures.push(routers::alone(name, options.runs)?);
    }
    for (name, keys, more) in routers::INSEE_ROUTERS {
        if options.wants(name) {
            figures.push(match &options.insee {
                Some(program) => routers::against_insee(name, (keys, more), program, options.runs)?,
                None => routers::alone(name, options.runs)?,
            });
        }
    }
    for name in wanted(&scale::AGAINST_HEAP, &options) {
        figures.extend(scale::against_heap(name, options.runs)?);
    }
    for case in two_threads::CASES {
        if options.wants(&two_threads::name_of(case)) {
            figures.push(two_threads::two_threads(case, options.runs)?);
        }
    }
    for name in wanted(&scale::SCALE, &options) {
        figures.extend(scale::at_scale(name, options.runs)?);
    }
    for name in wanted(&scale::ETHERNET, &options) {
        figures.extend(scale::tcp(name, options.runs)?);
    }
    for name in wanted(&replays::GOLDEN, &options) {
        figures.extend(replays::golden(name, options.runs)?);
    }
    for name in wanted(&replays::PROGRAMS, &options) {
        figures.push(replays::program(name, options.runs)?);
    }
    if options.wants("queue") {
        figures.extend(queues::queues(&options.criterion)?);
    }
    ensure!(!figures.is_empty(), "--only {}: no benchmark has that in its name", options.only.join(" --only "));
    print!("{}", page::table(&figures));
    if options.only.is_empty() {
        page::write(&options.out, &figures)?;
    }
    Ok(())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word))
    }
}

fn wanted<'a>(names: &[&'a str], options: &Options) -> Vec<&'a str> {
    names.iter().copied().filter(|name| options.wants(name)).collect()
}
