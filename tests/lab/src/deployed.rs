//! The agents as an operator brings them: by the program `hadoptic`, over ssh, onto hosts where Hadoop runs already.
//!
//! Nothing here knows how it does that. It is called as people call it, and looked at from outside: what it says, what is
//! recorded, and whether the hosts' files are afterwards what they were before.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::agents::{Agents, KEEP_FREE_BYTES};
use crate::files::{Entry, Files, differences, read_below};
use crate::hadoop3::HISTORY_FOLDER;
use crate::host::Hosts;
use crate::hostile;
use crate::hostile::attack::HostileOptions;
use crate::layout::root;
use crate::lease::programs_in;
use crate::plan::{HostPlan, Plan};
use crate::process::Process;
use crate::progress::Progress;
use crate::stop::Stop;

/// How long one step may take.
const STEP_LIMIT: Duration = Duration::from_secs(180);
/// How long daemons may take to start agents, and these to end after the last daemon: it waits 10 s for another.
const AGENTS_LIMIT: Duration = Duration::from_secs(40);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Where the agents lie on a host, and where they record.
pub const PREFIX: &str = "/opt/hadoptic";
/// See [`PREFIX`].
pub const CAPTURE: &str = "/var/lib/hadoptic/capture";
/// What a host may take for all that is recorded while a user tries to fill it, bytes.
pub const BUDGET: u64 = 1 << 30;
/// Options of `install` with which limits are reached while a user tries to.
const UNDER_ATTACK: [&str; 3] = ["--disk-limit", "1GiB", "--sniffer-option=--file-size=256KiB"];

/// What is to be deployed, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployer {
    /// The program `hadoptic`.
    pub program: PathBuf,
    /// What it brings.
    pub agents: Agents,
    /// Whether the first daemon of each host starts the agents, and not `hadoptic start`.
    pub by_daemons: bool,
    /// Where digests that are made on the hosts go, beside what is fetched of them as it is.
    pub digests: Option<PathBuf>,
    /// Users who would spoil it. The cluster is then started after the agents.
    pub hostile: Option<HostileOptions>,
}

impl Deployer {
    /// Makes the path absolute and checks that the program is there.
    ///
    /// # Errors
    /// If it is missing; the message says how to build it.
    pub fn found(program: &Path, agents: Agents) -> Result<Self> {
        let program = program.canonicalize().with_context(|| {
            format!(
                "the program {} is not there: build it with `cargo build --release -p deploy`, or name another file",
                program.display()
            )
        })?;
        Ok(Self { program, agents, by_daemons: false, digests: None, hostile: None })
    }
}

/// Agents that were deployed onto a lab's hosts.
#[derive(Debug)]
pub struct Deployment<'a> {
    deployer: &'a Deployer,
    plan: &'a Plan,
    hosts: &'a Hosts,
    run: &'a Path,
    stop: &'a Stop,
    before: BTreeMap<String, Files>,
}

impl<'a> Deployment<'a> {
    /// Has the hosts checked and the agents brought.
    ///
    /// # Errors
    /// If the program does not say that all is well; the message has its words.
    pub fn begin(
        deployer: &'a Deployer,
        plan: &'a Plan,
        hosts: &'a Hosts,
        run: &'a Path,
        stop: &'a Stop,
        progress: &Progress,
    ) -> Result<Self> {
        let answers = run.join("deployment");
        fs::create_dir_all(&answers).at("cannot make", &answers)?;
        let mut deployment = Self { deployer, plan, hosts, run, stop, before: BTreeMap::new() };
        deployment.before = deployment.files()?;
        deployment.step("check", &deployment.check_options(), progress)?;
        deployment.step("install", &deployment.install_options(), progress)?;
        Ok(deployment)
    }

    /// Has the agents started.
    ///
    /// # Errors
    /// If the program does not say that all is well; the message has its words.
    pub fn start(&self, progress: &Progress) -> Result<()> {
        self.step("start", &[], progress)?;
        Ok(())
    }

    /// What `check` is told.
    pub(crate) fn check_options(&self) -> Vec<String> {
        [self.programs(), vec!["--need-free".to_owned(), KEEP_FREE_BYTES.to_string()]].concat()
    }

    /// What `install` is told.
    pub(crate) fn install_options(&self) -> Vec<String> {
        let mut options = [self.programs(), vec!["--keep-free".to_owned(), KEEP_FREE_BYTES.to_string()]].concat();
        if self.deployer.by_daemons {
            options.extend(["--started-by", "daemons"].map(str::to_owned));
        }
        if self.deployer.hostile.is_some() {
            options.extend(UNDER_ATTACK.map(str::to_owned));
        }
        options
    }

    fn programs(&self) -> Vec<String> {
        let Agents { jar, sniffer, dumpingd } = &self.deployer.agents;
        let named = [("--sniffer", sniffer), ("--dumpingd", dumpingd), ("--jar", jar)];
        named.iter().flat_map(|(option, path)| [(*option).to_owned(), path.display().to_string()]).collect()
    }

    /// Asks how the agents are, stops them, and fetches what they recorded into a capture, and the histories of jobs, where
    /// there were any. Returns what was not as it should be.
    ///
    /// # Errors
    /// If one of the steps fails.
    pub fn collect(&self, capture: &Path, histories: Option<&str>, progress: &Progress) -> Result<Vec<String>> {
        let status = self.step("status", &[], progress)?;
        if !self.deployer.by_daemons {
            self.step("stop", &[], progress)?;
        }
        let mut out = vec!["--out".to_owned(), capture.display().to_string()];
        if let Some(folder) = histories {
            let option = if folder.starts_with(HISTORY_FOLDER) { "--job-history-hdfs" } else { "--job-history" };
            out.extend([option.to_owned(), format!("{}:{folder}", self.plan.master().name)]);
        }
        let recorded = if self.deployer.hostile.is_some() { self.records_of_root()? } else { Vec::new() };
        let mut problems = self.fetch(&out, progress)?;
        for host in &self.plan.hosts {
            let folder = capture.join(&host.name);
            if !folder.join("sniffer.json").exists() {
                problems.push(format!("hadoptic collect brought no {}", folder.join("sniffer.json").display()));
            }
        }
        let printed = status["hosts"].as_array().map_or(0, Vec::len);
        if printed != self.plan.hosts.len() {
            problems.push(format!("hadoptic status tells of {printed} hosts, there are {}", self.plan.hosts.len()));
        }
        for file in recorded.iter().filter(|file| !capture.join(file).exists()) {
            problems.push(format!("hadoptic collect left {}, which is root's", file.display()));
        }
        copy_all(&self.run.join("deployment"), &capture.join("deployment"))?;
        Ok(problems)
    }

    /// Has what was recorded fetched. What a hostile user did to his own records may be complained of: nothing else.
    fn fetch(&self, arguments: &[String], progress: &Progress) -> Result<Vec<String>> {
        if self.deployer.hostile.is_none() {
            self.step("collect", arguments, progress)?;
            return Ok(Vec::new());
        }
        progress.step("hadoptic collect");
        let answer = self.call("collect", "collect", arguments)?;
        if !matches!(answer.status.code(), Some(0 | 1)) {
            return Err(answer.process.failure("did not fetch anything"));
        }
        let of_a_user = |problem: &&String| problem.contains(&hostile::UID.to_string()) || problem.contains(": jvm-");
        let problems = texts_at(&answer.said, &["problems"]);
        Ok(problems.iter().filter(|problem| !of_a_user(problem)).cloned().collect())
    }

    /// Records of root's JVMs, which are all of the cluster's, by their paths in a capture.
    fn records_of_root(&self) -> Result<Vec<PathBuf>> {
        let mut records = Vec::new();
        for host in &self.plan.hosts {
            let jvm = root(self.run, host).join(CAPTURE.trim_start_matches('/')).join("jvm");
            for folder in fs::read_dir(&jvm).at("cannot read", &jvm)? {
                let folder = folder.at("cannot read", &jvm)?.path();
                let about = folder.symlink_metadata().at("cannot look at", &folder)?;
                if about.uid() != 0 || !about.is_dir() {
                    continue;
                }
                for record in fs::read_dir(&folder).at("cannot read", &folder)? {
                    let name = record.at("cannot read", &folder)?.file_name();
                    if name.to_string_lossy().starts_with("jvm-") {
                        records.push(
                            Path::new(&host.name).join("jvm").join(folder.file_name().unwrap_or_default()).join(name),
                        );
                    }
                }
            }
        }
        Ok(records)
    }

    /// Looks whether the first daemon of each host has started the agents, once a host, and whether one that is killed comes
    /// back. Returns what was not as it should be.
    ///
    /// # Errors
    /// If they do not run in time, or a signal came.
    pub fn look_after_daemons(&self, progress: &Progress) -> Result<Vec<String>> {
        progress.step("looking for the agents that daemons have started");
        let mut problems = Vec::new();
        for host in &self.plan.hosts {
            self.wait_for(&format!("agents on {}", host.name), || Ok(self.agents(host)?.len() >= 2))?;
        }
        let Some(host) = self.plan.workers().first() else { return Ok(problems) };
        let Some((killed, _)) = self.agents(host)?.into_iter().find(|(_, name)| name == "sniffer") else {
            return Ok(vec![format!("no sniffer runs on {}", host.name)]);
        };
        kill(killed, Signal::SIGKILL).context("cannot kill a sniffer")?;
        self.wait_for(&format!("a new sniffer on {}", host.name), || {
            let agents = self.agents(host)?;
            Ok(agents.iter().any(|(pid, name)| name == "sniffer" && *pid != killed))
        })?;
        for host in &self.plan.hosts {
            let mut names: Vec<String> = self.agents(host)?.into_iter().map(|(_, name)| name).collect();
            names.sort();
            if names != ["dumpingd", "sniffer"] {
                problems.push(format!("daemons have started {names:?} on {}", host.name));
            }
        }
        let printed = self.step("start", &[], progress)?;
        for host in printed["hosts"].as_array().into_iter().flatten() {
            if host["started"] != false || !host["sniffer"].is_u64() {
                problems.push(format!("hadoptic start does not see what daemons have started: {host}"));
            }
        }
        Ok(problems)
    }

    /// Waits until the agents have ended after the last daemons, and fetches what they recorded since. Returns what was not as
    /// it should be.
    ///
    /// # Errors
    /// If they do not end, or a signal came.
    pub fn after_daemons(&self, capture: &Path, progress: &Progress) -> Result<Vec<String>> {
        progress.step("waiting for the agents to end after the last daemons");
        for host in &self.plan.hosts {
            self.wait_for(&format!("the end of the agents on {}", host.name), || Ok(self.agents(host)?.is_empty()))?;
        }
        self.step("status", &[], progress)?;
        let out = ["--out".to_owned(), capture.display().to_string()];
        self.step("collect", &out, progress)?;
        let mut problems = Vec::new();
        if let Some(digests) = &self.deployer.digests {
            // Nothing is recorded any more: it is of just what was fetched.
            progress.step("hadoptic collect --digest");
            let out = ["--out".to_owned(), digests.display().to_string(), "--digest".to_owned()];
            let answer = self.call("collect-digest", "collect", &out)?;
            if !answer.status.success() {
                problems.push(format!("hadoptic collect --digest: {}", complaints(&answer.said)));
            }
        }
        for (host, agent) in self.plan.hosts.iter().flat_map(|host| ["sniffer", "dumpingd"].map(|agent| (host, agent)))
        {
            let path = capture.join(&host.name).join(format!("{agent}.json"));
            let printed: Value = serde_json::from_slice(&fs::read(&path).unwrap_or_default()).unwrap_or(Value::Null);
            if printed["ended"] != true {
                problems.push(format!("{} does not say that the agent ended in order", path.display()));
            }
        }
        Ok(problems)
    }

    /// The agents that run on a host.
    fn agents(&self, host: &HostPlan) -> Result<Vec<(Pid, String)>> {
        let of =
            |program: &Path| Some(program.strip_prefix(PREFIX).ok()?.strip_prefix("bin").ok()?.display().to_string());
        Ok(programs_in(&host.namespace)?.into_iter().filter_map(|(pid, program)| Some((pid, of(&program)?))).collect())
    }

    fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + AGENTS_LIMIT;
        while !is_so()? {
            if Instant::now() >= end {
                return Err(LabError::Timeout(format!("waited {} s in vain for {what}", AGENTS_LIMIT.as_secs())));
            }
            self.stop.sleep(LOOK)?;
        }
        Ok(())
    }

    /// Has everything removed, and compares the hosts' files with those from before. Returns what is not as it was.
    ///
    /// # Errors
    /// If the program says that it could not, or a host cannot be looked at.
    pub fn remove(self, progress: &Progress) -> Result<Vec<String>> {
        self.step("remove", &[], progress)?;
        let mut problems = Vec::new();
        for (name, after) in self.files()? {
            let before = self.before.get(&name).cloned().unwrap_or_default();
            for (path, how) in differences(&before, &after).into_iter().filter(|(path, _)| !is_of_users_tools(path)) {
                problems.push(format!("after hadoptic remove, {} on {name} {how}", path.display()));
            }
        }
        for host in &self.plan.hosts {
            for (pid, program) in programs_in(&host.namespace)? {
                if program.starts_with(PREFIX) {
                    problems.push(format!(
                        "{} (process {pid}) on {} outlives hadoptic remove",
                        program.display(),
                        host.name
                    ));
                }
            }
        }
        Ok(problems)
    }

    /// Calls the program for all hosts and waits for its end. Returns its answer.
    fn step(&self, step: &str, arguments: &[String], progress: &Progress) -> Result<Value> {
        progress.step(&format!("hadoptic {step}"));
        let answer = self.call(step, step, arguments)?;
        let status = answer.status;
        if !status.success() {
            return Err(answer.process.failure(&format!("ended with {status}: {}", complaints(&answer.said))));
        }
        Ok(answer.said)
    }

    /// Calls the program for all hosts and waits for its end, whatever that is; `name` is that of the files of what it says.
    ///
    /// # Errors
    /// If it cannot be started, does not end in time, or a signal came.
    pub(crate) fn call(&self, name: &str, step: &str, arguments: &[String]) -> Result<Answer> {
        let logins = &self.hosts.logins;
        let masters = self.plan.hosts.iter().filter(|host| host.master).map(|host| host.name.clone());
        let answer = self.run.join("deployment").join(format!("{name}.json"));
        let log = self.run.join("deployment").join(format!("{name}.log"));
        // Its answer and what it says go to different files: the answer is one object.
        let mut command = Command::new("sh");
        command
            .args(["-c", "answer=$1; shift; exec \"$@\" >\"$answer\"", "sh"])
            .arg(&answer)
            .arg(&self.deployer.program);
        command.arg(step).arg("--workers").arg(&logins.workers).arg("--also").args(masters);
        command.arg("--ssh-config").arg(&logins.config).arg("--json").args(arguments);
        let what = format!("hadoptic {step}");
        let mut process = Process::start(&what, "this machine", command, &log)?;
        let began = Instant::now();
        let status = loop {
            if let Some(status) = process.ended()? {
                break status;
            }
            if began.elapsed() > STEP_LIMIT {
                return Err(process.failure(&format!("did not end within {} s", STEP_LIMIT.as_secs())));
            }
            self.stop.sleep(LOOK)?;
        };
        let text = fs::read_to_string(&answer).at("cannot read", &answer)?;
        let said: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status, said, seconds: began.elapsed().as_secs_f64(), process })
    }

    /// The files of all hosts.
    fn files(&self) -> Result<BTreeMap<String, Files>> {
        let mut all = BTreeMap::new();
        for host in &self.plan.hosts {
            let root = root(self.run, host);
            let mut files = Files::new();
            // What is a hostile user's is not the host's.
            read_below(&root, &root, &|_, about| about.uid() == hostile::UID, &mut files)?;
            self.running_files(host, &mut files)?;
            all.insert(host.name.clone(), files);
        }
        Ok(all)
    }

    /// `/run` is in the host's memory: only the host can tell what is there.
    fn running_files(&self, host: &HostPlan, files: &mut Files) -> Result<()> {
        let mut command = self.hosts.command(host, Path::new("/"), "find")?;
        let output = command.args(["/run", "-mindepth", "1"]).output().context("cannot look into a host's /run")?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            files.insert(line.into(), Entry::there());
        }
        Ok(())
    }
}

/// What useradd and userdel leave: their lock, and copies of what was there before the last change.
fn is_of_users_tools(path: &Path) -> bool {
    ["/etc/.pwd.lock", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-"]
        .iter()
        .any(|own| path == Path::new(own))
}

/// How a call of the program ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    /// Its report, null = none.
    pub(crate) said: Value,
    pub(crate) seconds: f64,
    process: Process,
}

/// What a report complains of, in one line.
fn complaints(report: &Value) -> String {
    texts_at(report, &["problems"]).join("; ")
}

/// What a report tells under some keys, of all together and of each host: "HOST: ...".
pub(crate) fn texts_at(report: &Value, keys: &[&str]) -> Vec<String> {
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let of = |value: &Value| -> Vec<String> { keys.iter().flat_map(|key| list(&value[*key])).collect() };
    let mut said = of(report);
    for host in report["hosts"].as_array().into_iter().flatten() {
        let name = host["host"].as_str().unwrap_or("?");
        said.extend(of(host).iter().map(|words| format!("{name}: {words}")));
    }
    said
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).at("cannot make", to)?;
    for entry in fs::read_dir(from).at("cannot read", from)? {
        let entry = entry.at("cannot read", from)?;
        fs::copy(entry.path(), to.join(entry.file_name())).at("cannot copy", &entry.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn complaints_name_their_host() {
        let report = serde_json::json!({
            "problems": ["no two hosts may have one name"],
            "hosts": [{ "host": "w1", "problems": ["disk full"] }, { "host": "w2", "problems": [] }],
        });
        assert_eq!(complaints(&report), "no two hosts may have one name; w1: disk full");
    }
}
