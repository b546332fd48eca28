//! Figures 19 and 21: the search for the one reading of the deliverable that comes closest to all of them.
//!
//! The figures are four ratios: at 80 B the OCS takes 15% less time than the OPS (once the circuit is up), and InfiniBand
//! 45% less than the OPS and 35% less than the OCS; at 32 KB InfiniBand takes 2% less than the OPS. What the deliverable
//! publishes of the networks stays as it is: 1,678 ns, 0.8 + 1.35 ns/B, 30 ns, 20 ns, slots of 1 ns, 10 Gbit/s, 200 ns a
//! switch of InfiniBand. What it leaves open is [`Reading`]; all of them are tried, each with every rate of InfiniBand,
//! and the one with the smallest largest deviation is taken. Nothing is simulated here: it is arithmetic in whole
//! picoseconds, and the tests show that the simulator gives the same for every reading.

use crate::units::{PerByte, Rate};
use serde::Serialize;

/// The messages' sizes: the deliverable's smallest and largest packet.
pub const SIZES: [u64; 2] = [80, 32 << 10];
/// Rates of InfiniBand that are tried: from, to and step in Mbit/s.
pub const RATES_MBPS: [u32; 3] = [500, 60_000, 10];

const STARTUP: u64 = 1_678_000;
const ROUTING: u64 = 30_000;
const SLOT: u64 = 1_000;
const ACK: u64 = 20_000;
const INFINIBAND_SWITCH: u64 = 200_000;
const TEN_GIGABITS: Rate = Rate::from_bps(10_000_000_000);
const CONVERSION: PerByte = PerByte::from_ps(1_350);
const MTU: u64 = 2_048;
/// Servers' links of InfiniBand where they are to take no time: the most that the fabric has.
const NEARLY_IDEAL: Rate = Rate::from_bps(8_000_000_000_000);
const PPM: i64 = 1_000_000;

/// What a packet takes at the OPS' output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Nothing: it flows through.
    Through,
    /// 0.8 ns/B: it is serialised again.
    Serialised,
    /// 2.15 ns/B: it is serialised and converted again.
    SerialisedAndConverted,
}

impl Output {
    /// What it says, for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Through => "flows through",
            Self::Serialised => "0.8 ns/B",
            Self::SerialisedAndConverted => "2.15 ns/B",
        }
    }
}

/// A reading of what the deliverable leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The size of a flit, of which every packet is a whole number: 64 B, the deliverable's, makes 128 B of 80; 16 B
    /// leaves 80.
    pub flit: u32,
    /// The largest photonic packet: 1,500 B as in Table 1, or the whole message.
    pub packet: u32,
    /// Packets of a ToR's channel to the OPS that may be unacknowledged.
    pub window: u32,
    /// Each of the two cables between the ToRs, in nanoseconds.
    pub cable_ns: u32,
    /// Whether the links between servers and ToRs have 10 Gbit/s (InfiniBand's its rate), or take no time.
    pub server_links: bool,
    /// What a packet takes at the OPS' output.
    pub output: Output,
    /// Whether InfiniBand's switches send a packet on when its first flit is there, or only when it is whole.
    pub cut_through: bool,
}

impl Reading {
    /// The keys of a `lightness` fabric that is read so.
    #[must_use]
    pub fn lightness(self) -> toml::Table {
        let text = |text: String| toml::Value::String(text);
        let mut keys = toml::Table::new();
        let mut set = |key: &str, value: toml::Value| keys.insert(key.to_owned(), value);
        set("kind", text("lightness".to_owned()));
        set("round_to_flits", true.into());
        set("flit_size", text(format!("{}B", self.flit)));
        set("photonic_packet_max", text(format!("{}B", self.packet)));
        set("window", self.window.into());
        set("cable_delay", text(format!("{}ns", self.cable_ns)));
        set("server_rate", text(if self.server_links { "10Gbps" } else { "unlimited" }.to_owned()));
        set("ops_serialises_again", (self.output != Output::Through).into());
        let converted = self.output == Output::SerialisedAndConverted;
        set("ops_byte_delay", text(if converted { "1.35ns/B" } else { "0ns/B" }.to_owned()));
        keys
    }

    /// The keys of a `credit` fabric that is read so, with links of `rate` between its three switches.
    #[must_use]
    pub fn infiniband(self, rate: Rate) -> toml::Table {
        let text = |text: String| toml::Value::String(text);
        let link = |rate: Rate, delay_ns: u32| {
            let keys = [("rate", rate.to_string()), ("delay", format!("{delay_ns}ns"))];
            toml::Value::Table(keys.into_iter().map(|(key, value)| (key.to_owned(), text(value))).collect())
        };
        let server = if self.server_links { rate } else { NEARLY_IDEAL };
        let topology = [
            ("shape", text("racks".to_owned())),
            ("joined", text("core".to_owned())),
            ("host_link", link(server, 0)),
            ("uplink", link(rate, self.cable_ns)),
        ];
        let keys = [
            ("kind", text("credit".to_owned())),
            ("headers", text("0B".to_owned())),
            ("mtu", text(format!("{MTU}B"))),
            ("flit", text(format!("{}B", self.flit))),
            ("start", text(if self.cut_through { "cut-through" } else { "whole-packet" }.to_owned())),
            (
                "topology",
                toml::Value::Table(topology.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()),
            ),
        ];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// All readings.
    pub fn all() -> impl Iterator<Item = Self> {
        let outputs = [Output::Through, Output::Serialised, Output::SerialisedAndConverted];
        (0..2 * 2 * 2 * 2 * 2 * 2 * 3).map(move |number| {
            let choice = |place: u32| number >> place & 1 == 1;
            Self {
                flit: if choice(0) { 64 } else { 16 },
                packet: if choice(1) { 1_500 } else { 32 << 10 },
                window: if choice(2) { 1 } else { 64 },
                cable_ns: if choice(3) { 250 } else { 0 },
                server_links: choice(4),
                cut_through: choice(5),
                output: outputs[number >> 6],
            }
        })
    }

    /// A message's photonic packets, by size.
    fn packets(self, bytes: u64) -> Vec<u64> {
        let most = u64::from(self.packet);
        let whole = |payload: u64| payload.max(80).next_multiple_of(self.flit.into());
        (0..bytes.div_ceil(most)).map(|number| whole((bytes - number * most).min(most))).collect()
    }

    fn at_tor(bytes: u64) -> u64 {
        TEN_GIGABITS.time_ps(bytes) + CONVERSION.time_ps(bytes)
    }

    fn on_server_link(self, bytes: u64) -> u64 {
        if self.server_links { TEN_GIGABITS.time_ps(bytes) } else { 0 }
    }

    /// When a message of `bytes` is through the OPS, in picoseconds.
    #[must_use]
    pub fn ops_ps(self, bytes: u64) -> u64 {
        let cable = u64::from(self.cable_ns) * 1_000;
        let window = self.window as usize;
        let (mut there, mut free, mut down) = (0, 0, 0);
        let mut acked: Vec<u64> = Vec::new();
        for packet in self.packets(bytes) {
            there += self.on_server_link(packet);
            let acknowledged = acked.len().checked_sub(window).map_or(0, |index| acked[index]);
            free = there.max(free).max(acknowledged) + STARTUP + Self::at_tor(packet);
            let decided = ((free + cable + ROUTING) / SLOT + 1) * SLOT;
            acked.push(decided + cable + ACK);
            let output = match self.output {
                Output::Through => 0,
                Output::Serialised => TEN_GIGABITS.time_ps(packet),
                Output::SerialisedAndConverted => Self::at_tor(packet),
            };
            down = down.max(decided + output + cable) + self.on_server_link(packet);
        }
        down
    }

    /// When a message of `bytes` is through the OCS, the circuit being up, in picoseconds.
    #[must_use]
    pub fn ocs_ps(self, bytes: u64) -> u64 {
        let cable = u64::from(self.cable_ns) * 1_000;
        let (mut there, mut free, mut down) = (0, 0, 0);
        for packet in self.packets(bytes) {
            there += self.on_server_link(packet);
            free = there.max(free) + STARTUP + Self::at_tor(packet);
            down = down.max(free + 2 * cable) + self.on_server_link(packet);
        }
        down
    }

    /// When a message of `bytes` is through three switches of InfiniBand whose links have `rate`, in picoseconds.
    #[must_use]
    pub fn infiniband_ps(self, bytes: u64, rate: Rate) -> u64 {
        let cable = u64::from(self.cable_ns) * 1_000;
        let server = if self.server_links { rate } else { NEARLY_IDEAL };
        let links = [(server, 0), (rate, cable), (rate, cable), (server, 0)];
        let mut free = [Line::default(); 4];
        let mut delivered = 0;
        for number in 0..bytes.div_ceil(MTU) {
            let flits = (bytes - number * MTU).min(MTU).div_ceil(self.flit.into());
            let mut ready = 0;
            for (index, (rate, propagation)) in links.into_iter().enumerate() {
                let sent = free[index].send(ready, rate, self.flit.into(), flits);
                // A faster link would run dry, so that it waits for the whole packet.
                let dry = links.get(index + 1).is_some_and(|(next, _)| *next > rate);
                let seen = if self.cut_through && !dry { sent.first } else { sent.last };
                ready = seen + propagation + INFINIBAND_SWITCH;
                delivered = sent.last + propagation;
            }
        }
        delivered
    }
}

/// A link on which flits follow each other.
#[derive(Clone, Copy, Default)]
struct Line {
    free: u64,
    remainder: u64,
}

/// When a packet's first and last flit have left.
struct Sent {
    first: u64,
    last: u64,
}

impl Line {
    fn send(&mut self, ready: u64, rate: Rate, flit: u64, flits: u64) -> Sent {
        let start = ready.max(self.free);
        let before = if start == self.free { self.remainder } else { 0 };
        let bps = rate.bps().unwrap_or(u64::MAX);
        let left = |flits: u64| flits * flit * 8_000_000_000_000 + before;
        self.free = start + left(flits) / bps;
        self.remainder = left(flits) % bps;
        Sent { first: start + left(1) / bps, last: self.free }
    }
}

/// A published ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// What it says.
    pub what: &'static str,
    /// How much less time, in millionths.
    pub published_ppm: i64,
}

/// What figures 19 and 21 say.
pub const RATIOS: [Ratio; 4] = [
    Ratio { what: "Figure 19, 80 B: OCS less than OPS", published_ppm: 150_000 },
    Ratio { what: "Figure 21, 80 B: InfiniBand less than OPS", published_ppm: 450_000 },
    Ratio { what: "Figure 21, 80 B: InfiniBand less than OCS", published_ppm: 350_000 },
    Ratio { what: "Figure 21, 32 KB: InfiniBand less than OPS", published_ppm: 20_000 },
];

/// A reading with a rate of InfiniBand, and what they come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// The reading.
    pub reading: Reading,
    /// The rate of InfiniBand's links.
    pub rate_mbps: u32,
    /// How much less time each of [`RATIOS`] is, in millionths.
    pub less_ppm: [i64; 4],
}

impl Fit {
    /// Deviations from what was published, in millionths.
    #[must_use]
    pub fn deviations_ppm(&self) -> [i64; 4] {
        std::array::from_fn(|index| self.less_ppm[index] - RATIOS[index].published_ppm)
    }

    /// The absolute deviations, largest first: the smaller, the closer.
    fn closeness(&self) -> [i64; 4] {
        let mut deviations = self.deviations_ppm().map(i64::abs);
        deviations.sort_unstable_by_key(|deviation| std::cmp::Reverse(*deviation));
        deviations
    }

    /// The largest absolute deviation, in millionths.
    #[must_use]
    pub fn largest_ppm(&self) -> i64 {
        self.closeness()[0]
    }
}

/// How much less `time` is than `than`, in millionths.
fn less_ppm(time: u64, than: u64) -> i64 {
    let share = i128::from(time) * i128::from(PPM) / i128::from(than.max(1));
    PPM - i64::try_from(share).unwrap_or(i64::MAX)
}

/// The rate that is closest for each reading, the closest reading first.
#[must_use]
pub fn search() -> Vec<Fit> {
    let mut fits: Vec<Fit> = Reading::all().filter_map(best_of).collect();
    fits.sort_by_key(Fit::closeness);
    fits
}

/// The closest rate of a reading.
fn best_of(reading: Reading) -> Option<Fit> {
    let [small, large] = SIZES;
    let (ops, ocs) = (SIZES.map(|bytes| reading.ops_ps(bytes)), reading.ocs_ps(small));
    let [from, to, step] = RATES_MBPS;
    let fit = |rate_mbps: u32| {
        let rate = Rate::from_bps(u64::from(rate_mbps) * 1_000_000);
        let infiniband = [small, large].map(|bytes| reading.infiniband_ps(bytes, rate));
        let less_ppm = [
            less_ppm(ocs, ops[0]),
            less_ppm(infiniband[0], ops[0]),
            less_ppm(infiniband[0], ocs),
            less_ppm(infiniband[1], ops[1]),
        ];
        Fit { reading, rate_mbps, less_ppm }
    };
    (from..=to).step_by(step as usize).map(fit).min_by_key(Fit::closeness)
}
