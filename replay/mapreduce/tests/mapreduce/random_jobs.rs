//! Whatever the parameters: every job ends, bytes are conserved, causes come before effects, and the same file gives the same.

use std::collections::BTreeMap;

use causal::{JobGraph, Options};
use proptest::prelude::*;

use super::run_on;

fn job_file() -> impl Strategy<Value = String> {
    let cluster = (1u32..6, 1u32..4, 1u32..4, 1u32..3, prop::bool::ANY);
    let hadoop = (1u32..5, 0u64..4, 1u64..4, 2usize..5, 1usize..6, prop::bool::ANY, 0.0f64..1.0);
    let speculation = (prop::bool::ANY, prop::bool::ANY, 100u64..2_000, 1u64..5);
    let jobs = prop::collection::vec((1u64..40, 0u32..6, 0.0f64..2.0, 0.0f64..2.0, 0.0f64..1.5, prop::bool::ANY), 1..4);
    (cluster, hadoop, speculation, jobs, 0u64..1_000).prop_map(|(cluster, hadoop, speculation, jobs, seed)| {
        let (nodes, racks, cores, disks, limited) = cluster;
        let (replication, delay, sort_mb, factor, copies, multiple, slow_start) = hadoop;
        let (maps_twice, reduces_twice, report_ms, slow) = speculation;
        let disk = if limited { "10MB/s" } else { "unlimited" };
        let mut text = format!(
            "seed = {seed}\n[cluster]\nnodes = {nodes}\nracks = {}\ncores = {cores}\ndisks = {disks}\ndisk_read = \"{disk}\"\n\
             disk_write = \"{disk}\"\npiece = \"256KiB\"\nslow = {{ w1 = {slow}.0 }}\n[hadoop]\n\
             mapreduce.map.speculative = {maps_twice}\nmapreduce.reduce.speculative = {reduces_twice}\n\
             mapreduce.task.progress-report.interval = {report_ms}\nmapreduce.job.speculative.retry-after-no-speculate = 300\n\
             mapreduce.job.speculative.retry-after-speculate = 500\ndfs.blocksize = 1000000\ndfs.replication = {replication}\n\
             yarn.scheduler.capacity.node-locality-delay = {delay}\nyarn.nodemanager.resource.memory-mb = 3072\n\
             yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled = {multiple}\n\
             mapreduce.task.io.sort.mb = {sort_mb}\nmapreduce.task.io.sort.factor = {factor}\n\
             mapreduce.reduce.shuffle.parallelcopies = {copies}\nmapreduce.job.reduce.slowstart.completedmaps = {slow_start}\n",
            racks.min(nodes)
        );
        for (number, (megabytes, reduces, out, written, skew, chained)) in jobs.into_iter().enumerate() {
            let input = if chained && number > 0 {
                format!("input_of = \"job-{number}\"")
            } else {
                format!("input = \"{}B\"", megabytes * 123_456)
            };
            text += &format!(
                "[[job]]\nname = \"job-{}\"\n{input}\nreduces = {reduces}\nmap_output = {out}\nreduce_output = {written}\n\
                 skew = {skew}\nspeed_deviation = 0.3\n",
                number + 1
            );
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_job_ends_and_the_same_file_gives_the_same(text in job_file()) {
        let fabric = "kind = \"ideal\"\nrate = \"100Mbps\"\nlatency = \"50us\"";
        let trace = run_on(fabric, &text);
        prop_assert!(trace.jobs.iter().all(|job| job.succeeded));
        prop_assert!(trace.tasks.iter().all(|task| task.finish_ns >= task.start_ns));
        // Of a task's attempts one succeeds, and there are two at most.
        let mut of_task: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for task in &trace.tasks {
            let (name, _) = task.attempt.rsplit_once('_').unwrap();
            of_task.entry(name).or_default().push(task.succeeded);
        }
        let wanted: u32 = trace.jobs.iter().map(|job| job.maps + job.reduces).sum();
        prop_assert_eq!(of_task.len(), wanted as usize);
        prop_assert!(of_task.values().all(|tries| tries.len() <= 2 && tries.iter().filter(|done| **done).count() == 1));
        let read = trace.jobs.iter().map(|job| job.hdfs_bytes_read.unwrap());
        prop_assert!(read.zip(&trace.jobs).all(|(read, job)| read > 0 || job.maps == 0));
        for dependency in &trace.dependencies {
            prop_assert!(dependency.on_event < dependency.event, "{dependency:?}");
        }
        for job in &trace.jobs {
            let graph = JobGraph::new(&trace, Some(&job.id), Options::default());
            prop_assert!(graph.is_ok(), "{:?}", graph.err());
        }
        prop_assert!(run_on(fabric, &text) == trace);
    }
}
