//! Hosts of a job at other places of the network.

use super::common::{MS, TraceBuilder, map_reduce};
use replay::experiment::{Experiment, Override};
use replay::placing::JobPlacement;
use replay::run::run_experiment;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use trace::ids::EventId;
use trace::rows::{On, Trace};

const HOSTS: [&str; 5] = ["m1", "w1", "w2", "w3", "w4"];
/// Two switches with eight hosts each, and one above them.
const LEAVES: &str = "[fabric]\nkind = \"credit\"\nrouting = \"d-mod-k\"\n[fabric.topology]\nshape = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts = 8\n";

fn experiment(workload: &str, fabric: &str) -> Experiment {
    Experiment::parse(&format!("name = \"x\"\n[workload]\n{workload}\n{fabric}"), "x.toml", &[]).unwrap()
}

/// The job's time, and bytes of the links whose names `counts`.
fn replayed(trace: &Trace, workload: &str, counts: impl Fn(&str) -> bool) -> (f64, u64) {
    let results = run_experiment(&experiment(workload, LEAVES), trace, |_| ()).unwrap();
    let bytes = results.detail.links.iter().filter(|link| counts(&link.name)).map(|link| link.bytes).sum();
    (results.detail.summary.job_time_s, bytes)
}

#[test]
fn a_job_that_is_spread_crosses_what_one_at_one_switch_does_not() {
    let trace = map_reduce(&HOSTS, 4, 4);
    let uplinks = |name: &str| name.contains("spine");
    let usual = replayed(&trace, "", uplinks);
    assert_eq!(usual.1, 0, "five hosts at one switch");
    assert_eq!(replayed(&trace, "placement = \"consecutive\"", uplinks), usual);
    for placement in ["shuffle:8", "column:8x2", "shift:6"] {
        let (time, bytes) = replayed(&trace, &format!("placement = \"{placement}\""), uplinks);
        assert!(bytes > 0 && time >= usual.0, "{placement}: {bytes} bytes, {time} s beside {usual:?}");
    }
    // Where a host is, its bytes are.
    let of_w1 = |name: &str| name.starts_with("w1->");
    let (_, sent) = replayed(&trace, "", of_w1);
    assert_eq!(replayed(&trace, "placement = \"random:7\"", of_w1).1, sent);
}

#[test]
fn a_file_says_where_each_host_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("places.txt");
    let placement = format!("placement = \"file:{}\"", path.display());
    let trace = map_reduce(&HOSTS, 4, 4);
    // The other switch, in another order.
    std::fs::write(&path, "# name, place\nw4 8\nw3\t9\nw2 10\n\nw1 11 # the last worker\nm1 12\n").unwrap();
    assert_eq!(replayed(&trace, &placement, |name| name.contains("spine")).1, 0);
    for (text, expected) in [
        ("w4 8\n", "there is no line for host \"m1\""),
        ("w9 8\n", "1: the job has no host \"w9\""),
        ("w4 8\nw3 8\n", "2: host \"w3\" or place 8 stands in an earlier line, too"),
        ("w4 16\n", "places are 0 to 15"),
        ("w4\n", "each line is \"HOST PLACE\""),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = run_experiment(&experiment(&placement, LEAVES), &trace, |_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    let trace = map_reduce(&HOSTS, 4, 4);
    let error = |workload: &str| run_experiment(&experiment(workload, LEAVES), &trace, |_| ()).unwrap_err().to_string();
    assert!(error("placement = \"shuffle:5\"").contains("workload.placement: 16 hosts are no multiple of 5"));
    assert!(error("placement = \"quadrant:2x2\"").contains("a grid of 2 x 2 is not 16 hosts"));
    for (workload, expected) in [
        ("placement = \"diagonal\"", "quadrant:XxY[xZ] and random[:SEED], or file:PATH"),
        ("placement = \"shift:1\"\nracks = { w1 = \"/r2\" }", "exclude each other"),
    ] {
        let text = format!("[workload]\n{workload}\n{LEAVES}");
        let error = Experiment::parse(&text, "x.toml", &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{workload}: {error}");
    }
}

#[test]
fn a_placement_is_written_as_it_is_read() {
    for text in ["consecutive", "shift:3", "shuffle:4", "column:8x2", "quadrant:4x4x2", "random:9", "file:a/b.txt"] {
        assert_eq!(text.parse::<JobPlacement>().unwrap().to_string(), text);
        let written = experiment(&format!("placement = \"{text}\""), LEAVES).to_toml().unwrap();
        assert!(written.contains(&format!("placement = \"{text}\"")), "{written}");
    }
}

/// Hosts w1 and w3 stand in one rack, w2 and w4 in the other; w1 sends to w2.
fn message_between_racks() -> Trace {
    let mut builder = TraceBuilder::new(&["w1", "w2", "w3", "w4"]);
    let connection = builder.connection(0, 1);
    let sent = builder.send(connection, true, 50_000, 10 * MS, 20 * MS);
    builder.after(sent, EventId(0), On::Delivered);
    let finish = builder.mark("job.finish", 0, 100 * MS);
    builder.after(finish, sent, On::Delivered);
    builder.build()
}

/// The job's time, packets within racks, and those by `way` between them.
fn by_ways(name: &str, placement: &str, way: &str) -> (f64, u64, u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name);
    let changes: Vec<Override> = match placement {
        "" => Vec::new(),
        policy => vec![format!("workload.placement={policy}").parse().unwrap()],
    };
    let experiment = Experiment::read(&path, &changes).unwrap();
    let summary = run_experiment(&experiment, &message_between_racks(), |_| ()).unwrap().detail.summary;
    (summary.job_time_s, summary.counters["packets within racks"], summary.counters[way])
}

#[test]
fn over_circuits_hosts_change_their_racks_with_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("places.txt");
    let file = format!("file:{}", path.display());
    for (name, way) in [
        ("lightness-ops.toml", "packets by OPS"),
        ("lightness-ocs.toml", "packets by circuit"),
        ("lightness-mixed.toml", "packets by OPS"),
        ("rotor.toml", "packets over circuits"),
        ("circuits-solstice.toml", "packets over circuits"),
    ] {
        let usual = by_ways(name, "", way);
        assert!(usual.1 == 0 && usual.2 > 0, "{name}: {usual:?}");
        // Rack by rack: w1 and w2 are the first two.
        let together = by_ways(name, "consecutive", way);
        assert!(together.1 > 0 && together.2 == 0 && together.0 < usual.0, "{name}: {together:?} beside {usual:?}");
        // Both in the other rack; one in each.
        assert_eq!(by_ways(name, "shift:2", way), together, "{name}");
        assert_eq!(by_ways(name, "shift:1", way).1, 0, "{name}");
        assert_eq!(by_ways(name, "shuffle:2", way).1, 0, "{name}");
        std::fs::write(&path, "w1 0\nw3 1\nw2 2\nw4 3\n").unwrap();
        assert_eq!(by_ways(name, &file, way), usual, "{name}: as they stand");
    }
}

/// Whoever made a pipe of the name would have the simulator wait.
#[test]
fn only_a_regular_file_says_where_hosts_are() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, large, link) = ["pipe", "large", "link"].map(|name| folder.path().join(name)).into();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::File::create(&large).unwrap().set_len((16 << 20) + 1).unwrap();
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    let (sender, errors) = mpsc::channel();
    for (path, expected) in [
        (pipe, "only regular files are read"),
        (link, "only regular files are read"),
        (folder.path().to_owned(), "only regular files are read"),
        ("/dev/zero".into(), "only regular files are read"),
        (large, "16777216 at most are read"),
    ] {
        let sender = sender.clone();
        let placement = format!("placement = \"file:{}\"", path.display());
        thread::spawn(move || {
            let error = run_experiment(&experiment(&placement, LEAVES), &map_reduce(&HOSTS, 1, 1), |_| ()).unwrap_err();
            sender.send((error.to_string(), expected)).unwrap();
        });
    }
    for _ in 0..5 {
        let (error, expected) = errors.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(error.contains("workload.placement") && error.contains(expected), "{error}");
    }
}
