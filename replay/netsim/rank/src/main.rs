//! One rank of a network: `mpirun -n 4 netsim-rank`. Rank 0 reads a `RankOrder` from its standard input, and writes a `RankAnswer`.

mod carrier;

use std::error::Error;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use carrier::Mpi;
use mpi::traits::Communicator as _;
use netsim::fabric::FabricConfig;
use netsim::fabric::windows::Carrier as _;
use netsim::traffic::{self, RankAnswer, RankOrder, RunOptions, TrafficConfig, TrafficRun};
use trace::memory;

/// An order is no longer, bytes.
const MAX_ORDER_BYTES: u64 = 1 << 28;

const HELP: &str = "\
One rank of a simulated network: `replay run EXPERIMENT --ranks N` starts N of them by mpirun (docs/parallel.md).

Usage: mpirun -n N netsim-rank

The first rank writes \"together\" when all run, reads what is to be run from its standard input as JSON, and writes what came of it.
";

fn main() -> ExitCode {
    if let Some(argument) = std::env::args().nth(1) {
        let helps = ["--help", "-h"].contains(&argument.as_str());
        let written =
            if helps { io::stdout().write_all(HELP.as_bytes()) } else { io::stderr().write_all(HELP.as_bytes()) };
        return if helps && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let Some(universe) = mpi::initialize() else { return ExitCode::from(2) };
    // A rank that unwound would wait for the others in MPI's end, and they for it.
    let ran = panic::catch_unwind(AssertUnwindSafe(|| serve(Mpi::new(&universe))));
    ran.unwrap_or_else(|_| universe.world().abort(101))
}

fn serve(mut carrier: Mpi) -> ExitCode {
    let mine = program().unwrap_or_else(|error| carrier.give_up(&format!("its own program cannot be read: {error}")));
    let programs = carrier.exchange(vec![mine.to_le_bytes().to_vec(); carrier.ranks()]);
    if let Some(other) = programs.iter().position(|program| *program != programs[0]) {
        carrier.give_up(&format!("rank {other} runs another build of it than rank 0: copy one to all machines"));
    }
    let first = carrier.is_first();
    // Whoever has started ranks knows by this line that all of them run.
    if first && writeln!(io::stdout(), "together").is_err() {
        carrier.give_up("standard output cannot be written");
    }
    let mut order = Vec::new();
    if first && io::stdin().lock().take(MAX_ORDER_BYTES + 1).read_to_end(&mut order).is_err() {
        carrier.give_up("standard input cannot be read");
    }
    if order.len() as u64 > MAX_ORDER_BYTES {
        carrier.give_up("an order has at most 256 MiB");
    }
    let order = carrier.tell(&order);
    // What is wrong is wrong for all ranks, before any of them begins.
    let answer = match run(&order, carrier) {
        Ok(Some(run)) => RankAnswer::Done(Box::new(run)),
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => RankAnswer::Failed(error.to_string()),
    };
    if first {
        let mut out = io::stdout().lock();
        let written = serde_json::to_writer(&mut out, &answer).map_err(io::Error::from).and_then(|()| out.flush());
        if written.is_err() {
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

const OUT_OF_MEMORY: &str =
    "make the network smaller, run it by more ranks on more machines, or let them hold more (replay run --memory)";

fn run(order: &[u8], carrier: Mpi) -> Result<Option<TrafficRun>, Box<dyn Error>> {
    let RankOrder { traffic, fabric, seed, pairs, memory_bytes } = serde_json::from_slice(order)?;
    let share = |bytes: u64| bytes / carrier.on_this_machine() as u64;
    memory::watch("netsim-rank", memory_bytes.or_else(memory::available_bytes).map(share), OUT_OF_MEMORY)?;
    let (traffic, fabric): (TrafficConfig, FabricConfig) = (traffic.parse()?, fabric.parse()?);
    let options = RunOptions { pairs, ..RunOptions::default() };
    Ok(traffic::run_on_ranks(&traffic, &fabric, seed, options, carrier, &AtomicBool::new(false), &mut |_| {})?)
}

/// A digest of the program that this process runs.
fn program() -> io::Result<u64> {
    let mut digest = DefaultHasher::new();
    let mut file = BufReader::new(File::open(std::env::current_exe()?)?);
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(digest.finish());
        }
        digest.write(bytes);
        let read = bytes.len();
        file.consume(read);
    }
}
