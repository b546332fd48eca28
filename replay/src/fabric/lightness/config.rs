//! The keys of a LIGHTNESS fabric, with the deliverable's own names as aliases.

use crate::fabric::pipe::PipeConfig;
use crate::fabric::{DEFAULT_INTERVAL, FabricError};
use crate::units::{Bytes, DurationPs, Length, PerByte, Rate};
use serde::{Deserialize, Serialize};

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
    /// Messages of `decision_threshold` and more through the circuit switch, others through the packet switch.
    BySize,
    /// Through the packet switch until a flow has sent `decision_threshold`, from then on through the circuit switch.
    ByFlow,
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

/// The keys of a LIGHTNESS fabric. "Ours" marks values that the deliverable leaves open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LightnessConfig {
    /// Rate of the links between servers and their rack's switch. Default: `10Gbps` (the deliverable's fibres; it
    /// leaves the servers' links open). `unlimited` with a delay of 0 makes them ideal.
    pub server_rate: Rate,
    /// Propagation delay of these links. Default: `0ps` (the deliverable neglects its short cables).
    pub server_delay: DurationPs,
    /// What the electrical switch of a rack needs for a packet between its own servers. Default: `200ns`, the
    /// deliverable's InfiniBand switch.
    pub switch_delay: DurationPs,

    /// Smallest photonic packet; what is smaller is filled up. Default: `80B` (the deliverable's smallest packet).
    pub photonic_packet_min: Bytes,
    /// Largest photonic packet; messages are cut into such. Default: `32KiB` (the deliverable's largest packet; its
    /// validation of the ToR has 1,500 B, the servers' Ethernet).
    pub photonic_packet_max: Bytes,
    /// Size of a flit. Default: `64B` (the deliverable).
    #[serde(alias = "flitSize")]
    pub flit_size: Bytes,
    /// Whether a photonic packet is a whole number of flits. Default: false (the published 107,367 ns need it so).
    pub round_to_flits: bool,

    /// Which way packets take. Default: `ops` (ours).
    pub decision: Decision,
    /// The size from which `by-size` and `by-flow` take the circuit switch. Default: `1MiB` (ours).
    pub decision_threshold: Bytes,
    /// Names of hosts and racks to which `by-destination` takes the circuit switch. Default: none.
    pub circuit_destinations: Vec<String>,

    /// Rate of a ToR's optical ports. Default: `10Gbps` (the deliverable).
    #[serde(alias = "TORBW")]
    pub tor_rate: Rate,
    /// What a ToR needs before a packet leaves; not paid again for a packet that is sent again. Default: `1678ns` (the
    /// deliverable's Table 2).
    #[serde(alias = "TorStartupDelay", alias = "startup")]
    pub tor_startup_delay: DurationPs,
    /// The delay of each byte beyond its serialisation. Default: `1.35ns/B` (Table 2, `optdelay`).
    #[serde(alias = "optdelay", skip_serializing_if = "Option::is_none")]
    pub tor_byte_delay: Option<PerByte>,
    /// The same for three bytes (4.05 ns); only one of both may be given.
    #[serde(rename = "TorPer3ByteDelay", skip_serializing_if = "Option::is_none")]
    pub tor_per_3_byte_delay: Option<DurationPs>,
    /// What a ToR needs to deal with an ACK or NACK. Default: `20ns` (Table 3).
    #[serde(alias = "AckDelay")]
    pub ack_delay: DurationPs,
    /// Places of a ToR's buffer in front of each of its optical channels, in packets. Default: 64 (ours).
    #[serde(alias = "TORMaxMgs")]
    pub tor_max_messages: u32,
    /// Packets of a channel to the packet switch that may be unacknowledged. Default: 1 (ours; Figure 16 needs it so).
    pub window: u32,
    /// Propagation delay between ToR and optical switch, each way. Default: none (the deliverable's validation).
    #[serde(alias = "CableDelay", skip_serializing_if = "Option::is_none")]
    pub cable_delay: Option<DurationPs>,
    /// The same as a length, at 5 ns a metre; only one of both may be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_length: Option<Length>,

    /// Wavelengths of a ToR's fibre: its channels to the packet switch, and its ports at the circuit switch. Default: 4
    /// (ours).
    #[serde(alias = "numWavelengths")]
    pub wavelengths: u32,
    /// Fibres of the optical switches; each ToR has one. Default: as many as there are racks.
    #[serde(alias = "numFibers", skip_serializing_if = "Option::is_none")]
    pub fibers: Option<u32>,
    /// Whether the packet switch may put a packet on another wavelength of its destination's fibre. Default: false
    /// (ours).
    pub wavelength_conversion: bool,
    /// The packet switch's time to route a packet, creation of the ACK included. Default: `30ns` (Table 3).
    #[serde(alias = "OPSDelay")]
    pub ops_delay: DurationPs,
    /// Rate of the packet switch's output ports. Default: `10Gbps` (the deliverable).
    #[serde(alias = "OPSBW")]
    pub ops_rate: Rate,
    /// The delay of each byte at the packet switch's output beyond its serialisation there. Default: `0fs/B` (the
    /// deliverable assumes none; its figures 19 and 21 are closest with `1.35ns/B`).
    pub ops_byte_delay: PerByte,
    /// Which of simultaneous requests for one output passes. Default: `random` (ours).
    pub ops_arbiter: Arbiter,
    /// Whether of simultaneous requests from one fibre to one destination's fibre only one passes, on whatever
    /// wavelengths they are. Default: false (the deliverable's output port is a wavelength of a fibre).
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

    /// The circuit switch's time to pass a packet on. Default: `0ps` (the deliverable: no delay once a circuit is up).
    #[serde(alias = "OCSDelay")]
    pub ocs_delay: DurationPs,
    /// Rate of the circuit switch's ports; a circuit has the smaller of this and `tor_rate`. Default: `10Gbps`.
    #[serde(alias = "OCSBW")]
    pub ocs_rate: Rate,
    /// From the request of a circuit until it can be used, the control plane included. Default: `753ms` (measured by
    /// the deliverable's partners; 25 ms of it are the switch).
    #[serde(alias = "OCSFirstMessageDelay")]
    pub ocs_first_message_delay: DurationPs,
    /// From the refusal of a circuit until it is asked for again. Default: `1ms` (ours).
    #[serde(alias = "retryReqDelay")]
    pub retry_request_delay: DurationPs,
    /// A circuit that was not used for so long is released. Default: `2s` (ours; the deliverable's second packet comes
    /// after one second and finds the circuit up).
    pub circuit_idle: DurationPs,
    /// An idle circuit is given up for a waiting request once it has been up for so long. Default: `10ms` (ours).
    pub circuit_hold: DurationPs,

    /// Decides on which wavelength a flow goes. Default: 1.
    pub seed: u64,
    /// Traffic of a server to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

const TEN_GIGABITS: Rate = Rate::from_bps(10_000_000_000);

impl Default for LightnessConfig {
    fn default() -> Self {
        Self {
            server_rate: TEN_GIGABITS,
            server_delay: DurationPs(0),
            switch_delay: DurationPs::from_ns(200),
            photonic_packet_min: Bytes(80),
            photonic_packet_max: Bytes(32 << 10),
            flit_size: Bytes(64),
            round_to_flits: false,
            decision: Decision::default(),
            decision_threshold: Bytes(1 << 20),
            circuit_destinations: Vec::new(),
            tor_rate: TEN_GIGABITS,
            tor_startup_delay: DurationPs::from_ns(1_678),
            tor_byte_delay: None,
            tor_per_3_byte_delay: None,
            ack_delay: DurationPs::from_ns(20),
            tor_max_messages: 64,
            window: 1,
            cable_delay: None,
            cable_length: None,
            wavelengths: 4,
            fibers: None,
            wavelength_conversion: false,
            ops_delay: DurationPs::from_ns(30),
            ops_rate: TEN_GIGABITS,
            ops_byte_delay: PerByte::from_ps(0),
            ops_arbiter: Arbiter::default(),
            ops_one_per_fibre: false,
            ops_slot: DurationPs::from_ns(1),
            ops_decision: DecidedAt::default(),
            ops_serialises_again: None,
            drop: Vec::new(),
            ocs_delay: DurationPs(0),
            ocs_rate: TEN_GIGABITS,
            ocs_first_message_delay: DurationPs::from_ms(753),
            retry_request_delay: DurationPs::from_ms(1),
            circuit_idle: DurationPs::from_ms(2_000),
            circuit_hold: DurationPs::from_ms(10),
            seed: 1,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
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

    /// The delay of a cable between ToR and optical switch, in picoseconds.
    pub(super) fn cable_ps(&self) -> u64 {
        match (self.cable_delay, self.cable_length) {
            (Some(delay), _) => delay.ps(),
            (None, Some(length)) => length.light_time().ps(),
            (None, None) => 0,
        }
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

    /// Checks the values against each other and against the number of racks.
    pub(super) fn check(&self, racks: usize) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if self.photonic_packet_max.get() == 0 || self.photonic_packet_max.get() > 1 << 30 {
            return wrong("photonic_packet_max", self.photonic_packet_max.to_string(), "from 1B to 1GiB");
        }
        if self.photonic_packet_min > self.photonic_packet_max {
            let value = self.photonic_packet_min.to_string();
            return wrong("photonic_packet_min", value, "at most photonic_packet_max");
        }
        if self.flit_size.get() == 0 {
            return wrong("flit_size", self.flit_size.to_string(), "at least 1B");
        }
        if let (Some(_), Some(three)) = (self.tor_byte_delay, self.tor_per_3_byte_delay) {
            return wrong("TorPer3ByteDelay", three.to_string(), "only one of TorPer3ByteDelay and tor_byte_delay");
        }
        if let (Some(_), Some(length)) = (self.cable_delay, self.cable_length) {
            return wrong("cable_length", length.to_string(), "only one of cable_length and cable_delay");
        }
        if self.tor_max_messages == 0 {
            return wrong("tor_max_messages", "0".to_owned(), "at least 1 packet");
        }
        if self.window == 0 {
            return wrong("window", "0".to_owned(), "at least 1 packet");
        }
        if self.wavelengths == 0 || self.wavelengths > 1_024 {
            return wrong("wavelengths", self.wavelengths.to_string(), "from 1 to 1024");
        }
        if let Some(fibers) = self.fibers.filter(|fibers| (*fibers as usize) < racks) {
            return wrong("fibers", fibers.to_string(), "at least one for each rack's ToR");
        }
        if self.ops_slot.ps() == 0 {
            return wrong("ops_slot", self.ops_slot.to_string(), "at least 1ps");
        }
        if self.ops_decision == DecidedAt::Head && self.ops_serialises_again == Some(true) {
            return wrong("ops_serialises_again", "true".to_owned(), "false, when ops_decision is \"head\"");
        }
        if self.retry_request_delay.ps() == 0 {
            return wrong("retry_request_delay", self.retry_request_delay.to_string(), "above 0");
        }
        if self.drop.contains(&0) {
            return wrong("drop", "0".to_owned(), "numbers of packets from 1 on");
        }
        if self.decision == Decision::Direct && racks > 2 {
            return wrong(
                "decision",
                format!("direct with {racks} racks"),
                "two racks when ToRs are joined back to back",
            );
        }
        if racks > 4_096 {
            return wrong("decision", format!("{racks} racks"), "at most 4096 racks");
        }
        Ok(())
    }
}
