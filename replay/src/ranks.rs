//! Synthetic traffic over a network whose parts run in processes of their own (ranks), which `mpirun` starts.

use std::env;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use netsim::traffic::{RankAnswer, RankOrder, TrafficRun};

use crate::experiment::Experiment;
use crate::run::RunError;

/// The program that each rank runs.
const PROGRAM: &str = "netsim-rank";

/// The line that the first rank writes when it has heard of all others.
const TOGETHER: &str = "together";

/// How often it is looked whether they are done.
const LOOK: Duration = Duration::from_millis(5);

/// How ranks are started.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// How many.
    pub count: usize,
    /// The command that starts them, with its arguments; `-n COUNT PROGRAM` is added.
    pub starter: Vec<String>,
    /// Whether it is counted what each host sends each other one.
    pub pairs: bool,
    /// How long it may take until all of them run.
    pub within: Duration,
    /// As of [`RankOrder`].
    pub memory_bytes: Option<u64>,
}

impl Ranks {
    /// Runs the traffic of `experiment`. `stop` ends all ranks, and nothing is left.
    ///
    /// # Errors
    /// If ranks cannot be started, or one of them fails or is ended, or the traffic, the fabric or the network is not one for them.
    pub fn run(&self, experiment: &Experiment, stop: &AtomicBool) -> Result<TrafficRun, RunError> {
        let Some(traffic) = &experiment.traffic else { return Err(RunError::NoTraffic) };
        let (fabric, seed) = (experiment.fabric.to_string(), experiment.run.seed);
        let Self { pairs, memory_bytes, .. } = *self;
        let order = RankOrder { traffic: traffic.to_string(), fabric, seed, pairs, memory_bytes };
        match self.ask(&order, stop).map_err(RunError::Ranks)? {
            RankAnswer::Done(run) => Ok(*run),
            RankAnswer::Failed(reason) => Err(RunError::Ranks(reason)),
        }
    }

    fn ask(&self, order: &RankOrder, stop: &AtomicBool) -> Result<RankAnswer, String> {
        let program = program().ok_or_else(|| {
            format!("{PROGRAM} lies neither beside this program nor in $PATH: `make ranks` makes it (docs/parallel.md)")
        })?;
        let Some((name, arguments)) = self.starter.split_first() else {
            return Err("no command starts them".to_owned());
        };
        let mut command = Command::new(name);
        command.args(arguments).arg("-n").arg(self.count.to_string()).arg(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        let order = serde_json::to_vec(order).map_err(|error| error.to_string())?;
        // Whoever ends before it has read says why itself.
        let input = child.stdin.take();
        thread::spawn(move || input.map(|mut input| input.write_all(&order)));
        let output = child.stdout.take();
        let (sender, said) = channel();
        thread::spawn(move || output.map(|output| pass_on(BufReader::new(output), &sender)));
        let answer = self.answer(&mut child, &said, stop);
        if answer.is_err() {
            end(&mut child);
        }
        let answer = answer.map_err(|reason| format!("{name} {reason}"))?;
        serde_json::from_str(&answer).map_err(|error| format!("{PROGRAM} gave no answer: {error}"))
    }

    /// The last line that is said, if the command ends well; else what it did.
    fn answer(
        &self,
        child: &mut Child,
        said: &Receiver<io::Result<String>>,
        stop: &AtomicBool,
    ) -> Result<String, String> {
        let (began, mut together, mut answer) = (Instant::now(), false, String::new());
        let status = loop {
            if stop.load(Ordering::Relaxed) {
                return Err("was stopped".to_owned());
            }
            // Some starters wait for ever for a rank that has ended before it knew of the others.
            if !together && began.elapsed() > self.within {
                let seconds = self.within.as_secs();
                return Err(format!(
                    "has not brought {} ranks together within {seconds} s (--ranks-within)",
                    self.count
                ));
            }
            match said.recv_timeout(LOOK) {
                Ok(line) => {
                    answer = line.map_err(|error| format!("cannot be understood: {error}"))?;
                    together |= answer == TOGETHER;
                }
                // All is said: it ends now.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(status) = child.try_wait().map_err(|error| format!("cannot be waited for: {error}"))? {
                break status;
            }
        };
        if !status.success() {
            return Err(format!("ended with {status}"));
        }
        for line in said {
            answer = line.map_err(|error| format!("cannot be understood: {error}"))?;
        }
        Ok(answer)
    }
}

/// Passes on what is said, line by line.
fn pass_on(output: impl BufRead, to: &Sender<io::Result<String>>) {
    for line in output.lines() {
        if to.send(line).is_err() {
            return;
        }
    }
}

/// Ends the command that has started ranks, which ends them.
fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Where the program lies: beside this one, or in `$PATH`, but not in whatever folder one is in.
fn program() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path).filter(|folder| folder.is_absolute()));
    folders.map(|folder| folder.join(PROGRAM)).find(|program| program.is_file())
}
