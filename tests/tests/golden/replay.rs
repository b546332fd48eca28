//! The golden terasort, replayed: on a model of its own network it takes the recorded time, on others it follows causes.

use std::path::Path;
use std::sync::OnceLock;

use hadoptic_tests::{copy_without_jvms, experiment_file, golden, run, run_json};
use serde_json::Value;
use tempfile::TempDir;

fn trace() -> &'static Path {
    static TRACE: OnceLock<TempDir> = OnceLock::new();
    TRACE
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("trace");
            let built = run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", out.to_str().unwrap()])
                .unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            folder
        })
        .path()
}

fn replay(experiment: &str, settings: &[&str]) -> Value {
    replay_of(&trace().join("trace"), experiment, settings)
}

fn replay_of(trace: &Path, experiment: &str, settings: &[&str]) -> Value {
    let results = tempfile::tempdir().unwrap();
    let experiment = experiment_file(experiment);
    let mut arguments = vec!["run", experiment.to_str().unwrap(), "--trace", trace.to_str().unwrap()];
    arguments.extend(["--out", results.path().to_str().unwrap()]);
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    run_json("replay", &arguments).unwrap()
}

fn number(summary: &Value, key: &str) -> f64 {
    summary[key].as_f64().unwrap_or_else(|| panic!("{key} is missing: {summary:#}"))
}

fn phase(summary: &Value, name: &str) -> (f64, f64) {
    let phases = summary["phases"].as_array().unwrap();
    let phase =
        phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}: {summary:#}"));
    (phase["seconds"].as_f64().unwrap(), phase["recorded_seconds"].as_f64().unwrap())
}

const OWN_NETWORK: &str = "lab-100mbit.toml";
const TEN_TIMES_SLOWER: &str = "lab-10mbit.toml";
const INFINITELY_FAST: &str = "ideal.toml";

#[test]
fn on_a_model_of_its_own_network_the_job_takes_its_recorded_time() {
    let summary = replay(OWN_NETWORK, &[]);
    let (found, recorded) = (number(&summary, "job_time_s"), number(&summary, "recorded_job_time_s"));
    assert!((found / recorded - 1.0).abs() <= 0.05, "job: {found} s, recorded {recorded} s");
    for name in ["map", "shuffle", "reduce"] {
        let (found, recorded) = phase(&summary, name);
        assert!((found / recorded - 1.0).abs() <= 0.10, "{name}: {found} s, recorded {recorded} s");
    }
}

#[test]
fn ten_times_slower_links_lengthen_the_shuffle_and_the_job() {
    let (own, slow) = (replay(OWN_NETWORK, &[]), replay(TEN_TIMES_SLOWER, &[]));
    assert!(phase(&slow, "shuffle").0 > 3.0 * phase(&own, "shuffle").0, "{slow:#}");
    assert!(number(&slow, "job_time_s") > 1.2 * number(&own, "job_time_s"), "{slow:#}");
}

#[test]
fn an_infinitely_fast_network_shortens_the_job() {
    let (own, fast) = (replay(OWN_NETWORK, &[]), replay(INFINITELY_FAST, &[]));
    assert!(number(&fast, "job_time_s") < number(&own, "job_time_s"), "{fast:#}");
    assert!(phase(&fast, "shuffle").0 < phase(&own, "shuffle").0, "{fast:#}");
}

#[test]
fn with_recorded_send_times_no_network_changes_the_job() {
    let recorded = ["workload.causality=recorded"];
    let (own, slow, fast) =
        (replay(OWN_NETWORK, &recorded), replay(TEN_TIMES_SLOWER, &recorded), replay(INFINITELY_FAST, &recorded));
    let spread = number(&slow, "job_time_s") - number(&fast, "job_time_s");
    assert!(spread.abs() < 0.01 * number(&own, "job_time_s"), "slow {slow:#} fast {fast:#}");
}

#[test]
fn the_same_seed_gives_the_same_results() {
    let clean = |mut summary: Value| {
        summary.as_object_mut().unwrap().remove("wall_s");
        summary.as_object_mut().unwrap().remove("cpu_s");
        summary
    };
    assert_eq!(clean(replay(OWN_NETWORK, &[])), clean(replay(OWN_NETWORK, &[])));
}

/// The golden terasort as it would be without the Java agent.
fn without_agent() -> &'static Path {
    static TRACE: OnceLock<TempDir> = OnceLock::new();
    TRACE
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let (capture, out) = (folder.path().join("capture"), folder.path().join("trace"));
            copy_without_jvms(&golden("terasort"), &capture).unwrap();
            let built = run("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            folder
        })
        .path()
}

#[test]
fn a_capture_without_the_agent_gets_faster_with_its_network_as_well() {
    let with = replay(INFINITELY_FAST, &[]);
    let without = replay_of(&without_agent().join("trace"), INFINITELY_FAST, &[]);
    let (with_s, without_s) = (number(&with, "job_time_s"), number(&without, "job_time_s"));
    assert!(
        (without_s / with_s - 1.0).abs() <= 0.10,
        "{without_s} s without the agent, {with_s} s with it: {without:#}"
    );
    assert_eq!(without["doubts"].as_array().map(Vec::len), Some(0), "{without:#}");
}

#[test]
fn faster_links_of_hosts_shorten_the_job_until_the_network_is_no_part_of_it() {
    let sweep = replay("sweeps/host-links.toml", &[]);
    let points = sweep["points"].as_array().unwrap();
    let rates: Vec<&str> =
        points.iter().map(|point| point["values"]["fabric.topology.host_link.rate"].as_str().unwrap()).collect();
    assert_eq!(rates, ["10Mbps", "30Mbps", "100Mbps", "300Mbps", "1Gbps", "10Gbps"]);
    let times: Vec<f64> = points.iter().map(|point| number(point, "job_time_s")).collect();
    // Where the network is no part of it, chance is: other packets meet.
    assert!(times[..4].is_sorted_by(|slower, faster| slower > faster), "{times:?}");
    assert!(times[3..].is_sorted_by(|slower, faster| 1.005 * slower > *faster), "{times:?}");
    assert!(times[4] / times[5] < 1.02, "{times:?}");
    assert!(number(&points[4], "network_share") < 0.05, "{:#}", points[4]);
}

fn predict(arguments: &[&str]) -> Value {
    run_json("replay", &[&["predict"], arguments].concat()).unwrap()
}

#[test]
fn a_prediction_takes_the_capture_as_it_takes_its_trace_and_holds_what_was_recorded() {
    let capture = golden("terasort");
    let own = experiment_file(OWN_NETWORK);
    let fabric = ["--fabric", own.to_str().unwrap(), "--seeds", "3"];
    let of_capture = predict(&[&[capture.to_str().unwrap()], &fabric[..]].concat());
    let of_trace = predict(&[&[trace().join("trace").to_str().unwrap()], &fabric[..]].concat());
    let job = &of_capture["fabrics"][0]["job"];
    assert_eq!(job, &of_trace["fabrics"][0]["job"]);
    let (low, recorded, high) = (number(job, "low_s"), number(job, "recorded_s"), number(job, "high_s"));
    assert!(low < recorded && recorded < high, "{job:#}");
    let error = of_capture["self_replay"]["errors"][0].as_f64().unwrap();
    assert!(error.abs() <= 0.03, "{error}");
}

#[test]
fn runs_of_different_jobs_are_no_prediction() {
    let (terasort, wordcount) = (golden("terasort"), golden("wordcount"));
    let arguments = ["predict", terasort.to_str().unwrap(), wordcount.to_str().unwrap(), "--fabric", "ideal"];
    let refused = run("replay", &arguments).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("\"TeraSort\"") && message.contains("\"word count\""), "{message}");
}

#[test]
fn competing_for_cores_leaves_the_job_on_its_own_network_as_it_was() {
    // Which packets are lost is chance, and one run says 2% more or less.
    let mean = |cpu: &[&str]| {
        let times = (1..=5).map(|seed| {
            let seed = format!("run.seed={seed}");
            number(&replay(OWN_NETWORK, &[cpu, &["workload.jitter=0.001", &seed]].concat()), "job_time_s")
        });
        times.sum::<f64>() / 5.0
    };
    let (plain, shared) = (mean(&[]), mean(&["cpu.cores=2", "cpu.shared=true"]));
    assert!((shared / plain - 1.0).abs() <= 0.02, "{shared} {plain}");
    let faster = number(&replay(INFINITELY_FAST, &[]), "job_time_s");
    let competing = number(&replay(INFINITELY_FAST, &["cpu.cores=2", "cpu.shared=true"]), "job_time_s");
    assert!(competing > faster && competing < 1.5 * faster, "{competing} {faster}");
}

/// Rates of links as the lab set them: of hosts and between the racks.
const SET_BPS: [f64; 2] = [100e6, 50e6];

#[test]
fn rates_of_full_links_are_those_that_were_set_and_others_have_a_lower_bound() {
    for (name, least_full) in [("terasort", 9), ("wordcount", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let (out, file) = (folder.path().join("trace"), folder.path().join("network.toml"));
        let arguments = ["build", golden(name).to_str().unwrap(), "--out", out.to_str().unwrap()].map(str::to_owned);
        let built = run("merger", &arguments.each_ref().map(String::as_str)).unwrap();
        assert!(built.status.success());
        let network = run_json("merger", &["network", out.to_str().unwrap(), "--out", file.to_str().unwrap()]).unwrap();
        let links = network["links"].as_array().unwrap();
        let mut full = 0;
        for link in links {
            let between =
                link["from"].as_str().unwrap().starts_with('/') && link["to"].as_str().unwrap().starts_with('/');
            let ratio = number(link, "rate_bps") / SET_BPS[usize::from(between)];
            if link["at_least"] == false {
                full += 1;
                assert!((ratio - 1.0).abs() <= 0.05, "{name}: {link:#}");
            } else {
                assert!(ratio <= 1.05, "{name}: no lower bound: {link:#}");
            }
        }
        assert!(full >= least_full, "{name}: {full} links were full: {network:#}");
        // 170 packets of 1,514 bytes, as the lab set it.
        let mut of_racks = links.iter().filter(|link| link["from"] == "/r1" && link["to"] == "/r2");
        let queue = number(of_racks.next_back().unwrap(), "queue_bytes");
        assert!((queue / (170.0 * 1_514.0) - 1.0).abs() <= 0.05, "{name}: {queue}");
        let summary = replay_file(&out, &file);
        let (found, recorded) = (number(&summary, "job_time_s"), number(&summary, "recorded_job_time_s"));
        assert!(
            (found / recorded - 1.0).abs() <= 0.03,
            "{name} on its estimated network: {found} s, recorded {recorded} s"
        );
        assert_eq!(summary["recorded_network"], true);
    }
}

#[test]
fn a_network_that_was_never_full_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trace");
    let built =
        run("merger", &["build", golden("encrypted").to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(built.status.success());
    let message = run("merger", &["network", out.to_str().unwrap()]).unwrap();
    assert_eq!(message.status.code(), Some(1), "no link was ever full");
    let network = run_json("merger", &["network", out.to_str().unwrap()]).unwrap();
    let links = network["links"].as_array().unwrap();
    assert!(links.len() == 8 && links.iter().all(|link| link["at_least"] == true), "{network:#}");
}

fn replay_file(trace: &Path, experiment: &Path) -> Value {
    let results = tempfile::tempdir().unwrap();
    let places = [experiment, trace, results.path()].map(|path| path.to_str().unwrap());
    run_json("replay", &["run", places[0], "--trace", places[1], "--out", places[2]]).unwrap()
}
