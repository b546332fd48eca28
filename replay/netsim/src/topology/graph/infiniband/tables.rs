//! Forwarding tables: LFT dumps (OpenSM's `opensm-lfts.dump`, `dump_lfts.sh`, `ibroute`) and `ibdiagnet.fdbs`, line by line.
//!
//! ```text
//! Unicast lids [0-3] of switch Lid 3 guid 0x0000000000200000 ('spine'):
//! 0x0001 001 # Channel Adapter portguid 0x0000000000100001: 'node 1'
//! 3 lids dumped
//!
//! osm_ucast_mgr_dump_ucast_routes: Switch 0x0000000000200000
//! LID    : Port : Hops : Optimal
//! 0x0001 : 001  : 00   : yes
//! 0x0002 : UNREACHABLE
//! ```
//!
//! A destination is known by its LID; where the topology has none (ibsim), by the GUID of its port or its name behind the port.

use super::super::subnet::{Owner, Subnet};
use super::super::text::{Graph, NO_ROUTE, Wrong};
use super::devices::{lid, number};
use std::collections::HashMap;
use std::io::{BufRead, Read};

/// The most bytes of a line.
const MAX_LINE: u64 = 4096;

/// The table that is being read.
struct Table {
    switch: usize,
    line: usize,
    /// Whether a line says where it ends.
    ends: bool,
}

struct Reader<'g> {
    nodes: &'g [(String, bool)],
    hosts: usize,
    subnet: &'g Subnet,
    /// Nodes by name; `None` where several have it.
    names: HashMap<&'g str, Option<usize>>,
    routes: Vec<u32>,
    open: Option<Table>,
    warnings: Vec<(usize, String)>,
    /// How many warnings there were for LIDs that nobody has.
    nobody: HashMap<u16, ()>,
    other_paths: bool,
}

/// Gives `graph` the routes of a file, which errors call `file`.
pub(in super::super) fn read(graph: &mut Graph, subnet: &Subnet, lines: impl BufRead, file: &str) -> Result<(), Wrong> {
    let hosts = graph.hosts();
    let mut names = HashMap::new();
    for (node, (name, _)) in graph.nodes.iter().enumerate() {
        names.entry(name.as_str()).and_modify(|known| *known = None).or_insert(Some(node));
    }
    let mut reader = Reader {
        nodes: &graph.nodes,
        hosts,
        subnet,
        names,
        routes: vec![NO_ROUTE; hosts * (graph.nodes.len() - hosts)],
        open: None,
        warnings: Vec::new(),
        nobody: HashMap::new(),
        other_paths: false,
    };
    let last = each_line(lines, |line, content| reader.line(line, content))?;
    reader.end(last)?;
    if last == 0 || reader.routes.iter().all(|route| *route == NO_ROUTE) {
        let why = match reader.warnings.first() {
            Some((line, warning)) => format!(
                "line {line}: {warning}; the output of ibnetdiscover for the same subnet has LIDs and GUIDs of all hosts"
            ),
            None => "an LFT dump of OpenSM or ibroute, or ibdiagnet.fdbs, is needed".to_owned(),
        };
        return Err(Wrong { line: last.max(1), reason: format!("there are no routes to hosts: {why}") });
    }
    let Reader { routes, warnings, .. } = reader;
    graph.routes = routes;
    for (line, reason) in warnings {
        graph.warn(file, line, &reason);
    }
    Ok(())
}

/// Gives each line that is not empty to `take`, with its number; the number of the last one.
fn each_line(mut lines: impl BufRead, mut take: impl FnMut(usize, &str) -> Result<(), String>) -> Result<usize, Wrong> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let wrong = |reason: String| Wrong { line, reason };
        let read = lines.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        match read.map_err(|error| wrong(error.to_string()))? {
            0 => return Ok(line - 1),
            length if length as u64 > MAX_LINE => {
                return Err(wrong(format!("the line has more than {MAX_LINE} bytes")));
            }
            _ => {}
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("the line is not UTF-8".to_owned()))?.trim();
        if !text.is_empty() {
            take(line, text).map_err(wrong)?;
        }
    }
    Ok(0)
}

impl Reader<'_> {
    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        if text.starts_with("Unicast lids") {
            return self.begin(line, text, true);
        }
        if let Some((_, switch)) = text.split_once("dump_ucast_routes: Switch ") {
            return self.begin(line, switch, false);
        }
        if text.starts_with("0x") {
            return self.entry(line, text);
        }
        if text.split_once(' ').is_some_and(|(_, rest)| matches!(rest.trim(), "lids dumped" | "valid lids dumped")) {
            return match self.open.take() {
                Some(Table { ends: true, .. }) => Ok(()),
                _ => Err(format!("\"{text}\" ends no table of a switch: is the file cut?")),
            };
        }
        if let Some(("PLFT_NUM", number)) = text.split_once(':') {
            return match number.trim() {
                "0" | "1" => Ok(()),
                more => {
                    Err(format!("PLFT_NUM: {more}: a switch with several forwarding tables has no one path a pair"))
                }
            };
        }
        let heading = text.split([' ', '\t', ':']).next().unwrap_or_default();
        // "ibwarn" is what the tools say on stderr.
        if text.starts_with('#') || matches!(heading, "LID" | "Lid" | "Port" | "ibwarn") {
            return Ok(());
        }
        Err(format!(
            "\"{text}\" is not understood: a table begins with \"Unicast lids\" or \"...dump_ucast_routes: Switch\""
        ))
    }

    /// What a table must not end without.
    fn end(&mut self, line: usize) -> Result<(), Wrong> {
        match self.open.take() {
            Some(Table { switch, line: begin, ends: true }) => {
                let reason = format!(
                    "the table of {} (line {begin}) has no end \"lids dumped\": the file is cut",
                    self.nodes[switch].0
                );
                Err(Wrong { line, reason })
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, line: usize, text: &str, ends: bool) -> Result<(), String> {
        self.end(line).map_err(|wrong| wrong.reason)?;
        let guid = if ends { text.split_once("guid ").map(|(_, rest)| rest) } else { Some(text) };
        let guid = guid.and_then(|rest| rest.split_whitespace().next());
        let guid: Option<u64> = guid.map(|guid| number(guid, 16, "a switch's GUID")).transpose()?;
        let name = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map(|(name, _)| unquoted(name));
        let by_guid = guid.and_then(|guid| self.subnet.switches.get(&guid).copied());
        let by_name = || name.and_then(|name| self.named(name)).filter(|node| *node >= self.hosts);
        let Some(switch) = by_guid.or_else(by_name) else {
            return Err(format!("\"{text}\": the topology has no such switch; both files must be of the same subnet"));
        };
        self.open = Some(Table { switch, line, ends });
        Ok(())
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().flatten()
    }

    /// `0x0001 001 # ...`, `0x0001 001 : (...)`, `0x0001 : 001 : 00 : yes` or `0x0001 : UNREACHABLE`.
    fn entry(&mut self, line: usize, text: &str) -> Result<(), String> {
        let Some(Table { switch, .. }) = self.open else {
            return Err(format!("\"{text}\" stands in no table of a switch: is the file cut?"));
        };
        let blank = [' ', '\t', ':'];
        let (word, rest) = text.split_once(blank).unwrap_or((text, ""));
        let lid = lid(word, 16)?;
        let rest = rest.trim_start_matches(blank);
        let (port, of) = rest.split_once(blank).unwrap_or((rest, ""));
        let of = of.trim_start_matches(['#', '(', ' ', '\t', ':']);
        let port = match port {
            "UNREACHABLE" => None,
            _ if of.ends_with("illegal port)") => None,
            port => Some(number::<u8>(port, 10, "a port")?).filter(|port| *port != u8::MAX),
        };
        // LIDs that nobody has are listed as unreachable, too.
        let Some(port) = port else { return Ok(()) };
        let Some(to) = self.host(line, lid, of)? else { return Ok(()) };
        let name = |node: usize| &self.nodes[node].0;
        let Some(link) = self.subnet.ports.get(&(switch, port)) else {
            let (at, to) = (name(switch), name(to));
            return Err(format!("{at} has no cable at port {port}, by which {to} ({word}) is to be reached"));
        };
        let route = &mut self.routes[(switch - self.hosts) * self.hosts + to];
        if *route != NO_ROUTE {
            return Err(format!("{} has a second route to {} ({word})", name(switch), name(to)));
        }
        *route = *link;
        Ok(())
    }

    /// The host that has a LID, of which the file says `of`; `None` if it is none.
    fn host(&mut self, line: usize, lid: Option<u16>, of: &str) -> Result<Option<usize>, String> {
        let Some(lid) = lid else { return Ok(None) };
        let guid = of.split_once("portguid ").map(|(_, rest)| rest.split([':', ')', ' ']).next().unwrap_or_default());
        let by_guid = guid
            .and_then(|guid| number::<u64>(guid, 16, "a GUID").ok())
            .and_then(|guid| self.subnet.hosts.get(&guid).copied());
        let other_path = of.starts_with("path #");
        match self.subnet.lids.get(&lid) {
            // Of the GUIDs that old programs print wrongly, none is that of another host.
            Some(Owner::Host(host)) if by_guid.is_some_and(|by_guid| by_guid != *host) && !other_path => {
                let other = by_guid.map_or("", |node| self.nodes[node].0.as_str());
                let host = &self.nodes[*host].0;
                Err(format!(
                    "LID {lid} is {host} in the topology, but {other} here: both files must be of the same time"
                ))
            }
            Some(Owner::Host(host)) => Ok(Some(*host)),
            Some(Owner::Switch) => Ok(None),
            Some(Owner::OtherPath) => {
                self.tell_of_other_paths(line);
                Ok(None)
            }
            None if other_path => {
                self.tell_of_other_paths(line);
                Ok(None)
            }
            None => {
                let of_switch = of.starts_with("Switch ");
                let by_name = || {
                    let name = of.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\'')).map(|(name, _)| name);
                    name.and_then(|name| self.named(name)).filter(|node| *node < self.hosts)
                };
                let host = if of_switch { None } else { by_guid.or_else(by_name) };
                if host.is_none() && !of_switch && self.nobody.insert(lid, ()).is_none() {
                    self.warnings.push((line, format!("LID {lid} is nobody's in the topology: left out")));
                }
                Ok(host)
            }
        }
    }

    fn tell_of_other_paths(&mut self, line: usize) {
        if !std::mem::replace(&mut self.other_paths, true) {
            let reason = "hosts have several LIDs (LMC): their first path is followed, the others are left out";
            self.warnings.push((line, reason.to_owned()));
        }
    }
}

/// A name without single quotes around it.
fn unquoted(name: &str) -> &str {
    name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')).unwrap_or(name)
}
