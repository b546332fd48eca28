//! Where a program comes from: a file in one of several forms, or a kernel.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, bail};
use clap::{Args, ValueEnum};
use netsim::files;
use netsim::units::Bytes;
use program::{Kernel, KernelKind, Program, Sequences, alog, dimemas, flows, goal, trc, vef};

/// Bytes of a file's beginning by which its form is guessed.
const MAX_BEGINNING: u64 = 64 << 10;

#[derive(Debug, Args)]
pub(super) struct Source {
    /// A schedule in GOAL, a list of flows, or a trace (trc, alog, Dimemas, VEF).
    #[arg(required_unless_present = "kernel")]
    file: Option<PathBuf>,
    /// A program of known communication in place of a file.
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "file")]
    kernel: Option<Kind>,
    /// The form of the file [default: by its first line that says something].
    #[arg(long, value_enum, requires = "file")]
    format: Option<Format>,
    /// Ranks of a kernel [default: 64, or as many as --sides has].
    #[arg(long, value_name = "N", requires = "kernel", conflicts_with = "sides")]
    ranks: Option<u32>,
    /// Sides of a kernel's grid, as 8x4 [default: the square or cube of --ranks].
    #[arg(long, value_name = "XxY[xZ]", requires = "kernel", value_parser = sides)]
    sides: Option<Sides>,
    /// Bytes of a kernel's messages.
    #[arg(long, value_name = "SIZE", requires = "kernel", default_value = "10000B")]
    size: Bytes,
    /// Wave fronts of waterfall [default: 10], pairs of gups and random [default: 100].
    #[arg(long, value_name = "N", requires = "kernel")]
    rounds: Option<u32>,
    /// Pairs after which the ranks of random exchange.
    #[arg(long, value_name = "N", requires = "kernel", default_value = "10")]
    coupled: u32,
    /// Nanoseconds of calculation before a kernel's sends, for each byte; INSEE's traces have 10.
    #[arg(long, value_name = "NS", requires = "kernel", default_value = "0")]
    compute_per_byte: u64,
    /// What a kernel's random pairs are drawn with.
    #[arg(long, value_name = "N", requires = "kernel", default_value = "1")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// LogGOPSim's and ATLAHS' schedules.
    Goal,
    /// SOURCE DESTINATION BYTES START_NS a line, as htsim takes them.
    Flows,
    /// INSEE's traces.
    Trc,
    /// Traces of MPICH's logging library.
    Alog,
    /// Dimemas' traces.
    Dimemas,
    /// VEF traces: messages that wait for messages.
    Vef,
}

/// In which form a program is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A schedule for LogGOPSim and ATLAHS.
    Goal,
    /// A trace for INSEE.
    Trc,
    /// The same as MPICH's logging library writes them: without calculations.
    Alog,
    /// A trace for Dimemas.
    Dimemas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Each sends to all others, then receives from them.
    Alltoall,
    /// All send to rank 0.
    Alltoone,
    /// Rank 0 sends to all.
    Onetoall,
    /// A reduction by a binomial tree.
    Binarytree,
    /// Exchanges with the ranks that differ in one bit.
    Butterfly,
    /// One exchange with the neighbours on a mesh of 2 dimensions.
    Mesh2,
    /// The same in 3 dimensions.
    Mesh3,
    /// Rounds of messages ahead on a torus of 2 dimensions.
    Torus2,
    /// The same in 3 dimensions.
    Torus3,
    /// One exchange with all neighbours on a torus of 2 dimensions.
    Rtorus2,
    /// The same in 3 dimensions.
    Rtorus3,
    /// A wave front from the corner of a mesh of 2 dimensions.
    Sweep2,
    /// The same in 3 dimensions.
    Sweep3,
    /// Wave fronts one after the other.
    Waterfall,
    /// Bodies go half round a ring and back to their owners.
    Nbodies,
    /// Random pairs one after the other.
    Gups,
    /// Random pairs, some at once.
    Random,
}

impl Kind {
    /// What it is, and how many dimensions it has.
    fn of(self) -> (KernelKind, u32) {
        match self {
            Self::Alltoall => (KernelKind::AllToAll, 1),
            Self::Alltoone => (KernelKind::AllToOne, 1),
            Self::Onetoall => (KernelKind::OneToAll, 1),
            Self::Binarytree => (KernelKind::BinaryTree, 1),
            Self::Butterfly => (KernelKind::Butterfly, 1),
            Self::Mesh2 => (KernelKind::Mesh, 2),
            Self::Mesh3 => (KernelKind::Mesh, 3),
            Self::Torus2 => (KernelKind::Torus, 2),
            Self::Torus3 => (KernelKind::Torus, 3),
            Self::Rtorus2 => (KernelKind::TorusAll, 2),
            Self::Rtorus3 => (KernelKind::TorusAll, 3),
            Self::Sweep2 => (KernelKind::Sweep, 2),
            Self::Sweep3 => (KernelKind::Sweep, 3),
            Self::Waterfall => (KernelKind::Waterfall, 2),
            Self::Nbodies => (KernelKind::NBodies, 1),
            Self::Gups => (KernelKind::Gups, 1),
            Self::Random => (KernelKind::Random, 1),
        }
    }
}

/// Sides of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sides(Vec<u32>);

fn sides(text: &str) -> Result<Sides, String> {
    let side = |word: &str| word.parse().ok().filter(|side| *side > 0);
    let sides: Option<Vec<u32>> = text.split('x').map(side).collect();
    sides.map(Sides).ok_or_else(|| format!("\"{text}\" is no grid: write its sides as 8x4"))
}

impl Source {
    /// The program.
    pub fn read(&self) -> Result<Program, Error> {
        match &self.file {
            Some(file) => read(file, self.format),
            None => self.kernel()?.sequences().and_then(|sequences| sequences.program()).map_err(Error::msg),
        }
    }

    /// The operations of each rank, of forms that have a list of them.
    pub fn sequences(&self) -> Result<Sequences, Error> {
        let Some(file) = &self.file else { return self.kernel()?.sequences().map_err(Error::msg) };
        match opened(file, self.format)? {
            Opened::Sequences(sequences) => Ok(sequences),
            Opened::Program(_) => {
                bail!("{}: only kernels, trc, alog and Dimemas' traces can be printed in another form", file.display())
            }
        }
    }

    fn kernel(&self) -> Result<Kernel, Error> {
        let Some(kind) = self.kernel else { bail!("there is neither a file nor --kernel") };
        let (kind, dimensions) = kind.of();
        let sides = match &self.sides {
            Some(Sides(sides)) if dimensions > 1 && sides.len() != dimensions as usize => {
                bail!("--sides: this kernel has {dimensions} dimensions")
            }
            Some(Sides(sides)) => sides.clone(),
            None => even_sides(self.ranks.unwrap_or(64), dimensions)?,
        };
        let rounds = self.rounds.unwrap_or(if kind == KernelKind::Waterfall { 10 } else { 100 });
        Ok(Kernel {
            kind,
            sides,
            bytes: self.size.get(),
            rounds,
            coupled: self.coupled,
            compute_ns_per_byte: self.compute_per_byte,
            seed: self.seed,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.kernel.and_then(|kind| kind.to_possible_value())) {
            (Some(file), _) => write!(f, "{}", file.display()),
            (None, Some(kind)) => write!(f, "kernel {}", kind.get_name()),
            (None, None) => write!(f, "a program"),
        }
    }
}

/// The sides of the square or cube of so many ranks.
fn even_sides(ranks: u32, dimensions: u32) -> Result<Vec<u32>, Error> {
    let side = (1..=ranks).take_while(|side| side.saturating_pow(dimensions) <= ranks).last().unwrap_or(0);
    if ranks == 0 || side.saturating_pow(dimensions) != ranks {
        bail!("{ranks} ranks are no grid of {dimensions} equal sides: give --sides, as 8x4");
    }
    Ok(vec![side; dimensions as usize])
}

/// What a file holds.
enum Opened {
    Sequences(Sequences),
    Program(Program),
}

/// The program in a file, of a form that is guessed where none is given.
pub(super) fn read(file: &Path, format: Option<Format>) -> Result<Program, Error> {
    match opened(file, format)? {
        Opened::Sequences(sequences) => {
            sequences.program().map_err(Error::msg).with_context(|| file.display().to_string())
        }
        Opened::Program(program) => Ok(program),
    }
}

fn opened(file: &Path, format: Option<Format>) -> Result<Opened, Error> {
    let name = || file.display().to_string();
    let format = format.map_or_else(|| guess(file), Ok).with_context(name)?;
    let open = BufReader::new(files::open(file).with_context(name)?);
    match format {
        Format::Goal => goal::read(open).map(Opened::Program),
        Format::Flows => flows::read(open).map(Opened::Program),
        Format::Vef => vef::read(open).map(Opened::Program),
        Format::Trc => trc::read(open).map(Opened::Sequences),
        Format::Alog => alog::read(open).map(Opened::Sequences),
        Format::Dimemas => dimemas::read(open).map(Opened::Sequences),
    }
    .with_context(name)
}

/// The form of a file, by its beginning.
fn guess(path: &Path) -> Result<Format, Error> {
    let mut file = BufReader::new(files::open(path)?).take(MAX_BEGINNING);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let first = text.trim_start_matches('\u{feff}').split_whitespace().next().unwrap_or_default();
        match first {
            "" => (),
            "c" | "s" | "r" => return Ok(Format::Trc),
            _ if first.starts_with('-') => return Ok(Format::Alog),
            _ if first.starts_with("num_ranks") => return Ok(Format::Goal),
            _ if first.starts_with("#DIMEMAS") => return Ok(Format::Dimemas),
            _ if first.starts_with("VEF") => return Ok(Format::Vef),
            _ if first.starts_with("//") || first.starts_with('#') => (),
            _ => return Ok(Format::Flows),
        }
        line.clear();
    }
    Ok(Format::Flows)
}
