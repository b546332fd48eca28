//! Networks with loops under more than they carry, in messages of 16 packets through the smallest buffers: they never stop, and nobody starves.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const TORUS: &str = "[topology]\nshape = \"torus\"\nsize = [4, 4]";
const TREE: &str = "[topology]\nshape = \"k-ary-n-tree\"\nk = 2\nn = 3";

/// Runs `fabric` with packets of `flits` at load 1, until all that was handed over in 10,000 cycles has arrived.
fn goes_on(pattern: &str, flits: u32, fabric: &str) {
    let traffic: TrafficConfig = format!(
        "{pattern}\nload = 1.0\nflits = {flits}\npackets = 16\nwarm_up = \"0 cycles\"\nmeasurement = \"10000 cycles\"\n\
         drain = \"300000 cycles\"\nevolution = \"2000 cycles\""
    )
    .parse()
    .unwrap();
    let config: FabricConfig = fabric.parse().unwrap_or_else(|error| panic!("{fabric}: {error}"));
    let run = traffic::run(&traffic, &config, 5, RunOptions::default(), &AtomicBool::new(false), &mut |_| {});
    let figures = run.unwrap_or_else(|error| panic!("{fabric}: {error}")).figures;
    let accepted: Vec<u64> = figures.evolution.iter().map(|span| span.row.accepted).collect();
    assert!(accepted.iter().all(|packets| *packets > 0), "{pattern}, {fabric}: it stops: {accepted:?}");
    assert_eq!((figures.undelivered, figures.drops), (0, 0), "{pattern}, {fabric}: {} arrived", figures.packets);
    assert!(figures.accepted_load < figures.offered_load, "{pattern}, {fabric}: it carries all");
}

const UNIFORM: &str = "pattern = \"uniform\"";
/// Against the dateline of each ring.
const TORNADO: &str = "pattern = \"tornado\"\nsides = [4, 4]\ndimensions = [0, 1]";

fn on_torus(flits: u32, keys: &[&str]) {
    for keys in keys {
        for pattern in [UNIFORM, TORNADO] {
            goes_on(pattern, flits, &format!("{keys}\n{TORUS}"));
        }
    }
}

#[test]
fn input_output_queued_tori() {
    let kind = "kind = \"input-output-queued\"\nbuffer = 8\noutput_buffer = 8";
    let bubble = "kind = \"input-output-queued\"\nbuffer = 16\noutput_buffer = 16";
    on_torus(
        8,
        &[
            &format!("{kind}\nvcs = 2\nrouting = \"dor\""),
            &format!("{kind}\nvcs = 2\nrouting = {{ dally = \"trc\" }}"),
            &format!("{kind}\nvcs = 2\nrouting = {{ dally = \"basic\" }}\nbusy_outputs = false"),
            &format!("{kind}\nvcs = 2\nrouting = {{ dally = \"entry\" }}\nrequests = \"all\""),
            &format!("{kind}\nvcs = 2\nrouting = {{ dally = \"trc\" }}\nallocator = {{ order = \"output-first\" }}"),
            &format!("{bubble}\nvcs = 1\nrouting = \"bubble\""),
            &format!("{bubble}\nvcs = 3\nrouting = \"bubble\"\ntransit_priority = true"),
        ],
    );
}

#[test]
fn input_queued_tori() {
    // Worms that lie in many queues at once, and packets as a whole.
    let worms = "kind = \"input-queued\"\nmtu = \"64B\"\nvcs = 2\nbuffer = 2\nrouting = { dally = \"entry\" }";
    let whole = "kind = \"input-queued\"\nmtu = \"64B\"\nvcs = 2\nbuffer = 8\nrouting = { dally = \"trc\" }";
    on_torus(
        8,
        &[
            worms,
            &format!("{worms}\nhold_switch = true"),
            &format!("{worms}\nspeculative = true\nwait_for_tail_credit = true"),
            &format!("{whole}\nflow_control = \"virtual-cut-through\""),
        ],
    );
}

#[test]
fn credit_tori() {
    let kind = "kind = \"credit\"\nmtu = \"512B\"\nheaders = \"0B\"";
    let one = format!("{kind}\ncredits = 8\nvls = 2");
    let two = format!("{kind}\ncredits = 16");
    on_torus(
        8,
        &[
            &format!("{one}\nrouting = \"dor\""),
            &format!("{one}\nrouting = {{ dally = \"trc\" }}"),
            &format!("{one}\nrouting = {{ dally = \"basic\" }}\nallocation = {{}}"),
            &format!("{one}\nrouting = {{ dally = \"improved\" }}"),
            &format!("{kind}\ncredits = 8\nvls = 3\nrouting = {{ dally = \"adaptive\" }}"),
            &format!(
                "{kind}\ncredits = 8\nvls = 3\nrouting = {{ dally = \"adaptive\" }}\nlane_allocation = \"exclusive\""
            ),
            &format!("{two}\nvls = 1\nrouting = \"bubble\""),
            &format!("{two}\nvls = 2\nrouting = {{ bubble = \"oblivious\" }}"),
            &format!("{two}\nvls = 2\nrouting = {{ bubble = \"random\" }}"),
            &format!("{two}\nvls = 2\nrouting = {{ bubble = \"shortest\" }}"),
            &format!("{two}\nvls = 2\nrouting = {{ bubble = \"smart\" }}\nlane_allocation = \"exclusive\""),
            &format!("{two}\nvls = 2\nrouting = {{ bubble = \"smart\", bubble_at = \"here\" }}"),
        ],
    );
}

#[test]
fn trees() {
    for keys in [
        "kind = \"input-output-queued\"\nbuffer = 8\noutput_buffer = 8\nvcs = 1\nrouting = \"adaptive\"",
        "kind = \"input-output-queued\"\nbuffer = 8\noutput_buffer = 8\nvcs = 2\nrouting = \"random\"\nallocator = {}",
        "kind = \"input-queued\"\nmtu = \"64B\"\nbuffer = 2\nvcs = 1\nrouting = \"random\"",
        "kind = \"credit\"\nmtu = \"512B\"\nheaders = \"0B\"\ncredits = 8\nrouting = { adaptive = \"link-and-vl\" }\nvls = 2",
    ] {
        goes_on(UNIFORM, 8, &format!("{keys}\n{TREE}"));
    }
    let omni_path = "kind = \"omni-path\"\nrouting = \"d-mod-k\"\ngroup = 1\ncentral_links = 1\nvls = 2\nbuffers = { size = 32, exclusive = 16, max = 16 }";
    goes_on(UNIFORM, 16, &format!("{omni_path}\n{TREE}"));
}

#[test]
fn routers_of_other_simulators() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/peers");
    for (name, flits) in
        [("booksim2", 16), ("caminos-basic", 8), ("caminos-input-output", 8), ("insee", 16), ("omni-path", 16)]
    {
        let text = std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
        let experiment: toml::Table = text.parse().unwrap();
        goes_on(UNIFORM, flits, &toml::to_string(&experiment["fabric"]).unwrap());
    }
}
