//! The fabric `rotor` beside a slow, plain model: a host a rack, one uplink, direct circuits, period by period; every
//! packet leaves and arrives at the same picosecond.

use crate::common::{message, packets};
use crate::rotor::rotor;
use netsim::fabric::packet::PacketFabric;
use netsim::fabric::rotor::RotorConfig;
use netsim::network::Simulation;
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Send {
    at: u64,
    from: u32,
    to: u32,
    bytes: u64,
}

/// The packets of `sends`, as (left, arrived, source, length).
fn plain(
    config: &RotorConfig,
    joined: impl Fn(u32, u64) -> Option<u32>,
    racks: u32,
    sends: &[Send],
) -> Vec<(u64, u64, u32, u32)> {
    let time = |rate: netsim::units::Rate, bytes: u32| u64::from(bytes) * 8_000_000_000_000 / rate.bps().unwrap();
    let (mtu, headers) = (config.mtu.get(), config.headers.get());
    let largest = u32::try_from(mtu + headers).unwrap();
    let lead = time(config.host_rate, largest) + config.host_delay.ps();
    let mut packets = Vec::new();
    for from in 0..racks {
        let mut queues = vec![VecDeque::new(); racks as usize];
        for send in sends.iter().filter(|send| send.from == from) {
            let mut left = send.bytes;
            loop {
                let payload = left.min(mtu);
                queues[send.to as usize].push_back((send.at, u32::try_from((payload + headers).max(1)).unwrap()));
                left -= payload;
                if left == 0 {
                    break;
                }
            }
        }
        let (mut link_free, mut uplink_free) = (0u64, 0u64);
        let mut before_close = 0;
        for period in 0.. {
            if queues.iter().all(VecDeque::is_empty) {
                break;
            }
            let begin = period * config.slice.ps();
            let open = (begin + config.guard.ps() + config.margin.ps()).saturating_sub(config.cable_delay.ps());
            let close = begin + config.slice.ps() - config.cable_delay.ps() - config.margin.ps();
            let mut looks = open.saturating_sub(lead).max(before_close);
            before_close = close;
            let Some(to) = joined(from, begin) else { continue };
            while let Some((at, bytes)) = queues[to as usize].front().copied() {
                looks = looks.max(at).max(uplink_free.saturating_sub(lead));
                if looks >= close {
                    break;
                }
                let left = looks.max(link_free);
                let there = left + time(config.host_rate, bytes) + config.host_delay.ps();
                let starts = there.max(uplink_free).max(open);
                let ends = starts + time(config.uplink_rate, bytes);
                if ends > close {
                    break;
                }
                queues[to as usize].pop_front();
                link_free = left + time(config.host_rate, bytes);
                uplink_free = ends;
                packets.push((left, ends + 2 * config.cable_delay.ps(), from, bytes, to));
            }
        }
    }
    // The links to the hosts: in the order in which packets come to their ToR.
    packets.sort_by_key(|packet| (packet.4, packet.1));
    let mut free = vec![0u64; racks as usize];
    let down = packets.iter().map(|(left, at, from, bytes, to)| {
        let free = &mut free[*to as usize];
        *free = (*free).max(*at) + time(config.host_rate, *bytes);
        (*left, *free + config.host_delay.ps(), *from, *bytes)
    });
    down.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn packets_leave_and_arrive_when_the_plain_model_says(
        racks in 2..9u32,
        times in (20..100u64, 0..5u64, 0..3u64, 0..300u64, 0..2_000u64),
        rates in (1..40u64, 1..40u64),
        seed in any::<u64>(),
        sends in prop::collection::vec((0..9u32, 0..9u32, 0..40_000u64, 0..60_000u64), 1..25),
    ) {
        let (slice, guard, margin, cable, host_delay) = times;
        let text = format!(
            "slice = \"{slice}us\"\nguard = \"{guard}us\"\nreconfiguration_delay = \"{guard}us\"\nmargin = \"{margin}us\"\n\
             cable_delay = \"{cable}ns\"\nhost_delay = \"{host_delay}ns\"\nhost_rate = \"{}Gbps\"\nuplink_rate = \"{}Gbps\"\n\
             seed = {}\n",
            rates.0, rates.1, seed >> 1
        );
        let config: RotorConfig = text.parse().unwrap();
        let packet = config.host_rate.time_ps(1_500) + config.uplink_rate.time_ps(1_500);
        prop_assume!(config.slice.ps() > 2 * packet + 2 * (guard + 2 * margin) * 1_000_000 + host_delay * 1_000);
        let mut network = rotor(&config, racks as usize, 1);
        let mut list = Vec::new();
        let mut at = 0;
        for (from, step, bytes, gap_ns) in sends {
            at += gap_ns * 1_000 + 1;
            let from = from % racks;
            let to = (from + 1 + step % (racks - 1)) % racks;
            network.run_before(SimTime(at));
            network.send(SimTime(at), &message(from, to, bytes, 0));
            list.push(Send { at, from, to, bytes });
        }
        let mut got: Vec<_> = packets(&mut network)
            .iter()
            .map(|packet| (packet.left.0, packet.arrived.0, packet.source.0, packet.bytes))
            .collect();
        let mut wanted = plain(&config, |rack, at| network.joined(0, rack, SimTime(at)), racks, &list);
        got.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(got, wanted);
    }
}
