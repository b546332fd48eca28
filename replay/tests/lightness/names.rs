//! The deliverable's parameter names, by submodule.

use netsim::fabric::FabricConfig;
use netsim::fabric::lightness::{LightnessConfig, PARAMETERS, RackConfig};
use netsim::units::{Bytes, DurationPs, Rate};
use replay::experiment::Experiment;
use std::collections::BTreeSet;

fn read(text: &str) -> Result<LightnessConfig, String> {
    match toml::from_str::<FabricConfig>(&format!("kind = \"lightness\"\n{text}")) {
        Ok(FabricConfig::Lightness(config)) => Ok(config),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message().to_owned()),
    }
}

/// A value that is no key's default.
fn value(key: &str) -> &'static str {
    match key {
        "tor_rate" | "tor_ocs_rate" | "ops_rate" | "ocs_rate" => "\"25Gbps\"",
        "flit_size" => "\"32B\"",
        "tor_byte_delay" => "\"2ns/B\"",
        "fibers"
        | "ocs_fibers"
        | "wavelengths"
        | "ocs_wavelengths"
        | "tor_max_messages"
        | "tor_ocs_max_messages"
        | "tor_output_buffer"
        | "max_destinations"
        | "ocs_output_size"
        | "rack_width"
        | "rack.vls"
        | "rack.credits" => "7",
        _ => "\"7ns\"",
    }
}

#[test]
fn the_deliverables_tables_can_be_typed_in() {
    let config = read(
        r#"
        [tor.output]
        AckDelay = "20ns"
        TORMaxMgs = 16
        flitSize = "64B"
        [tor."Control OPS"]
        TORBW = "10Gbps"
        TORMaxMgs = 32
        CableDelay = "250ns"
        TorStartupDelay = "1678ns"
        TorPer3ByteDelay = "4.05ns"
        [tor.control_ocs]
        TORBW = "40Gbps"
        TORMaxMgs = 8
        CableDelay = "100ns"
        maxDstLids = 128
        retryReqDelay = "2ms"
        [ops.switch]
        numFibers = 4
        numWavelengths = 8
        OPSDelay = "30ns"
        [ops.output]
        AckDelay = "5ns"
        CableDelay = "260ns"
        OPSBW = "9Gbps"
        [ops."Photonic Contention"]
        numFibers = 4
        numWavelengths = 8
        maxDstLids = 128
        [ocs.switch]
        numWavelengths = 2
        OCSDelay = "3ns"
        [ocs.output]
        AckDelay = "6ns"
        OCSBW = "11Gbps"
        OCSOutputSize = 3
        CableDelay = "110ns"
        OCSFirstMessageDelay = "753ms"
        [ocs.contention]
        numFibers = 5
        numWavelengths = 2
        "#,
    )
    .unwrap();
    let ns = |ns| Some(DurationPs::from_ns(ns));
    let gigabits = |gigabits: u64| Rate::from_bps(gigabits * 1_000_000_000);
    let expected = LightnessConfig {
        ack_delay: Some(DurationPs::from_ns(20)),
        tor_output_buffer: Some(16),
        flit_size: Bytes(64),
        tor_rate: gigabits(10),
        tor_max_messages: 32,
        cable_to_ops: ns(250),
        tor_startup_delay: DurationPs::from_ns(1_678),
        tor_per_3_byte_delay: Some(DurationPs(4_050)),
        tor_ocs_rate: Some(gigabits(40)),
        tor_ocs_max_messages: Some(8),
        cable_to_ocs: ns(100),
        max_destinations: Some(128),
        retry_request_delay: DurationPs::from_ms(2),
        fibers: Some(4),
        wavelengths: 8,
        ops_delay: DurationPs::from_ns(30),
        ops_ack_delay: DurationPs::from_ns(5),
        cable_from_ops: ns(260),
        ops_rate: gigabits(9),
        ocs_wavelengths: Some(2),
        ocs_delay: DurationPs::from_ns(3),
        ocs_ack_delay: DurationPs::from_ns(6),
        ocs_rate: gigabits(11),
        ocs_output_size: 3,
        cable_from_ocs: ns(110),
        ocs_first_message_delay: DurationPs::from_ms(753),
        ocs_fibers: Some(5),
        ..LightnessConfig::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn every_name_reaches_its_key_and_no_other() {
    for parameter in PARAMETERS.iter().filter(|parameter| !parameter.key.starts_with("rack")) {
        let value = value(parameter.key);
        let table = if parameter.scope.is_empty() { String::new() } else { format!("[{}]\n", parameter.scope) };
        let by_name = read(&format!("{table}{} = {value}\n", parameter.name)).unwrap();
        let by_key = read(&format!("{} = {value}\n", parameter.key)).unwrap();
        assert_eq!(by_name, by_key, "{}.{}", parameter.scope, parameter.name);
        assert_ne!(by_name, LightnessConfig::default(), "{}.{}", parameter.scope, parameter.name);
    }
}

#[test]
fn all_parameters_of_the_deliverable_are_known() {
    let names: BTreeSet<&str> =
        PARAMETERS.iter().filter(|parameter| !parameter.scope.is_empty()).map(|parameter| parameter.name).collect();
    let deliverable = "maxVL width maxStatic AckDelay TORMaxMgs flitSize credMinTime flit2FlitGap pkt2PktGap TORBW \
                       CableDelay TorStartupDelay TorPer3ByteDelay maxDstLids retryReqDelay numFibers numWavelengths \
                       OPSDelay OPSBW OCSDelay OCSBW OCSOutputSize OCSFirstMessageDelay";
    assert_eq!(names, deliverable.split_whitespace().collect());
}

#[test]
fn names_of_infiniband_reach_the_links_below_the_tors() {
    let config = read(
        "[tor.input]\nmaxVL = 3\nwidth = 4\nmaxStatic = 64\n\
         [tor.output]\nmaxVL = 3\nflitSize = \"32B\"\ncredMinTime = \"50ns\"\nflit2FlitGap = \"1ns\"\npkt2PktGap = \"7ns\"\n",
    );
    let rack = config.unwrap().rack.unwrap();
    let expected: RackConfig = toml::from_str(
        "kind = \"credit\"\nmaxVL = 3\nwidth = 4\nspeed = \"FDR10\"\ncredits = 64\nflit = \"32B\"\ncredit_min_time = \"50ns\"\n\
         flit_gap = \"1ns\"\npacket_gap = \"7ns\"\n",
    )
    .unwrap();
    assert_eq!(*rack, expected);
    // A flit's size alone asks for no InfiniBand.
    assert_eq!(read("[tor.output]\nflitSize = \"32B\"\n").unwrap().rack, None);
}

#[test]
fn the_same_name_means_different_things_in_different_submodules() {
    let [tor, ops, ocs] = ["tor.output", "ops.output", "ocs.output"]
        .map(|scope| read(&format!("[{scope}]\nAckDelay = \"9ns\"\n")).unwrap());
    assert_eq!((tor.ack_delay, tor.ops_ack_delay), (Some(DurationPs::from_ns(9)), DurationPs(0)));
    assert_eq!((ops.ack_delay, ops.ops_ack_delay), (None, DurationPs::from_ns(9)));
    assert_eq!((ocs.ack_delay, ocs.ocs_ack_delay), (None, DurationPs::from_ns(9)));
}

#[test]
fn contradictions_and_unknown_names_are_told() {
    let cases = [
        (
            "[ops.switch]\nnumFibers = 4\n[ops.contention]\nnumFibers = 5",
            "fabric.ops.switch.numFibers contradicts fabric.ops.contention.numFibers: both are fibers",
        ),
        (
            "tor_rate = \"5Gbps\"\n[tor.control_ops]\nTORBW = \"6Gbps\"",
            "contradicts fabric.tor_rate: both are tor_rate",
        ),
        (
            "TORBW = \"5Gbps\"\n[tor.control_ops]\nTORBW = \"6Gbps\"",
            "fabric.tor.control_ops.TORBW contradicts fabric.TORBW",
        ),
        ("TORBW = \"5Gbps\"\ntor_rate = \"6Gbps\"", "fabric.TORBW contradicts fabric.tor_rate"),
        (
            "[tor.control_ops]\nOPSBW = \"6Gbps\"",
            "it has TORBW, TORMaxMgs, CableDelay, TorStartupDelay, TorPer3ByteDelay",
        ),
        ("[tor.middle]\nTORBW = \"6Gbps\"", "submodules of tor are tables: input, output, control_ops, control_ocs"),
        ("ops = 5", "fabric.ops is a table of the deliverable's submodules: switch, output, contention"),
        ("[tor.input]\nwidth = 4\nmaxVL = 2\n[rack]\nkind = \"ethernet\"", "it needs \"credit\""),
        ("[ops.switch]\nOPSDelay = 30", "\"30\" has no unit"),
        ("OPSDElay = \"30ns\"", "unknown field `OPSDElay`"),
    ];
    for (text, part) in cases {
        let error = read(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    // The same value twice is none.
    read("TORBW = \"5Gbps\"\n[tor.control_ops]\nTORBW = \"5Gbps\"").unwrap();
}

#[test]
fn an_error_names_the_place_in_the_file() {
    let text = "[fabric]\nkind = \"lightness\"\n\n[fabric.ops.switch]\nnumFibers = 4\nspeed = 5\n";
    let error = Experiment::parse(text, "e.toml", &[]).unwrap_err().to_string();
    assert!(error.starts_with("e.toml:6:1: fabric.ops.switch.speed is not known"), "{error}");
}

#[test]
fn what_is_written_out_is_read_back() {
    let text = "[fabric]\nkind = \"lightness\"\n[fabric.tor.control_ocs]\nTORBW = \"40Gbps\"\n[fabric.aod]\nports = 3\n\
                [fabric.rack]\nkind = \"ethernet\"\n";
    let experiment = Experiment::parse(text, "e.toml", &[]).unwrap();
    let written = experiment.to_toml().unwrap();
    assert_eq!(Experiment::parse(&written, "written.toml", &[]).unwrap(), experiment, "{written}");
}
