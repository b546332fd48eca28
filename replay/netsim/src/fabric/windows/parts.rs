//! Where a network is cut: through links on which packets, and what is told back of them, take long.

use super::levels::levels;
use crate::count::count;
use crate::topology::{LinkId, NodeId, Topology};
use crate::units::DurationPs;
use std::collections::BTreeSet;
use std::ops::Range;

/// The width of a window of a network that is not cut, where windows only say how often it is looked up: 10 us.
const UNCUT_PS: u64 = 10_000_000;
/// A part may have so much more than its share of the ports, in percent.
const UNEVEN: u64 = 125;
/// Fewer packets a window and part than these, were all links busy, and threads would meet more than they work.
const PACKETS_OF_A_WINDOW: u64 = 256;

/// Which nodes are simulated together.
pub(in crate::fabric) struct Parts {
    pub count: u16,
    /// The part of each node.
    pub part_of: Vec<u16>,
    /// Nothing that one part does shows sooner in another.
    pub window_ps: u64,
}

impl Parts {
    /// `wanted` parts of `topology`, fewer if it has fewer switches. Hosts are with their switches. `alone_ps` says how long the ends of
    /// a link are by themselves, picoseconds: what the one where it begins does shows no sooner at the other. Where that is 0 a link is
    /// not cut; `None` if it is 0 for all.
    pub fn new(topology: &Topology, wanted: u16, alone_ps: impl Fn(LinkId) -> u64) -> Option<Self> {
        let count = u32::from(wanted).min(topology.switches()).max(1);
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        let cables = Cables::new(topology, alone_ps);
        // The longest window comes first: the fewer cables may be cut, the larger are the pieces.
        let windows: BTreeSet<u64> = cables.all().map(|(_, window)| window).filter(|window| *window > 0).collect();
        let mut found = None;
        for window in windows.into_iter().rev() {
            let (part_of, even) = cables.shared_out(window, count);
            found = Some(part_of);
            if even {
                break;
            }
        }
        let mut part_of = match found {
            Some(part_of) => part_of,
            None if count > 1 && cables.all().next().is_some() => return None,
            None => cables.shared_out(0, count).0,
        };
        for host in 0..topology.hosts() {
            part_of[host as usize] = part_of[topology.switch_of(NodeId(host)).0 as usize];
        }
        let cut = |id: &LinkId| {
            let link = topology.link(*id);
            part_of[link.from.0 as usize] != part_of[link.to.0 as usize]
        };
        let window = cables.all().filter(|(id, _)| cut(id)).map(|(_, window)| window).min();
        Some(Self { count, window_ps: window.unwrap_or(UNCUT_PS), part_of })
    }

    /// Why these parts are better not run in windows, if so; a packet takes a link so long as `packet_ps` says.
    pub fn too_short(&self, topology: &Topology, packet_ps: impl Fn(LinkId) -> u64) -> Option<String> {
        let packets = self.packets_of_a_window(topology, packet_ps);
        let window = DurationPs(self.window_ps);
        (packets < PACKETS_OF_A_WINDOW)
            .then(|| format!("its parts would be by themselves for {window} at a time, too short to pay"))
    }

    /// Packets that cross the links of a part in a window, if all are busy.
    fn packets_of_a_window(&self, topology: &Topology, packet_ps: impl Fn(LinkId) -> u64) -> u64 {
        let links = (0..topology.links().len()).map(|id| packet_ps(LinkId(count(id))).max(1));
        let packets: u128 = links.map(|packet| u128::from(self.window_ps) * 1_000 / u128::from(packet)).sum();
        u64::try_from(packets / 1_000 / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }
}

/// The cables between switches, by one of their links, and for how long their ends are by themselves.
struct Cables<'a> {
    topology: &'a Topology,
    cables: Vec<(LinkId, u64)>,
}

impl<'a> Cables<'a> {
    fn new(topology: &'a Topology, alone_ps: impl Fn(LinkId) -> u64) -> Self {
        let between = |id: &LinkId| {
            let link = topology.link(*id);
            !topology.is_host(link.from) && !topology.is_host(link.to)
        };
        let ids = (0..topology.links().len()).step_by(2).map(|id| LinkId(count(id))).filter(between);
        Self { cables: ids.map(|id| (id, alone_ps(id).min(alone_ps(id.back())))).collect(), topology }
    }

    fn all(&self) -> impl Iterator<Item = (LinkId, u64)> + '_ {
        self.cables.iter().copied()
    }

    /// The switches in `parts` parts, of which only cables of `window` at least are cut, and whether the parts are about even. Hosts have no
    /// part yet.
    fn shared_out(&self, window: u64, parts: u16) -> (Vec<u16>, bool) {
        let nodes = self.topology.nodes();
        let mut pieces: Vec<u32> = (0..nodes).collect();
        for (id, _) in self.all().filter(|(_, of_cable)| *of_cable < window) {
            let link = self.topology.link(id);
            let [from, to] = [link.from, link.to].map(|node| find(&mut pieces, node.0));
            // The lowest switch stands for the piece.
            pieces[from.max(to) as usize] = from.min(to);
        }
        let ports = |switch: u32| self.topology.out(NodeId(switch)).len() as u64;
        let mut weights = vec![0u64; nodes as usize];
        for switch in self.topology.hosts()..nodes {
            weights[find(&mut pieces, switch) as usize] += ports(switch);
        }
        let mut part_of = vec![0u16; nodes as usize];
        let mut taken = vec![0u64; usize::from(parts)];
        for level in levels(self.topology) {
            self.share(level, &pieces, &weights, &mut part_of, &mut taken);
        }
        for switch in self.topology.hosts()..nodes {
            part_of[switch as usize] = part_of[find(&mut pieces, switch) as usize];
        }
        let all: u64 = taken.iter().sum();
        let even = taken.iter().all(|ports| ports * u64::from(parts) * 100 <= all * UNEVEN);
        (part_of, even)
    }

    /// Shares out the pieces whose lowest switch is in `level`, neighbours together.
    fn share(&self, level: Range<u32>, pieces: &[u32], weights: &[u64], part_of: &mut [u16], taken: &mut [u64]) {
        let here = level.filter(|switch| pieces[*switch as usize] == *switch);
        let all: u64 = here.clone().map(|switch| weights[switch as usize]).sum();
        let mut before = 0;
        for switch in here {
            let weight = weights[switch as usize];
            // By the piece's middle.
            let part = (2 * before + weight) * taken.len() as u64 / (2 * all).max(1);
            let part = usize::try_from(part).unwrap_or(0).min(taken.len() - 1);
            part_of[switch as usize] = u16::try_from(part).unwrap_or(0);
            taken[part] += weight;
            before += weight;
        }
    }
}

/// The lowest switch of the piece in which `node` is.
fn find(pieces: &mut [u32], mut node: u32) -> u32 {
    while pieces[node as usize] != node {
        let above = pieces[pieces[node as usize] as usize];
        pieces[node as usize] = above;
        node = above;
    }
    node
}
