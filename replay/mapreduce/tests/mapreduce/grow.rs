//! Jobs learned from a trace, and grown.

use job_profile::{Learn, profile};
use mapreduce::{Amount, Growth, JobFile, Speed};
use netsim::units::Bytes;
use trace::rows::{TaskKind, Trace};

use super::{run, tasks};

/// A job of uneven tasks on a few nodes, whose disks take no time, for a trace does not tell them.
const JOB: &str = "[cluster]\nnodes = 4\nracks = 2\ncores = 64\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
     [hadoop]\ndfs.blocksize = 16000000\nmapreduce.job.reduce.slowstart.completedmaps = 1.0\n\
     mapreduce.map.speculative = false\nmapreduce.reduce.speculative = false\n\
     [[job]]\nprofile = \"terasort\"\ninput = \"100MB\"\nreduces = 6\nspeed_deviation = 0.5\nskew = 0.6\nmap_rate = \"4MB/s\"\nreduce_rate = \"5MB/s\"\nsort_rate = \"20MB/s\"\nmerge_rate = \"20MB/s\"\n";

fn job_seconds(trace: &Trace) -> f64 {
    let job = &trace.jobs[0];
    (job.finish_ns - job.submit_ns) as f64 / 1e9
}

fn mean_seconds(trace: &Trace, kind: TaskKind) -> f64 {
    let times: Vec<f64> = tasks(trace, kind).map(|task| (task.finish_ns - task.start_ns) as f64 / 1e9).collect();
    times.iter().sum::<f64>() / times.len() as f64
}

fn learned(text: &str) -> (Trace, JobFile) {
    let trace = run(text);
    let (file, _) = JobFile::of_profile(&profile(&trace, Learn::default()).unwrap()).unwrap();
    (trace, file)
}

fn grow(file: &JobFile, growth: &Growth) -> JobFile {
    file.grow(growth).unwrap()
}

fn run_file(file: &JobFile) -> Trace {
    run(&file.to_toml().unwrap())
}

#[test]
fn a_job_that_is_learned_and_does_not_grow_takes_as_long() {
    for seed in 1..=8 {
        let (trace, file) = learned(&format!("seed = {seed}\n{JOB}"));
        let again = run_file(&grow(&file, &Growth::default()));
        let error = job_seconds(&again) / job_seconds(&trace) - 1.0;
        // Heartbeats have other phases, a second each.
        assert!(error.abs() < 0.03 + 1.0 / job_seconds(&trace), "{seed}: {error}");
        for kind in [TaskKind::Map, TaskKind::Reduce] {
            let error = mean_seconds(&again, kind) / mean_seconds(&trace, kind) - 1.0;
            assert!(error.abs() < 0.03, "{seed}: {kind:?} {error}");
        }
        let (new, old) = (&again.jobs[0], &trace.jobs[0]);
        assert_eq!((new.maps, new.reduces, new.hdfs_bytes_read), (old.maps, old.reduces, old.hdfs_bytes_read));
        let bytes = |bytes: Option<u64>| bytes.unwrap() as f64;
        for (new, old) in [(new.shuffle_bytes, old.shuffle_bytes), (new.hdfs_bytes_written, old.hdfs_bytes_written)] {
            assert!((bytes(new) / bytes(old) - 1.0).abs() < 1e-6, "{new:?} {old:?}");
        }
    }
}

#[test]
fn what_grows_is_as_many_times_as_much() {
    let (trace, file) = learned(JOB);
    let growth = Growth { nodes: Amount::Times(4.0), racks: Some(8), data: Amount::Times(8.0), ..Growth::default() };
    let grown = grow(&file, &growth);
    assert_eq!((grown.cluster.nodes, grown.cluster.racks, grown.jobs[0].reduces), (16, 8, 24));
    let again = run_file(&grown);
    let (new, old) = (&again.jobs[0], &trace.jobs[0]);
    assert_eq!(new.maps, 8 * old.maps);
    assert_eq!(new.hdfs_bytes_read, old.hdfs_bytes_read.map(|bytes| 8 * bytes));
    let shuffled = new.shuffle_bytes.unwrap() as f64 / old.shuffle_bytes.unwrap() as f64;
    assert!((shuffled - 8.0).abs() < 1e-5, "{shuffled}");
    // Each sample is as many times there: the mean of the maps stays.
    let same = run_file(&grow(&file, &Growth::default()));
    let error = mean_seconds(&again, TaskKind::Map) / mean_seconds(&same, TaskKind::Map) - 1.0;
    assert!(error.abs() < 0.002, "{error}");
    assert!(grown.jobs[0].map_samples.iter().all(|map| map.node.is_none()), "blocks are placed as HDFS does");
    assert!(file.jobs[0].map_samples.iter().all(|map| map.node.is_some()), "they lay somewhere");
    let by_number = Growth {
        nodes: Amount::Of(16),
        racks: Some(8),
        data: Amount::Of(Bytes(800_000_000)),
        reduces: Some(Amount::Of(24)),
        ..Growth::default()
    };
    assert_eq!(grow(&file, &by_number), grown);
}

#[test]
fn faster_cores_shorten_starts_and_computing() {
    let (trace, file) = learned(JOB);
    let again = run_file(&grow(&file, &Growth { cpu: Speed(8.0), ..Growth::default() }));
    for kind in [TaskKind::Map, TaskKind::Reduce] {
        let ratio = mean_seconds(&trace, kind) / mean_seconds(&again, kind);
        // What waits for heartbeats and calls does not get shorter.
        assert!((6.0..=8.05).contains(&ratio), "{kind:?} {ratio}");
    }
}

#[test]
fn a_trace_without_disks_has_none_that_could_be_faster() {
    let (_, mut file) = learned(JOB);
    let faster = Growth { disk: Speed(4.0), ..Growth::default() };
    let error = file.grow(&faster).unwrap_err().to_string();
    assert!(error.contains("--disk = 4x") && error.contains("--set cluster.disk_read"), "{error}");
    file.cluster.disk_read = "100MB/s".parse().unwrap();
    assert_eq!(grow(&file, &faster).cluster.disk_read, "400MB/s".parse().unwrap());
}

#[test]
fn amounts_are_numbers_or_multiples() {
    assert_eq!("64x".parse(), Ok(Amount::<u32>::Times(64.0)));
    assert_eq!("64".parse(), Ok(Amount::<u32>::Of(64)));
    assert_eq!("8GiB".parse(), Ok(Amount::Of(Bytes(8 << 30))));
    assert_eq!("0.5x".parse(), Ok(Amount::<Bytes>::Times(0.5)));
    for wrong in ["0", "-1", "x", "0x", "nanx", "infx", "-2x", ""] {
        assert!(wrong.parse::<Amount<u32>>().is_err(), "{wrong}");
    }
    for wrong in ["0B", "x", "0x", "nanx", "1e99x", "lots"] {
        assert!(wrong.parse::<Amount<Bytes>>().is_err(), "{wrong}");
    }
    for wrong in ["8", "0x", "x"] {
        assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
    }
}

#[test]
fn nothing_grows_beyond_what_can_be() {
    let (_, file) = learned(JOB);
    for growth in [
        Growth { nodes: Amount::Times(1e9), ..Growth::default() },
        Growth { nodes: Amount::Of(200_000), ..Growth::default() },
        Growth { data: Amount::Times(1e9), ..Growth::default() },
        Growth { reduces: Some(Amount::Of(u32::MAX)), ..Growth::default() },
    ] {
        assert!(file.grow(&growth).is_err(), "{growth:?}");
    }
    assert!(profile(&Trace::default(), Learn::default()).is_none());
}

/// Of two jobs the one with the larger shuffle is learned, unless the other is named.
#[test]
fn a_job_of_several_can_be_named() {
    let two = format!("{JOB}[[job]]\nprofile = \"wordcount\"\ninput = \"48MB\"\nreduces = 2\nsubmit = \"90s\"\n");
    let trace = run(&two);
    let maps = |learn| profile(&trace, learn).map(|learned| learned.parameters.maps);
    let id = |number: usize| Some(trace.jobs[number].id.as_str());
    assert_eq!(maps(Learn::default()), Some(7));
    assert_eq!(maps(Learn { job: id(0), ..Learn::default() }), Some(7));
    assert_eq!(maps(Learn { job: id(1), ..Learn::default() }), Some(3));
    assert_eq!(maps(Learn { job: Some("job_0_0"), ..Learn::default() }), None);
}
