//! What comes of joining captures.

use trace::manifest::NetworkEstimate;

use crate::clock::Jump;
use crate::join::Early;
use crate::joined::Joined;
use crate::loss::{EarlySegments, Loss, LossKind, Note as _};

/// Captures, joined.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// What they say.
    pub joined: Joined,
    /// What the agents and the readers of captures noted, in words.
    pub notes: Vec<String>,
    /// Packets read.
    pub packets: u64,
    /// How clocks were aligned.
    pub clocks: Clocks,
    /// The network, as far as the packets tell of it.
    pub network: NetworkEstimate,
}

impl Merged {
    /// All that was lost on the way here, job histories apart.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        self.joined.losses.iter().cloned().chain(self.clocks.losses()).collect()
    }

    /// What the reader of the trace should know, in words.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().cloned().chain(self.clocks.notes()).collect()
    }
}

/// How the clocks of all hosts were aligned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Each of them; hosts by their rows.
    pub hosts: Vec<HostClock>,
    /// The host whose clock is the reference.
    pub reference: String,
    /// Hosts that share no packets with it: their clocks stay as they were recorded.
    pub apart: Vec<String>,
    /// What was done to clocks while they were recorded, and has been undone: hosts by name.
    pub jumps: Vec<(String, Jump)>,
    /// Packets seen at both ends that were left out, as their times contradict those of all others of the two hosts.
    pub contradicting: u64,
    /// Packets seen at both ends, whose times were compared.
    pub compared: u64,
    /// Of these, packets that after alignment arrive before they left, by whatever little.
    pub early: u64,
    /// The earliest of these, nanoseconds too early.
    pub worst_ns: u64,
    /// Segments with payload that would have arrived before they left.
    pub early_segments: Early,
}

impl Clocks {
    /// What could not be made right.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        let Early { within_uncertainty, beyond_uncertainty, largest_ns } = self.early_segments;
        let early = |which| LossKind::Early { which, largest_ns };
        let mut losses = Vec::new();
        losses.lost("", LossKind::Apart, self.apart.len() as u64);
        losses.lost("", early(EarlySegments::Violations), beyond_uncertainty);
        losses.lost("", early(EarlySegments::Clamped), within_uncertainty);
        losses
    }

    /// The figures, in words.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let apart = self.apart.iter().map(|host| {
            format!("{host}: shares no packets with {}: its clock stays as it was recorded", self.reference)
        });
        let jumps = self.jumps.iter().map(|(host, jump)| {
            format!(
                "{host}: its clock jumped by {} ns and went on {:+.1} ppm faster at {} ns: undone",
                jump.step_ns, jump.rate_ppm, jump.at_ns
            )
        });
        let clocks = self.hosts.iter().map(|clock| {
            format!(
                "{}: clock moved by {} ns at the trace's start, drift {:.3} ppm, uncertainty {} ns",
                clock.host, clock.offset_ns, clock.drift_ppm, clock.uncertainty_ns
            )
        });
        let compared = format!(
            "clocks: {} packets seen at both ends were compared; {} arrive up to {} ns before they left",
            self.compared, self.early, self.worst_ns
        );
        let contradicting = (self.contradicting > 0).then(|| {
            let packets = self.contradicting;
            format!(
                "clocks: {packets} packets seen at both ends were left out: their times contradict those of the others"
            )
        });
        apart.chain(jumps).chain(clocks).chain([compared]).chain(contradicting).collect()
    }
}

/// How the clock of a host was aligned.
#[derive(Clone, Debug, PartialEq)]
pub struct HostClock {
    /// Host.
    pub host: String,
    /// Added to its clock at the trace's start, nanoseconds.
    pub offset_ns: i64,
    /// What it gained over the reference clock, parts per million.
    pub drift_ppm: f64,
    /// How far off it may be, nanoseconds.
    pub uncertainty_ns: u64,
}
