//! The program of a hostile user on one host: settles in his home, waits for something to spoil, and spoils until it is told to
//! stop.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use clap::Parser;
use nix::unistd::{geteuid, gethostname};
use serde::{Deserialize, Serialize};

use super::records::Claim;
use super::tricks::{Trick, Trickster};
use super::witness::PROGRAM;
use super::{HOME, UID};
use crate::stop::Stop;
use crate::text::Numbers;

/// Between two looks for the capture folder: he is there as soon as it is.
const LOOK: Duration = Duration::from_millis(2);
/// Pause between two tricks, milliseconds, from and to.
const PAUSE_MS: (u64, u64) = (10, 120);
/// Between two reports.
const REPORT: Duration = Duration::from_secs(2);
/// Between two turns of the race for the names beside the configuration.
const TURN: Duration = Duration::from_millis(1);
/// The files of a configuration that the deployment edits.
pub const CONF_FILES: [&str; 4] = ["hadoop-env.sh", "yarn-env.sh", "mapred-env.sh", "mapred-site.xml"];
/// A file of root's that was not there before and must not come.
pub const NEVER_THERE: &str = "/etc/never-there";

/// Spoils what an ordinary account can. It refuses to run as anybody but the lab's hostile user.
#[derive(Debug, Parser)]
#[command(name = "hostile")]
struct Options {
    /// Where the agents record
    #[arg(long)]
    capture_dir: PathBuf,
    /// Where the agents lie
    #[arg(long)]
    prefix: PathBuf,
    /// Another host
    #[arg(long)]
    other_host: String,
    /// Its address
    #[arg(long)]
    other_address: String,
    /// Seed of what he does
    #[arg(long)]
    seed: u64,
    /// What he does, again for more than one [default: all that he can]
    #[arg(long, value_enum)]
    only: Vec<Trick>,
}

/// How often something was done, and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// It worked, somewhere.
    pub done: u64,
    /// It did not.
    pub refused: u64,
}

/// What he did so far: `played.json` in his home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// By trick.
    pub tricks: BTreeMap<Trick, Tries>,
    /// What worked and must not.
    pub achieved: Vec<String>,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            trace::stderr::print(format!("hostile: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if geteuid().as_raw() != UID {
        return Err(LabError::Config(format!(
            "this program plants files wherever it can: only user {UID} of a lab may run it"
        )));
    }
    let stop = Stop::on_signals()?;
    let home = Path::new(HOME);
    settle(home)?;
    let claim = Claim {
        host: gethostname().context("cannot learn the host's name")?.to_string_lossy().into_owned(),
        pid: std::process::id(),
        other_host: options.other_host.clone(),
        other_address: options.other_address.clone(),
    };
    let mut user = Trickster::new(&options.capture_dir, &options.prefix, claim, options.seed);
    user.pretend().context("cannot start programs of his own")?;
    std::thread::scope(|scope| {
        scope.spawn(|| race_beside_configuration(&home.join("conf"), &stop));
        let done = play(&mut user, options, home, &stop);
        stop.set();
        done
    })
}

/// His programs under the names of others, and a configuration folder of his own.
fn settle(home: &Path) -> Result<()> {
    let (bin, conf) = (home.join("bin"), home.join("conf"));
    for folder in [&bin, &conf] {
        fs::create_dir_all(folder).at("cannot make", folder)?;
    }
    for name in ["java", "sniffer", "dumpingd"] {
        fs::copy(home.join(PROGRAM), bin.join(name)).at("cannot copy to", &bin)?;
    }
    symlink("bin", home.join("jre")).context("cannot make a link at home")?;
    let write = |name: &str, text: &str| fs::write(conf.join(name), text).at("cannot write", &conf.join(name));
    write("hadoop-env.sh", &format!("export JAVA_HOME={HOME}\n"))?;
    for name in &CONF_FILES[1..3] {
        write(name, "# nothing\n")?;
    }
    for name in ["mapred-site.xml", "core-site.xml"] {
        write(name, "<configuration>\n</configuration>\n")?;
    }
    mark(home, "settled")
}

/// Says that he has come so far.
fn mark(home: &Path, name: &str) -> Result<()> {
    fs::write(home.join(name), "").with_context(|| format!("cannot write {name}"))
}

/// Has links lie where a deployment writes beside its files, in turns, so that one lies there at the wrong moment.
fn race_beside_configuration(conf: &Path, stop: &Stop) {
    for turn in 0_usize.. {
        if stop.sleep(TURN).is_err() {
            return;
        }
        let new = conf.join(format!("{}.hadoptic-new", CONF_FILES[turn / 2 % CONF_FILES.len()]));
        // It may not be there, or may not be his.
        let _ = if turn % 2 == 0 { fs::remove_file(&new) } else { symlink(NEVER_THERE, &new) };
    }
}

fn play(user: &mut Trickster, options: &Options, home: &Path, stop: &Stop) -> Result<()> {
    let mut played = Played::default();
    while !options.capture_dir.exists() {
        if stop.sleep(LOOK).is_err() {
            return report(&played, home);
        }
    }
    let tricks = if options.only.is_empty() { &Trick::ALL } else { options.only.as_slice() };
    for trick in tricks.iter().copied() {
        note(&mut played, trick, user);
    }
    report(&played, home)?;
    mark(home, "planted")?;
    let mut numbers = Numbers::new(!options.seed);
    let mut reported = Instant::now();
    while !stop.is_set() {
        let trick = user.any(tricks);
        note(&mut played, trick, user);
        if reported.elapsed() > REPORT {
            report(&played, home)?;
            reported = Instant::now();
        }
        let pause = PAUSE_MS.0 + numbers.next_u64() % (PAUSE_MS.1 - PAUSE_MS.0);
        // Told to stop, he says what he did.
        let _ = stop.sleep(Duration::from_millis(pause));
    }
    report(&played, home)
}

fn note(played: &mut Played, trick: Trick, user: &mut Trickster) {
    let done = user.play(trick).is_ok();
    let tries = played.tricks.entry(trick).or_default();
    *(if done { &mut tries.done } else { &mut tries.refused }) += 1;
    played.achieved = user.achieved().to_vec();
}

fn report(played: &Played, home: &Path) -> Result<()> {
    let (path, new) = (home.join("played.json"), home.join("played.new"));
    let text = serde_json::to_vec_pretty(played).at("cannot write", &new)?;
    fs::write(&new, text).at("cannot write", &new)?;
    fs::rename(&new, &path).at("cannot write", &path)
}
