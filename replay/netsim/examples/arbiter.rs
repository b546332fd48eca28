//! An input arbiter of one's own in the switches of `credit`: the first input in order always wins, which starves the others. Beside it
//! the library's round robin: `cargo run --release -p netsim --example arbiter`.

use std::io::{Write as _, stdout};
use std::marker::PhantomData;

use netsim::fabric::credit::{
    Contender, Contest, Credit, CreditConfig, InputArbiter, RoundRobin, StaticBuffers, Strategies,
};
use netsim::fabric::packet::{Message, PacketFabric, PacketRecord, ServiceLevel};
use netsim::network::{HostIndex, Simulation, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::HostPlace;

/// The head of the first queue, in order of queues.
struct FixedPriority;

impl InputArbiter for FixedPriority {
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        std::iter::from_fn(|| contest.next()).min_by_key(|contender| contender.position)
    }
}

/// The strategies of a network whose switches have the input arbiter `A`.
struct With<A>(PhantomData<A>);

impl<A: InputArbiter> Strategies for With<A> {
    type Inputs = A;
    type Buffers = StaticBuffers;
}

/// How many of the first 300 packets that arrive at one host come from each of three others that send without a pause.
fn shares<A: InputArbiter>(arbiter: A) -> Result<[usize; 3], Box<dyn std::error::Error>> {
    let config: CreditConfig = "topology = { shape = \"single-switch\" }".parse()?;
    let hosts = ["a", "b", "c", "d"].map(|name| HostPlace { name: name.to_owned(), rack: "r".to_owned() });
    let topology = config.topology.build(&hosts)?;
    let routes = Routes::new(&config.routing, &topology, config.seed)?;
    let buffers = StaticBuffers { credits: 128 };
    let mut network: Credit<Vec<PacketRecord>, With<A>> =
        Credit::with(&config, topology, routes, (arbiter, buffers), Vec::new())?;
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

/// Compares both arbiters.
///
/// # Errors
/// When the network cannot be built or nothing can be written.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (fixed, turns) = (shares(FixedPriority)?, shares(RoundRobin)?);
    writeln!(stdout(), "of 300 packets: fixed priority {fixed:?}, round robin {turns:?}")?;
    assert_eq!((fixed, turns), ([300, 0, 0], [100, 100, 100]));
    Ok(())
}
