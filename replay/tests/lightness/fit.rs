//! Figures 19 and 21: the search over what the deliverable leaves open, and the simulator against its arithmetic.

use crate::common::{lab, run_all};
use replay::fabric::{self, FabricConfig};
use replay::network::{HostIndex, Network, SimTime, Token};
use replay::published::fit::{Output, RATIOS, Reading, SIZES, search};
use replay::units::Rate;

/// What a message takes that leaves one second after another one of its size, by when circuits are up.
fn second_message(keys: toml::Table, bytes: u64) -> u64 {
    let config: FabricConfig = keys.try_into().unwrap();
    let mut network = fabric::build(&config, &lab(2, 1)).unwrap();
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    let second = SimTime::from_ns(1_000_000_000);
    let mut deliveries = Vec::new();
    network.send(SimTime::ZERO, flow, bytes, Token(1));
    while network.advance(second, &mut deliveries) < second {}
    network.send(second, flow, bytes, Token(2));
    deliveries.extend(run_all(&mut network));
    deliveries.last().unwrap().at.since_ps(second)
}

#[test]
fn the_simulator_is_the_arithmetic_of_every_reading() {
    for reading in Reading::all() {
        for bytes in SIZES {
            let by = |decision: &str| {
                let mut keys = reading.lightness();
                keys.insert("decision".to_owned(), decision.into());
                second_message(keys, bytes)
            };
            for mbps in [500, 2_370, 2_500, 10_000, 13_640] {
                let rate = Rate::from_bps(mbps * 1_000_000);
                let simulated = second_message(reading.infiniband(rate), bytes);
                assert_eq!(simulated, reading.infiniband_ps(bytes, rate), "{bytes} B, {mbps} Mbit/s, {reading:?}");
            }
            assert_eq!(by("ops"), reading.ops_ps(bytes), "OPS, {bytes} B, {reading:?}");
            assert_eq!(by("ocs"), reading.ocs_ps(bytes), "OCS, {bytes} B, {reading:?}");
        }
    }
}

#[test]
fn the_closest_reading_is_that_of_the_figures_files() {
    let fits = search();
    assert_eq!(fits.len(), Reading::all().count());
    let best = fits[0];
    let of_files = Reading {
        flit: 64,
        packet: 1_500,
        window: 1,
        cable_ns: 0,
        server_links: false,
        output: Output::SerialisedAndConverted,
        cut_through: true,
    };
    assert_eq!((best.reading, best.rate_mbps), (of_files, 2_370));
    assert_eq!(best.less_ppm, [135_447, 447_463, 360_900, 12_729]);
    assert_eq!((of_files.ops_ps(80), of_files.ocs_ps(80)), (2_259_200, 1_953_200));
}

#[test]
fn no_reading_can_be_closer_than_the_first_ratio_lets_it() {
    // OCS against OPS hangs on neither InfiniBand nor its rate, and no reading brings it above 13.54%.
    let fits = search();
    let most = fits.iter().map(|fit| fit.less_ppm[0]).max().unwrap();
    assert_eq!(most, fits[0].less_ppm[0]);
    assert_eq!(fits[0].largest_ppm(), RATIOS[0].published_ppm - most);
}

#[test]
fn what_the_published_values_exclude() {
    let less = |time: u64, than: u64| 1.0 - time as f64 / than as f64;
    for reading in Reading::all() {
        if reading.output != Output::SerialisedAndConverted {
            // Without a second conversion OCS and OPS are too near each other at 80 B.
            assert!(less(reading.ocs_ps(80), reading.ops_ps(80)) < 0.064, "{reading:?}");
        }
        // With the fibres' 10 Gbit/s InfiniBand is far from 2% at 32 KB.
        let rate = Rate::from_bps(10_000_000_000);
        assert!(less(reading.infiniband_ps(32 << 10, rate), reading.ops_ps(32 << 10)) > 0.60, "{reading:?}");
    }
}
