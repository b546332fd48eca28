//! Sweeps: which lists make one, and in which order.

use netsim::fabric::FabricConfig;
use netsim::topology::TopologyConfig;
use replay::experiment::{Override, Sweep};

const GOOD: &str = "
[traffic]
load = [0.1, 0.3]
[fabric]
kind = \"credit\"
vls = 2
[fabric.topology]
shape = \"torus\"
size = [4, 4]
";

fn sweep(text: &str, changes: &[&str]) -> Sweep {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Sweep::parse(text, "x.toml", &changes).unwrap()
}

fn paths(sweep: &Sweep) -> Vec<(&str, usize)> {
    sweep.axes.iter().map(|axis| (axis.path.as_str(), axis.values.len())).collect()
}

#[test]
fn a_list_is_a_sweep_unless_the_key_takes_lists() {
    let sweep = sweep(GOOD, &[]);
    assert_eq!(paths(&sweep), [("traffic.load", 2)]);
    for point in &sweep.points {
        let FabricConfig::Credit(config) = &point.experiment.fabric else { panic!("no credit") };
        let TopologyConfig::Torus(grid) = &config.topology else { panic!("no torus") };
        assert_eq!(grid.size, [4, 4]);
    }
    let lists = ["run.seeds=[1,2,3]", "traffic.pattern=hot-spot", "traffic.spots=[1,2]", "fabric.sl_to_vl=[0,0]"];
    assert_eq!(paths(&self::sweep(GOOD, &lists)), [("traffic.load", 2)]);
    let one = self::sweep(GOOD, &["traffic.load=0.2"]);
    assert!(!one.is_sweep() && one.points.len() == 1);
}

#[test]
fn curves_are_drawn_over_the_key_that_changes_the_load() {
    let along = |changes: &[&str]| {
        let sweep = sweep(GOOD, changes);
        sweep.load_axis().map(|axis| sweep.axes[axis].path.clone())
    };
    assert_eq!(along(&["fabric.vls=[2,4]", "traffic.pattern=[uniform,transpose]"]).as_deref(), Some("traffic.load"));
    let text = GOOD.replace("load = [0.1, 0.3]", "interval = [\"1us\", \"2us\"]");
    assert_eq!(sweep(&text, &["fabric.vls=[2,4]"]).load_axis(), Some(1));
    assert_eq!(along(&["traffic.load=0.2", "fabric.vls=[2,4]"]), None);
    assert_eq!(along(&["traffic.load={ sweep = [0.2] }"]), None);
}

#[test]
fn a_mistake_in_a_list_is_told_of_the_list_where_the_key_takes_one_and_of_its_values_elsewhere() {
    let message = |changes: &[&str]| {
        let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
        Sweep::parse(GOOD, "x.toml", &changes).unwrap_err().to_string()
    };
    for (change, expected) in [
        ("fabric.topology.size=[true,true]", "boolean `true`, expected a whole number from 0 to 4294967295"),
        ("fabric.sl_to_vl=[true]", "boolean `true`"),
        ("fabric.vls=[true,false]", "boolean `true`"),
        ("traffic.pattern=[nonsense,uniform]", "nonsense"),
    ] {
        let error = message(&[change]);
        assert!(error.contains(expected) && !error.contains("sequence"), "{change}: {error}");
        // Another mistake elsewhere does not make the lists others.
        let both = message(&[change, "fabric.nonsense=1"]);
        assert!(!both.contains("sequence"), "{change}: {both}");
    }
}

#[test]
fn keys_that_take_lists_are_swept_by_name() {
    let changes = ["fabric.topology.size={ sweep = [[4,4],[2,2,2]] }", "traffic.load={ sweep = [0.5] }"];
    let sweep = sweep(GOOD, &changes);
    assert_eq!(paths(&sweep), [("fabric.topology.size", 2), ("traffic.load", 1)]);
    assert_eq!(sweep.axes[0].text(1), "[2, 2, 2]");
}

#[test]
fn several_sweeps_are_run_in_all_combinations_the_last_changing_first() {
    let sweep = sweep(GOOD, &["fabric.vls=[2,4]", "traffic.pattern=[uniform, transpose]"]);
    assert_eq!(paths(&sweep), [("fabric.vls", 2), ("traffic.load", 2), ("traffic.pattern", 2)]);
    let orders: Vec<&[usize]> = sweep.points.iter().map(|point| point.values.as_slice()).collect();
    assert_eq!(
        orders,
        [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]]
            .each_ref()
            .map(|o| &o[..])
    );
    let traffic = sweep.points[5].experiment.traffic.as_ref().unwrap();
    assert_eq!((traffic.load, traffic.pattern.name()), (Some(0.1), "transpose"));
}

#[test]
fn the_effective_file_of_a_sweep_is_the_same_sweep() {
    let sweep = sweep(GOOD, &["fabric.topology.size={ sweep = [[4,4],[2,2,2]] }", "run.seeds=[3,5]"]);
    let effective = sweep.to_toml().unwrap();
    let again = Sweep::parse(&effective, "effective.toml", &[]).unwrap();
    assert_eq!((again.axes, again.points), (sweep.axes, sweep.points), "{effective}");
    assert!(!effective.contains("[workload]"), "{effective}");
    // Kinds have keys of their own, and some keys another name.
    for change in ["fabric.kind=[credit, store-and-forward]", "fabric.maxStatic=[64, 128]"] {
        let sweep = self::sweep(&GOOD.replace("vls = 2\n", ""), &[change]);
        let again = Sweep::parse(&sweep.to_toml().unwrap(), "effective.toml", &[]).unwrap();
        assert_eq!(again.points, sweep.points);
    }
}

#[test]
fn more_combinations_than_anybody_waits_for_are_refused() {
    let many: Vec<String> = (1..400).map(|n| format!("{}", f64::from(n) / 1_000.0)).collect();
    let change = format!("traffic.load=[{}]", many.join(","));
    let flits: Vec<String> = (1..300).map(|n| n.to_string()).collect();
    let changes: Vec<Override> =
        [change, format!("traffic.flits=[{}]", flits.join(","))].iter().map(|change| change.parse().unwrap()).collect();
    let error = Sweep::parse(GOOD, "x.toml", &changes).unwrap_err().to_string();
    assert!(error.contains("100000 combinations"), "{error}");
}
