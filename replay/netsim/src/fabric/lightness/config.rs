//! The keys of a LIGHTNESS fabric; the deliverable's own names for them are in [`super::names`].

use super::names;
use super::state::aod::AodConfig;
use super::state::predictor::Predictor;
use super::state::rack::RackConfig;
use crate::count::count;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::network::FlowKind;
use crate::units::{Bytes, DurationPs, Length, PerByte, Rate};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which way packets to other racks take (the ToR's Input submodule decides).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// All through the optical packet switch.
    #[default]
    Ops,
    /// All through the optical circuit switch.
    Ocs,
    /// Static: packets to `circuit_destinations` through the circuit switch, others through the packet switch.
    ByDestination,
    /// Flows of `circuit_kinds` through the circuit switch, others through the packet switch.
    ByKind,
    /// Messages of `decision_threshold` and more through the circuit switch, others through the packet switch. What counts is
    /// the message of the application (a block, a map's output), however it is cut into pieces.
    BySize,
    /// Through the packet switch until a flow has sent `decision_threshold`, from then on through the circuit switch.
    ByFlow,
    /// As `by-size`, but a message is taken to be as large as those before it were: of the same kind, from the same rack to the same
    /// one, from the same end of their connections (their exponential moving average).
    ByPrediction,
    /// Through the circuit switch where a circuit is up; else through the packet switch, and a circuit is asked for.
    ByCircuit,
    /// Neither: two ToRs joined back to back by a fibre, the test bed of the deliverable's Table 1.
    Direct,
}

/// When the packet switch decides about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedAt {
    /// When its last byte is in.
    #[default]
    Tail,
    /// When its first byte is in.
    Head,
}

/// Which of simultaneous requests for one output of the packet switch passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// The turn is drawn anew for each output and slot.
    #[default]
    Random,
    /// The first behind the one that last passed at this output.
    RoundRobin,
    /// The lowest fibre and wavelength.
    Lowest,
}

/// On which of its ToR's channels a packet goes to the packet switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WavelengthAssignment {
    /// Each flow on one, drawn from `seed`.
    #[default]
    Hashed,
    /// The one for which the fewest packets wait or are under way; the lowest of several.
    LeastLoaded,
    /// The lowest that has nothing to do; where there is none, the least loaded one.
    FirstFit,
}

/// Who decides which circuits there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OcsScheduler {
    /// `ToR`s ask for circuits, and the circuit switch answers.
    #[default]
    OnDemand,
    /// A controller that looks at all that waits: the matching with the most, for a slice.
    MaxWeight,
    /// Matchings of Birkhoff and von Neumann, until all that was seen is sent.
    Birkhoff,
    /// Solstice's slices by halves, until all that was seen is sent.
    Solstice,
    /// Circuits one by one, without stopping the others, for all that waits for them (Sunflow).
    Sunflow,
}

/// Where packets that overtook each other are put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resequencer {
    /// At the server, which gets them as they come.
    #[default]
    Server,
    /// In the destination's ToR, which has memory for those that wait.
    Tor,
}

/// The keys of a LIGHTNESS fabric. "Ours" marks values that the deliverable leaves open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct LightnessConfig {
    /// Rate of the links between servers and their rack's switch. Default: `10Gbps` (the deliverable's fibres; it
    /// leaves the servers' links open). `unlimited` with a delay of 0 makes them ideal.
    pub server_rate: Rate,
    /// Propagation delay of these links. Default: `0ps` (the deliverable neglects its short cables).
    pub server_delay: DurationPs,
    /// What the electrical switch of a rack needs for a packet between its own servers. Default: `200ns`, the
    /// deliverable's InfiniBand switch.
    pub switch_delay: DurationPs,
    /// What lies below the ToRs as a fabric of its own, with a switch for each rack and each ToR as a host more: `kind =
    /// "credit"` for InfiniBand, `"ethernet"` for Ethernet with TCP. Default: none; then the three keys above hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<Box<RackConfig>>,

    /// Smallest photonic packet; what is smaller is filled up. Default: `80B` (the deliverable's smallest packet).
    pub photonic_packet_min: Bytes,
    /// Largest photonic packet; messages are cut into such. Default: `32KiB` (the deliverable's largest packet; its
    /// validation of the ToR has 1,500 B, the servers' Ethernet).
    pub photonic_packet_max: Bytes,
    /// Size of a flit. Default: `64B` (the deliverable).
    pub flit_size: Bytes,
    /// Whether a photonic packet is a whole number of flits. Default: false (the published 107,367 ns need it so).
    pub round_to_flits: bool,

    /// Which way packets take. Default: `ops` (ours).
    pub decision: Decision,
    /// The size from which `by-size`, `by-flow` and `by-prediction` take the circuit switch. Default: `1MiB` (ours).
    pub decision_threshold: Bytes,
    /// With `by-prediction`: messages of the moving average, of which the newest counts one part in so many; 1: the last message alone.
    /// Default: 8 (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction_history: Option<u32>,
    /// Names of hosts and racks to which `by-destination` takes the circuit switch. Default: none.
    pub circuit_destinations: Vec<String>,
    /// What flows are for that `by-kind` takes to the circuit switch. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circuit_kinds: Vec<FlowKind>,

    /// Rate of a ToR's optical ports. Default: `10Gbps` (the deliverable).
    pub tor_rate: Rate,
    /// What a ToR needs before a packet leaves; not paid again for a packet that is sent again. Default: `1678ns` (the
    /// deliverable's Table 2).
    pub tor_startup_delay: DurationPs,
    /// The delay of each byte beyond its serialisation. Default: `1.35ns/B` (Table 2, `optdelay`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tor_byte_delay: Option<PerByte>,
    /// The same for three bytes (4.05 ns); only one of both may be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tor_per_3_byte_delay: Option<DurationPs>,
    /// Rate of a ToR's port to the circuit switch. Default: `tor_rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tor_ocs_rate: Option<Rate>,
    /// What a ToR needs to deal with an ACK or NACK. Default: `20ns` for those of packets (Table 3), and nothing for those
    /// of circuit requests, whose 753 ms hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<DurationPs>,
    /// Places of a ToR's buffer in front of each of its optical channels, in packets. Default: 64 (ours).
    pub tor_max_messages: u32,
    /// The same in front of each circuit. Default: `tor_max_messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tor_ocs_max_messages: Option<u32>,
    /// Places of the buffer of a ToR's Output, in packets that come from the optics. Without one, the packet switch
    /// refuses a packet and a circuit waits. Default: no limit (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tor_output_buffer: Option<u32>,
    /// Where packets of a flow are put in order. Default: `server` (ours); packets that come there early are counted.
    pub resequencer: Resequencer,
    /// Packets of a channel to the packet switch that may be unacknowledged. Default: 1 (ours; Figure 16 needs it so).
    pub window: u32,
    /// How often a packet that the packet switch refused is sent again before it is lost. Default: until it passes. A limit is
    /// for synthetic traffic: a job would wait for ever for what is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resends: Option<u32>,
    /// Propagation delay between ToR and optical switch, each way. Default: none (the deliverable's validation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_delay: Option<DurationPs>,
    /// The same as a length, at 5 ns a metre; only one of both may be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_length: Option<Length>,
    /// Propagation delay from a ToR to the packet switch. Default: that of all cables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_to_ops: Option<DurationPs>,
    /// From the packet switch to a ToR, for packets and answers. Default: that of all cables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_from_ops: Option<DurationPs>,
    /// From a ToR to the circuit switch. Default: that of all cables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_to_ocs: Option<DurationPs>,
    /// From the circuit switch to a ToR. Default: that of all cables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_from_ocs: Option<DurationPs>,
    /// Hosts that there may be at most. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_destinations: Option<u32>,

    /// Wavelengths of each fibre: a ToR's channels to the packet switch, and its ports at the circuit switch. Default: 4
    /// (ours).
    pub wavelengths: u32,
    /// Which of its ToR's channels to the packet switch a packet takes. Default: `hashed` (ours).
    pub wavelength_assignment: WavelengthAssignment,
    /// Fibres of the packet switch, spread over the ToRs evenly; what is left over is dark. Default: one for each ToR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fibers: Option<u32>,
    /// Whether the packet switch may put a packet on another wavelength of its destination's fibres. Default: false
    /// (ours).
    pub wavelength_conversion: bool,
    /// The packet switch's time to route a packet, creation of the ACK included. Default: `30ns` (Table 3).
    pub ops_delay: DurationPs,
    /// The packet switch's time to make an ACK or NACK, beyond routing. Default: `0ps` (the deliverable's Table 3 has it
    /// within the routing).
    pub ops_ack_delay: DurationPs,
    /// Rate of the packet switch's output ports. Default: `10Gbps` (the deliverable).
    pub ops_rate: Rate,
    /// The delay of each byte at the packet switch's output beyond its serialisation there. Default: `0fs/B` (the
    /// deliverable assumes none).
    pub ops_byte_delay: PerByte,
    /// Which of simultaneous requests for one output passes. Default: `random` (ours).
    pub ops_arbiter: Arbiter,
    /// Whether, while a packet passes from one fibre to another one, no second one from that fibre may pass there, on
    /// whatever wavelength. Default: true (the deliverable's second case in which the packet switch drops packets, its
    /// "same output port" read as the destination's fibre: with a wavelength of it the case could never occur).
    pub ops_one_per_fibre: bool,
    /// Contention is decided once in such a slot, at its end. Default: `1ns` (the deliverable).
    pub ops_slot: DurationPs,
    /// When a packet is decided about. Default: `tail` (Figure 16's 3,276 ns need it so).
    pub ops_decision: DecidedAt,
    /// Whether a packet takes its time at `ops_rate` again at the output. Default: true at the tail (the deliverable's
    /// Output submodule has a bandwidth of its own), and impossible at the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops_serialises_again: Option<bool>,
    /// Faults: the numbers of the packets that the packet switch drops, counted from 1 in the order in which it decides
    /// about them. Default: none.
    pub drop: Vec<u64>,

    /// Fibres of the circuit switch, spread over the ToRs evenly. Default: `fibers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocs_fibers: Option<u32>,
    /// Wavelengths of each fibre to the circuit switch: a ToR's ports there, each for a circuit. Default: `wavelengths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocs_wavelengths: Option<u32>,
    /// The circuit switch's time to make an ACK or NACK of a request. Default: `0ps` (within the 753 ms).
    pub ocs_ack_delay: DurationPs,
    /// Buffer of a circuit's output port in the switch, in packets: with it the ToR sends at its own rate, and not at a
    /// smaller one of the switch. Default: 0, none (ours; an optical switch has none).
    pub ocs_output_size: u32,
    /// A backplane circuit switch between ToRs and packet switch (architecture on demand). Default: none; ToRs are wired
    /// to the packet switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aod: Option<AodConfig>,
    /// The circuit switch's time to pass a packet on. Default: `0ps` (the deliverable: no delay once a circuit is up).
    pub ocs_delay: DurationPs,
    /// Rate of the circuit switch's ports; a circuit has the smaller of this and `tor_rate`. Default: `10Gbps`.
    pub ocs_rate: Rate,
    /// From the request of a circuit until it can be used, the control plane included. Default: `753ms` (measured by
    /// the deliverable's partners; 25 ms of it are the switch).
    pub ocs_first_message_delay: DurationPs,
    /// From the refusal of a circuit until it is asked for again. Default: `1ms` (ours).
    pub retry_request_delay: DurationPs,
    /// A circuit that was not used for so long is released. Default: `2s` (ours; the deliverable's second packet comes
    /// after one second and finds the circuit up).
    pub circuit_idle: DurationPs,
    /// An idle circuit is given up for a waiting request once it has been up for so long. Default: `10ms` (ours).
    pub circuit_hold: DurationPs,

    /// Who decides which circuits there are. Default: `on-demand` (the deliverable).
    pub scheduler: OcsScheduler,
    /// With a scheduler that looks at what waits: `max-weight`'s slot and the shortest slice of `solstice`, without the set-up. Default:
    /// `10ms` (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<DurationPs>,
    /// With such a scheduler: how old the demand is from which it plans. Default: `0ps` (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_age: Option<DurationPs>,
    /// With such a scheduler: for how long two racks are joined at most in a plan, in whole packets of the largest length. Default: `1s`
    /// (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_limit: Option<DurationPs>,

    /// Decides on which wavelength a flow goes. Default: 1.
    pub seed: u64,
    /// Traffic of a server to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

const TEN_GIGABITS: Rate = Rate::from_bps(10_000_000_000);
const PREDICTION_HISTORY: u32 = 8;

impl Default for LightnessConfig {
    fn default() -> Self {
        Self {
            server_rate: TEN_GIGABITS,
            server_delay: DurationPs(0),
            switch_delay: DurationPs::from_ns(200),
            rack: None,
            photonic_packet_min: Bytes(80),
            photonic_packet_max: Bytes(32 << 10),
            flit_size: Bytes(64),
            round_to_flits: false,
            decision: Decision::default(),
            decision_threshold: Bytes(1 << 20),
            prediction_history: None,
            circuit_destinations: Vec::new(),
            circuit_kinds: Vec::new(),
            tor_rate: TEN_GIGABITS,
            tor_startup_delay: DurationPs::from_ns(1_678),
            tor_byte_delay: None,
            tor_per_3_byte_delay: None,
            tor_ocs_rate: None,
            ack_delay: None,
            tor_max_messages: 64,
            tor_ocs_max_messages: None,
            tor_output_buffer: None,
            resequencer: Resequencer::default(),
            window: 1,
            resends: None,
            cable_delay: None,
            cable_length: None,
            cable_to_ops: None,
            cable_from_ops: None,
            cable_to_ocs: None,
            cable_from_ocs: None,
            max_destinations: None,
            wavelengths: 4,
            wavelength_assignment: WavelengthAssignment::default(),
            fibers: None,
            wavelength_conversion: false,
            ops_delay: DurationPs::from_ns(30),
            ops_ack_delay: DurationPs(0),
            ops_rate: TEN_GIGABITS,
            ops_byte_delay: PerByte::from_ps(0),
            ops_arbiter: Arbiter::default(),
            ops_one_per_fibre: true,
            ops_slot: DurationPs::from_ns(1),
            ops_decision: DecidedAt::default(),
            ops_serialises_again: None,
            drop: Vec::new(),
            ocs_fibers: None,
            ocs_wavelengths: None,
            ocs_ack_delay: DurationPs(0),
            ocs_output_size: 0,
            aod: None,
            ocs_delay: DurationPs(0),
            ocs_rate: TEN_GIGABITS,
            ocs_first_message_delay: DurationPs::from_ms(753),
            retry_request_delay: DurationPs::from_ms(1),
            circuit_idle: DurationPs::from_ms(2_000),
            circuit_hold: DurationPs::from_ms(10),
            scheduler: OcsScheduler::default(),
            slice: None,
            demand_age: None,
            demand_limit: None,
            seed: 1,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

/// Propagation delays in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cables {
    /// Between two ToRs back to back.
    pub direct: u64,
    pub to_ops: u64,
    pub from_ops: u64,
    pub to_ocs: u64,
    pub from_ocs: u64,
}

// `remote = "Self"` makes the derived functions inherent ones, so that the deliverable's names are translated before.
impl<'de> Deserialize<'de> for LightnessConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = toml::Table::deserialize(deserializer)?;
        let keys = names::translated(written).map_err(D::Error::custom)?;
        if let Some(toml::Value::Table(rack)) = keys.get("rack") {
            check_rack_kind(rack.get("kind")).map_err(D::Error::custom)?;
        }
        Self::deserialize(toml::Value::Table(keys)).map_err(|error| D::Error::custom(error.message()))
    }
}

/// What `kind` of `[fabric.rack]` is not.
fn check_rack_kind(kind: Option<&toml::Value>) -> Result<(), String> {
    let kinds = || RackConfig::KINDS.iter().map(|kind| format!("\"{kind}\"")).collect::<Vec<_>>().join(", ");
    match kind {
        Some(toml::Value::String(kind)) if RackConfig::KINDS.contains(&kind.as_str()) => Ok(()),
        Some(kind) => Err(format!("fabric.rack.kind = {kind}: the network below the ToRs is one of {}", kinds())),
        None => Err(format!("fabric.rack has no kind: the network below the ToRs is one of {}", kinds())),
    }
}

impl Serialize for LightnessConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl LightnessConfig {
    /// The delay of each byte at the ToR beyond its serialisation.
    pub(super) fn byte_delay(&self) -> PerByte {
        match (self.tor_byte_delay, self.tor_per_3_byte_delay) {
            (Some(delay), _) => delay,
            (None, Some(three)) => PerByte::from_three_bytes(three),
            (None, None) => PerByte::from_ps(1_350),
        }
    }

    /// What learns the sizes of messages; none where something else decides.
    pub(super) fn predictor(&self) -> Option<Predictor> {
        let history = self.prediction_history.unwrap_or(PREDICTION_HISTORY);
        (self.decision == Decision::ByPrediction).then(|| Predictor::new(history, self.decision_threshold.get()))
    }

    /// The delays of all cables.
    pub(super) fn cables(&self) -> Cables {
        let all = match (self.cable_delay, self.cable_length) {
            (Some(delay), _) => delay,
            (None, Some(length)) => length.light_time(),
            (None, None) => DurationPs(0),
        };
        let of = |own: Option<DurationPs>| own.unwrap_or(all).ps();
        Cables {
            direct: all.ps(),
            to_ops: of(self.cable_to_ops),
            from_ops: of(self.cable_from_ops),
            to_ocs: of(self.cable_to_ocs),
            from_ocs: of(self.cable_from_ocs),
        }
    }

    /// Rate of a ToR's port to the circuit switch.
    pub(super) fn circuit_tor_rate(&self) -> Rate {
        self.tor_ocs_rate.unwrap_or(self.tor_rate)
    }

    /// Places in front of each circuit.
    pub(super) fn circuit_messages(&self) -> u32 {
        self.tor_ocs_max_messages.unwrap_or(self.tor_max_messages)
    }

    /// Wavelengths of a fibre to the circuit switch.
    pub(super) fn circuit_wavelengths(&self) -> u32 {
        self.ocs_wavelengths.unwrap_or(self.wavelengths)
    }

    /// Fibres of each ToR to the packet switch.
    pub(super) fn fibers_per_tor(&self, racks: usize) -> u32 {
        self.fibers.map_or(1, |fibers| fibers / count(racks))
    }

    /// Fibres of each ToR to the circuit switch.
    pub(super) fn circuit_fibers_per_tor(&self, racks: usize) -> u32 {
        self.ocs_fibers.or(self.fibers).map_or(1, |fibers| fibers / count(racks))
    }

    /// What a ToR needs to deal with the answer to a packet.
    pub(super) fn packet_ack_ps(&self) -> u64 {
        self.ack_delay.unwrap_or(DurationPs::from_ns(20)).ps()
    }

    /// What a ToR needs to deal with the answer to a circuit request.
    pub(super) fn circuit_ack_ps(&self) -> u64 {
        self.ack_delay.map_or(0, DurationPs::ps)
    }

    /// Whether packets are serialised again at the packet switch's output.
    pub(super) fn serialises_again(&self) -> bool {
        self.ops_serialises_again.unwrap_or(self.ops_decision == DecidedAt::Tail)
    }

    /// Bytes on the fibre of a packet with `payload` bytes.
    pub(super) fn wire_bytes(&self, payload: u64) -> u64 {
        let filled = payload.max(self.photonic_packet_min.get());
        if self.round_to_flits { filled.next_multiple_of(self.flit_size.get()) } else { filled }
    }
}
