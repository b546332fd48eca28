//! Configurations of the packet fabrics: InfiniBand's own keys, and an error that names key and value for each mistake.

use crate::common::{credit, lab, message, packets};
use netsim::fabric::credit::Speed;
use netsim::fabric::packet::PacketFabric;
use netsim::fabric::{FabricConfig, build};
use netsim::network::Simulation;
use netsim::time::SimTime;

fn error_for(text: &str) -> String {
    match text.parse::<FabricConfig>() {
        Err(error) => error.to_string(),
        Ok(config) => match build(&config, &lab(2, 3)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("was accepted: {text}"),
        },
    }
}

#[test]
fn each_mistake_gets_an_error_that_names_it() {
    let torus = "topology = { shape = \"torus\", size = [3, 3] }";
    let credit: &[(&str, &[&str])] = &[
        ("vls = 0", &["vls = 0", "1 to 15"]),
        ("vls = 16", &["vls = 16", "1 to 15"]),
        ("vls = -1", &["-1"]),
        ("maxVL = 15", &["maxVL = 15", "0 to 14"]),
        ("maxVL = 3\nvls = 2", &["maxVL", "3", "vls = 2", "one of both"]),
        ("mtu = \"0B\"", &["mtu = 0B", "1B to 1MiB"]),
        ("mtu = \"2MiB\"", &["mtu = 2MiB", "1MiB"]),
        ("mtu = \"2048\"", &["no unit"]),
        ("headers = \"2MiB\"", &["headers = 2MiB"]),
        ("flit = \"0B\"", &["flit = 0B"]),
        ("flit = \"1B\"\nmtu = \"1MiB\"\ncredits = 100000", &["flit = 1B", "65535 flits"]),
        ("flitSize = \"64\"", &["no unit"]),
        ("credits = 0", &["credits = 0", "one packet"]),
        ("credits = 32", &["credits = 32", "one packet"]),
        ("maxStatic = 100000000", &["credits = 100000000", "1GiB"]),
        ("shared_buffers = { size = 100, exclusive = 34 }", &["max"]),
        ("shared_buffers = { size = 100, exclusive = 20, max = 60 }", &["shared_buffers.exclusive = 20", "one packet"]),
        (
            "vls = 3\nshared_buffers = { size = 100, exclusive = 34, max = 60 }",
            &["shared_buffers.size = 100", "exclusive = 34", "3 VLs", "exclusive x vls"],
        ),
        ("shared_buffers = { size = 100, exclusive = 34, max = 33 }", &["shared_buffers.max = 33", "exclusive"]),
        (
            "shared_buffers = { size = 100000000, exclusive = 34, max = 60 }",
            &["shared_buffers.size = 100000000", "1GiB"],
        ),
        (
            "credits = 64\nshared_buffers = { size = 100, exclusive = 34, max = 60 }",
            &["credits = 64", "shared_buffers"],
        ),
        (
            &format!("{torus}\nrouting = \"bubble\"\nshared_buffers = {{ size = 99, exclusive = 34, max = 60 }}"),
            &["shared_buffers.exclusive = 34", "two packets", "bubble"],
        ),
        ("input_arbitration = \"oldest\"", &["oldest", "age"]),
        ("allocation = { order = \"wavefront\" }", &["wavefront", "input-first", "output-first"]),
        ("allocation = { iterations = 0 }", &["allocation.iterations = 0", "from 1 to 64"]),
        ("allocation = { iterations = 65 }", &["allocation.iterations = 65", "from 1 to 64"]),
        ("allocation = { cycle = \"2s\" }", &["allocation.cycle = 2s", "at most 1s"]),
        ("allocation = { speedup = 2 }", &["speedup", "iterations"]),
        ("credMinTime = \"2s\"", &["credit_min_time = 2s", "at most 1s"]),
        ("flit2FlitGap = \"2s\"", &["flit_gap = 2s", "at most 1s"]),
        ("pkt2PktGap = \"2s\"", &["packet_gap = 2s", "at most 1s"]),
        ("switch_delay = \"1min\"", &["switch_delay", "at most 1s"]),
        ("start = \"half-packet\"", &["half-packet", "whole-packet"]),
        ("sl_to_vl = [0, 1]", &["sl_to_vl = VL 1", "below fabric.vls"]),
        (
            "vls = 2\nsl_to_vl = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]",
            &["17 levels", "16 service levels"],
        ),
        ("arbitration = { low = [[0, 0]] }", &["arbitration.low = [0, 0]", "1 to 255"]),
        ("arbitration = { low = [[0, 256]] }", &["256"]),
        ("arbitration = { high = [[1, 5]] }", &["arbitration.high = [1, 5]", "below fabric.vls"]),
        ("vls = 3\narbitration = { high = [[2, 5]], low = [[0, 1]] }", &["VL 1", "starve"]),
        ("arbitration = { limit = 256 }", &["256"]),
        ("arbitration = { middle = [[0, 1]] }", &["middle", "high"]),
        ("width = 4", &["width = 4", "speed"]),
        ("width = 3\nspeed = \"QDR\"", &["width = 3", "12 lanes"]),
        ("speed = \"LDR\"", &["LDR", "QDR"]),
        (
            "width = 4\nspeed = \"QDR\"\ntopology = { shape = \"racks\", uplink = { rate = \"40Gbps\" } }",
            &["40Gbps", "32Gbps", "not both"],
        ),
        ("topology = { shape = \"racks\", uplink = { rate = \"unlimited\" } }", &["unlimited", "8000Gbps"]),
        ("topology = { shape = \"racks\", uplink = { rate = \"9Tbps\" } }", &["9000Gbps", "8000Gbps"]),
        ("topology = { shape = \"racks\", uplink = { burst = \"32KiB\" } }", &["32768B", "token bucket"]),
        ("topology = { shape = \"racks\", uplink = { delay = \"2s\" } }", &["delay", "at most 1s"]),
        (&format!("{torus}\nrouting = \"dor\""), &["vls = 1", "class"]),
        (&format!("{torus}\nrouting = \"dor\"\nvls = 2\nsl_to_vl = [1]"), &["VL 1", "classes"]),
        (&format!("{torus}\nrouting = \"bubble\"\ncredits = 40"), &["credits = 40", "two packets", "bubble"]),
        ("routing = \"dor\"", &["dor", "mesh"]),
        ("interval = \"1ns\"", &["interval", "at least 1us"]),
        ("window = 3", &["window", "credits"]),
    ];
    let store_and_forward: &[(&str, &[&str])] = &[
        ("mtu = \"0B\"", &["mtu = 0B"]),
        ("headers = \"1GiB\"", &["headers = 1GiB"]),
        ("flit = \"0B\"", &["flit = 0B"]),
        ("switch_delay = \"2s\"", &["switch_delay = 2s"]),
        ("routing = \"adaptive\"", &["routing = adaptive", "credits", "random"]),
        ("topology = { shape = \"racks\", uplink = { rate = \"unlimited\" } }", &["unlimited", "8000Gbps"]),
        ("topology = { shape = \"racks\", uplink = { burst = \"32KiB\" } }", &["32768B", "ethernet"]),
        ("topology = { shape = \"racks\", uplink = { delay = \"2s\" } }", &["delay", "at most 1s"]),
        ("vls = 2", &["vls", "mtu"]),
        ("interval = \"0s\"", &["interval", "at least 1us"]),
    ];
    for (kind, cases) in [("credit", credit), ("store-and-forward", store_and_forward)] {
        for (text, parts) in cases {
            let error = error_for(&format!("kind = \"{kind}\"\n{text}"));
            for part in *parts {
                assert!(error.contains(part), "the error for {kind} with\n{text}\ndoes not say \"{part}\":\n{error}");
            }
        }
    }
}

#[test]
fn width_and_speed_make_the_data_rate() {
    let rates = [
        (Speed::Sdr, 4, 8_000_000_000),
        (Speed::Ddr, 4, 16_000_000_000),
        (Speed::Qdr, 4, 32_000_000_000),
        (Speed::Qdr, 12, 96_000_000_000),
        (Speed::Fdr10, 4, 40_000_000_000),
        (Speed::Fdr, 4, 54_545_454_545),
        (Speed::Edr, 4, 100_000_000_000),
        (Speed::Hdr, 2, 100_000_000_000),
        (Speed::Ndr, 4, 400_000_000_000),
        (Speed::Xdr, 4, 800_000_000_000),
    ];
    for (speed, width, bps) in rates {
        assert_eq!(speed.data_rate(width).bps(), Some(bps), "{width}x {speed:?}");
    }
    let text =
        "kind = \"credit\"\nspeed = \"QDR\"\nwidth = 1\ntopology = { shape = \"racks\", uplink = { length = \"2m\" } }";
    let config: FabricConfig = text.parse().unwrap();
    let figures = build(&config, &lab(2, 2)).unwrap().figures();
    assert!(figures.links.iter().all(|link| link.rate_bps == 8_000_000_000));
    // The same rate said twice is no contradiction.
    let text = text.replace("length", "rate = \"8Gbps\", length");
    assert!(build(&text.parse().unwrap(), &lab(2, 2)).is_ok());
}

#[test]
fn max_vl_counts_from_0_and_levels_map_to_lanes() {
    let lanes = |keys: &str| {
        let text =
            format!("topology = {{ shape = \"single-switch\" }}\ncredits = 1\nmtu = \"64B\"\nheaders = \"0B\"\n{keys}");
        let mut fabric = credit(&text, &lab(1, 2));
        for level in 0..16 {
            fabric.send(SimTime::ZERO, &message(0, 1, 64, level));
        }
        // With one credit for each lane, as many packets leave one after the other as there are lanes.
        let packets = packets(&mut fabric);
        packets.iter().enumerate().take_while(|(n, packet)| packet.left.0 == *n as u64 * 51_200).count()
    };
    assert_eq!(lanes("maxVL = 0"), 1);
    assert_eq!(lanes("maxVL = 3"), 4);
    assert_eq!(lanes("vls = 4"), 4);
    assert_eq!(lanes("vls = 4\nsl_to_vl = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]"), 2);
    assert_eq!(lanes("vls = 4\nsl_to_vl = [3, 3, 3, 3]"), 4);
}
