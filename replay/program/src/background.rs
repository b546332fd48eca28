//! Traffic beside a program: hosts that send to one another whatever the program does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use netsim::kernel::random::{below, draw, unit};
use netsim::network::{FlowId, HostIndex, Network, Token};
use netsim::time::SimTime;
use netsim::units::DurationPs;

/// What messages of the background are called: no operation of a program has such a number.
pub(crate) const BACKGROUND: Token = Token(u64::MAX);

/// Places of what is drawn, away from those of fabrics.
const GAP: u64 = 1 << 57;
const DESTINATION: u64 = 1 << 58;

/// Hosts that send each other messages after gaps with an exponential distribution, each to any other one of them.
#[derive(Debug)]
pub struct Background {
    hosts: Vec<HostIndex>,
    gap: DurationPs,
    bytes: u64,
    seed: u64,
    /// Messages that each has sent.
    counts: Vec<u64>,
    /// When each sends its next one.
    due: BinaryHeap<Reverse<(SimTime, usize)>>,
    flows: HashMap<(usize, usize), FlowId>,
}

impl Background {
    /// Messages of `bytes` between `hosts`, each of which sends one each `gap`, as a mean. Nothing without two hosts and a gap.
    #[must_use]
    pub fn new(hosts: Vec<HostIndex>, gap: DurationPs, bytes: u64, seed: u64) -> Self {
        let sending = if hosts.len() < 2 || gap == DurationPs::ZERO { 0 } else { hosts.len() };
        let mut background = Self {
            counts: vec![0; hosts.len()],
            hosts,
            gap,
            bytes,
            seed,
            due: BinaryHeap::new(),
            flows: HashMap::new(),
        };
        (0..sending).for_each(|host| background.schedule(host, SimTime::ZERO));
        background
    }

    /// Messages that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn draw(&self, what: u64, host: usize) -> u64 {
        draw(self.seed, what + u64::from(self.hosts[host].0), self.counts[host])
    }

    fn schedule(&mut self, host: usize, now: SimTime) {
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let gap = -libm::log1p(-unit(self.draw(GAP, host))) * self.gap.ps() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on; casts saturate")]
        let gap = gap.round() as u64;
        self.due.push(Reverse((now.plus_ps(gap), host)));
    }

    /// When the next message is sent.
    pub(crate) fn next_time(&self) -> Option<SimTime> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Sends the next message, whose time is `now`.
    pub(crate) fn send(&mut self, now: SimTime, network: &mut impl Network) {
        let Some(Reverse((_, host))) = self.due.pop() else { return };
        let drawn = below(self.draw(DESTINATION, host), self.hosts.len() as u64 - 1);
        let drawn = usize::try_from(drawn).unwrap_or(0);
        let to = if drawn >= host { drawn + 1 } else { drawn };
        let (hosts, flows) = (&self.hosts, &mut self.flows);
        let flow = match flows.get(&(host, to)) {
            Some(flow) => *flow,
            None => {
                let (there, back) = network.open_connection(hosts[host], hosts[to]);
                flows.insert((to, host), back);
                flows.insert((host, to), there);
                there
            }
        };
        network.send(now, flow, self.bytes, BACKGROUND);
        self.counts[host] += 1;
        self.schedule(host, now);
    }
}
