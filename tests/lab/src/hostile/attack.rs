//! Hostile users on the hosts of a lab, from settling to what they have achieved.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::processes::user_of;
use super::tricks::Trick;
use super::user::Played;
use super::watch::Peaks;
use super::witness::{PROGRAM, runs_by_others};
use super::{HOME, NAME, UID};
use crate::host::Hosts;
use crate::layout::root;
use crate::plan::{HostPlan, Plan};
use crate::process::Process;
use crate::stop::Stop;
use crate::tool;

/// How long users may take to settle, to do each trick once, and to end.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const PLANT_LIMIT: Duration = Duration::from_secs(120);
const END_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// A class that the agent patches; in his jar it comes from another source.
const CLASS: &str = "org/apache/hadoop/ipc/Server$Connection.class";
const SOURCE: &[u8] = b"Server.java";
const FORGED: &[u8] = b"Forged.java";

/// How users behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostileOptions {
    /// Jobs are run again until so many seconds have passed.
    pub seconds: u64,
    /// Seed of what they do.
    pub seed: u64,
    /// What they do; nothing = all tricks.
    pub tricks: Vec<Trick>,
}

/// Where what they are after is on the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets<'a> {
    /// Where the agents record.
    pub capture: &'a str,
    /// Where they lie.
    pub prefix: &'a str,
}

/// A call of `hadoptic` while users were at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The command, with a word in front where it was not the deployment itself.
    pub command: String,
    /// Its exit code, `None` = killed.
    pub code: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// Problems and notes of all hosts, "HOST: ...".
    pub said: Vec<String>,
}

/// What came of it: `deployment/hostile.json` in the capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What users did, by host.
    pub played: BTreeMap<String, Played>,
    /// Their programs, run by others: must be none.
    pub run_by_others: Vec<String>,
    /// What has changed of root's, or was made by root where only users write: must be nothing.
    pub of_root: Vec<String>,
    /// Classes of theirs among those that were patched beforehand, by host: must be none.
    pub forged_classes: Vec<String>,
    /// What the agents took at most.
    pub peaks: Peaks,
    /// What the operator did meanwhile.
    pub calls: Vec<Call>,
}

/// Users at work, one a host.
#[derive(Debug)]
pub struct Attack<'a> {
    plan: &'a Plan,
    hosts: &'a Hosts,
    run: &'a Path,
    users: Vec<Process>,
}

impl<'a> Attack<'a> {
    /// Makes an account on each host and starts its user's program, which waits for something to spoil. A forged jar lies
    /// beside his programs, which hold it open.
    ///
    /// # Errors
    /// If files cannot be made, the program is not there or does not begin, or a signal came.
    pub fn begin(
        options: &HostileOptions,
        plan: &'a Plan,
        hosts: &'a Hosts,
        run: &'a Path,
        targets: Targets<'_>,
        forged_jar: &Path,
        stop: &Stop,
    ) -> Result<Self> {
        let program = std::env::current_exe().context("the lab does not find its own program")?.with_file_name(PROGRAM);
        if !program.exists() {
            return Err(LabError::Missing(format!(
                "{} is not there: build it with `cargo build --release -p lab`",
                program.display()
            )));
        }
        let mut attack = Self { plan, hosts, run, users: Vec::new() };
        for (number, host) in plan.hosts.iter().enumerate() {
            let home = attack.home(host);
            make_account(&root(run, host), &home)?;
            own_copy(forged_jar, &home.join("bin"), "hadoop-x.jar")?;
            fs::copy(&program, home.join(PROGRAM)).at("cannot copy", &program)?;
            let other = &plan.hosts[(number + 1) % plan.hosts.len()];
            let mut command = hosts.command(host, Path::new("/"), "setpriv")?;
            command.args([format!("--reuid={UID}"), format!("--regid={UID}")]).arg("--clear-groups");
            command.args(["nice", "-n", "5"]).arg(Path::new(HOME).join(PROGRAM));
            command.args(["--capture-dir", targets.capture, "--prefix", targets.prefix]);
            command.args(["--other-host", &other.name, "--other-address", &other.address.to_string()]);
            command.args(["--seed", &(options.seed + number as u64).to_string()]);
            command.args(options.tricks.iter().map(|trick| format!("--only={}", trick.name())));
            let log = run.join(&host.name).join("hostile.log");
            attack.users.push(Process::start("the hostile user", &host.name, command, &log)?);
        }
        attack.wait_for("settled", SETTLE_LIMIT, stop)?;
        Ok(attack)
    }

    /// Waits until each has done all that he can once.
    ///
    /// # Errors
    /// If one does not, or a signal came.
    pub fn wait_until_planted(&mut self, stop: &Stop) -> Result<()> {
        self.wait_for("planted", PLANT_LIMIT, stop)
    }

    /// What they have done so far, by host.
    ///
    /// # Errors
    /// If one does not say.
    pub fn played(&self) -> Result<BTreeMap<String, Played>> {
        let played = |host: &HostPlan| -> Result<(String, Played)> {
            let path = self.home(host).join("played.json");
            let text = fs::read(&path).at("cannot read", &path)?;
            Ok((host.name.clone(), serde_json::from_slice(&text).at("cannot read", &path)?))
        };
        self.plan.hosts.iter().map(played).collect()
    }

    /// Their programs, run by others.
    ///
    /// # Errors
    /// If their homes cannot be read.
    pub fn run_by_others(&self) -> Result<Vec<String>> {
        let mut runs = Vec::new();
        for host in &self.plan.hosts {
            let by_others = runs_by_others(&self.home(host), UID)?;
            runs.extend(by_others.into_iter().map(|run| format!("{}: {run}", host.name)));
        }
        Ok(runs)
    }

    /// Hosts on which a class of theirs is among those that were patched beforehand.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn forged_classes(&self, prefix: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for host in &self.plan.hosts {
            let path = root(self.run, host).join(prefix.trim_start_matches('/')).join("lib/hadoptic-agent.jar.patches");
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                read => read.at("cannot read", &path)?,
            };
            if bytes.windows(FORGED.len()).any(|part| part == FORGED) {
                found.push(host.name.clone());
            }
        }
        Ok(found)
    }

    /// Ends them with all that is theirs but what they have planted.
    ///
    /// # Errors
    /// If processes cannot be listed, or do not end.
    pub fn stop(&mut self) -> Result<()> {
        let end = Instant::now() + END_LIMIT;
        for user in &self.users {
            user.ask_to_end();
        }
        for user in &mut self.users {
            while user.ended()?.is_none() && Instant::now() < end {
                thread::sleep(LOOK);
            }
        }
        loop {
            let left = self.processes()?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(LabError::Timeout(format!("processes of the hostile user do not end: {left:?}")));
            }
            for pid in left {
                // One that has ended meanwhile needs no signal.
                let _ = kill(pid, Signal::SIGKILL);
            }
            thread::sleep(LOOK);
        }
    }

    /// Takes their homes and accounts away.
    ///
    /// # Errors
    /// If they cannot be.
    pub fn clean(self) -> Result<()> {
        for host in &self.plan.hosts {
            let home = self.home(host);
            fs::remove_dir_all(&home).at("cannot remove", &home)?;
        }
        Ok(())
    }

    /// All processes of theirs, in whatever network namespace: they have the hosts' mounts.
    fn processes(&self) -> Result<Vec<Pid>> {
        let mounts: Vec<u64> = self.plan.hosts.iter().map(|host| self.hosts.mounts(host)).collect::<Result<_>>()?;
        let mut all = Vec::new();
        for entry in fs::read_dir("/proc").context("cannot read /proc")? {
            let Ok(pid) = entry.context("cannot read /proc")?.file_name().to_string_lossy().parse::<i32>() else {
                continue;
            };
            let namespace = fs::metadata(format!("/proc/{pid}/ns/mnt"));
            if user_of(pid) == Some(UID) && namespace.is_ok_and(|about| mounts.contains(&about.ino())) {
                all.push(Pid::from_raw(pid));
            }
        }
        Ok(all)
    }

    fn home(&self, host: &HostPlan) -> PathBuf {
        root(self.run, host).join(HOME.trim_start_matches('/'))
    }

    fn wait_for(&mut self, mark: &str, limit: Duration, stop: &Stop) -> Result<()> {
        let end = Instant::now() + limit;
        let homes: Vec<PathBuf> = self.plan.hosts.iter().map(|host| self.home(host)).collect();
        for (home, user) in homes.iter().zip(&mut self.users) {
            while !home.join(mark).exists() {
                if let Some(status) = user.ended()? {
                    return Err(user.ended_badly(status));
                }
                if Instant::now() > end {
                    return Err(user.failure(&format!("has not {mark} within {} s", limit.as_secs())));
                }
                stop.sleep(LOOK)?;
            }
        }
        Ok(())
    }
}

/// The user's lines in a host's `/etc`, and his home.
fn make_account(root: &Path, home: &Path) -> Result<()> {
    for (file, line) in [
        ("passwd", format!("{NAME}:x:{UID}:{UID}::{HOME}:/bin/sh\n")),
        ("group", format!("{NAME}:x:{UID}:\n")),
        ("shadow", format!("{NAME}:*:19000:0:99999:7:::\n")),
    ] {
        let path = root.join("etc").join(file);
        let text = fs::read_to_string(&path).at("cannot read", &path)?;
        fs::write(&path, text + &line).at("cannot write", &path)?;
    }
    fs::create_dir_all(home).at("cannot make", home)?;
    fs::set_permissions(home, fs::Permissions::from_mode(0o755)).at("cannot open up", home)?;
    chown(home, Some(UID), Some(UID)).with_context(|| format!("cannot give {} away", home.display()))
}

/// Copies a file into a folder of the user's.
fn own_copy(file: &Path, folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder).at("cannot make", folder)?;
    fs::copy(file, folder.join(name)).at("cannot copy", file)?;
    for path in [folder.to_owned(), folder.join(name)] {
        chown(&path, Some(UID), Some(UID)).with_context(|| format!("cannot give {} away", path.display()))?;
    }
    Ok(())
}

/// Makes a jar with one class that is Hadoop's but for its source, in a folder.
///
/// # Errors
/// If Java's tools fail, or Hadoop has no such class.
pub fn forge(java_home: &Path, jars: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).at("cannot make", folder)?;
    let tool = java_home.join("bin/jar").display().to_string();
    let (at, genuine) = (folder.display().to_string(), hadoop_common(jars)?);
    tool::run("sh", &["-c", "cd \"$0\" && \"$1\" xf \"$2\" \"$3\"", &at, &tool, &genuine, CLASS])?;
    let class = folder.join(CLASS);
    let mut bytes = fs::read(&class).with_context(|| format!("{genuine} has no {CLASS}"))?;
    let place = bytes.windows(SOURCE.len()).position(|part| part == SOURCE);
    let place = place.ok_or_else(|| LabError::Parse(format!("{CLASS} does not tell its source")))?;
    bytes[place..place + FORGED.len()].copy_from_slice(FORGED);
    fs::write(&class, bytes).at("cannot write", Path::new(&class))?;
    let jar = folder.join("forged.jar");
    tool::run(&tool, &["cf", &jar.display().to_string(), "-C", &at, CLASS])?;
    Ok(jar)
}

fn hadoop_common(jars: &Path) -> Result<String> {
    for entry in fs::read_dir(jars).at("cannot read", jars)? {
        let path = entry.at("cannot read", jars)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("hadoop-common-") && !name.contains("tests") {
            return Ok(path.display().to_string());
        }
    }
    Err(LabError::Missing(format!("there is no hadoop-common in {}", jars.display())))
}
