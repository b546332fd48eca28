//! Figures 19 and 21: the search for the readings of the deliverable that fit all of them.
//!
//! The figures are four ratios: at 80 B the OCS takes 15% less time than the OPS (once the circuit is up), and InfiniBand
//! 45% less than the OPS and 35% less than the OCS; at 32 KB InfiniBand takes 2% less than the OPS. What the deliverable
//! publishes of the networks stays as it is: 1,678 ns, 0.8 + 1.35 ns/B, 30 ns, 20 ns, slots of 1 ns, 10 Gbit/s, 200 ns a
//! switch of InfiniBand. What it leaves open is a [`Reading`]; all of them are tried, each with every rate of InfiniBand.
//! Those whose largest deviation is at most [`FITS_PPM`] are the family that fits. Nothing is simulated here: it is
//! arithmetic in whole picoseconds, and the tests show that the simulator gives the same.

use netsim::units::{PerByte, Rate};
use rayon::prelude::*;
use serde::Serialize;

/// The messages' sizes: the deliverable's smallest and largest packet.
pub const SIZES: [u64; 2] = [80, 32 << 10];
/// Rates of InfiniBand that are tried: from, to and step in Mbit/s.
pub const RATES_MBPS: [u32; 3] = [500, 60_000, 10];
/// Lengths of each of the two cables between ToR and ToR, in metres: none, Figure 15's 50 m, or these from ToR to ToR.
pub const CABLES_M: [u32; 3] = [0, 25, 50];
/// Packets of InfiniBand: its MTUs, and the deliverable's largest packet.
pub const MTUS: [u32; 6] = [256, 512, 1_024, 2_048, 4_096, 32 << 10];
/// A reading with no larger deviation fits: 0.4 points, what the published whole percents leave open.
pub const FITS_PPM: i64 = 4_000;

const STARTUP: u64 = 1_678_000;
const ROUTING: u64 = 30_000;
const SLOT: u64 = 1_000;
const ACK: u64 = 20_000;
const INFINIBAND_SWITCH: u64 = 200_000;
const TEN_GIGABITS: Rate = Rate::from_bps(10_000_000_000);
const CONVERSION: PerByte = PerByte::from_ps(1_350);
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
    /// OPS and OCS.
    pub optics: Optics,
    /// InfiniBand.
    pub infiniband: InfiniBand,
}

/// What the deliverable leaves open of OPS and OCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Optics {
    /// The largest photonic packet: 1,500 B as in Table 1, or the whole message.
    pub packet: u32,
    /// Packets of a ToR's channel to the OPS that may be unacknowledged.
    pub window: u32,
    /// Each of the two cables by the OPS, in metres.
    pub ops_cable_m: u32,
    /// Each of the two cables by the OCS.
    pub ocs_cable_m: u32,
    /// Whether the links between servers and ToRs have 10 Gbit/s, or take no time.
    pub server_links: bool,
    /// What a packet takes at the OPS' output.
    pub output: Output,
}

/// What the deliverable leaves open of InfiniBand, but for its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InfiniBand {
    /// Each of the two cables between its switches, in metres.
    pub cable_m: u32,
    /// The largest packet, without headers.
    pub mtu: u32,
    /// Whether the servers' links have its rate, or take no time.
    pub server_links: bool,
    /// Whether its switches send a packet on when its first flit is there, or only when it is whole.
    pub cut_through: bool,
}

/// The time of a cable, in nanoseconds.
const fn cable_ns(metres: u32) -> u32 {
    metres * 5
}

impl Reading {
    /// The keys of a `lightness` fabric that is read so.
    #[must_use]
    pub fn lightness(self) -> toml::Table {
        let optics = self.optics;
        let text = |text: String| toml::Value::String(text);
        let mut keys = toml::Table::new();
        let mut set = |key: &str, value: toml::Value| keys.insert(key.to_owned(), value);
        set("kind", text("lightness".to_owned()));
        set("round_to_flits", true.into());
        set("flit_size", text(format!("{}B", self.flit)));
        set("photonic_packet_max", text(format!("{}B", optics.packet)));
        set("window", optics.window.into());
        for (key, metres) in [
            ("cable_to_ops", optics.ops_cable_m),
            ("cable_from_ops", optics.ops_cable_m),
            ("cable_to_ocs", optics.ocs_cable_m),
            ("cable_from_ocs", optics.ocs_cable_m),
        ] {
            set(key, text(format!("{}ns", cable_ns(metres))));
        }
        set("server_rate", text(if optics.server_links { "10Gbps" } else { "unlimited" }.to_owned()));
        set("ops_serialises_again", (optics.output != Output::Through).into());
        let converted = optics.output == Output::SerialisedAndConverted;
        set("ops_byte_delay", text(if converted { "1.35ns/B" } else { "0ns/B" }.to_owned()));
        keys
    }

    /// The keys of a `credit` fabric that is read so, with links of `rate` between its three switches.
    #[must_use]
    pub fn infiniband(self, rate: Rate) -> toml::Table {
        let infiniband = self.infiniband;
        let text = |text: String| toml::Value::String(text);
        let link = |rate: Rate, delay_ns: u32| {
            let keys = [("rate", rate.to_string()), ("delay", format!("{delay_ns}ns"))];
            toml::Value::Table(keys.into_iter().map(|(key, value)| (key.to_owned(), text(value))).collect())
        };
        let server = if infiniband.server_links { rate } else { NEARLY_IDEAL };
        let topology = [
            ("shape", text("racks".to_owned())),
            ("joined", text("core".to_owned())),
            ("host_link", link(server, 0)),
            ("uplink", link(rate, cable_ns(infiniband.cable_m))),
        ];
        let topology = topology.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let keys = [
            ("kind", text("credit".to_owned())),
            ("headers", text("0B".to_owned())),
            ("mtu", text(format!("{}B", infiniband.mtu))),
            ("flit", text(format!("{}B", self.flit))),
            // No packet ever waits for a credit.
            ("credits", 4_096.into()),
            ("start", text(if infiniband.cut_through { "cut-through" } else { "whole-packet" }.to_owned())),
            ("topology", toml::Value::Table(topology)),
        ];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// All readings.
    pub fn all() -> impl Iterator<Item = Self> {
        FLITS.into_iter().flat_map(|flit| {
            Optics::all()
                .flat_map(move |optics| InfiniBand::all().map(move |infiniband| Self { flit, optics, infiniband }))
        })
    }

    /// When a message of `bytes` is through the OPS, in picoseconds.
    #[must_use]
    pub fn ops_ps(self, bytes: u64) -> u64 {
        self.optics.ops_ps(self.flit, bytes)
    }

    /// When a message of `bytes` is through the OCS, the circuit being up, in picoseconds.
    #[must_use]
    pub fn ocs_ps(self, bytes: u64) -> u64 {
        self.optics.ocs_ps(self.flit, bytes)
    }

    /// When a message of `bytes` is through three switches of InfiniBand whose links have `rate`, in picoseconds.
    #[must_use]
    pub fn infiniband_ps(self, bytes: u64, rate: Rate) -> u64 {
        self.infiniband.ps(self.flit, bytes, rate)
    }

    /// The reading at a rate of InfiniBand.
    #[must_use]
    pub fn at(self, rate_mbps: u32) -> Fit {
        let [small, large] = SIZES;
        let rate = Rate::from_bps(u64::from(rate_mbps) * 1_000_000);
        let optics = OpticsTimes::of(self.flit, &self.optics);
        Fit {
            reading: self,
            rate_mbps,
            less_ppm: optics.less([small, large].map(|bytes| self.infiniband_ps(bytes, rate))),
        }
    }
}

const FLITS: [u32; 2] = [16, 64];

impl InfiniBand {
    fn all() -> impl Iterator<Item = Self> {
        let both = [false, true];
        CABLES_M.into_iter().flat_map(move |cable_m| {
            MTUS.into_iter().flat_map(move |mtu| {
                both.into_iter().flat_map(move |server_links| {
                    both.into_iter().map(move |cut_through| Self { cable_m, mtu, server_links, cut_through })
                })
            })
        })
    }

    /// When a message of `bytes` is through its three switches, whose links have `rate`.
    fn ps(self, flit: u32, bytes: u64, rate: Rate) -> u64 {
        let (cable, mtu) = (u64::from(cable_ns(self.cable_m)) * 1_000, u64::from(self.mtu));
        let server = if self.server_links { rate } else { NEARLY_IDEAL };
        let links = [(server, 0), (rate, cable), (rate, cable), (server, 0)];
        let mut free = [Line::default(); 4];
        let mut delivered = 0;
        for number in 0..bytes.div_ceil(mtu) {
            let flits = (bytes - number * mtu).min(mtu).div_ceil(flit.into());
            let mut ready = 0;
            for (index, (rate, propagation)) in links.into_iter().enumerate() {
                let sent = free[index].send(ready, rate, flit.into(), flits);
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

impl Optics {
    fn all() -> impl Iterator<Item = Self> {
        const OUTPUTS: [Output; 3] = [Output::Through, Output::Serialised, Output::SerialisedAndConverted];
        let cables = CABLES_M.into_iter().flat_map(|ops| CABLES_M.into_iter().map(move |ocs| (ops, ocs)));
        cables.flat_map(|(ops_cable_m, ocs_cable_m)| {
            OUTPUTS.into_iter().flat_map(move |output| {
                (0..8).map(move |number| Self {
                    packet: if number & 1 == 1 { 1_500 } else { 32 << 10 },
                    window: if number & 2 == 2 { 1 } else { 64 },
                    ops_cable_m,
                    ocs_cable_m,
                    server_links: number & 4 == 4,
                    output,
                })
            })
        })
    }

    /// A message's photonic packets, by size.
    fn packets(self, flit: u32, bytes: u64) -> Vec<u64> {
        let most = u64::from(self.packet);
        let whole = |payload: u64| payload.max(80).next_multiple_of(flit.into());
        (0..bytes.div_ceil(most)).map(|number| whole((bytes - number * most).min(most))).collect()
    }

    fn at_tor(bytes: u64) -> u64 {
        TEN_GIGABITS.time_ps(bytes) + CONVERSION.time_ps(bytes)
    }

    fn on_server_link(self, bytes: u64) -> u64 {
        if self.server_links { TEN_GIGABITS.time_ps(bytes) } else { 0 }
    }

    fn ops_ps(self, flit: u32, bytes: u64) -> u64 {
        let cable = u64::from(cable_ns(self.ops_cable_m)) * 1_000;
        let window = self.window as usize;
        let (mut there, mut free, mut down) = (0, 0, 0);
        let mut acked: Vec<u64> = Vec::new();
        for packet in self.packets(flit, bytes) {
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

    fn ocs_ps(self, flit: u32, bytes: u64) -> u64 {
        let cable = u64::from(cable_ns(self.ocs_cable_m)) * 1_000;
        let (mut there, mut free, mut down) = (0, 0, 0);
        for packet in self.packets(flit, bytes) {
            there += self.on_server_link(packet);
            free = there.max(free) + STARTUP + Self::at_tor(packet);
            down = down.max(free + 2 * cable) + self.on_server_link(packet);
        }
        down
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

/// How much less `time` is than `than`, in millionths. Times are far below 18 s.
const fn less_ppm(time: u64, than: u64) -> i64 {
    PPM - (time * PPM.unsigned_abs() / than).cast_signed()
}

/// The times of OPS and OCS that the ratios take.
struct OpticsTimes {
    ops: [u64; 2],
    ocs: u64,
}

impl OpticsTimes {
    fn of(flit: u32, optics: &Optics) -> Self {
        Self { ops: SIZES.map(|bytes| optics.ops_ps(flit, bytes)), ocs: optics.ocs_ps(flit, SIZES[0]) }
    }

    fn less(&self, infiniband: [u64; 2]) -> [i64; 4] {
        [
            less_ppm(self.ocs, self.ops[0]),
            less_ppm(infiniband[0], self.ops[0]),
            less_ppm(infiniband[0], self.ocs),
            less_ppm(infiniband[1], self.ops[1]),
        ]
    }
}

/// The rate that is closest for each reading, the closest reading first.
#[must_use]
pub fn search() -> Vec<Fit> {
    let networks: Vec<(u32, InfiniBand)> =
        FLITS.into_iter().flat_map(|flit| InfiniBand::all().map(move |infiniband| (flit, infiniband))).collect();
    let mut fits: Vec<Fit> = networks.into_par_iter().flat_map_iter(|(flit, network)| best_of(flit, network)).collect();
    fits.sort_by_key(Fit::closeness);
    fits
}

/// Those of `fits`, which are sorted, that fit.
#[must_use]
pub fn family(fits: &[Fit]) -> &[Fit] {
    &fits[..fits.partition_point(|fit| fit.largest_ppm() <= FITS_PPM)]
}

/// The closest with InfiniBand at the fibres' 10 Gbit/s of the readings that `is_one` takes.
#[must_use]
pub fn closest_at_10_gbit(is_one: impl Fn(&Reading) -> bool) -> Option<Fit> {
    Reading::all().filter(|reading| is_one(reading)).map(|reading| reading.at(10_000)).min_by_key(Fit::closeness)
}

/// For an InfiniBand the closest rate of each reading of OPS and OCS.
fn best_of(flit: u32, infiniband: InfiniBand) -> Vec<Fit> {
    let [from, to, step] = RATES_MBPS;
    let rates = (from..=to).step_by(step as usize);
    let times: Vec<(u32, [u64; 2])> = rates
        .map(|rate_mbps| {
            let rate = Rate::from_bps(u64::from(rate_mbps) * 1_000_000);
            (rate_mbps, SIZES.map(|bytes| infiniband.ps(flit, bytes, rate)))
        })
        .collect();
    let closest = |optics: Optics| {
        let of_optics = OpticsTimes::of(flit, &optics);
        let reading = Reading { flit, optics, infiniband };
        let fit = |(rate_mbps, times): &(u32, [u64; 2])| Fit {
            reading,
            rate_mbps: *rate_mbps,
            less_ppm: of_optics.less(*times),
        };
        times.iter().map(fit).min_by_key(Fit::closeness)
    };
    Optics::all().filter_map(closest).collect()
}
