//! Jobs and task attempts as rows: what the job history says, on the reference clock and joined with processes.

use trace::ids::{HostId, JobId, MessageId, ProcessId, TaskId};
use trace::rows::{HostRow, JobRow, MessageKind, ProcessRow, TaskKind, TaskRow};

use super::index::Index;
use crate::capture::sense::LATEST_NS;
use crate::history::{Attempt, AttemptState, BYTES_READ, BYTES_WRITTEN, Histories, History, SHUFFLE_BYTES};
use crate::joined::Joined;
use crate::maps::HashMap;

/// A job with its attempts.
#[derive(Clone, Debug)]
pub struct JobOf<'a> {
    /// Its row.
    pub job: JobId,
    /// What the history tells.
    pub history: &'a History,
    /// Its application master, in Hadoop 1.x the JobTracker.
    pub master: Option<ProcessId>,
    /// Rows of its attempts, and what the history tells of them.
    pub attempts: Vec<(TaskId, &'a Attempt)>,
}

/// Rows of jobs and tasks, and the jobs with what belongs to them.
#[derive(Clone, Debug, Default)]
pub struct Work<'a> {
    /// Jobs.
    pub jobs: Vec<JobRow>,
    /// Task attempts.
    pub tasks: Vec<TaskRow>,
    /// The same, with their history.
    pub of: Vec<JobOf<'a>>,
    by_attempt: HashMap<&'a str, TaskId>,
}

impl<'a> Work<'a> {
    /// Joins the histories with hosts and processes. Attempts that never started or ended are left out.
    pub fn new(joined: &Joined, histories: &'a Histories) -> Self {
        let mut work = Self::default();
        let runners = runners(joined);
        let masters = Masters::of(joined);
        for history in &histories.jobs {
            let job = JobId(u32::try_from(work.jobs.len()).unwrap_or(u32::MAX));
            let master_host = host(joined, &history.master_host).or_else(|| masters.job_tracker.map(|it| it.host));
            let at_master = |ms: u64| on_reference(joined, master_host, ms);
            let finish_ns = match history.finish_ms {
                0 => history.attempts.iter().map(|attempt| at_master(attempt.finish_ms)).max().unwrap_or(0),
                ms => at_master(ms),
            };
            work.jobs.push(JobRow {
                job,
                id: history.id.clone(),
                name: history.name.clone(),
                submit_ns: at_master(history.submit_ms),
                launch_ns: at_master(history.launch_ms),
                finish_ns,
                maps: history.maps,
                reduces: history.reduces,
                shuffle_bytes: history.counters.get(SHUFFLE_BYTES).copied(),
                hdfs_bytes_read: history.counters.get(BYTES_READ).copied(),
                hdfs_bytes_written: history.counters.get(BYTES_WRITTEN).copied(),
                split_hosts: median(history.split_hosts.values().copied()),
                input_hosts: u32::try_from(history.input_hosts.len()).ok().filter(|hosts| *hosts > 0),
                succeeded: history.succeeded,
            });
            let master = masters.of_job(joined, history, work.jobs.last());
            let mut attempts = Vec::new();
            for attempt in &history.attempts {
                if attempt.start_ms == 0 || attempt.finish_ms == 0 {
                    continue;
                }
                let task = TaskId(u32::try_from(work.tasks.len()).unwrap_or(u32::MAX));
                work.tasks.push(row(joined, job, task, attempt, master_host, &runners));
                work.by_attempt.insert(attempt.id.as_str(), task);
                attempts.push((task, attempt));
            }
            work.of.push(JobOf { job, history, master, attempts });
        }
        work
    }

    /// The requests to which map outputs of each job came, in order.
    pub fn shuffle_requests(&self, joined: &Joined, index: &Index<'_>) -> HashMap<JobId, Vec<MessageId>> {
        let mut requests: HashMap<JobId, Vec<MessageId>> = HashMap::default();
        for message in joined.messages.iter().filter(|message| message.kind == MessageKind::ShuffleRequest) {
            let data = index.exchange(&message).map_or(&[][..], |exchange| exchange.data());
            let maps = data.iter().filter_map(|data| joined.message(*data).map);
            for row in maps.filter_map(|map| self.task_of(map)) {
                let of_job = requests.entry(row.job).or_default();
                if of_job.last() != Some(&message.message) {
                    of_job.push(message.message);
                }
            }
        }
        requests
    }

    /// An attempt's row by its id.
    pub fn task_of(&self, attempt: &str) -> Option<&TaskRow> {
        self.by_attempt.get(attempt).map(|task| &self.tasks[task.index()])
    }
}

/// Processes by the attempt that they ran: as they said themselves, or as their messages name it most often.
fn runners(joined: &Joined) -> HashMap<&str, ProcessId> {
    let mut named: HashMap<(&str, ProcessId), u32> = HashMap::default();
    for message in joined.messages.iter().filter(|message| message.from_client) {
        let client = joined.connections[message.connection].client_process;
        if let (Some(attempt), Some(process)) = (message.attempt, client)
            && !trace::role::is_daemon(&joined.processes[process.index()].role)
        {
            *named.entry((attempt, process)).or_default() += 1;
        }
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_unstable_by_key(|((attempt, process), count)| (*attempt, *count, *process));
    let mut runners: HashMap<&str, ProcessId> =
        named.into_iter().map(|((attempt, process), _)| (attempt, process)).collect();
    for process in &joined.processes {
        if let Some(attempt) = &process.attempt {
            runners.insert(attempt.as_str(), process.process);
        }
    }
    runners
}

fn row(
    joined: &Joined,
    job: JobId,
    task: TaskId,
    attempt: &Attempt,
    master_host: Option<HostId>,
    runners: &HashMap<&str, ProcessId>,
) -> TaskRow {
    let process = runners.get(attempt.id.as_str()).map(|process| &joined.processes[process.index()]);
    let own_host = host(joined, &attempt.host).or(process.map(|process| process.host));
    let own = |ms: u64| (ms > 0 && attempt.kind == TaskKind::Reduce).then(|| on_reference(joined, own_host, ms));
    TaskRow {
        task,
        job,
        attempt: attempt.id.clone(),
        kind: attempt.kind,
        host: own_host,
        process: process.map(|process| process.process),
        start_ns: on_reference(joined, master_host, attempt.start_ms),
        shuffle_end_ns: own(attempt.shuffle_end_ms),
        sort_end_ns: own(attempt.sort_end_ms),
        finish_ns: on_reference(joined, master_host, attempt.finish_ms),
        succeeded: attempt.state == AttemptState::Succeeded,
    }
}

/// The lower one of two.
fn median(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut sorted: Vec<u32> = values.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// A time of the history in nanoseconds on the reference clock; 0 = not told, or one that cannot be.
fn on_reference(joined: &Joined, host: Option<HostId>, ms: u64) -> u64 {
    let ns = ms.saturating_mul(1_000_000);
    if ns > LATEST_NS {
        return 0;
    }
    let Some(HostRow { clock_offset_ns, clock_drift_ppb, .. }) = host.map(|host| &joined.hosts[host.index()]) else {
        return ns;
    };
    let since_start = i128::from(ns) - i128::from(joined.window_ns.0);
    let gained = since_start * i128::from(*clock_drift_ppb) / 1_000_000_000;
    let moved = i128::from(ns) + i128::from(*clock_offset_ns) - gained;
    u64::try_from(moved).ok().filter(|moved| *moved <= LATEST_NS).unwrap_or(0)
}

/// A host by its name; full names ("w1.cluster.local") match short ones.
fn host(joined: &Joined, name: &str) -> Option<HostId> {
    let short = |name: &str| name.trim_start_matches("tracker_").split(['.', ':', '/']).next().unwrap_or("").to_owned();
    (!name.is_empty())
        .then(|| joined.hosts.iter().find(|host| host.name == name || short(&host.name) == short(name)))
        .flatten()
        .map(|host| host.host)
}

/// Processes that look after jobs.
struct Masters<'a> {
    /// Application masters.
    masters: Vec<&'a ProcessRow>,
    /// The JobTracker, if the cluster has one and no application masters.
    job_tracker: Option<&'a ProcessRow>,
}

impl<'a> Masters<'a> {
    fn of(joined: &'a Joined) -> Self {
        let masters: Vec<_> = joined.processes.iter().filter(|process| process.role == "MRAppMaster").collect();
        let job_tracker = joined.processes.iter().find(|process| masters.is_empty() && process.role == "JobTracker");
        Self { masters, job_tracker }
    }

    /// The application master: by its container, or else by its role, host and time.
    fn of_job(&self, joined: &Joined, history: &History, row: Option<&JobRow>) -> Option<ProcessId> {
        let application = format!("_{}_", history.id.trim_start_matches("job_"));
        let of_application = |container: &str| container.contains(&application);
        let by_container =
            self.masters.iter().find(|process| process.container.as_deref().is_some_and(of_application)).copied();
        let at = host(joined, &history.master_host);
        // Without a container's name: the one that began while the job ran.
        by_container
            .or_else(|| {
                let row = row?;
                let nameless = self.masters.iter().filter(|process| process.container.is_none());
                nameless
                    .filter(|process| at.is_none_or(|at| at == process.host))
                    .filter(|process| (row.submit_ns..=row.finish_ns).contains(&process.first_seen_ns))
                    .min_by_key(|process| process.first_seen_ns)
                    .copied()
            })
            .or(self.job_tracker)
            .map(|process| process.process)
    }
}
