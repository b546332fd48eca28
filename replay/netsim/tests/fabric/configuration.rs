//! Configurations of fabrics: defaults, what is read is written, and an error that names key and value for each mistake.

use crate::common::lab;
use netsim::fabric::{FabricConfig, build};
use netsim::network::Simulation;
use netsim::topology::HostPlace;

/// The error of configuration `text` for `hosts`.
fn error_for(text: &str, hosts: &[HostPlace]) -> String {
    match text.parse::<FabricConfig>() {
        Err(error) => error.to_string(),
        Ok(config) => match build(&config, hosts) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("was accepted: {text}"),
        },
    }
}

#[test]
fn every_kind_works_with_nothing_but_its_name_and_is_written_as_it_is_read() {
    for kind in ["ideal", "ethernet", "lightness", "credit", "store-and-forward"] {
        let config: FabricConfig = format!("kind = \"{kind}\"").parse().unwrap();
        assert_eq!(config.kind(), kind);
        assert_eq!(build(&config, &lab(2, 2)).unwrap().hosts(), 4);
        let written = config.to_string();
        assert_eq!(written.parse::<FabricConfig>().unwrap(), config, "{written}");
    }
}

#[test]
fn each_mistake_gets_an_error_that_names_it() {
    let cases: &[(&str, &[&str])] = &[
        ("latency = \"1us\"", &["kind"]),
        ("kind = \"token-ring\"", &["token-ring", "ethernet"]),
        ("kind = \"ideal\"\nlatncy = \"1us\"", &["latncy", "latency"]),
        ("kind = \"ideal\"\nlatency = 5", &["\"5\" has no unit", "1678ns"]),
        ("kind = \"ideal\"\nlatency = \"5\"", &["\"5\" has no unit"]),
        ("kind = \"ideal\"\nlatency = \"5 parsecs\"", &["parsecs", "duration"]),
        ("kind = \"ideal\"\nlatency = \"-5us\"", &["-5us"]),
        ("kind = \"ideal\"\nlatency = true", &["duration"]),
        ("kind = \"ideal\"\nrate = \"0bps\"", &["0bps", "above 0"]),
        ("kind = \"ideal\"\nrate = \"-1Gbps\"", &["-1Gbps"]),
        ("kind = \"ideal\"\ninterval = \"0s\"", &["interval", "at least 1us"]),
        ("kind = \"ethernet\"\nmtu = \"52B\"", &["mtu", "52B", "more than headers"]),
        ("kind = \"ethernet\"\nmtu = \"1MiB\"", &["mtu", "65535B"]),
        ("kind = \"ethernet\"\nmtu = \"1500\"", &["\"1500\" has no unit"]),
        ("kind = \"ethernet\"\nframing = \"2kB\"", &["framing", "1000B"]),
        ("kind = \"ethernet\"\ninitial_window = 0", &["initial_window", "at least 1"]),
        ("kind = \"ethernet\"\ninitial_window = -1", &["-1"]),
        ("kind = \"ethernet\"\nreceive_window = \"1B\"", &["receive_window", "at least mtu"]),
        ("kind = \"ethernet\"\nreceive_window_max = \"2kB\"", &["receive_window_max", "at least receive_window"]),
        ("kind = \"ethernet\"\nrouting = \"random\"", &["random", "d-mod-k"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"ring\" }", &["ring", "fat-tree"]),
        ("kind = \"ethernet\"\ntopology = { host_link = { rate = \"1Gbps\" } }", &["shape"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"racks\", cores = 2 }", &["cores", "uplink"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"racks\", joined = \"glue\" }", &["glue", "direct"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"racks\", uplink = { speed = \"1Gbps\" } }", &["speed", "rate"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"racks\", uplink = { rate = \"fast\" } }", &["fast", "10Gbps"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"racks\", uplink = { buffer = \"12\" } }", &["\"12\"", "packets"]),
        (
            "kind = \"ethernet\"\ntopology = { shape = \"racks\", uplink = { delay = \"1us\", length = \"50m\" } }",
            &["uplink", "1us", "50m", "one of them"],
        ),
        (
            "kind = \"ethernet\"\ntopology = { shape = \"racks\", host_link = { burst = \"32KiB\", rate = \"unlimited\" } }",
            &["host_link", "32KiB", "rate"],
        ),
        ("kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", cores = 0 }", &["cores = 0", "at least 1"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", factor = 0 }", &["factor = 0"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", racks = 0 }", &["racks = 0"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", nodes = 0 }", &["nodes = 0"]),
        ("kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", nodes = 10, racks = 4 }", &["10", "multiple", "4"]),
        (
            "kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", racks = 1 }",
            &["racks = 1", "2 racks", "rack0, rack1"],
        ),
        (
            "kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", nodes = 4, racks = 4 }",
            &["rack0", "3 hosts", "1 place"],
        ),
        (
            "kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", cores = 1000000, factor = 9 }",
            &["cables", "4194304"],
        ),
        ("kind = \"lightness\"\nmaxVL = 3", &["maxVL"]),
        ("kind = \"lightness\"\nwindow = 0", &["window", "at least 1"]),
        ("kind = \"lightness\"\ntor_max_messages = 0", &["tor_max_messages"]),
        ("kind = \"lightness\"\nwavelengths = 0", &["wavelengths", "from 1"]),
        ("kind = \"lightness\"\nwavelengths = 5000", &["wavelengths", "1024"]),
        ("kind = \"lightness\"\nnumFibers = 1", &["fibers = 1", "rack"]),
        ("kind = \"lightness\"\nops_slot = \"0ns\"", &["ops_slot"]),
        ("kind = \"lightness\"\nops_decision = \"middle\"", &["middle", "tail"]),
        (
            "kind = \"lightness\"\nops_decision = \"head\"\nops_serialises_again = true",
            &["ops_serialises_again", "head"],
        ),
        ("kind = \"lightness\"\ndecision = \"oracle\"", &["oracle", "by-size"]),
        ("kind = \"lightness\"\nphotonic_packet_max = \"0B\"", &["photonic_packet_max"]),
        ("kind = \"lightness\"\nphotonic_packet_max = \"79B\"", &["photonic_packet_min", "photonic_packet_max"]),
        ("kind = \"lightness\"\nflitSize = \"0B\"", &["flit_size"]),
        ("kind = \"lightness\"\nretryReqDelay = \"0ns\"", &["retry_request_delay", "above 0"]),
        ("kind = \"lightness\"\ndrop = [0]", &["drop", "from 1"]),
        ("kind = \"lightness\"\noptdelay = \"1.35ns\"", &["1.35ns", "ns/B"]),
        (
            "kind = \"lightness\"\noptdelay = \"1.35ns/B\"\nTorPer3ByteDelay = \"4.05ns\"",
            &["TorPer3ByteDelay", "only one"],
        ),
        ("kind = \"lightness\"\nCableDelay = \"250ns\"\ncable_length = \"50m\"", &["cable_length", "only one"]),
        ("kind = \"lightness\"\nAckDelay = \"20ns\"\nack_delay = \"30ns\"", &["AckDelay", "ack_delay", "contradicts"]),
    ];
    for (text, parts) in cases {
        let error = error_for(text, &lab(2, 3));
        for part in *parts {
            assert!(error.contains(part), "the error for\n{text}\ndoes not say \"{part}\":\n{error}");
        }
    }
}

#[test]
fn hosts_that_do_not_fit_are_named() {
    for kind in ["ethernet", "lightness"] {
        let text = format!("kind = \"{kind}\"");
        let mut hosts = lab(2, 2);
        hosts[3].name = "w1".to_owned();
        assert!(error_for(&text, &hosts).contains("w1"), "{}", error_for(&text, &hosts));
        assert!(error_for(&text, &[]).contains("no hosts"), "{}", error_for(&text, &[]));
    }
    assert!(error_for("kind = \"ideal\"", &[]).contains("no hosts"));
    let direct = "kind = \"ethernet\"\ntopology = { shape = \"racks\", joined = \"direct\" }";
    assert!(error_for(direct, &lab(3, 1)).contains("joins 2 racks"));
    let direct = "kind = \"lightness\"\ndecision = \"direct\"";
    assert!(error_for(direct, &lab(3, 1)).contains("direct with 3 racks"));
}
