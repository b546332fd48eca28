//! What holds on every fabric for any traffic: nothing is lost, doubled or overtaken, and the same calls give the same
//! deliveries, in however small steps time is advanced.

use crate::common::{fabric, lab, run_all};
use netsim::network::{Delivery, FlowId, HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

const FABRICS: [&str; 22] = [
    "kind = \"ideal\"\n",
    "kind = \"ideal\"\nlatency = \"10us\"\nrate = \"1Gbps\"\n",
    "kind = \"ethernet\"\n",
    "kind = \"ethernet\"\n[topology]\nshape = \"racks\"\njoined = \"core\"\nhost_link = { rate = \"100mbit\", buffer = \"3 packets\" }\n",
    "kind = \"ethernet\"\nrouting = \"d-mod-k\"\n[topology]\nshape = \"fat-tree\"\ncores = 3\nhost_link = { rate = \"1Gbps\", buffer = \"8kB\", burst = \"4kB\" }\nuplink = { rate = \"100mbit\", buffer = \"2 packets\" }\n",
    "kind = \"lightness\"\n",
    "kind = \"lightness\"\nwindow = 4\nwavelengths = 2\nwavelength_conversion = true\nphotonic_packet_max = \"1500B\"\n",
    "kind = \"lightness\"\nops_decision = \"head\"\nwavelengths = 1\ntor_max_messages = 1\nserver_rate = \"unlimited\"\n",
    "kind = \"lightness\"\ndecision = \"ocs\"\nwavelengths = 1\nocs_first_message_delay = \"50us\"\ncircuit_hold = \"20us\"\ncircuit_idle = \"100us\"\n",
    "kind = \"lightness\"\ndecision = \"by-size\"\ndecision_threshold = \"20kB\"\nocs_first_message_delay = \"100us\"\nwavelengths = 2\n",
    "kind = \"lightness\"\ndecision = \"by-circuit\"\nocs_first_message_delay = \"30us\"\ncircuit_idle = \"50us\"\nwindow = 8\ndrop = [1, 3, 4]\n",
    "kind = \"credit\"\n",
    "kind = \"credit\"\nspeed = \"QDR\"\nvls = 3\ncredits = 34\ncredit_min_time = \"700ns\"\nflit_gap = \"3ns\"\npacket_gap = \"50ns\"\nstart = \"whole-packet\"\n",
    "kind = \"credit\"\nrouting = \"d-mod-k\"\nmaxVL = 1\nmtu = \"256B\"\nflit = \"16B\"\ncredits = 9\n[topology]\nshape = \"fat-tree\"\ncores = 3\nhost_link = { rate = \"1Gbps\", length = \"20m\" }\nuplink = { rate = \"2500Mbps\" }\n",
    "kind = \"store-and-forward\"\n",
    "kind = \"omni-path\"\n",
    "kind = \"omni-path\"\nvls = 2\nmtu = \"1000B\"\nheaders = \"24B\"\nports = 8\ncentral_choice = \"free\"\nretry = \"cycle\"\nbuffers = { size = 512, exclusive = 128, max = 300 }\n[topology]\nshape = \"fat-tree\"\ncores = 4\n",
    "kind = \"rotor\"\n",
    "kind = \"rotor\"\nuplinks = 2\nchange = \"in-turn\"\nrouting = \"expander\"\nbulk_threshold = \"20kB\"\nuplink_queue = 8\nclock_skew = \"2us\"\n",
    "kind = \"rotor\"\nslice = \"30us\"\nguard = \"1us\"\nreconfiguration_delay = { exponential = [\"0ns\", \"1us\"] }\nrouting = \"two-hop\"\ntransit_queue = 4\n",
    "kind = \"store-and-forward\"\nswitch_delay = \"1us\"\nheaders = \"20B\"\n[topology]\nshape = \"racks\"\njoined = \"core\"\nhost_link = { rate = \"1Gbps\", buffer = \"1 packets\" }\nuplink = { rate = \"300Mbps\", buffer = \"0B\" }\n",
    "kind = \"store-and-forward\"\nrouting = \"d-mod-k\"\n[topology]\nshape = \"fat-tree\"\ncores = 3\nhost_link = { rate = \"1Gbps\", buffer = \"8kB\" }\nuplink = { rate = \"100mbit\", buffer = \"2 packets\" }\n",
];

/// Who sends how much when (after the one before), and whether over a connection's way back.
#[derive(Clone, Debug)]
struct Message {
    pair: usize,
    back: bool,
    bytes: u64,
    gap_ps: u64,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let bytes = prop_oneof![Just(0u64), 1..200u64, 1_000..40_000u64, 100_000..400_000u64];
    let gap = prop_oneof![3 => Just(0u64), 1 => 1..1_000_000u64, 1 => 1_000_000..3_000_000_000u64];
    let message = (0..6usize, any::<bool>(), bytes, gap).prop_map(|(pair, back, bytes, gap_ps)| Message {
        pair,
        back,
        bytes,
        gap_ps,
    });
    prop::collection::vec(message, 1..40)
}

const PAIRS: [(u32, u32); 6] = [(0, 1), (0, 2), (1, 3), (4, 2), (5, 5), (3, 0)];

/// Sends `messages` and advances in steps of `step_ps`. Returns all deliveries and the order of each flow's messages.
fn play(text: &str, messages: &[Message], step_ps: u64) -> (Vec<Delivery>, BTreeMap<FlowId, Vec<u64>>, String) {
    let mut network = fabric(text, &lab(3, 2));
    let connections: Vec<_> =
        PAIRS.iter().map(|(a, b)| network.open_connection(HostIndex(*a), HostIndex(*b))).collect();
    let mut deliveries = Vec::new();
    let mut sent: BTreeMap<FlowId, Vec<u64>> = BTreeMap::new();
    let mut now = SimTime::ZERO;
    for (token, message) in messages.iter().enumerate() {
        let at = now.plus_ps(message.gap_ps);
        while now < at {
            let until = at.min(now.plus_ps(step_ps));
            now = network.advance(until, &mut deliveries);
        }
        let (there, back) = connections[message.pair];
        let flow = if message.back { back } else { there };
        network.send(now, flow, message.bytes, Token(token as u64));
        sent.entry(flow).or_default().push(token as u64);
    }
    while let Some(next) = network.next_event() {
        assert!(next >= now, "the next event lies in the past");
        network.advance(SimTime(next.0 / step_ps * step_ps + step_ps), &mut deliveries);
    }
    (deliveries, sent, format!("{:?}", network.figures()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_doubled_or_overtaken(which in 0..FABRICS.len(), messages in messages()) {
        let (deliveries, sent, _) = play(FABRICS[which], &messages, u64::MAX / 4);
        prop_assert_eq!(deliveries.len(), messages.len());
        let mut at: BTreeMap<u64, SimTime> = BTreeMap::new();
        for delivery in &deliveries {
            prop_assert!(at.insert(delivery.token.0, delivery.at).is_none(), "{:?} twice", delivery);
        }
        prop_assert!(deliveries.windows(2).all(|two| two[0].at <= two[1].at), "deliveries go back in time");
        for order in sent.values() {
            prop_assert!(order.windows(2).all(|two| at[&two[0]] <= at[&two[1]]), "overtaken in {:?}", order);
        }
    }

    #[test]
    fn small_steps_and_a_second_run_change_nothing(which in 0..FABRICS.len(), messages in messages(), step in 1_000_000..500_000_000u64) {
        let whole = play(FABRICS[which], &messages, u64::MAX / 4);
        prop_assert_eq!(&whole, &play(FABRICS[which], &messages, u64::MAX / 4));
        prop_assert_eq!(&whole, &play(FABRICS[which], &messages, step));
    }
}

#[test]
fn deliveries_of_one_instant_come_together_in_the_order_of_their_tokens() {
    let mut network = fabric("kind = \"ideal\"\nlatency = \"1us\"\n", &lab(1, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in [5, 3, 9] {
        network.send(SimTime::ZERO, flow, 100, Token(token));
    }
    network.send(SimTime::ZERO, flow, 0, Token(1));
    let mut deliveries = Vec::new();
    assert_eq!(network.advance(SimTime::MAX, &mut deliveries), SimTime(1_000_000));
    assert_eq!(deliveries.iter().map(|delivery| delivery.token.0).collect::<Vec<_>>(), [1, 3, 5, 9]);
    assert_eq!(network.next_event(), None);
    assert_eq!(network.advance(SimTime(7_000_000), &mut deliveries), SimTime(7_000_000));
    assert!(run_all(&mut network).is_empty());
}
