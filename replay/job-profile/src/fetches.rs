//! What NodeManagers take for fetches of map outputs. Their first ones are much slower than later ones: they load classes.

use trace::ids::HostId;

use crate::recording::Recording;

/// So many fetches of a NodeManager are kept one by one; later ones take their median.
const MAX_FETCHES: usize = 32;
/// The same where only medians over the NodeManagers are kept.
const MAX_MEDIANS: usize = 8;

/// By number of the fetch, what each NodeManager took from its request to the first byte of an output, nanoseconds.
pub(super) fn fetches(of: &Recording<'_>, nodes: &[HostId]) -> Vec<Vec<u64>> {
    fetches_of(of.fetches(), nodes, MAX_FETCHES)
}

/// The same, medians over the NodeManagers.
pub(super) fn median_fetches(of: &Recording<'_>) -> Vec<u64> {
    let samples = fetches_of(of.fetches(), &of.ordered_nodes(), MAX_MEDIANS);
    samples.into_iter().filter_map(median).collect()
}

/// Fetches are given as the NodeManager's host, when it was asked, and what it took.
fn fetches_of(fetches: Vec<(HostId, u64, u64)>, nodes: &[HostId], most: usize) -> Vec<Vec<u64>> {
    let mut of_node: Vec<Vec<(u64, u64)>> = vec![Vec::new(); nodes.len()];
    for (host, asked_ns, service_ns) in fetches {
        if let Some(node) = nodes.iter().position(|node| *node == host) {
            of_node[node].push((asked_ns, service_ns));
        }
    }
    for fetches in &mut of_node {
        fetches.sort_unstable();
    }
    let count = of_node.iter().map(Vec::len).max().unwrap_or(0);
    let of_number = |number: usize| of_node.iter().filter_map(move |fetches| fetches.get(number)).map(|(_, ns)| *ns);
    let mut samples: Vec<Vec<u64>> = (0..count.min(most)).map(|number| of_number(number).collect()).collect();
    let later: Vec<u64> = (most..count).flat_map(of_number).collect();
    samples.extend(median(later).map(|ns| vec![ns]));
    samples
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_are_told_by_their_number_and_later_ones_as_one() {
        let nodes = [HostId(3), HostId(5)];
        let of_node = |host: u32, ns: &[u64]| -> Vec<(HostId, u64, u64)> {
            (1u64..).zip(ns).map(|(asked, ns)| (HostId(host), asked, *ns)).collect()
        };
        let mut all = of_node(3, &[900, 20, 10, 30, 40]);
        all.extend(of_node(5, &[700, 50]));
        all.extend(of_node(7, &[1]));
        all.reverse();
        assert_eq!(fetches_of(all, &nodes, 2), [vec![900, 700], vec![20, 50], vec![30]]);
        assert_eq!(fetches_of(Vec::new(), &nodes, 2), Vec::<Vec<u64>>::new());
    }
}
