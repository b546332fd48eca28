//! What is run.

/// A golden capture: merged, checked, and replayed by every file of `replay/experiments`.
pub(super) struct Trace {
    /// The capture's folder in `tests/golden`; its replays are the cases `replay-NAME-EXPERIMENT`.
    pub(super) name: &'static str,
    pub(super) quick: bool,
}

pub(super) const TRACES: [Trace; 3] = [
    Trace { name: "wordcount", quick: true },
    Trace { name: "encrypted", quick: false },
    Trace { name: "terasort", quick: false },
];

/// Something else to run.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) quick: bool,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// `replay ARGUMENTS --out FOLDER --set SETTING...`
    Results { arguments: &'static [&'static str], settings: &'static [&'static str] },
    /// `replay ARGUMENTS`, whose result is what it prints.
    Printed(&'static [&'static str]),
    /// The recorded exchange with Dimemas, on the fabric of an experiment.
    Dimemas(&'static str),
    /// The same with `--trace`, of a trace of [`TRACES`].
    Job { trace: &'static str, arguments: &'static [&'static str], settings: &'static [&'static str] },
}

const fn results(
    name: &'static str,
    quick: bool,
    arguments: &'static [&'static str],
    settings: &'static [&'static str],
) -> Case {
    Case { name, quick, work: Work::Results { arguments, settings } }
}

const fn printed(name: &'static str, quick: bool, arguments: &'static [&'static str]) -> Case {
    Case { name, quick, work: Work::Printed(arguments) }
}

const fn dimemas(name: &'static str, experiment: &'static str) -> Case {
    Case { name, quick: true, work: Work::Dimemas(experiment) }
}

/// Short enough for every run of the tests.
const SHORT: &[&str] = &["traffic.warm_up=200cycles", "traffic.measurement=500cycles", "traffic.drain=200cycles"];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "compare",
        quick: true,
        work: Work::Job {
            trace: "wordcount",
            arguments: &["compare", "replay/experiments/ideal.toml", "replay/experiments/lightness-mixed.toml"],
            settings: &[],
        },
    },
    Case {
        name: "store-and-forward",
        quick: true,
        work: Work::Job {
            trace: "wordcount",
            arguments: &["run", "replay/experiments/fat-tree.toml"],
            settings: &["fabric.kind=store-and-forward", "fabric.topology.host_link.rate=100Mbps"],
        },
    },
    Case {
        name: "recorded-times",
        quick: true,
        work: Work::Job {
            trace: "wordcount",
            arguments: &["run", "replay/experiments/lab-100mbit.toml"],
            settings: &["workload.causality=recorded", "workload.handshakes=false"],
        },
    },
    results("generate-terasort", true, &["generate", "replay/experiments/jobs/terasort.toml"], &[]),
    results(
        "generate-protein-clustering",
        true,
        &[
            "generate",
            "replay/experiments/jobs/hec-protein-clustering.toml",
            "--fabric",
            "replay/experiments/gigabit.toml",
        ],
        &["job=[{ profile = \"protein-clustering\", input = \"1GiB\", reduces = 8 }]"],
    ),
    results("published", true, &["lightness"], &[]),
    results("published-fit", false, &["lightness", "--fit"], &[]),
    dimemas("dimemas-ideal", "replay/experiments/ideal.toml"),
    dimemas("dimemas-ethernet", "replay/experiments/ethernet-10g.toml"),
    dimemas("dimemas-infiniband", "replay/experiments/infiniband.toml"),
    dimemas("dimemas-ops", "replay/experiments/lightness-ops.toml"),
    dimemas("dimemas-ocs", "replay/experiments/lightness-ocs.toml"),
    results("fat-tree", false, &["run", "replay/experiments/synthetic/fat-tree.toml", "--packets"], &[]),
    results("fat-tree-short", true, &["run", "replay/experiments/synthetic/fat-tree.toml", "--packets"], SHORT),
    results("fattreesim", false, &["run", "replay/experiments/synthetic/fattreesim.toml", "--packets"], &[]),
    results("fattreesim-short", true, &["run", "replay/experiments/synthetic/fattreesim.toml", "--packets"], SHORT),
    results("hot-spot", false, &["run", "replay/experiments/synthetic/hot-spot.toml"], &[]),
    results("hot-spot-short", true, &["run", "replay/experiments/synthetic/hot-spot.toml", "--packets"], SHORT),
    results("torus-tornado", false, &["run", "replay/experiments/synthetic/torus-tornado.toml"], &[]),
    results("torus-short", true, &["run", "replay/experiments/synthetic/torus-tornado.toml", "--packets"], SHORT),
    results(
        "omni-path",
        true,
        &["run", "replay/experiments/synthetic/omni-path.toml", "--packets"],
        &["traffic.measurement=2000cycles", "traffic.load=[0.5, 1.0]", "run.seeds=2"],
    ),
    results(
        "omni-path-shift",
        true,
        &["run", "replay/experiments/synthetic/omni-path-shift.toml"],
        &["traffic.measurement=2000cycles", "run.seeds=2"],
    ),
    results(
        "input-queued",
        true,
        &["run", "replay/experiments/synthetic/input-queued.toml", "--packets"],
        &["traffic.warm_up=1000cycles", "traffic.measurement=1000cycles", "traffic.load=[0.3, 1.0]", "run.seeds=1"],
    ),
    results("input-queued-torus", true, &["run", "tests/bench/input-queued-torus8x8-p8-0.3.toml", "--packets"], SHORT),
    results(
        "input-output-queued",
        true,
        &["run", "tests/bench/input-output-queued-ft64-p8-0.9.toml", "--packets"],
        SHORT,
    ),
    results("insee-torus", true, &["run", "tests/bench/insee-torus.toml", "--packets"], &[]),
    results("insee-tree", true, &["run", "tests/bench/insee-tree.toml", "--packets"], &[]),
    // 54 of Opera's 648 hosts.
    results(
        "opera-shuffle",
        true,
        &["run", "replay/experiments/synthetic/opera-shuffle.toml"],
        &["traffic.hosts=54", "traffic.racks=18", "traffic.count=53"],
    ),
    results("ideal-traffic", true, &["run", "replay/experiments/synthetic/ideal.toml", "--packets"], SHORT),
    // 1,024 of its 65,536 hosts.
    results("scale", false, &["run", "replay/experiments/synthetic/scale.toml"], &["fabric.topology.m=16"]),
    results("scale-credit", false, &["run", "tests/bench/scale-credit.toml", "--packets"], &["fabric.topology.m=16"]),
    results(
        "scale-store-and-forward",
        false,
        &["run", "tests/bench/scale-store-and-forward.toml", "--packets"],
        &["fabric.topology.m=16"],
    ),
    results("ft64-p1-0.5", true, &["run", "tests/bench/ft64-p1-0.5.toml"], SHORT),
    results("ft64-p8-0.9", true, &["run", "tests/bench/ft64-p8-0.9.toml"], SHORT),
    results("ft512-p8-0.5", false, &["run", "tests/bench/ft512-p8-0.5.toml"], SHORT),
    printed("topology-fat-tree", true, &["topology", "replay/experiments/fat-tree.toml", "--nodes", "16", "--json"]),
    printed(
        "topology-m-port",
        true,
        &["topology", "--shape", "m-port-n-tree", "--set", "m=8", "--set", "n=3", "--format", "edges"],
    ),
    printed("topology-torus", true, &["topology", "--shape", "torus", "--set", "size=[8,8]", "--format", "dot"]),
    printed("topology-k-ary", true, &["topology", "--shape", "k-ary-n-tree", "--set", "k=4", "--set", "n=3", "--json"]),
    printed("topology-thin", true, &["topology", "--shape", "thin-tree", "--set", "k=4", "--set", "n=3", "--json"]),
    printed("topology-leaf-spine", true, &["topology", "--shape", "leaf-spine", "--nodes", "16", "--format", "edges"]),
    printed("topology-xgft", true, &["topology", "--shape", "xgft", "--format", "edges"]),
    printed("routing-fat-tree", true, &["routing", "--shape", "fat-tree", "--nodes", "64", "--racks", "4"]),
    printed("routing-torus", true, &["routing", "--shape", "torus", "--set", "size=[4,4]", "--routing", "dor"]),
    printed("routing-torus-json", true, &["routing", "--shape", "torus", "--set", "size=[4,4]", "--json"]),
    printed("routing-xgft", true, &["routing", "--shape", "xgft", "--routing", "d-mod-k"]),
    printed("routing-mesh", true, &["routing", "--shape", "mesh", "--set", "size=[4,4]", "--routing", "shortest"]),
];

/// Whether a case, or a replay of a trace, belongs to the quick ones.
pub(super) fn is_quick(case: &str) -> bool {
    let traces = || TRACES.iter().filter(|trace| trace.quick);
    CASES.iter().any(|one| one.name == case && one.quick)
        || traces().any(|trace| {
            case.strip_prefix("trace-") == Some(trace.name)
                || case.strip_prefix("replay-").and_then(|rest| rest.strip_prefix(trace.name)).is_some()
        })
}
