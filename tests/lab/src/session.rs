//! One run of the lab, from nothing to nothing: network, cluster, jobs, what they left, and away again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, LabError, Result};
use trace::truth::{Machine, Truth, TruthHost, Versions};

use crate::cluster::Cluster;
use crate::deployed::{Deployer, Deployment};
use crate::distribution::{Client, Distribution, Histories};
use crate::encryption::{self, Cipher};
use crate::hadoop3::HISTORY_FOLDER;
use crate::history::{self, JobHistory};
use crate::host::Hosts;
use crate::hostile::attack;
use crate::hostile::siege::Siege;
use crate::jobs::{Done, JobKind, JobOptions, Runner};
use crate::layout::HOME;
use crate::lease::{Lease, check_plain, check_root};
use crate::measure;
use crate::netns;
use crate::network::{self, CONGESTION_CONTROL, Shape};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::recorder::{Recorder, now_ns};
use crate::settings::Settings;
use crate::setup;
use crate::stop::Stop;
use crate::traffic::Counters;

/// How often the histories are asked for.
const HISTORY_TRIES: u32 = 3;

/// The cluster that is asked for.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Version of Hadoop.
    pub distribution: Distribution,
    /// Prefix of all names.
    pub prefix: String,
    /// Second number of the addresses, `None` = by the prefix.
    pub subnet: Option<u8>,
    /// Workers.
    pub workers: usize,
    /// Rates.
    pub shape: Shape,
    /// Quiet settings.
    pub quiet: bool,
    /// Encrypted as far as it goes without Kerberos, blocks by this.
    pub encrypted: Option<Cipher>,
    /// Properties over all others.
    pub properties: Vec<(String, String)>,
    /// Folder of fetched files.
    pub cache: PathBuf,
    /// Work folder, `None` = a throw-away one.
    pub work: Option<PathBuf>,
    /// Whether the work folder stays.
    pub keep: bool,
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    plan: Plan,
    distribution: Distribution,
    settings: Settings,
    truth: Truth,
    hosts: Hosts,
    lease: Lease,
}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    /// What is known of it.
    pub truth: Truth,
    /// Where the capture is, `None` = nowhere any more.
    pub capture: Option<PathBuf>,
    /// Seconds in all.
    pub wall_s: f64,
}

impl Lab {
    /// Fetches what is missing and makes the network, measured.
    ///
    /// # Errors
    /// If something is missing and cannot be fetched, the prefix is taken, a tool fails, or a signal came.
    pub fn prepare(options: &ClusterOptions, stop: &Stop, progress: &Progress) -> Result<Self> {
        let plan = Plan::new(&options.prefix, options.subnet, options.workers)?;
        check_root()?;
        setup::tools(progress)?;
        let (java_home, java) = setup::java(options.distribution)?;
        if let Some(cipher) = options.encrypted {
            options.distribution.check_cipher(cipher, setup::major_version(&java))?;
        }
        let cache = setup::fetch(options.distribution, &options.cache, &java_home, false, progress)?;
        stop.check()?;
        let lease = Lease::take(&options.prefix, options.work.as_deref(), options.keep)?;
        progress.step(&format!(
            "network of {} hosts in 2 racks, links {}, uplink {}",
            plan.hosts.len(),
            options.shape.links,
            options.shape.uplink
        ));
        network::up(&plan, &options.shape)?;
        let hosts = Hosts::settle(&plan, options.distribution, &cache, lease.work(), stop)?;
        progress.step("measuring it");
        let (links, measured, problems) = measure::all(&plan, &options.shape, stop)?;
        let truth = Truth {
            version: 1,
            program: concat!("lab ", env!("CARGO_PKG_VERSION")).to_owned(),
            prefix: plan.prefix.clone(),
            quiet: options.quiet,
            hosts: truth_hosts(&plan, options.distribution)?,
            links,
            measured,
            versions: Versions {
                hadoop: options.distribution.version().to_owned(),
                java,
                kernel: read_line("/proc/sys/kernel/osrelease"),
            },
            machine: machine(),
            congestion_control: CONGESTION_CONTROL.to_owned(),
            sysctls: network::sysctls(&plan.master().namespace)?.into_iter().collect(),
            problems,
            ..Truth::default()
        };
        if options.encrypted.is_some() {
            encryption::make_stores(&plan, &java_home, lease.work())?;
        }
        let settings = Settings {
            quiet: options.quiet,
            encrypted: options.encrypted,
            jvm_options: Vec::new(),
            properties: options.properties.clone(),
            java_home,
            cache,
            work: lease.work().to_owned(),
        };
        Ok(Self { plan, distribution: options.distribution, settings, truth, hosts, lease })
    }

    fn settled(&self, recorder: &Recorder) -> Result<Recorder> {
        let jars = self.distribution.jars(&self.settings.cache);
        recorder.settled(self.lease.work(), &self.settings.java_home, &jars)
    }

    /// Starts the cluster, keeps it until a signal comes, and removes everything.
    ///
    /// # Errors
    /// As of its parts.
    pub fn keep_up(
        self,
        recorder: &Recorder,
        capture: Option<&Path>,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<Truth> {
        let folder = capture.map_or_else(|| self.lease.work().join("capture"), Path::to_owned);
        let how_to_enter = self.how_to_enter();
        let (truth, ()) = self.with_cluster(recorder, &folder, stop, progress, |cluster| {
            progress.step("the cluster is up; Ctrl-C ends it");
            trace::stderr::print(how_to_enter);
            while !stop.is_set() {
                cluster.check_alive()?;
                // The signal that ends the waiting is what was waited for.
                let _ = stop.sleep(Duration::from_millis(500));
            }
            Ok(())
        })?;
        Ok(truth)
    }

    /// Starts the cluster under a recorder, has something done with it, and removes everything.
    ///
    /// # Errors
    /// As of its parts. Whatever happens, nothing of the lab stays on the machine.
    pub fn with_cluster<T>(
        mut self,
        recorder: &Recorder,
        capture: &Path,
        stop: &Stop,
        progress: &Progress,
        work: impl FnOnce(&mut Cluster<'_>) -> Result<T>,
    ) -> Result<(Truth, T)> {
        let recorder = self.settled(recorder)?;
        self.settings.jvm_options = recorder.jvm_options(capture);
        self.truth.recorder = recorder.name().to_owned();
        let recording = recorder.start(&self.plan, capture, stop)?;
        let counted = Counters::read(&self.plan)?;
        self.truth.started_ns = now_ns();
        let mut cluster = Cluster::prepare(self.distribution, &self.settings, &self.plan, &self.hosts, stop, progress)?;
        cluster.start(progress)?;
        let done = work(&mut cluster)?;
        progress.step("stopping the cluster");
        self.truth.problems.extend(cluster.stop()?);
        self.truth.problems.extend(recording.finish(&self.plan, capture, progress)?);
        Counters::read(&self.plan)?.tell_since(&counted, &mut self.truth);
        self.truth.ended_ns = now_ns();
        write_truth(&self.truth, capture)?;
        self.lease.release()?;
        Ok((self.truth, done))
    }

    /// Starts the cluster under the recorder, runs the jobs, collects, stops and removes everything.
    ///
    /// # Errors
    /// As of its parts. Whatever happens, nothing of the lab stays on the machine.
    pub fn run(
        mut self,
        jobs: &[JobKind],
        options: &JobOptions,
        recorder: &Recorder,
        capture: Option<&Path>,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<Outcome> {
        let folder = capture.map_or_else(|| self.lease.work().join("capture"), Path::to_owned);
        let job_folder = folder.join("job");
        fs::create_dir_all(&job_folder).at("cannot make", &job_folder)?;
        let recorder = self.settled(recorder)?;
        self.settings.jvm_options = recorder.jvm_options(&folder);
        self.truth.recorder = recorder.name().to_owned();
        self.truth.seed = options.seed;
        self.truth.started_ns = now_ns();
        let recording = recorder.start(&self.plan, &folder, stop)?;
        let mut counted = Counters::read(&self.plan)?;
        let mut siege = match &recorder {
            Recorder::Deployed(Deployer { hostile: Some(options), .. }) => {
                progress.step("hostile users settle on the hosts");
                let jars = self.distribution.jars(&self.settings.cache);
                let forged = attack::forge(&self.settings.java_home, &jars, &self.lease.work().join("forged"))?;
                Some(Siege::begin(options, &self.plan, &self.hosts, self.lease.work(), &forged, stop)?)
            }
            _ => None,
        };
        let mut cluster = Cluster::prepare(self.distribution, &self.settings, &self.plan, &self.hosts, stop, progress)?;
        if siege.is_none() {
            cluster.start(progress)?;
        }
        let deployment = match &recorder {
            Recorder::Deployed(deployer) => {
                let deployment =
                    Deployment::begin(deployer, &self.plan, &self.hosts, self.lease.work(), stop, progress)?;
                if let Some(siege) = &mut siege {
                    siege.look(stop)?;
                }
                deployment.start(progress)?;
                counted = Counters::read(&self.plan)?;
                if siege.is_some() {
                    cluster.start(progress)?;
                } else {
                    cluster.restart(progress)?;
                }
                if deployer.by_daemons {
                    self.truth.problems.extend(deployment.look_after_daemons(progress)?);
                }
                Some((deployer, deployment))
            }
            _ => None,
        };
        let mut runner = Runner { cluster: &mut cluster, options, progress, done: Done::default() };
        match (&mut siege, &deployment) {
            (Some(siege), Some((_, deployment))) => {
                let lasts = siege.lasts();
                siege.during(deployment, || runner.run_for(jobs, lasts))?;
            }
            _ => runner.run_for(jobs, Duration::ZERO)?,
        }
        progress.step("collecting the job history");
        runner.cluster.wait_for_containers()?;
        let ran = runner.done.jobs.iter().any(|job| !job.id.is_empty());
        let logs = runner.cluster.settings.host_folder(runner.cluster.plan.master()).join("logs");
        let from = ran.then(|| match runner.cluster.distribution.histories() {
            Histories::InHdfs(_) => HISTORY_FOLDER.to_owned(),
            Histories::OnMaster(folder) => logs.join(folder).display().to_string(),
        });
        // Who deploys the agents gets the histories as well.
        if ran && deployment.is_none() {
            match runner.cluster.distribution.histories() {
                Histories::InHdfs(pattern) => fetch_histories(runner.cluster, pattern, &job_folder, options.limit)?,
                Histories::OnMaster(folder) => copy_histories(&logs.join(folder), &job_folder)?,
            }
        }
        self.truth.blocks = runner.blocks("/")?;
        let done = runner.done;
        if let Some((deployer, deployment)) = deployment {
            // As on a cluster that goes on: its daemons still run.
            self.truth.problems.extend(deployment.collect(&folder, from.as_deref(), progress)?);
            if let Some(siege) = siege {
                progress.step("ending the hostile users");
                self.truth.problems.extend(siege.end(&folder)?.1);
            }
            Counters::read(&self.plan)?.tell_since(&counted, &mut self.truth);
            if deployer.by_daemons {
                progress.step("stopping the cluster");
                self.truth.problems.extend(cluster.stop()?);
                self.truth.problems.extend(deployment.after_daemons(&folder, progress)?);
                self.truth.problems.extend(deployment.remove(progress)?);
            } else {
                self.truth.problems.extend(deployment.remove(progress)?);
                progress.step("stopping the cluster");
                self.truth.problems.extend(cluster.stop()?);
            }
        } else {
            progress.step("stopping the cluster");
            self.truth.problems.extend(cluster.stop()?);
            self.truth.problems.extend(recording.finish(&self.plan, &folder, progress)?);
            Counters::read(&self.plan)?.tell_since(&counted, &mut self.truth);
        }
        self.truth.ended_ns = now_ns();
        self.add_jobs(done, &history::collect(&job_folder)?, options)?;
        write_truth(&self.truth, &folder)?;
        let capture = (capture.is_some() || self.lease.keeps_work()).then_some(folder);
        progress.step("removing the lab");
        self.lease.release()?;
        Ok(Outcome { truth: self.truth, capture, wall_s: progress.elapsed_s() })
    }

    /// Joins what the clients and what the histories say of the jobs.
    fn add_jobs(&mut self, done: Done, histories: &[JobHistory], options: &JobOptions) -> Result<()> {
        self.truth.problems.extend(done.problems);
        for mut job in done.jobs {
            if !job.id.is_empty() {
                let history = histories.iter().find(|history| history.id == job.id);
                let history = history
                    .ok_or_else(|| LabError::Parse(format!("the job history has no {} ({})", job.id, job.kind)))?;
                job.submitted_ns = history.submitted_ns;
                job.finished_ns = history.finished_ns;
                job.maps = history.maps;
                job.reduces = history.reduces;
                let reads = matches!(job.kind.as_str(), "terasort" | "wordcount");
                job.remote_maps = (reads && job.input_replication == 1).then_some(history.remote_maps);
                let missing = options.remote_maps.saturating_sub(history.remote_maps);
                if job.kind == "terasort" && missing > 0 {
                    self.truth.problems.push(format!(
                        "{} maps were to read over the network, and {} did",
                        options.remote_maps, history.remote_maps
                    ));
                }
            }
            self.truth.jobs.push(job);
        }
        Ok(())
    }

    fn how_to_enter(&self) -> String {
        format!(
            "  a shell on a host:   {login} HOST            (HOST: {hosts})\n  \
             files of HDFS:       {login} {master} hadoop fs -ls /\n  \
             a job:               {login} {master} hadoop jar {HOME}/lib/{examples} teragen 1000 /rows\n  \
             logs of the daemons: {work}/HOST/logs\n  \
             lists of hosts:      {work}/workers, {work}/masters",
            login = format_args!("ssh -F {}", self.hosts.logins.config.display()),
            work = self.lease.work().display(),
            hosts = self.plan.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", "),
            master = self.plan.master().name,
            examples = self.distribution.examples(),
        )
    }
}

/// Makes the folder of a capture: it has to be new or empty, so that no two runs are mixed.
///
/// # Errors
/// If it is not, cannot be made, or has a name that Java options cannot carry.
pub fn capture_folder(path: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path).at("cannot make", path)?;
    let path = path.canonicalize().at("cannot find", path)?;
    check_plain(&path)?;
    if fs::read_dir(&path).at("cannot read", &path)?.next().is_some() {
        return Err(LabError::Config(format!("the capture folder {} is not empty: name a new one", path.display())));
    }
    Ok(path)
}

/// Gets the histories of all jobs. The JobHistoryServer may move one just now: it is found in its new place then.
fn fetch_histories(cluster: &mut Cluster<'_>, pattern: &str, into: &Path, limit: Duration) -> Result<()> {
    let into = into.to_string_lossy();
    let arguments = ["-get", "-f", pattern, &into].map(str::to_owned);
    let master = cluster.plan.master();
    let mut tries = 0;
    loop {
        tries += 1;
        match cluster.client(Client::FsShell, master, &arguments, limit) {
            Ok(_) => return Ok(()),
            Err(error) if tries == HISTORY_TRIES || error.is_stop() => {
                return Err(error).context("cannot get the job histories");
            }
            Err(_) => {}
        }
    }
}

/// Copies the files of all jobs from wherever in a folder they are.
fn copy_histories(from: &Path, into: &Path) -> Result<()> {
    for entry in fs::read_dir(from).at("cannot read", from)? {
        let path = entry.at("cannot read", from)?.path();
        if path.is_dir() {
            copy_histories(&path, into)?;
        } else if let Some(name) = path.file_name().filter(|name| name.to_string_lossy().starts_with("job_")) {
            let to = into.join(name);
            fs::copy(&path, &to).with_context(|| format!("cannot copy {} to {}", path.display(), to.display()))?;
        }
    }
    Ok(())
}

fn write_truth(truth: &Truth, folder: &Path) -> Result<()> {
    let path = folder.join("truth.json");
    fs::write(&path, serde_json::to_vec_pretty(truth).at("cannot write", &path)?).at("cannot write", &path)
}

fn truth_hosts(plan: &Plan, distribution: Distribution) -> Result<Vec<TruthHost>> {
    plan.hosts
        .iter()
        .map(|host| {
            Ok(TruthHost {
                name: host.name.clone(),
                addresses: vec![host.address.to_string()],
                rack: host.rack_path(),
                namespace: host.namespace.clone(),
                netns: netns::inode(&host.namespace)?,
                roles: Cluster::roles(distribution, host),
                interfaces: Vec::new(),
            })
        })
        .collect()
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn machine() -> Machine {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let value = text
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':').map(|(_, value)| value.trim().to_owned()));
        value.unwrap_or_default()
    };
    let memory_kib = field("/proc/meminfo", "MemTotal");
    let memory_kib = memory_kib.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
    Machine {
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        cpu: field("/proc/cpuinfo", "model name"),
        memory_bytes: memory_kib.unwrap_or(0) * 1024,
    }
}
