//! What networks in windows are given: lists of messages, host by host, without answers.

use super::Case;
use crate::flit_model::traffic::{Sending, When};
use netsim::fabric::packet::{Message, PacketFabric};
use netsim::fabric::windows::HostMessages;
use netsim::network::HostIndex;
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// A list of messages, host by host.
pub struct Listed(BTreeMap<HostIndex, VecDeque<(SimTime, Message)>>);

impl HostMessages for Listed {
    fn next_time(&self, host: HostIndex) -> Option<SimTime> {
        self.0.get(&host)?.front().map(|(at, _)| *at)
    }

    fn take(&mut self, host: HostIndex) -> Option<Message> {
        self.0.get_mut(&host)?.pop_front().map(|(_, message)| message)
    }
}

pub fn listed(traffic: &[Sending]) -> Listed {
    let mut messages: Vec<_> = traffic.iter().enumerate().map(|(number, sending)| (time(sending), number)).collect();
    messages.sort_unstable();
    let mut hosts = BTreeMap::<_, VecDeque<_>>::new();
    for (at, number) in messages {
        let message = traffic[number].message(number);
        hosts.entry(message.source).or_default().push_back((at, message));
    }
    Listed(hosts)
}

fn time(sending: &Sending) -> SimTime {
    match sending.when {
        When::At(time) => SimTime(time),
        When::After(..) => panic!("answers need deliveries"),
    }
}

/// Networks without answers, which a list of messages cannot give.
pub fn without_answers<C>(cases: impl Strategy<Value = Case<C>>) -> impl Strategy<Value = Case<C>>
where
    Case<C>: std::fmt::Debug,
{
    cases.prop_map(|mut case| {
        for sending in &mut case.traffic {
            if let When::After(_, think) = sending.when {
                sending.when = When::At(think);
            }
        }
        case
    })
}

/// Times at which a run is stopped on its way.
pub fn stops() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::btree_set(1u64..3_000_000, 0..4).prop_map(|stops| stops.into_iter().collect())
}

/// The bytes of the lanes of the links at `stops`, by the event engine `fabric`.
pub fn bytes_at(fabric: &mut impl PacketFabric<()>, traffic: &[Sending], stops: &[u64]) -> Vec<Vec<u64>> {
    let mut order: Vec<usize> = (0..traffic.len()).collect();
    order.sort_by_key(|number| time(&traffic[*number]));
    let mut order = order.into_iter().peekable();
    let mut bytes = Vec::new();
    for stop in stops {
        while let Some(number) = order.next_if(|number| time(&traffic[*number]).0 < *stop) {
            fabric.run_before(time(&traffic[number]));
            fabric.send(time(&traffic[number]), &traffic[number].message(number));
        }
        fabric.run_before(SimTime(*stop));
        bytes.push(fabric.lane_bytes(SimTime(*stop)));
    }
    bytes
}
