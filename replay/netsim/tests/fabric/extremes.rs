//! Every key of every fabric at its extremes: it is refused with a key, or the fabric runs; nothing panics.

use crate::common::lab;
use netsim::fabric::{self, FabricConfig, FabricError};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use netsim::units::{Buffer, Bytes, DurationPs, Length, PerByte, Rate};
use proptest::prelude::*;
use toml::{Table, Value};

/// Each kind with the keys that have no default value.
const FABRICS: [&str; 6] = [
    "kind = \"ideal\"",
    "kind = \"ethernet\"\n[topology]\nshape = \"racks\"\nhost_link = { delay = \"1us\", burst = \"0B\" }\nuplink = { length = \"5m\" }",
    "kind = \"ethernet\"\n[topology]\nshape = \"racks\"\nhost_link = { rate = \"100mbit\", burst = \"32KiB\" }",
    "kind = \"credit\"\ncredit_min_time = \"1ns\"\nflit_gap = \"1ns\"\npacket_gap = \"1ns\"\n[topology]\nshape = \"racks\"\nhost_link = { length = \"5m\" }",
    "kind = \"store-and-forward\"\n[topology]\nshape = \"racks\"\nuplink = { delay = \"1us\" }",
    "kind = \"lightness\"\nphotonic_packet_max = \"1500B\"\ntor_byte_delay = \"1ns/B\"\ntor_ocs_rate = \"10Gbps\"\n\
     tor_ocs_max_messages = 64\ntor_output_buffer = 8\ncable_delay = \"1ns\"\ncable_to_ops = \"1ns\"\ncable_from_ops = \"1ns\"\n\
     cable_to_ocs = \"1ns\"\ncable_from_ocs = \"1ns\"\nmax_destinations = 64\nfibers = 3\nocs_fibers = 3\nocs_wavelengths = 2\n\
     decision = \"by-flow\"\ndecision_threshold = \"4kB\"\nocs_first_message_delay = \"1us\"\n\
     aod = { ports = 3, delay = \"1us\" }\n[rack]\nkind = \"ideal\"",
];

/// The fabric of `text` with every key.
fn keys(text: &str) -> Table {
    let config: FabricConfig = text.parse().unwrap();
    config.to_string().parse().unwrap()
}

/// What a value of the same type may be at its most.
fn extremes(value: &Value) -> Vec<Value> {
    const MAX: u64 = u64::MAX;
    let texts = |texts: [String; 4]| texts.map(Value::String).to_vec();
    match value {
        Value::Integer(_) => [0, 1, 255, 65_535, u32::MAX.into(), i64::MAX].map(Value::Integer).to_vec(),
        Value::Boolean(truth) => vec![Value::Boolean(!truth)],
        Value::String(text) if text.parse::<Rate>().is_ok() && text != "unlimited" => {
            texts(["1bps", "1kbps", "18446744073709551614bps", "unlimited"].map(str::to_owned))
        }
        Value::String(text) if text.parse::<DurationPs>().is_ok() => {
            texts(["0ps".to_owned(), "1ps".to_owned(), "60min".to_owned(), format!("{MAX}ps")])
        }
        Value::String(text) if text.parse::<Bytes>().is_ok() => {
            texts(["0B".to_owned(), "1B".to_owned(), "1GiB".to_owned(), format!("{MAX}B")])
        }
        Value::String(text) if text.parse::<Buffer>().is_ok() => {
            texts(["0p".to_owned(), "4294967295p".to_owned(), "0B".to_owned(), format!("{MAX}B")])
        }
        Value::String(text) if text.parse::<Length>().is_ok() => {
            texts(["0mm".to_owned(), "1mm".to_owned(), "1000000km".to_owned(), format!("{MAX}mm")])
        }
        Value::String(text) if text.parse::<PerByte>().is_ok() => {
            texts(["0fs/B".to_owned(), "1fs/B".to_owned(), "1us/B".to_owned(), format!("{MAX}fs/B")])
        }
        _ => Vec::new(),
    }
}

/// Every key with each of its extremes, by its path.
fn changes(table: &Table, above: &[String]) -> Vec<(Vec<String>, Value)> {
    let of_key = |(key, value): (&String, &Value)| {
        let path: Vec<String> = above.iter().chain([key]).cloned().collect();
        match value {
            Value::Table(inner) => changes(inner, &path),
            other => extremes(other).into_iter().map(|value| (path.clone(), value)).collect(),
        }
    };
    table.iter().flat_map(of_key).collect()
}

fn put(table: &mut Table, path: &[String], value: Value) {
    let (last, above) = path.split_last().unwrap();
    let inner = above.iter().fold(table, |table, key| table[key].as_table_mut().unwrap());
    inner.insert(last.clone(), value);
}

/// Builds the fabric and lets some messages cross it, for a while.
fn try_out(table: Table) -> Result<(), String> {
    const STEPS: usize = 400;
    let config: FabricConfig = table.to_string().parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut network = fabric::build(&config, &lab(3, 2)).map_err(|error: FabricError| error.to_string())?;
    let latest = fabric::latest(network.figures().interval_ps);
    let flows = [(0, 2), (4, 2), (1, 0), (3, 3)].map(|(a, b)| network.open_connection(HostIndex(a), HostIndex(b)).0);
    let mut deliveries = Vec::new();
    let mut now = SimTime::ZERO;
    for (token, bytes) in (0u64..).zip([0, 1, 3_000, 70_000]) {
        for flow in flows {
            network.send(now, flow, bytes, Token(token));
        }
        for _ in 0..STEPS {
            let Some(next) = network.next_event().filter(|next| *next <= latest) else { break };
            now = network.advance(next, &mut deliveries);
        }
    }
    network.figures();
    Ok(())
}

#[test]
fn every_key_at_its_extremes_is_refused_with_a_key_or_runs() {
    let mut tried = 0;
    for text in FABRICS {
        let base = keys(text);
        assert_eq!(try_out(base.clone()), Ok(()), "{text}");
        for (path, value) in changes(&base, &[]) {
            let mut table = base.clone();
            put(&mut table, &path, value.clone());
            if let Err(error) = try_out(table) {
                let value = value.to_string();
                let named =
                    [path.last().unwrap(), value.trim_matches('"'), "fabric."].iter().any(|part| error.contains(part));
                assert!(named, "{path:?} = {value}: {error}");
            }
            tried += 1;
        }
    }
    assert!(tried > 400, "{tried}");
}

proptest! {
    // PROPTEST_CASES=100000 tries more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    #[test]
    fn no_four_keys_at_their_extremes_panic(kind in 0..FABRICS.len(), picks in prop::array::uniform4(any::<prop::sample::Index>())) {
        let base = keys(FABRICS[kind]);
        let all = changes(&base, &[]);
        let mut table = base;
        for pick in picks {
            let (path, value) = pick.get(&all).clone();
            put(&mut table, &path, value);
        }
        let _ = try_out(table);
    }
}

#[test]
fn a_receive_window_without_bounds_is_one() {
    let mut table = keys(FABRICS[1]);
    for key in ["receive_window", "receive_window_max"] {
        put(&mut table, &[key.to_owned()], Value::String(format!("{}B", u64::MAX)));
    }
    assert_eq!(try_out(table), Ok(()));
}

#[test]
fn a_rate_with_which_no_run_ends_is_refused_with_key_and_value() {
    let error = |text: &str| {
        let config: FabricConfig = text.parse().unwrap();
        fabric::build(&config, &lab(2, 2)).err().unwrap().to_string()
    };
    let racks = "kind = \"ethernet\"\n[topology]\nshape = \"racks\"\n";
    let rate = error(&format!("{racks}host_link = {{ rate = \"1bps\" }}"));
    assert_eq!(rate, "fabric.topology.host_link.rate = 1bps: at least 1kbps");
    let delay = error(&format!("{racks}uplink = {{ delay = \"100min\" }}"));
    assert_eq!(delay, "fabric.topology.uplink.delay = 6000s: at most 60min");
    let below = error("kind = \"lightness\"\n[rack]\nkind = \"ideal\"\nrate = \"999bps\"");
    assert_eq!(below, "fabric.rack.rate = 999bps: at least 1kbps");
}
