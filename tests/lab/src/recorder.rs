//! Who records the run: the project's agents, tcpdump and ss, or nobody.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use trace::manifest::{ForeignManifest, ForeignPackets, ForeignProcess, ForeignSockets, SocketListing};
use trace::role::role_of_main_class;

use crate::agents::{Agents, JVM_FOLDER};
use crate::deployed::Deployer;
use crate::lease::{processes_in, programs_in};
use crate::netns;
use crate::plan::{HostPlan, Plan};
use crate::process::{Process, main_class};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::tool;

/// Captured bytes of a frame: all headers, and what protocols say at the beginning of a segment.
const SNAP_BYTES: u32 = 256;
/// Ring of a tcpdump, KiB: a smaller one loses packets when the machine stalls for a second.
const RING_KIB: u32 = 131_072;
/// Between two listings of sockets.
const LISTING_INTERVAL: Duration = Duration::from_secs(1);
/// How long a recorder may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nanoseconds since the epoch.
#[must_use]
pub fn now_ns() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
}

/// Which recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// Nobody.
    Nobody,
    /// The Java agent in every JVM, which starts the sniffer and dumpingd.
    Agents(Agents),
    /// The same agents, brought to the running cluster by the program `hadoptic` as an operator does.
    Deployed(Deployer),
    /// tcpdump on every interface of every host, and ss every second.
    Tcpdump,
}

impl Recorder {
    /// The recorder with copies of its programs in a folder of the lab, for a Java and a folder of Hadoop's jars.
    ///
    /// # Errors
    /// If they cannot be copied, or the Java agent cannot be prepared for them.
    pub fn settled(&self, work: &Path, java_home: &Path, jars: &Path) -> Result<Self> {
        Ok(match self {
            Self::Agents(agents) => {
                let copied = agents.copied(&work.join("agents"))?;
                copied.write_launchers()?;
                copied.prepare(java_home, jars)?;
                Self::Agents(copied)
            }
            Self::Deployed(deployer) => {
                let agents = deployer.agents.copied(&work.join("agents"))?;
                Self::Deployed(Deployer { agents, ..deployer.clone() })
            }
            other => other.clone(),
        })
    }

    /// Its name in the truth.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Agents(_) => "agents",
            Self::Deployed(_) => "deployed agents",
            Self::Tcpdump => "tcpdump",
        }
    }

    /// Options that every JVM of the cluster gets.
    #[must_use]
    pub fn jvm_options(&self, capture: &Path) -> Vec<String> {
        match self {
            Self::Agents(agents) => vec![format!("-javaagent:{}={}", agents.jar.display(), agents.options(capture))],
            Self::Nobody | Self::Deployed(_) | Self::Tcpdump => Vec::new(),
        }
    }

    /// Starts what has to run before the first daemon.
    ///
    /// # Errors
    /// If a tool is missing or does not begin.
    pub fn start(&self, plan: &Plan, capture: &Path, stop: &Stop) -> Result<Recording> {
        let mut recording = Recording { recorder: self.clone(), hosts: Vec::new() };
        // What is deployed makes the hosts' folders itself.
        let hosts = if matches!(self, Self::Deployed(_)) { &[] } else { plan.hosts.as_slice() };
        for host in hosts {
            let folder = capture.join(&host.name);
            make_folder(&folder, 0o750)?;
            if matches!(self, Self::Agents(_)) {
                make_folder(&folder.join(JVM_FOLDER), 0o3777)?;
            }
            if *self == Self::Tcpdump {
                recording.hosts.push(HostRecording::start(host, &folder)?);
            }
        }
        for host in &mut recording.hosts {
            host.wait_until_it_runs(stop)?;
        }
        Ok(recording)
    }
}

/// Makes a folder with these permissions, whatever the mask of this process is.
fn make_folder(folder: &Path, mode: u32) -> Result<()> {
    let made = fs::create_dir_all(folder).and_then(|()| fs::set_permissions(folder, Permissions::from_mode(mode)));
    made.at("cannot make", folder)
}

/// A recorder at work.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    hosts: Vec<HostRecording>,
}

impl Recording {
    /// Ends the recording, when all daemons have ended. Returns what was not as it should be; what agents say of their
    /// own work stands in their manifests and is only repeated to the user.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn finish(self, plan: &Plan, capture: &Path, progress: &Progress) -> Result<Vec<String>> {
        match &self.recorder {
            Recorder::Nobody | Recorder::Deployed(_) => Ok(Vec::new()),
            Recorder::Agents(agents) => end_agents(agents, plan, capture, progress),
            Recorder::Tcpdump => {
                let mut problems = Vec::new();
                for host in self.hosts {
                    problems.extend(host.finish()?);
                }
                Ok(problems)
            }
        }
    }
}

/// Asks the agents of all hosts to end and waits until their manifests say that they have.
fn end_agents(agents: &Agents, plan: &Plan, capture: &Path, progress: &Progress) -> Result<Vec<String>> {
    for host in &plan.hosts {
        for (pid, exe) in programs_in(&host.namespace)? {
            if exe == agents.sniffer || exe == agents.dumpingd {
                let _ = kill(pid, Signal::SIGTERM);
            }
        }
    }
    let end = Instant::now() + PATIENCE;
    let mut problems = Vec::new();
    for host in &plan.hosts {
        for manifest in ["sniffer.json", "dumpingd.json"] {
            let path = capture.join(&host.name).join(manifest);
            while last_words(&path).is_err() && Instant::now() < end {
                thread::sleep(Duration::from_millis(50));
            }
            match last_words(&path) {
                Ok(said) if said.is_empty() => {}
                Ok(said) => progress.step(&format!("{}/{manifest} says: {said}", host.name)),
                Err(problem) => {
                    let left: Vec<String> = programs_in(&host.namespace)?
                        .iter()
                        .map(|(pid, exe)| format!("{pid} {}", exe.display()))
                        .collect();
                    problems.push(format!("{}/{manifest}: {problem}; still there: {}", host.name, left.join(", ")));
                }
            }
        }
    }
    Ok(problems)
}

/// What an agent complains of in its manifest ("" = nothing).
///
/// # Errors
/// Why the manifest is not that of an agent that ended well.
fn last_words(path: &Path) -> Result<String, String> {
    #[derive(serde::Deserialize)]
    struct End {
        ended: bool,
        #[serde(default)]
        problems: Vec<String>,
    }
    let text = fs::read(path).map_err(|error| format!("{error}: the agent did not run"))?;
    let end: End = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if end.ended { Ok(end.problems.join("; ")) } else { Err("the agent did not end in an orderly way".to_owned()) }
}

/// tcpdump and ss on one host.
#[derive(Debug)]
struct HostRecording {
    host: HostPlan,
    folder: PathBuf,
    tcpdumps: Vec<Process>,
    listing_stop: Stop,
    listing: Option<JoinHandle<Result<BTreeMap<u32, String>>>>,
}

impl HostRecording {
    fn start(host: &HostPlan, folder: &Path) -> Result<Self> {
        let tcpdump = tool::find("tcpdump").ok_or_else(|| {
            LabError::Missing(
                "tcpdump is not installed: `apt-get install tcpdump`, or record with the agents".to_owned(),
            )
        })?;
        let mut tcpdumps = Vec::new();
        for interface in ["eth0", "lo"] {
            let packets = folder.join(format!("{interface}.pcap"));
            let arguments = [
                "-i",
                interface,
                "-s",
                &SNAP_BYTES.to_string(),
                "-B",
                &RING_KIB.to_string(),
                "--time-stamp-precision=nano",
                "-Z",
                "root",
                "-w",
                &packets.to_string_lossy(),
                "tcp",
            ]
            .map(str::to_owned);
            let log = folder.join(format!("{interface}.log"));
            let mut command = netns::command(&host.namespace, &host.name, &tcpdump);
            command.args(arguments);
            tcpdumps.push(Process::start(&format!("tcpdump of {interface}"), &host.name, command, &log)?);
        }
        let listing_stop = Stop::default();
        let listing = {
            let (host, stop) = (host.clone(), listing_stop.clone());
            let path = folder.join("ss.txt");
            let file = File::create(&path).at("cannot write", &path)?;
            thread::Builder::new().spawn(move || list_sockets(&host, file, &stop)).context("cannot start a thread")?
        };
        Ok(Self { host: host.clone(), folder: folder.to_owned(), tcpdumps, listing_stop, listing: Some(listing) })
    }

    fn wait_until_it_runs(&mut self, stop: &Stop) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        for tcpdump in &mut self.tcpdumps {
            while !tcpdump.output()?.contains("listening on") {
                if tcpdump.ended()?.is_some() || Instant::now() > end {
                    return Err(tcpdump.failure("does not begin"));
                }
                stop.sleep(Duration::from_millis(50))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for tcpdump in &mut self.tcpdumps {
            tcpdump.ask_to_end();
            let end = Instant::now() + PATIENCE;
            while tcpdump.ended()?.is_none() && Instant::now() < end {
                thread::sleep(Duration::from_millis(20));
            }
            problems.extend(
                dropped(&tcpdump.output()?)
                    .map(|dropped| format!("{}: the kernel dropped {dropped} packets", tcpdump.name())),
            );
        }
        self.listing_stop.set();
        let processes = match self.listing.take() {
            Some(listing) => netns::join(listing)?,
            None => BTreeMap::new(),
        };
        for interface in ["eth0", "lo"] {
            let log = self.folder.join(format!("{interface}.log"));
            fs::remove_file(&log).at("cannot remove", &log)?;
        }
        let manifest = foreign_manifest(&self.host, &processes);
        let path = self.folder.join("manifest.json");
        fs::write(&path, serde_json::to_vec_pretty(&manifest).at("cannot write", &path)?).at("cannot write", &path)?;
        Ok(problems)
    }
}

impl Drop for HostRecording {
    fn drop(&mut self) {
        self.listing_stop.set();
        if let Some(listing) = self.listing.take() {
            let _ = listing.join();
        }
    }
}

/// "12 packets dropped by kernel" in tcpdump's last words; `None` when it is 0 or not told.
fn dropped(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok().filter(|dropped| *dropped > 0)
}

/// Appends a listing of the host's sockets every second. Returns the JVMs that it saw, by main class.
fn list_sockets(host: &HostPlan, mut file: File, stop: &Stop) -> Result<BTreeMap<u32, String>> {
    let mut seen = BTreeMap::new();
    loop {
        writeln!(file, "# {}", now_ns()).context("cannot write ss.txt")?;
        let listed = Command::new("ip")
            .args(["netns", "exec", &host.namespace, "ss", "-tanpeiO"])
            .stdin(Stdio::null())
            .output()
            .context("cannot run ss")?;
        if !listed.status.success() {
            return Err(LabError::command("ss", &listed));
        }
        file.write_all(&listed.stdout).context("cannot write ss.txt")?;
        for pid in processes_in(&host.namespace)? {
            let pid = pid.as_raw().unsigned_abs();
            if let Some(class) = main_class(pid) {
                seen.insert(pid, class);
            }
        }
        if stop.sleep(LISTING_INTERVAL).is_err() {
            return Ok(seen);
        }
    }
}

/// ss calls every JVM "java": which is which has to be told.
fn foreign_manifest(host: &HostPlan, processes: &BTreeMap<u32, String>) -> ForeignManifest {
    let packets = ["eth0", "lo"]
        .map(|interface| ForeignPackets { file: format!("{interface}.pcap"), interface: interface.to_owned() });
    let processes = processes.iter().map(|(pid, class)| {
        let role = role_of_main_class(class);
        ForeignProcess { pid: *pid, role: role.unwrap_or(class).to_owned(), hadoop: role.is_some() }
    });
    ForeignManifest {
        host: host.name.clone(),
        addresses: vec![host.address.to_string()],
        rack: host.rack_path(),
        packets: packets.into(),
        sockets: vec![ForeignSockets { file: "ss.txt".to_owned(), format: SocketListing::Ss }],
        processes: processes.collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn drops_of_tcpdump_are_read_from_its_last_words() {
        let said = "10 packets captured\n12 packets received by filter\n3 packets dropped by kernel\n";
        assert_eq!(dropped(said), Some(3));
        assert_eq!(dropped("0 packets dropped by kernel\n"), None);
    }

    #[test]
    fn an_agent_that_did_not_end_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sniffer.json");
        assert!(last_words(&path).unwrap_err().contains("did not run"));
        fs::write(&path, r#"{"ended":false,"problems":[]}"#).unwrap();
        assert!(last_words(&path).is_err());
        fs::write(&path, r#"{"ended":true,"problems":["x"]}"#).unwrap();
        assert_eq!(last_words(&path).unwrap(), "x");
    }
}
