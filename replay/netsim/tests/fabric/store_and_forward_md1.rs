//! A host's queue of `store-and-forward` under Poisson arrivals is M/D/1: packets wait rho / (2 (1 - rho)) times their
//! time on the link, in the mean (Pollaczek and Khinchine).

use crate::common::lab;
use crate::exactness::run;
use crate::flit_model::traffic::{Seen, Sending, When};
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::kernel::random::draw;
use netsim::topology::{LinkConfig, RacksConfig, TopologyConfig};
use netsim::units::{Buffer, Rate};

const HOSTS: u32 = 31;
/// Seeds for each load.
const SEEDS: u64 = 4;
/// Packets of each host, and how many of them are not looked at, until the start does not matter any more.
const PACKETS: u64 = 8_000;
const WARM_UP: u64 = 2_000;
/// 1,500 bytes at 10 Gbit/s, in picoseconds.
const SERVICE: u64 = 1_200_000;
/// Student's t of 31 x 4 - 1 degrees of freedom: 99% of intervals of so many standard errors hold the mean.
const T_99: f64 = 2.617;

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

/// Each host sends to the next one, with exponential gaps of `SERVICE / load` in the mean.
fn poisson(seed: u64, load: f64) -> Vec<Sending> {
    let mut traffic = Vec::new();
    for source in 0..HOSTS {
        let mut now = 0.0;
        for packet in 0..PACKETS {
            // 53 bits, above 0 and at most 1.
            let bits = (draw(seed, source.into(), packet) >> 11) + 1;
            let uniform = bits as f64 / (1u64 << 53) as f64;
            now -= libm::log(uniform) * float(SERVICE) / load;
            let destination = (source + 1) % HOSTS;
            traffic.push(Sending { when: When::At(now as u64), source, destination, bytes: 1_500, level: 0, flow: 0 });
        }
    }
    traffic
}

/// The mean waiting time at each host, in service times.
fn waits(seed: u64, load: f64) -> Vec<f64> {
    let link = LinkConfig { rate: Rate::from_bps(10_000_000_000), buffer: Buffer::Packets(1), ..LinkConfig::default() };
    let racks = RacksConfig { host_link: link, ..RacksConfig::default() };
    let config = StoreAndForwardConfig { topology: TopologyConfig::Racks(racks), ..StoreAndForwardConfig::default() };
    let mut fabric = StoreAndForward::new(&config, &lab(1, HOSTS as usize), Seen::default()).unwrap();
    let seen = run(&mut fabric, &poisson(seed, load));
    assert_eq!(seen.packets.len() as u64, u64::from(HOSTS) * PACKETS);
    let mut sums = vec![0.0; HOSTS as usize];
    for packet in seen.packets {
        // Behind the host nobody waits.
        assert_eq!(packet.arrived.since_ps(packet.left), 2 * SERVICE);
        if packet.number >= WARM_UP {
            sums[packet.source.0 as usize] += packet.left.since_ps(packet.handed_over) as f64 / float(SERVICE);
        }
    }
    sums.iter().map(|sum| sum / float(PACKETS - WARM_UP)).collect()
}

#[test]
fn packets_wait_as_long_as_in_m_d_1() {
    for (number, load) in (1..).zip([0.1, 0.3, 0.5, 0.7, 0.85]) {
        let seeds = number * 100..number * 100 + SEEDS;
        let waits: Vec<f64> = seeds.flat_map(|seed| waits(seed, load)).collect();
        let n = float(waits.len() as u64);
        let mean = waits.iter().sum::<f64>() / n;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let interval = T_99 * (variance / n).sqrt();
        let expected = load / (2.0 * (1.0 - load));
        println!("load {load}: {mean:.4} +- {interval:.4} service times, expected {expected:.4}");
        assert!((mean - expected).abs() <= interval, "load {load}: {mean} +- {interval}, expected {expected}");
        assert!(interval <= 0.04 * expected, "load {load}: an interval of +- {interval} says little about {expected}");
    }
}
