//! Which port of which switch a link has, and how inputs, groups and central links are numbered.

use super::config::{CentralChoice, OmniPathConfig};
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::ids::UnitId;
use crate::kernel::random::{below, draw};
use crate::topology::{LinkId, NodeId, Topology};
use typed_index_collections::TiVec;

/// Lanes of all inputs and central links together: 4 GiB of state are a mistake.
const MAX_LANES: u64 = 1 << 26;

/// The units of each switch follow one another: its central links, group by group, then its inputs, port by port.
pub(super) struct Layout {
    ports: u32,
    group: u32,
    pub central_links: u32,
    /// Central links of a switch.
    centrals: u32,
    choice: CentralChoice,
    seed: u64,
    /// The port at which each link leaves its switch, and so the one at which its cable's other direction enters.
    port: TiVec<LinkId, u32>,
    /// The switch where each link ends, counted from 0; that of a host is meaningless.
    to: TiVec<LinkId, u32>,
    /// The link that ends in each unit, of inputs that have one.
    into: TiVec<UnitId, LinkId>,
}

impl Layout {
    /// That of the switches of `topology`.
    ///
    /// # Errors
    /// When a switch has too many cables, one that leads one way only, or there are too many lanes.
    pub fn new(config: &OmniPathConfig, topology: &Topology) -> Result<Self, FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        let mut port: TiVec<LinkId, u32> = vec![0; topology.links().len()].into();
        for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
            let links = topology.out(switch);
            if links.len() > config.ports as usize {
                let value = format!("{} with {} cables at {}", config.ports, links.len(), topology.name(switch));
                return wrong("ports", value, "as many ports as a switch has cables at least");
            }
            (0..).zip(links).for_each(|(number, link)| port[*link] = number);
        }
        if topology.links().iter().any(|link| link.absent) {
            return wrong("topology", "cables that lead one way".to_owned(), "cables that lead both ways (ways = 2)");
        }
        let centrals = config.ports / config.group * config.central_links;
        let units = u64::from(topology.switches()) * u64::from(centrals + config.ports);
        if units * u64::from(config.vls) > MAX_LANES {
            let value = format!("{} for {} switches of {} VLs", config.ports, topology.switches(), config.vls);
            return wrong("ports", value, "at most 67108864 lanes of inputs and central links in all");
        }
        let switch = |node: NodeId| node.0.saturating_sub(topology.hosts());
        let mut layout = Self {
            ports: config.ports,
            group: config.group,
            central_links: config.central_links,
            centrals,
            choice: config.central_choice,
            seed: config.seed,
            port,
            to: topology.links().iter().map(|link| switch(link.to)).collect(),
            into: TiVec::new(),
        };
        layout.into = vec![LinkId(u32::MAX); layout.units(topology.switches())].into();
        let to_switches = topology.links().iter().enumerate().filter(|(_, link)| !topology.is_host(link.to));
        for id in to_switches.map(|(id, _)| LinkId(count(id))) {
            let input = layout.input(id);
            layout.into[input] = id;
        }
        Ok(layout)
    }

    /// Units of a switch.
    pub const fn units_of_switch(&self) -> u32 {
        self.centrals + self.ports
    }

    /// Units of so many switches.
    pub const fn units(&self, switches: u32) -> usize {
        switches as usize * self.units_of_switch() as usize
    }

    /// The input in which `link` ends, of a link to a switch.
    pub fn input(&self, link: LinkId) -> UnitId {
        UnitId(self.to[link] * self.units_of_switch() + self.centrals + self.port[LinkId(link.0 ^ 1)])
    }

    /// The link that ends in `input`.
    pub fn link_into(&self, input: UnitId) -> LinkId {
        self.into[input]
    }

    /// The number of `unit` at its switch.
    pub const fn local(&self, unit: UnitId) -> u32 {
        unit.0 % self.units_of_switch()
    }

    /// The input port that `unit` is; `None` for a central link.
    pub const fn input_port(&self, unit: UnitId) -> Option<u32> {
        self.local(unit).checked_sub(self.centrals)
    }

    /// Whether `out` is a port of the group of `input_port`.
    pub fn same_group(&self, input_port: u32, out: LinkId) -> bool {
        input_port / self.group == self.port[out] / self.group
    }

    /// The first central link of the group of `input`.
    pub const fn first_central(&self, input: UnitId) -> UnitId {
        let local = self.local(input);
        let group = (local - self.centrals) / self.group;
        UnitId(input.0 - local + group * self.central_links)
    }

    /// Which of the central links of its group a packet takes that stands at `input`, goes on by `out` and has `key`;
    /// `None`: it depends on what is free.
    pub fn central(&self, input: UnitId, out: LinkId, key: u64) -> Option<u32> {
        let port = self.local(input) - self.centrals;
        Some(match self.choice {
            CentralChoice::Output => self.port[out] % self.central_links,
            CentralChoice::Input => port % self.central_links,
            CentralChoice::Drawn => {
                let switch = u64::from(input.0 / self.units_of_switch());
                let bits = draw(self.seed, (1 << 62) + switch, key);
                u32::try_from(below(bits, self.central_links.into())).unwrap_or(0)
            }
            CentralChoice::Free => return None,
        })
    }

    /// All central links that a packet may take which goes from `input` to `out`, within its group.
    pub fn centrals_for(&self, input: UnitId, out: LinkId) -> std::ops::Range<u32> {
        match self.choice {
            CentralChoice::Output | CentralChoice::Input => {
                let one = self.central(input, out, 0).unwrap_or(0);
                one..one + 1
            }
            CentralChoice::Drawn | CentralChoice::Free => 0..self.central_links,
        }
    }

    /// That of its output port, where none is free.
    pub fn by_output(&self, out: LinkId) -> u32 {
        self.port[out] % self.central_links
    }

    /// How many links there are.
    pub fn links(&self) -> u32 {
        count(self.port.len())
    }
}
