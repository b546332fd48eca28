//! Switches and adapters with their ports, while a file is read, and the graph that they make.

use super::super::subnet::{MAX_LID, MAX_PORT, Owner, Subnet};
use super::super::text::{Graph, GraphEdge, LinkText, Wrong};
use crate::count::count;
use std::collections::{BTreeMap, HashMap};

/// A base LID, and the logarithm of how many LIDs follow from it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lid {
    pub(super) base: u16,
    pub(super) lmc: u8,
}

/// A port, as far as it is known.
#[derive(Debug, Default)]
struct Port {
    guid: Option<u64>,
    lid: Option<Lid>,
    /// The device and port at the other end.
    to: Option<(usize, u8)>,
    line: usize,
}

/// A switch or an adapter.
#[derive(Debug, Default)]
struct Device {
    /// How the file calls it.
    id: String,
    switch: bool,
    /// The line where its own block stands; 0 while only others name it.
    line: usize,
    /// How many ports it has.
    size: u8,
    guid: Option<u64>,
    description: String,
    lid: Option<Lid>,
    ports: BTreeMap<u8, Port>,
}

impl Device {
    /// How many of its ports have a cable.
    fn cables(&self) -> usize {
        self.ports.values().filter(|port| port.to.is_some()).count()
    }
}

/// What is said of a device where it is described.
pub(super) struct DeviceDescription<'t> {
    pub(super) switch: bool,
    pub(super) size: u8,
    pub(super) guid: Option<u64>,
    pub(super) description: &'t str,
}

/// All devices of a file.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    known: HashMap<String, usize>,
}

/// A number of a file, which errors call `what`.
pub(super) fn number<T: TryFrom<u64>>(text: &str, radix: u32, what: &str) -> Result<T, String> {
    let digits = text.strip_prefix("0x").filter(|_| radix == 16).unwrap_or(text);
    let plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    let number = u64::from_str_radix(digits, radix).ok().filter(|_| plain);
    let kind = if radix == 16 { "hexadecimal number" } else { "number" };
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| format!("\"{text}\" is no {kind} of {what}"))
}

/// A unicast LID; `None` for 0, which is one that nobody has given.
pub(super) fn lid(text: &str, radix: u32) -> Result<Option<u16>, String> {
    match number(text, radix, "a LID")? {
        0 => Ok(None),
        lid if lid <= MAX_LID => Ok(Some(lid)),
        _ => Err(format!("\"{text}\" is no unicast LID; there are 1 to {MAX_LID} (0xbfff)")),
    }
}

/// The number of a port that may have a cable.
pub(super) fn port(text: &str, radix: u32) -> Result<u8, String> {
    let port = number(text, radix, "a port")?;
    if (1..=MAX_PORT).contains(&port) {
        return Ok(port);
    }
    Err(format!("\"{text}\" is no port that has a cable; there are 1 to {MAX_PORT}"))
}

/// Notes a value that may be known already.
fn note<T: PartialEq + Copy>(known: &mut Option<T>, value: Option<T>, what: &str) -> Result<(), String> {
    match (known.is_some(), value) {
        (true, Some(value)) if *known != Some(value) => Err(format!("{what} is said to be two different ones")),
        (false, Some(_)) => {
            *known = value;
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Devices {
    /// The device called `id`.
    pub(super) fn number(&mut self, id: &str) -> usize {
        if let Some(number) = self.known.get(id) {
            return *number;
        }
        self.devices.push(Device { id: id.to_owned(), ..Device::default() });
        self.known.insert(id.to_owned(), self.devices.len() - 1);
        self.devices.len() - 1
    }

    /// Whether a device has been described.
    pub(super) fn is_described(&self, device: usize) -> bool {
        self.devices[device].line > 0
    }

    /// Whether it is a switch.
    pub(super) fn is_switch(&self, device: usize) -> bool {
        self.devices[device].switch
    }

    /// What the file says of a device; the same again is no harm.
    pub(super) fn describe(&mut self, device: usize, said: &DeviceDescription<'_>, line: usize) -> Result<(), String> {
        let device = &mut self.devices[device];
        if device.line > 0 && (device.switch, device.size) != (said.switch, said.size) {
            return Err(format!("{} is described differently in line {}", device.id, device.line));
        }
        if device.line == 0 {
            (device.line, device.switch, device.size) = (line, said.switch, said.size);
        }
        note(&mut device.guid, said.guid, &format!("the GUID of {}", device.id))?;
        if device.description.is_empty() {
            said.description.clone_into(&mut device.description);
        }
        Ok(())
    }

    /// The LID of a switch, or of a port of an adapter, and the GUID of that.
    pub(super) fn address(
        &mut self,
        device: usize,
        port: u8,
        lid: Option<Lid>,
        guid: Option<u64>,
        line: usize,
    ) -> Result<(), String> {
        let device = &mut self.devices[device];
        let what = format!("port {port} of {}", device.id);
        if device.switch {
            return note(&mut device.lid, lid, &format!("the LID of {}", device.id));
        }
        let port = device.ports.entry(port).or_insert_with(|| Port { line, ..Port::default() });
        note(&mut port.guid, guid, &format!("the GUID of {what}"))?;
        // Only the port's own line knows of LMC.
        match (&mut port.lid, lid) {
            (Some(known), Some(lid)) if known.base == lid.base => {
                known.lmc = known.lmc.max(lid.lmc);
                Ok(())
            }
            (known, lid) => note(known, lid, &format!("the LID of {what}")),
        }
    }

    /// A cable, which both ends may name.
    pub(super) fn join(&mut self, a: (usize, u8), b: (usize, u8), line: usize) -> Result<(), String> {
        if a == b {
            return Err(format!("port {} of {} is joined to itself", a.1, self.devices[a.0].id));
        }
        for (from, to) in [(a, b), (b, a)] {
            let id = &self.devices[from.0].id;
            let other = |to: (usize, u8)| format!("port {} of {}", to.1, self.devices[to.0].id);
            match self.devices[from.0].ports.get(&from.1) {
                Some(Port { to: Some(before), line, .. }) if *before != to => {
                    let (one, two) = (other(*before), other(to));
                    return Err(format!("port {} of {id} is joined to {one} (line {line}) and to {two}", from.1));
                }
                _ => {}
            }
            let port = self.devices[from.0].ports.entry(from.1).or_default();
            port.to = Some(to);
            port.line = if port.line == 0 { line } else { port.line };
        }
        Ok(())
    }

    /// The graph: each port of an adapter that has a cable is a host.
    pub(super) fn finish(self) -> Result<Graph, Wrong> {
        for device in &self.devices {
            let line = device.ports.values().map(|port| port.line).min().unwrap_or(0);
            if device.line == 0 {
                let reason = format!("\"{}\" is named, but nowhere described: is the file cut?", device.id);
                return Err(Wrong { line, reason });
            }
            if let Some((number, port)) = device.ports.range(device.size.saturating_add(1)..).next() {
                let reason = format!("\"{}\" has ports 1 to {}, but here is port {number}", device.id, device.size);
                return Err(Wrong { line: port.line, reason });
            }
        }
        let mut graph = Graph::default();
        let mut nodes: HashMap<(usize, u8), usize> = HashMap::new();
        let mut switches = HashMap::new();
        let ends = self.ends();
        for (node, end) in ends.iter().enumerate() {
            match end.1 {
                Some(port) => nodes.insert((end.0, port), node),
                None => switches.insert(end.0, node),
            };
        }
        graph.nodes = self.names(&ends)?.into_iter().zip(ends.iter().map(|end| end.1.is_some())).collect();
        let mut subnet = self.subnet(&ends)?;
        for (device, Device { ports, .. }) in self.devices.iter().enumerate() {
            for (number, port) in ports {
                let Some(to) = port.to.filter(|to| (device, *number) < *to) else { continue };
                let node = |(device, port): (usize, u8)| {
                    let node = switches.get(&device).or_else(|| nodes.get(&(device, port)));
                    node.copied().ok_or_else(|| Wrong { line: 0, reason: "a cable leads to no node".to_owned() })
                };
                let ends = (node((device, *number))?, node(to)?);
                let link = 2 * count(graph.edges.len());
                subnet.ports.insert((ends.0, *number), link);
                subnet.ports.insert((ends.1, to.1), link + 1);
                let edge = GraphEdge { ends, class: None, cables: 1, link: LinkText::default(), line: port.line };
                graph.edges.push(edge);
            }
        }
        graph.subnet = Some(subnet);
        Ok(graph)
    }

    /// What becomes a node, in the order of their blocks: hosts, as a device and its port, and switches.
    fn ends(&self) -> Vec<(usize, Option<u8>)> {
        let mut devices: Vec<(usize, &Device)> = self.devices.iter().enumerate().collect();
        devices.sort_by_key(|(_, device)| device.line);
        let all = || devices.iter().copied();
        let hosts = all().filter(|(_, device)| !device.switch).flat_map(|(number, device)| {
            let cabled = device.ports.iter().filter(|(_, port)| port.to.is_some());
            cabled.map(move |(port, _)| (number, Some(*port)))
        });
        let switches = all().filter(|(_, device)| device.switch).map(|(number, _)| (number, None));
        hosts.chain(switches).collect()
    }

    /// Names of nodes: descriptions that no other node has, else what identifies them.
    fn names(&self, ends: &[(usize, Option<u8>)]) -> Result<Vec<String>, Wrong> {
        let identifier = |(number, port): &(usize, Option<u8>)| {
            let device = &self.devices[*number];
            let guid = port.map_or(device.guid, |port| device.ports.get(&port).and_then(|port| port.guid));
            match (guid, port) {
                (Some(guid), Some(_)) => format!("H{guid:016x}"),
                (Some(guid), None) => format!("S{guid:016x}"),
                (None, Some(port)) if device.cables() > 1 => format!("{}:{port}", device.id),
                (None, _) => device.id.clone(),
            }
        };
        let identifiers: Vec<String> = ends.iter().map(identifier).collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for (identifier, end) in identifiers.iter().zip(ends) {
            *uses.entry(identifier).or_default() += 1;
            *uses.entry(&self.devices[end.0].description).or_default() += 1;
        }
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut chosen = Vec::with_capacity(ends.len());
        for (identifier, end) in identifiers.iter().zip(ends) {
            let device = &self.devices[end.0];
            let description = device.description.as_str();
            // One that is its own identifier was counted twice.
            let unique = uses[description] == 1 + usize::from(description == identifier);
            let name = if unique && !description.is_empty() { description } else { identifier };
            if let Some(other) = names.insert(name, device.line) {
                let reason = format!(
                    "\"{name}\" is also what the node of line {other} is called: identifiers are of one node each"
                );
                return Err(Wrong { line: device.line, reason });
            }
            chosen.push(name.to_owned());
        }
        Ok(chosen)
    }

    /// LIDs and GUIDs.
    fn subnet(&self, ends: &[(usize, Option<u8>)]) -> Result<Subnet, Wrong> {
        let mut subnet = Subnet::default();
        for (node, (number, port)) in ends.iter().enumerate() {
            let device = &self.devices[*number];
            let port = port.and_then(|port| device.ports.get(&port));
            let line = port.map_or(device.line, |port| port.line);
            let guid = port.map_or(device.guid, |port| port.guid);
            let guids = if port.is_some() { &mut subnet.hosts } else { &mut subnet.switches };
            if let Some(guid) = guid
                && guids.insert(guid, node).is_some()
            {
                return Err(Wrong { line, reason: format!("two nodes have the GUID 0x{guid:016x}") });
            }
            let Some(Lid { base, lmc }) = port.map_or(device.lid, |port| port.lid) else { continue };
            for offset in 0..1u16 << lmc.min(7) {
                let owner = match (port, offset) {
                    (None, _) => Owner::Switch,
                    (Some(_), 0) => Owner::Host(node),
                    (Some(_), _) => Owner::OtherPath,
                };
                let lid = base.saturating_add(offset);
                if subnet.lids.insert(lid, owner).is_some() {
                    return Err(Wrong { line, reason: format!("two nodes have the LID {lid}") });
                }
            }
        }
        Ok(subnet)
    }
}
