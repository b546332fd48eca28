//! Room on hosts: which containers ran there, and whose end made room for another.

use trace::ids::HostId;

use super::draft::Draft;
use crate::maps::HashMap;

/// A container that ran: when it was started, when it ended, and the mark of its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    /// Where it ran.
    pub host: HostId,
    /// Started.
    pub begin: u64,
    /// Ended.
    pub end: u64,
    /// The mark of its end.
    pub mark: Draft,
}

/// The ends of containers at which their host was as full as it ever was, by host and in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    full_ends: HashMap<HostId, Vec<(u64, Draft)>>,
}

impl Slots {
    /// Looks at all containers of a kind.
    pub fn of(containers: &[Container]) -> Self {
        let mut by_host: HashMap<HostId, Vec<&Container>> = HashMap::default();
        for container in containers {
            by_host.entry(container.host).or_default().push(container);
        }
        Self { full_ends: by_host.into_iter().map(|(host, here)| (host, full_ends(here))).collect() }
    }

    /// The container whose end made room on a host after `since` and until `until`, if the host was as full as it ever
    /// was until then.
    pub fn freed(&self, host: HostId, since: u64, until: u64) -> Option<Draft> {
        let ends = self.full_ends.get(&host)?;
        let last = ends.partition_point(|(end, _)| *end <= until).checked_sub(1)?;
        let (end, mark) = ends[last];
        (end > since).then_some(mark)
    }
}

fn full_ends(mut here: Vec<&Container>) -> Vec<(u64, Draft)> {
    // One that ended before it began ran at no time.
    let ran = || here.iter().filter(|container| container.begin < container.end);
    let mut begins: Vec<u64> = ran().map(|container| container.begin).collect();
    let mut ends: Vec<u64> = ran().map(|container| container.end).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let running =
        |at: u64| begins.partition_point(|begin| *begin < at).saturating_sub(ends.partition_point(|end| *end < at));
    let most = here.iter().map(|container| running(container.end)).max().unwrap_or(0);
    here.retain(|container| running(container.end) >= most);
    here.sort_by_key(|container| container.end);
    here.into_iter().map(|container| (container.end, container.mark)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition, looking at all containers for each.
    fn freed(containers: &[Container], host: HostId, since: u64, until: u64) -> Option<Draft> {
        let here = || containers.iter().filter(move |container| container.host == host);
        let running = |at: u64| here().filter(|other| other.begin < at && other.end >= at).count();
        let most = here().map(|container| running(container.end)).max()?;
        here()
            .filter(|container| container.end > since && container.end <= until && running(container.end) >= most)
            .max_by_key(|container| container.end)
            .map(|container| container.mark)
    }

    #[test]
    fn room_is_found_as_by_looking_at_all_containers() {
        let mut state = 1u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for case in 0..300 {
            let containers: Vec<Container> = (0..below(30) as usize)
                .map(|mark| {
                    let begin = below(20);
                    // Some end when they begin, some before.
                    let end = (begin + below(8)).saturating_sub(2);
                    Container { host: HostId(below(3) as u32), begin, end, mark }
                })
                .collect();
            let slots = Slots::of(&containers);
            for _ in 0..20 {
                let (host, since, until) = (HostId(below(4) as u32), below(25), below(25));
                assert_eq!(
                    slots.freed(host, since, until),
                    freed(&containers, host, since, until),
                    "case {case}: {host:?} {since} {until} {containers:?}"
                );
            }
        }
    }
}
