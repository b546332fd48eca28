//! An input arbiter and an allocator of one's own in the switches of `credit`: the first input in order always wins, which starves the
//! others. Beside them the library's round robin: `cargo run --release -p netsim --example arbiter`.

use std::io::{Write as _, stdout};
use std::marker::PhantomData;

use netsim::fabric::credit::{
    Allocator, Contender, Contest, Credit, CreditConfig, InputArbiter, LinkByLink, Requests, RoundRobin, StaticBuffers,
    Strategies,
};
use netsim::fabric::packet::{Message, PacketFabric, PacketRecord, ServiceLevel};
use netsim::network::{HostIndex, Simulation, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::units::DurationPs;

/// The head of the first queue, in order of queues.
struct FixedPriority;

impl InputArbiter for FixedPriority {
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        std::iter::from_fn(|| contest.next()).min_by_key(|contender| contender.position)
    }
}

/// Matches what still can be matched, request by request, in order of links, VLs and queues.
struct Greedy;

impl Allocator for Greedy {
    fn cycle(&self) -> Option<DurationPs> {
        Some(DurationPs::ZERO)
    }

    fn allocate(&self, requests: &mut impl Requests) {
        for request in 0..requests.all().len() {
            if requests.is_open(request) {
                requests.take(request, true);
            }
        }
    }
}

/// The strategies of a network whose switches have the input arbiter `A` and the allocator `M`.
struct With<A, M>(PhantomData<(A, M)>);

impl<A: InputArbiter, M: Allocator> Strategies for With<A, M> {
    type Inputs = A;
    type Buffers = StaticBuffers;
    type Allocator = M;
}

/// How many of the first 300 packets that arrive at one host come from each of three others that send without a pause.
fn shares<A: InputArbiter, M: Allocator>(arbiter: A, allocator: M) -> Result<[usize; 3], Box<dyn std::error::Error>> {
    let config: CreditConfig = "topology = { shape = \"single-switch\" }".parse()?;
    let hosts = ["a", "b", "c", "d"].map(|name| HostPlace { name: name.to_owned(), rack: "r".to_owned() });
    let topology = config.topology.build(&hosts)?;
    let routes = Routes::new(&config.routing, &topology, config.seed)?;
    let buffers = StaticBuffers { credits: 128 };
    let mut network: Credit<Vec<PacketRecord>, With<A, M>> =
        Credit::with(&config, topology, routes, (arbiter, buffers, allocator), Vec::new())?;
    for source in 0..3 {
        let message = Message {
            source: HostIndex(source),
            destination: HostIndex(3),
            bytes: 1 << 20,
            level: ServiceLevel(0),
            flow: u64::from(source),
            token: Token(u64::from(source)),
        };
        network.send(SimTime::ZERO, &message);
    }
    network.run_before(SimTime::MAX);
    let mut packets = std::mem::take(network.observer());
    packets.sort_by_key(|packet| packet.arrived);
    let first = &packets[..300];
    Ok([0, 1, 2].map(|source| first.iter().filter(|packet| packet.source == HostIndex(source)).count()))
}

/// Compares the three.
///
/// # Errors
/// When the network cannot be built or nothing can be written.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (fixed, turns) = (shares(FixedPriority, LinkByLink)?, shares(RoundRobin, LinkByLink)?);
    let greedy = shares(RoundRobin, Greedy)?;
    writeln!(stdout(), "of 300 packets: fixed priority {fixed:?}, greedy {greedy:?}, round robin {turns:?}")?;
    assert_eq!((fixed, greedy, turns), ([300, 0, 0], [300, 0, 0], [100, 100, 100]));
    Ok(())
}
