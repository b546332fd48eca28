//! Optical circuits of synthetic traffic: in the table, in `summary.json` and in the report.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use netsim::traffic::RunOptions;
use replay::experiment::Experiment;
use replay::results::CircuitSummary;
use replay::results::synthetic::read_traffic;
use replay::results::tables::TrafficCircuitResult;
use serde_json::Value;
use trace_tables::read_rows;

const TRAFFIC: &str = "
[traffic]
hosts = 8
racks = 4
size = \"3000B\"
load = 0.1
warm_up = \"100us\"
measurement = \"1ms\"
[fabric]
";
const LIGHTNESS: &str = "kind = \"lightness\"\nwavelengths = 1\ndecision = \"ocs\"\nocs_first_message_delay = \"5us\"\nretry_request_delay = \"2us\"\n\
                         circuit_hold = \"10us\"\ncircuit_idle = \"20us\"\n";
const ROTOR: &str = "kind = \"rotor\"\n";

/// From a circuit's grant to its release.
type Held = (u64, Option<u64>);

fn run(folder: &Path, fabric: &str, arguments: &[&str]) {
    fs::write(folder.join("circuits.toml"), format!("{TRAFFIC}{fabric}")).unwrap();
    let out: &[&str] = if arguments.contains(&"--out") { &[] } else { &["--out", "results"] };
    let all = [&["run", "circuits.toml"], out, arguments].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(&all).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{all:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn circuits(folder: &Path) -> Vec<TrafficCircuitResult> {
    read_rows(&folder.join("results")).unwrap()
}

/// What `summary.json` says of each combination, and the simulated nanoseconds of its only seed.
fn summaries(folder: &Path) -> Vec<(Option<CircuitSummary>, f64)> {
    let text = fs::read_to_string(folder.join("results/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let points = summary["points"].as_array().cloned().unwrap_or_else(|| vec![summary]);
    let circuits = |point: &Value| serde_json::from_value(point["circuits"].clone()).unwrap();
    points.iter().map(|point| (circuits(point), point["simulated_ns"].as_f64().unwrap())).collect()
}

/// Picoseconds for which ports were held until `end`, and in which nothing could pass.
fn held_and_set_up(rows: &[&TrafficCircuitResult], end: f64) -> (f64, f64) {
    let until = |at: Option<u64>| at.map_or(end, |at| (at as f64).min(end));
    let held = |row: &&TrafficCircuitResult| until(row.released_ps) - row.granted_ps as f64;
    let set_up = |row: &&TrafficCircuitResult| until(row.up_ps) - row.granted_ps as f64;
    (rows.iter().map(held).sum(), rows.iter().map(set_up).sum())
}

#[test]
fn circuits_of_each_run_are_in_the_table_and_add_up_to_the_summary() {
    for fabric in [LIGHTNESS, ROTOR] {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), fabric, &["--set", "traffic.load=[0.02, 0.1]"]);
        let all = circuits(folder.path());
        let summaries = summaries(folder.path());
        assert_eq!(summaries.len(), 2);
        for (point, (summary, simulated_ns)) in (0u32..).zip(&summaries) {
            let rows: Vec<&TrafficCircuitResult> = all.iter().filter(|row| row.point == point).collect();
            let summary = summary.as_ref().unwrap();
            assert!(rows.len() > 10, "{fabric}: {} circuits", rows.len());
            assert_eq!(rows.len() as u64, summary.set_up, "{fabric}");
            assert_eq!(rows.iter().map(|row| row.packets).sum::<u64>(), summary.packets, "{fabric}");
            assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), summary.bytes, "{fabric}");
            assert!(summary.packets > 0);
            let mut ports: BTreeMap<(&str, u32), Vec<Held>> = BTreeMap::new();
            for row in &rows {
                assert_ne!(row.from, row.to);
                assert!(row.asked_ps <= row.granted_ps && row.up_ps.is_none_or(|up| up >= row.granted_ps));
                ports.entry((&row.from, row.input)).or_default().push((row.granted_ps, row.released_ps));
            }
            for held in ports.values_mut() {
                held.sort_unstable();
                assert!(
                    held.windows(2).all(|pair| pair[0].1.is_some_and(|end| end <= pair[1].0)),
                    "{fabric}: {held:?}"
                );
            }
            let (held, set_up) = held_and_set_up(&rows, simulated_ns * 1e3);
            let all_ps = summary.ports as f64 * simulated_ns * 1e3;
            assert!((summary.occupancy - held / all_ps).abs() < 1e-9, "{fabric}: {}", summary.occupancy);
            assert!((summary.reconfiguring_s - set_up / 1e12).abs() < 1e-12, "{fabric}");
            let ends = |end: &str| rows.iter().filter(|row| row.end.as_deref() == Some(end)).count() as u64;
            assert_eq!(ends("scheduled") > 0, fabric == ROTOR);
            assert_eq!(ends("evicted") > 0 && ends("idle") > 0, fabric == LIGHTNESS);
            assert_eq!(ends("evicted"), summary.evicted);
            assert_eq!(ends("idle"), summary.released_idle);
        }
        let page = fs::read_to_string(folder.path().join("results/report.html")).unwrap();
        assert_eq!(page.matches("Optical circuits of the first seed").count(), 2, "one for each combination");
        let drawn = read_traffic(&folder.path().join("results")).unwrap().unwrap();
        let first = drawn.points[0].circuits.as_ref().unwrap();
        assert_eq!(first.known as u64, first.summary.set_up);
        assert!(page.contains(&format!("{}, port {}", first.circuits[0].from, first.circuits[0].input)));
    }
}

#[test]
fn seeds_are_added_up_and_tasks_leave_the_same_circuits() {
    let folder = tempfile::tempdir().unwrap();
    let mut apart = Vec::new();
    for seed in ["3", "4"] {
        run(folder.path(), LIGHTNESS, &["--force", "--set", &format!("run.seeds=[{seed}]")]);
        apart.push((summaries(folder.path()).remove(0).0.unwrap(), circuits(folder.path())));
    }
    let sweep = ["--force", "--set", "run.seeds=[3, 4]", "--set", "traffic.load=[0.1, 0.3]"];
    run(folder.path(), LIGHTNESS, &sweep);
    let together = summaries(folder.path()).remove(0).0.unwrap();
    let ((first, rows), (second, more)) = (&apart[0], &apart[1]);
    assert_eq!(together.ports, first.ports);
    assert_eq!(together.set_up, first.set_up + second.set_up);
    assert_eq!(together.bytes, first.bytes + second.bytes);
    assert!((together.occupancy - (first.occupancy + second.occupancy) / 2.0).abs() < 1e-12);
    let written = fs::read(folder.path().join("results/circuits.parquet")).unwrap();
    let in_sweep: Vec<_> = circuits(folder.path()).into_iter().filter(|row| row.point == 0).collect();
    assert_eq!(in_sweep, [&rows[..], &more[..]].concat());
    for task in ["0/2", "1/2"] {
        run(folder.path(), LIGHTNESS, &[&sweep[1..], &["--out", "tasks", "--part", task]].concat());
    }
    run(folder.path(), LIGHTNESS, &[&sweep[1..], &["--out", "tasks", "--gather", "--force"]].concat());
    assert!(fs::read(folder.path().join("tasks/circuits.parquet")).unwrap() == written);
}

#[test]
fn a_fabric_without_circuits_has_no_table_of_them() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "kind = \"lightness\"\n", &[]);
    assert!(!folder.path().join("results/circuits.parquet").exists());
    assert_eq!(summaries(folder.path()).remove(0).0, None);
    let page = fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    assert!(!page.contains("Optical circuits"));
}

#[test]
fn runs_of_a_large_sweep_tell_fewer_circuits_each() {
    assert_eq!(RunOptions::default().circuits, 65_536);
    assert_eq!(RunOptions::circuits_of_each(0), 65_536);
    assert_eq!(RunOptions::circuits_of_each(8), 65_536);
    for runs in [9, 100, 4_096, 10_000_000] {
        assert!(runs * RunOptions::circuits_of_each(runs) <= 524_288);
    }
    let experiment = Experiment::parse(&format!("{TRAFFIC}{ROTOR}"), "x.toml", &[]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let told = |circuits: usize| {
        let options = RunOptions { circuits, ..RunOptions::default() };
        replay::run::run_traffic(&experiment, options, &stop, |_| {}).unwrap().figures
    };
    let (few, all) = (told(3), told(65_536));
    assert_eq!(few.circuits, all.circuits[..3]);
    assert_eq!(few.circuit_totals, all.circuit_totals);
}
