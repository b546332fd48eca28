//! Routes that stand in the `comment` of a DOT digraph's edges, as ORCS reads them.
//!
//! At node u, packets for hosts a and b take the edge u -> v that has `comment="a,b"`; `*` is all hosts that no other edge out of
//! u names. Hosts have one cable, so that it makes no difference what their edges say.

use super::super::TopologyError;
use super::super::ids::MAX_ENTRIES;
use super::text::{Graph, NO_ROUTE, Wrong};
use std::collections::HashMap;

/// What an edge says.
#[derive(Debug)]
pub(super) struct Comment {
    /// Twice the number of the cable's edge, 1 more if it leads against its ends.
    pub(super) link: u32,
    pub(super) text: String,
    pub(super) line: usize,
}

/// What a name in a comment is.
#[derive(Clone, Copy)]
enum Known {
    Host(usize),
    Switch,
    /// Nothing, which has been told.
    Told,
}

/// Gives `graph` the routes of its comments.
pub(super) fn resolve(graph: &mut Graph, comments: &[Comment], file: &str) -> Result<(), Wrong> {
    let Some(first) = comments.first() else { return Ok(()) };
    let hosts = graph.hosts();
    let entries = hosts as u64 * (graph.nodes.len() - hosts) as u64;
    if entries > MAX_ENTRIES {
        let reason = format!("routes of {entries} pairs of a switch and a host; at most {MAX_ENTRIES} are possible");
        return Err(Wrong { line: first.line, reason });
    }
    let kind = |node| if node < hosts { Known::Host(node) } else { Known::Switch };
    let mut known: HashMap<&str, Known> =
        graph.nodes.iter().enumerate().map(|(node, (name, _))| (name.as_str(), kind(node))).collect();
    let mut routes = vec![NO_ROUTE; hosts * (graph.nodes.len() - hosts)];
    let mut rest: HashMap<usize, u32> = HashMap::new();
    let mut unknown = Vec::new();
    for Comment { link, text, line } in comments {
        let (from, cables) = (graph.from(*link), graph.edges[*link as usize / 2].cables);
        let wrong = |reason| Wrong { line: *line, reason };
        if cables != 1 {
            let reason = format!("cables = {cables} with a comment: routes need an edge for each of parallel cables");
            return Err(wrong(reason));
        }
        let twice = |other: u32, what: &str| {
            let name = |node: usize| &graph.nodes[node].0;
            let (at, one, two) = (name(from), name(graph.to(other)), name(graph.to(*link)));
            wrong(format!("at {at}, packets for {what} take two edges, to {one} and to {two}: only one may name them"))
        };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name == "*" {
                match rest.insert(from, *link) {
                    Some(other) if other != *link && from >= hosts => return Err(twice(other, "*")),
                    _ => continue,
                }
            }
            match known.get(name) {
                Some(Known::Host(to)) if from >= hosts => {
                    let route = &mut routes[(from - hosts) * hosts + to];
                    if *route != NO_ROUTE && *route != *link {
                        return Err(twice(*route, name));
                    }
                    *route = *link;
                }
                Some(Known::Host(_) | Known::Told) => {}
                Some(Known::Switch) | None => {
                    unknown.push((*line, name.to_owned()));
                    known.insert(name, Known::Told);
                }
            }
        }
    }
    for (from, link) in rest.into_iter().filter(|(from, _)| *from >= hosts) {
        let row = &mut routes[(from - hosts) * hosts..][..hosts];
        row.iter_mut().filter(|route| **route == NO_ROUTE).for_each(|route| *route = link);
    }
    graph.routes = routes;
    for (line, name) in unknown {
        graph.warn(file, line, &format!("comment names \"{name}\", which is no host of the graph: left out"));
    }
    Ok(())
}

/// Names that stand in comments as they are.
pub(super) fn check_name(name: &str) -> Result<(), TopologyError> {
    if name.is_empty() || name == "*" || name.contains(',') || name.trim() != name {
        let reason =
            "a comment of DOT lists hosts with commas between them, and * is all of them: give it another name";
        return Err(TopologyError::Name { name: name.to_owned(), reason: reason.to_owned() });
    }
    Ok(())
}
