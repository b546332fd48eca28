//! What a `rotor` fabric counts beside its links.

/// Packets, and the bytes of those that were sent over circuits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub delivered: u64,
    pub within_racks: u64,
    /// Over circuits: what was sent, what came to the other rack, and what was lost by cause.
    pub sent: u64,
    pub sent_bytes: u64,
    pub passed: u64,
    pub passed_bytes: u64,
    /// Of those that were sent, the ones that do not wait for the circuit to their rack.
    pub on_short_ways: u64,
    pub guard_band: u64,
    pub reconfiguring: u64,
    pub no_place: u64,
    pub lost_bytes: u64,
    /// Packets that waited for the circuit to their rack where no short way had room.
    pub from_uplink_queue: u64,
    pub rerouted: u64,
    pub longest_transit: u64,
    /// Circuits that were planned by demand.
    pub planned: u64,
}

impl Counters {
    /// Packets that were lost; each is sent again.
    pub const fn lost(&self) -> u64 {
        self.guard_band + self.reconfiguring + self.no_place
    }

    /// Each with its name; those of planned circuits where there are some to be.
    pub fn named(&self, plans: bool) -> Vec<(String, u64)> {
        let named = [
            ("packets delivered", self.delivered),
            ("packets within racks", self.within_racks),
            ("packets over circuits", self.sent),
            ("bytes over circuits", self.sent_bytes),
            ("packets on short ways", self.on_short_ways),
            ("packets that passed circuits", self.passed),
            ("bytes that passed circuits", self.passed_bytes),
            ("bytes lost and sent again", self.lost_bytes),
            ("lost: in a guard band", self.guard_band),
            ("lost: the switch not reconfigured", self.reconfiguring),
            ("lost: no place at the ToR in between", self.no_place),
            ("packets without a place at an uplink", self.from_uplink_queue),
            ("packets routed anew when their circuit was over", self.rerouted),
            ("longest transit queue in packets", self.longest_transit),
        ];
        let planned = plans.then_some(("circuits planned", self.planned));
        named.into_iter().chain(planned).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
