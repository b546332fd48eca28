//! What `make bench` shows: the simulator's speed beside that of its peers, and how it does at scale.
//!
//!     benchmarks [--out docs] [--runs 3] [--criterion target/criterion] [--only WORD] [--insee FSIN]
//!
//! Every figure is the median of several runs; a peer runs in turns with ours, so that a noisy machine disturbs both. The
//! figures of the event queue are read from what criterion left. Writes `benchmarks.json` (a list of objects with the
//! keys name, ours, peer, ratio, unit, and peer_name) and `benchmarks.md`, the page that shows it. FSIN is INSEE's program (commit 2140aec), where
//! somebody has it: without it our runs of its routers stand alone.

mod figure;
mod page;
mod queues;
mod replays;
mod routers;
mod run;
mod scale;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

struct Options {
    out: PathBuf,
    runs: usize,
    criterion: PathBuf,
    only: String,
    insee: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = options()?;
    let mut figures = Vec::new();
    for name in wanted(&routers::AGAINST_CAMINOS, &options) {
        figures.extend(routers::against_caminos(name, name, options.runs)?);
    }
    for case in routers::CAMINOS_ROUTERS {
        let name = format!("input-output-queued-{case}");
        if name.contains(&options.only) {
            figures.extend(routers::against_caminos(&name, case, options.runs)?);
        }
    }
    for (case, share) in routers::BOOKSIM2_ROUTERS {
        let name = format!("input-queued-{case}");
        if name.contains(&options.only) {
            figures.push(routers::against_booksim2(&name, case, share, options.runs)?);
        }
    }
    for name in wanted(&routers::ALONE, &options) {
        figures.push(routers::alone(name, options.runs)?);
    }
    for (name, keys, more) in routers::INSEE_ROUTERS {
        if name.contains(&options.only) {
            figures.push(match &options.insee {
                Some(program) => routers::against_insee(name, (keys, more), program, options.runs)?,
                None => routers::alone(name, options.runs)?,
            });
        }
    }
    for name in wanted(&scale::AGAINST_HEAP, &options) {
        figures.extend(scale::against_heap(name, options.runs)?);
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
    if options.only.is_empty() || "queue".contains(&options.only) {
        figures.extend(queues::queues(&options.criterion)?);
    }
    ensure!(!figures.is_empty(), "--only {}: no benchmark has that in its name", options.only);
    print!("{}", page::table(&figures));
    if options.only.is_empty() {
        page::write(&options.out, &figures)?;
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options =
        Options { out: "docs".into(), runs: 3, criterion: "target/criterion".into(), only: String::new(), insee: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--out" => options.out = value.into(),
            "--runs" => options.runs = value.parse().with_context(|| format!("--runs {value}: a number is needed"))?,
            "--criterion" => options.criterion = value.into(),
            "--only" => options.only = value,
            "--insee" => options.insee = Some(fs::canonicalize(&value).with_context(|| format!("--insee {value}"))?),
            _ => bail!("{name} is not known; there are --out, --runs, --criterion, --only and --insee"),
        }
    }
    ensure!(options.runs > 0, "--runs 0: at least one run is needed");
    Ok(options)
}

fn wanted<'a>(names: &[&'a str], options: &Options) -> Vec<&'a str> {
    names.iter().copied().filter(|name| name.contains(&options.only)).collect()
}
