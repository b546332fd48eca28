//! The job file of a recorded job's own tasks.

use job_profile::{JobProfile, MapProfile, ReduceProfile};
use netsim::units::{Bytes, DurationPs, Rate};

use crate::config::JobFile;
use crate::error::JobError;
use crate::job::Job;
use crate::samples::{CallSample, MapSample, ReduceSample};
use crate::sizes::CALLS;

impl JobFile {
    /// The job file whose tasks are those of a recorded job: each with its own bytes, speed and starts, blocks on the nodes that had
    /// them, the calls' sizes and times, the daemons' intervals. Says in notes what the trace could not tell.
    ///
    /// # Errors
    /// If the profile's values make no job.
    pub fn of_profile(profile: &JobProfile) -> Result<(Self, Vec<String>), JobError> {
        let mut file = Self::parse(&profile.parameters.to_toml())?;
        let mut notes = profile.parameters.notes.clone();
        set_intervals(&mut file, profile);
        for (name, call) in profile.calls.iter().filter(|(name, _)| CALLS.iter().any(|call| call.name == *name)) {
            let sample = CallSample {
                request: Bytes(call.request_bytes.max(1)),
                response: Bytes(call.response_bytes.max(1)),
                service: duration(call.service_ns),
            };
            file.calls.insert(name.clone(), sample);
        }
        let is_supposed_single = profile.reads_elsewhere && profile.parameters.input_replication.is_none();
        for job in &mut file.jobs {
            set_tasks(job, profile);
            if is_supposed_single {
                job.input_replication = Some(1);
            }
        }
        let unread = (profile.parameters.maps as usize).saturating_sub(profile.maps.len());
        if unread > 0 {
            let maps = profile.parameters.maps;
            notes.push(format!("{unread} of {maps} maps read nothing that the trace has; they are like the others"));
        }
        if is_supposed_single {
            let note = "a map read from another host than its own: on as many nodes as recorded, blocks are taken to have one copy";
            notes.push(note.to_owned());
        }
        // Whatever is wrong is found here, and not by whoever reads the file.
        Ok((Self::parse(&file.to_toml()?)?, notes))
    }
}

fn set_tasks(job: &mut Job, profile: &JobProfile) {
    let of = &profile.parameters;
    let map_starts = (of.container_start_ns.unwrap_or(0), of.task_start_ns.unwrap_or(0));
    let reduce_starts =
        (of.reduce_container_start_ns.unwrap_or(map_starts.0), of.reduce_task_start_ns.unwrap_or(map_starts.1));
    let all: u64 = profile.reduces.iter().map(|reduce| reduce.input_bytes).fold(0, u64::saturating_add);
    let mean = all as f64 / profile.reduces.len().max(1) as f64;
    job.map_samples = profile.maps.iter().map(|map| map_sample(map, map_starts, job)).collect();
    job.reduce_samples = profile.reduces.iter().map(|reduce| reduce_sample(reduce, reduce_starts, mean, job)).collect();
    job.fetch_samples =
        profile.fetches_ns.iter().map(|services| services.iter().map(|ns| duration(*ns)).collect()).collect();
    job.recorded_nodes = u32::try_from(profile.nodes).ok();
    if !job.map_samples.is_empty() && job.map_samples.len() == of.maps as usize {
        job.input = Some(Bytes(job.round_bytes()));
    }
}

fn duration(ns: u64) -> DurationPs {
    DurationPs(ns.saturating_mul(1_000))
}

/// `bytes` in `ns`; where either is 0, nobody knows.
fn rate(bytes: u64, ns: Option<u64>) -> Option<Rate> {
    let ns = ns.filter(|ns| *ns > 0 && bytes > 0)?;
    let bits = u128::from(bytes) * 8_000_000_000 / u128::from(ns);
    Some(Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX).max(8)))
}

fn map_sample(map: &MapProfile, (container_ns, task_ns): (u64, u64), job: &Job) -> MapSample {
    MapSample {
        input: Bytes(map.input_bytes),
        node: map.node.and_then(|node| u32::try_from(node).ok()),
        localization: duration(map.localization_ns.unwrap_or(0)),
        container_start: duration(map.container_start_ns.unwrap_or(container_ns)),
        task_start: duration(map.task_start_ns.unwrap_or(task_ns)),
        rate: rate(map.input_bytes, map.computing_ns).unwrap_or(job.map_rate),
        sort_rate: rate(map.output_bytes, map.sorting_ns).unwrap_or(job.sort_rate),
        output: map.output_bytes as f64 / map.input_bytes as f64,
    }
}

fn reduce_sample(reduce: &ReduceProfile, (container_ns, task_ns): (u64, u64), mean: f64, job: &Job) -> ReduceSample {
    let input = reduce.input_bytes;
    ReduceSample {
        share: if mean > 0.0 { input as f64 / mean } else { 1.0 },
        container_start: duration(reduce.container_start_ns.unwrap_or(container_ns)),
        task_start: duration(reduce.task_start_ns.unwrap_or(task_ns)),
        merge_rate: rate(reduce.in_memory_bytes, reduce.merging_ns).unwrap_or(job.merge_rate),
        rate: rate(input, reduce.computing_ns).unwrap_or(job.reduce_rate),
        output: if input > 0 { reduce.output_bytes as f64 / input as f64 } else { 0.0 },
    }
}

fn set_intervals(file: &mut JobFile, profile: &JobProfile) {
    let ms = |name: &str| profile.pauses_ns.get(name).map(|ns| ns.div_ceil(1_000_000).max(1));
    let hadoop = &mut file.hadoop;
    for (name, key) in [
        ("nodeHeartbeat", &mut hadoop.nodemanager_heartbeat_ms),
        ("allocate", &mut hadoop.am_heartbeat_ms),
        ("getJobReport", &mut hadoop.client_poll_ms),
    ] {
        *key = ms(name).unwrap_or(*key);
    }
    if let Some(ms) = ms("sendHeartbeat") {
        hadoop.datanode_heartbeat_s = ms.div_ceil(1_000);
    }
}
