//! A Hadoop cluster on the lab's hosts: configured, started, watched, stopped.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::daemon::{DaemonKind, Ready};
use crate::distribution::{Client, Distribution};
use crate::host::Hosts;
use crate::layout::Call;
use crate::lease::processes_in;
use crate::plan::{HostPlan, Plan};
use crate::process::{Process, listens, main_class};
use crate::progress::Progress;
use crate::recorder::now_ns;
use crate::settings::Settings;
use crate::stop::Stop;

/// How long the cluster may take until it is ready; 25 s on two cores.
const START_LIMIT: Duration = Duration::from_secs(240);
/// How long daemons may take to end when asked. A NodeManager that has served a shuffle takes ten seconds over it.
const END_LIMIT: Duration = Duration::from_secs(40);
/// Between the kinds of daemons that are asked to end.
const END_STEP: Duration = Duration::from_millis(700);
/// How long the last containers may outlive their job.
const CONTAINERS_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// A running cluster.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// The version that runs.
    pub distribution: Distribution,
    /// How it is configured.
    pub settings: &'a Settings,
    /// Its hosts.
    pub plan: &'a Plan,
    /// They themselves.
    pub hosts: &'a Hosts,
    stop: &'a Stop,
    daemons: Vec<Daemon>,
    clients: u32,
    /// How often all daemons were started.
    started: u32,
}

#[derive(Debug)]
struct Daemon {
    kind: &'static DaemonKind,
    process: Process,
}

/// How a client ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRun {
    /// Started, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Ended, nanoseconds since the epoch.
    pub end_ns: u64,
    /// What it printed, its log included.
    pub output: String,
}

impl<'a> Cluster<'a> {
    /// Writes the configuration and formats the file system.
    ///
    /// # Errors
    /// If files cannot be written, Hadoop does not format (the message shows the end of its log), or a signal came.
    pub fn prepare(
        distribution: Distribution,
        settings: &'a Settings,
        plan: &'a Plan,
        hosts: &'a Hosts,
        stop: &'a Stop,
        progress: &Progress,
    ) -> Result<Self> {
        let cluster = Self { distribution, settings, plan, hosts, stop, daemons: Vec::new(), clients: 0, started: 0 };
        // What formats the file system runs before the cluster does, and without what records it.
        let bare = Settings { jvm_options: Vec::new(), ..settings.clone() };
        cluster.configure(&bare)?;
        progress.step("formatting the file system");
        cluster.format()?;
        if !settings.jvm_options.is_empty() {
            cluster.configure(settings)?;
        }
        Ok(cluster)
    }

    /// Starts all daemons; returns when the cluster is ready.
    ///
    /// # Errors
    /// If a daemon ends or is not ready in time (the message shows the end of its log), or a signal came.
    pub fn start(&mut self, progress: &Progress) -> Result<()> {
        for wave in self.waves() {
            let roles = self.start_wave(wave)?;
            progress.step(&format!("starting {roles}"));
            self.wait_until_ready()?;
        }
        self.started = 1;
        Ok(())
    }

    fn waves(&self) -> std::ops::RangeInclusive<u8> {
        0..=self.distribution.daemons().iter().map(|kind| kind.wave).max().unwrap_or(0)
    }

    /// Writes the configuration of all hosts.
    fn configure(&self, settings: &Settings) -> Result<()> {
        for host in &self.plan.hosts {
            let folder = settings.host_folder(host);
            for path in [settings.conf(host), folder.join("logs"), folder.join("tmp")] {
                fs::create_dir_all(&path).at("cannot make", &path)?;
            }
            for file in self.distribution.configuration(settings, self.plan, host) {
                let path = settings.conf(host).join(file.name);
                fs::write(&path, file.contents).at("cannot write", &path)?;
                if file.name.ends_with(".sh") {
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at("cannot open up", &path)?;
                }
            }
        }
        Ok(())
    }

    fn format(&self) -> Result<()> {
        let master = self.plan.master();
        let mut process = self.spawn("format", master, &self.distribution.format(), "format")?;
        let status = self.wait_for(&mut process, START_LIMIT)?;
        if !status.success() {
            return Err(process.ended_badly(status));
        }
        Ok(())
    }

    /// Starts something on a host, in the folder of its logs.
    fn spawn(&self, what: &str, host: &HostPlan, call: &Call, log: &str) -> Result<Process> {
        let logs = self.settings.host_folder(host).join("logs");
        let mut command = self.hosts.command(host, &logs, &call.path())?;
        command.args(&call.arguments);
        Process::start(what, &host.name, command, &logs.join(format!("{log}.log")))
    }

    fn start_wave(&mut self, wave: u8) -> Result<String> {
        let mut roles = Vec::new();
        for kind in self.distribution.daemons().iter().filter(|kind| kind.wave == wave) {
            let hosts = self.plan.hosts.iter().filter(|host| host.master == kind.on_master);
            let mut count = 0;
            // Those of a restart get logs of their own.
            let log =
                if self.started == 0 { kind.role.to_owned() } else { format!("{}-{}", kind.role, self.started + 1) };
            for host in hosts {
                let call = Call::new(kind.program, &[kind.subcommand]);
                let process = self.spawn(kind.role, host, &call, &log)?;
                self.daemons.push(Daemon { kind, process });
                count += 1;
            }
            roles.push(if count == 1 { kind.role.to_owned() } else { format!("{count} {}s", kind.role) });
        }
        Ok(roles.join(", "))
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        loop {
            self.check_alive()?;
            let mut waiting = None;
            for daemon in &self.daemons {
                if !daemon.is_ready()? {
                    waiting = Some(daemon);
                    break;
                }
            }
            let Some(daemon) = waiting else { return Ok(()) };
            if Instant::now() > end {
                let limit = START_LIMIT.as_secs();
                return Err(daemon.process.failure(&format!("was not ready within {limit} s")));
            }
            self.stop.sleep(LOOK)?;
        }
    }

    /// Checks that all daemons run.
    ///
    /// # Errors
    /// If one has ended; the message shows the end of its log.
    pub fn check_alive(&mut self) -> Result<()> {
        for daemon in &mut self.daemons {
            if let Some(status) = daemon.process.ended()? {
                return Err(daemon.process.ended_badly(status));
            }
        }
        Ok(())
    }

    /// Runs a client to its end.
    ///
    /// # Errors
    /// If it fails, takes longer than `limit`, a daemon ends meanwhile, or a signal came.
    pub fn client(
        &mut self,
        client: Client,
        host: &HostPlan,
        arguments: &[String],
        limit: Duration,
    ) -> Result<ClientRun> {
        self.clients += 1;
        let what = format!("{client:?}");
        let log = format!("client-{}-{what}", self.clients);
        let mut call = self.distribution.client(client);
        call.arguments.extend_from_slice(arguments);
        let start_ns = now_ns();
        let mut process = self.spawn(&what, host, &call, &log)?;
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = process.ended()? {
                break status;
            }
            self.check_alive()?;
            if Instant::now() > end {
                return Err(process.failure(&format!("did not end within {:.0} s", limit.as_secs_f64())));
            }
            self.stop.sleep(LOOK)?;
        };
        let end_ns = now_ns();
        if !status.success() {
            return Err(process.ended_badly(status));
        }
        Ok(ClientRun { start_ns, end_ns, output: process.output()? })
    }

    fn wait_for(&self, process: &mut Process, limit: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = process.ended()? {
                return Ok(status);
            }
            if Instant::now() > end {
                return Err(process.failure("does not end"));
            }
            self.stop.sleep(LOOK)?;
        }
    }

    /// Waits until tasks and application masters have ended.
    ///
    /// # Errors
    /// If some are still there after half a minute, or a signal came.
    pub fn wait_for_containers(&mut self) -> Result<()> {
        let end = Instant::now() + CONTAINERS_LIMIT;
        loop {
            self.check_alive()?;
            let left = self.containers()?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(LabError::Failed(format!("containers outlive their job: {}", left.join(", "))));
            }
            self.stop.sleep(LOOK)?;
        }
    }

    fn containers(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for host in &self.plan.hosts {
            for pid in processes_in(&host.namespace)? {
                let pid = pid.as_raw().unsigned_abs();
                let ours = self.daemons.iter().any(|daemon| daemon.process.pid() == pid);
                // The cluster runs as root. What others call by its names is none of it.
                let of_root = fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == 0);
                if let (false, true, Some(class)) = (ours, of_root, main_class(pid)) {
                    left.push(format!("{class} (process {pid}) on {}", host.name));
                }
            }
        }
        Ok(left)
    }

    /// Stops all daemons, one kind after the other in the order in which none misses another; they end side by side.
    /// Returns what was not as it should be.
    ///
    /// # Errors
    /// If the system cannot tell about a process.
    pub fn stop(mut self) -> Result<Vec<String>> {
        for kind in self.distribution.daemons().iter().rev() {
            for daemon in self.daemons.iter().filter(|daemon| daemon.kind.role == kind.role) {
                daemon.process.ask_to_end();
            }
            // Its last words to the kinds that are still there.
            std::thread::sleep(END_STEP);
        }
        wait_for_end(&mut self.daemons)
    }

    /// Restarts all daemons, those of a wave side by side and one wave after the other, as a rolling restart does: they come
    /// back with what their configuration says by then.
    ///
    /// # Errors
    /// If a daemon does not end or is not ready in time, or a signal came.
    pub fn restart(&mut self, progress: &Progress) -> Result<()> {
        for wave in self.waves() {
            let (mut old, others) = self.daemons.drain(..).partition(|daemon| daemon.kind.wave == wave);
            self.daemons = others;
            // Workers before their masters: else they knock at a closed door while they end, and nobody knows who it was.
            for kind in self.distribution.daemons().iter().rev().filter(|kind| kind.wave == wave) {
                for daemon in old.iter().filter(|daemon| daemon.kind.role == kind.role) {
                    daemon.process.ask_to_end();
                }
                self.stop.sleep(END_STEP)?;
            }
            let problems = wait_for_end(&mut old)?;
            if !problems.is_empty() {
                return Err(LabError::Failed(format!("cannot restart the cluster: {}", problems.join("; "))));
            }
            let roles = self.start_wave(wave)?;
            progress.step(&format!("restarting {roles}"));
            self.wait_until_ready()?;
        }
        self.started += 1;
        Ok(())
    }

    /// Stops all processes on its hosts where they are, as if there were no such cluster on this machine; they go on when
    /// what is returned is dropped.
    ///
    /// # Errors
    /// If processes cannot be listed; none is stopped then.
    pub fn freeze(&self) -> Result<Frozen> {
        let mut frozen = Frozen(Vec::new());
        for host in &self.plan.hosts {
            for pid in processes_in(&host.namespace)? {
                // One that has ended meanwhile needs no stopping.
                if kill(pid, Signal::SIGSTOP).is_ok() {
                    frozen.0.push(pid);
                }
            }
        }
        Ok(frozen)
    }

    /// Roles of the daemons on a host.
    #[must_use]
    pub fn roles(distribution: Distribution, host: &HostPlan) -> Vec<String> {
        distribution
            .daemons()
            .iter()
            .filter(|kind| kind.on_master == host.master)
            .map(|kind| kind.role.to_owned())
            .collect()
    }

    /// A folder on the master for files of clients.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn exchange(&self, name: &str) -> Result<PathBuf> {
        let path = self.settings.host_folder(self.plan.master()).join("exchange").join(name);
        fs::create_dir_all(&path).at("cannot make", &path)?;
        Ok(path)
    }
}

/// Processes that were stopped and go on when this is dropped.
#[derive(Debug)]
pub struct Frozen(Vec<Pid>);

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}

/// Waits until daemons that were asked to end have ended; kills and tells those that do not.
fn wait_for_end(daemons: &mut [Daemon]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let end = Instant::now() + END_LIMIT;
    for daemon in daemons {
        let process = &mut daemon.process;
        while process.ended()?.is_none() && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        if process.ended()?.is_none() {
            problems.push(format!("{} did not end within {} s and was killed", process.name(), END_LIMIT.as_secs()));
            process.kill();
        }
    }
    Ok(problems)
}

impl Daemon {
    fn is_ready(&self) -> Result<bool> {
        Ok(match self.kind.ready {
            Ready::Listens(port) => listens(self.process.pid(), port),
            Ready::Says(words) => self.process.output()?.contains(words),
        })
    }
}

/// Java's home by its launcher.
///
/// # Errors
/// If the launcher is not in a folder `bin`.
pub fn java_home(launcher: &Path) -> Result<PathBuf> {
    let launcher = launcher.canonicalize().at("no Java at", launcher)?;
    let home = launcher.parent().and_then(Path::parent);
    home.map(Path::to_owned).ok_or_else(|| LabError::Missing(format!("{} is in no Java home", launcher.display())))
}
