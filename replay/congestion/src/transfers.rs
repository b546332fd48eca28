//! Transfers of different lengths that share links, as a shuffle's do.

use crate::metrics::Times;
use crate::{CongestionError, Experiment, Paths};
use netsim::topology::LinkId;

/// Bytes from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// How much.
    pub bytes: u64,
}

/// What all transfers at once come to, over runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing {
    /// The time of the link that needs the longest for the bytes that cross it: no schedule of the transfers on their paths is
    /// shorter.
    pub links: Times,
    /// The same of the links of hosts alone: what no routing can make shorter.
    pub host_links: Times,
    /// Bytes over each link, of all runs, by number of the link; at most 2^64 - 1.
    pub bytes: Vec<u64>,
}

/// What a thread keeps from run to run.
struct Counting {
    /// Bytes over each link in one run, by the numbers of [`Paths`].
    bytes: Vec<u64>,
    totals: Vec<u64>,
    links: Vec<u32>,
    ends: Vec<usize>,
    sharing: Sharing,
}

impl Experiment {
    /// Sends `transfers` in place of the pattern; `done` is called after each run. The pattern's keys do not matter.
    ///
    /// # Errors
    /// When there are not as many hosts as are asked for, or the routing has no path for a pair.
    pub fn share(
        &self,
        paths: &Paths<'_>,
        transfers: &[Transfer],
        done: impl Fn() + Sync,
    ) -> Result<Sharing, CongestionError> {
        let topology = paths.topology();
        let count = topology.links().len();
        // The links' rates, and whether they are hosts', by the numbers of paths.
        let of = |link: LinkId| {
            let link = topology.link(link);
            (link.rate, topology.is_host(link.from) || topology.is_host(link.to))
        };
        let rates: Vec<_> = paths.links().map(of).collect();
        let begin = || Counting {
            bytes: vec![0; count],
            totals: vec![0; count],
            links: Vec::new(),
            ends: Vec::new(),
            sharing: Sharing::default(),
        };
        let shares = self.each(paths, &done, begin, |counting, _, ranks| {
            let Counting { bytes, totals, links, ends, sharing } = counting;
            let pairs = transfers.iter().map(|one| (ranks[one.from as usize], ranks[one.to as usize]));
            paths.write(pairs, links, ends)?;
            let mut begin = 0;
            for (end, transfer) in ends.iter().zip(transfers) {
                for link in &links[begin..*end] {
                    let sum = &mut bytes[*link as usize];
                    *sum = sum.saturating_add(transfer.bytes);
                }
                begin = *end;
            }
            let (mut longest, mut of_hosts) = (0, 0);
            for ((bytes, total), (rate, of_host)) in bytes.iter_mut().zip(totals).zip(&rates) {
                let time = rate.time_ps(*bytes);
                longest = time.max(longest);
                of_hosts = if *of_host { time.max(of_hosts) } else { of_hosts };
                *total = total.saturating_add(std::mem::take(bytes));
            }
            sharing.links.add(longest);
            sharing.host_links.add(of_hosts);
            Ok(())
        })?;
        let mut all = Sharing { bytes: vec![0; count], ..Sharing::default() };
        for share in shares {
            all.links.merge(&share.sharing.links);
            all.host_links.merge(&share.sharing.host_links);
            all.bytes.iter_mut().zip(share.totals).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
        }
        all.bytes = paths.by_link(all.bytes);
        Ok(all)
    }
}
