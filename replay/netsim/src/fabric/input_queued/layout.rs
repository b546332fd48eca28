//! Switches, and the ends and begins of links, as they are when nothing is under way yet.

use super::config::InputQueuedConfig;
use super::state::{Input, MAX_PORTS, Output, OutputVc, Owner, Switch};
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::clocked::check_ahead;
use crate::fabric::clocked::ports::{NONE, Ports};
use crate::topology::{LinkId, Topology};
use typed_index_collections::TiVec;

/// The first `vcs` VCs, a bit each.
pub(super) const fn first_vcs(vcs: u8) -> u16 {
    // There are 1 to 16 VCs.
    u16::MAX >> 16u32.saturating_sub(vcs as u32)
}

/// How many cycles ahead something may be under way: over the slowest link, behind all that waits at its output.
pub(super) fn ahead(config: &InputQueuedConfig, delays: &TiVec<LinkId, u32>) -> Result<usize, FabricError> {
    let slowest = delays.iter().copied().max().unwrap_or(0);
    let queued = u64::from(config.buffer) * u64::from(config.vcs);
    let ahead = u64::from(slowest) + u64::from(config.latency.crossbar.max(config.latency.credit)) + queued + 2;
    check_ahead(ahead)
}

/// The VCs of an output.
pub(super) fn output_vcs(
    config: &InputQueuedConfig,
    output: &Output,
    first_ring: usize,
) -> impl Iterator<Item = OutputVc> + use<> {
    let Output { end, delay, host, .. } = *output;
    let (vcs, buffer) = (usize::from(config.vcs), config.buffer);
    let arrives_in = delay + if host == NONE { config.latency.crossbar } else { 0 };
    (0..vcs).map(move |vc| OutputVc {
        credits: buffer,
        next: 0,
        ring: first_ring + (end as usize * vcs + vc) * buffer as usize,
        sent: 0,
        owner: Owner::NOBODY,
        arrives_in,
    })
}

/// All switches, the bits of whose inputs are noted there, and how many words these take.
pub(super) fn switches(ports: &Ports, inputs: &mut [Input], switches: u32) -> (Vec<Switch>, usize) {
    let mut words = 0;
    let switch = |number: u32| {
        let (first, of) = ports.inputs_of(number);
        for place in 0..of {
            inputs[(first + place) as usize].bit = words * 64 + place;
        }
        let mine = of.div_ceil(64).max(1);
        words += mine;
        Switch { number, inputs: (first, of), outputs: ports.outputs_of(number), words: (words - mine, mine) }
    };
    let switches = (0..switches).map(switch).collect();
    (switches, words as usize)
}

/// The ends of all links at switches, and the begins of all links.
pub(super) fn links(
    config: &InputQueuedConfig,
    topology: &Topology,
    ports: &Ports,
    delays: &TiVec<LinkId, u32>,
) -> Result<(Vec<Input>, Vec<Output>), FabricError> {
    if ports.outputs().len() >= MAX_PORTS {
        let value = format!("{} links", ports.outputs().len());
        return Err(FabricError::Value { key: "topology", value, allowed: "fewer than 268435456 links" });
    }
    // All of this is less than what may be under way ahead.
    let credit_delay = |id: LinkId| {
        let from_host = topology.is_host(topology.link(id).from);
        1 + delays[id.back()] + if from_host { 0 } else { config.latency.credit }
    };
    let input = |id: &LinkId| Input {
        heads: 0,
        switch: topology.link(*id).to.0 - topology.hosts(),
        bit: 0,
        link: *id,
        sender: ports.output_of(*id),
        credit_delay: credit_delay(*id),
    };
    let inputs: Vec<Input> = ports.inputs().iter().map(input).collect();
    let mut ends = count(inputs.len());
    let output = |id: &LinkId| {
        let link = topology.link(*id);
        let to_host = topology.is_host(link.to);
        let end = if to_host { ends } else { ports.input_of(*id) };
        ends += u32::from(to_host);
        Output {
            leaves: 0,
            link: *id,
            end,
            delay: 1 + delays[*id],
            credit_delay: credit_delay(*id),
            host: if topology.is_host(link.from) { link.from.0 } else { NONE },
            free: u16::MAX,
            to_host,
        }
    };
    let outputs = ports.outputs().iter().map(output).collect();
    Ok((inputs, outputs))
}
