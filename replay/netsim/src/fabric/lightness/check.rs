//! What values of a LIGHTNESS fabric make sense.

use super::config::{DecidedAt, Decision, LightnessConfig, OcsScheduler, Resequencer};
use crate::fabric::FabricError;
use crate::units::DurationPs;

/// So many ports a scheduler by demand looks at, and this is its longest time.
const MAX_PLANNED_PORTS: usize = 256;
const MAX_TIME: DurationPs = DurationPs::from_ms(100_000);
/// No moving average has more messages.
const MAX_HISTORY: u32 = 1_000_000;

impl LightnessConfig {
    /// Checks the values against each other and against the number of racks.
    pub(super) fn check(&self, racks: usize, hosts: usize) -> Result<(), FabricError> {
        self.check_packets()?;
        self.check_optics(racks, hosts)?;
        self.check_scheduler(racks)
    }

    /// What belongs to a scheduler by demand, and what one can not do.
    fn check_scheduler(&self, racks: usize) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        let times = [("slice", self.slice), ("demand_age", self.demand_age), ("demand_limit", self.demand_limit)];
        if self.scheduler == OcsScheduler::OnDemand {
            let given = times.into_iter().find_map(|(key, time)| Some((key, time?)));
            let allowed = "leave it out: it belongs to another scheduler than \"on-demand\"";
            return given.map_or(Ok(()), |(key, time)| wrong(key, time.to_string(), allowed));
        }
        if matches!(self.decision, Decision::Ops | Decision::Direct) {
            let allowed = "on-demand, or a decision that takes circuits (ocs, by-size, by-flow, by-prediction, by-circuit, by-destination, by-kind)";
            return wrong("scheduler", "by demand, without circuits".to_owned(), allowed);
        }
        if self.ocs_output_size > 0 {
            let allowed =
                "0 with a scheduler by demand: circuits end when it says, and nothing may be left in the switch";
            return wrong("ocs_output_size", self.ocs_output_size.to_string(), allowed);
        }
        let ports = racks * (self.circuit_fibers_per_tor(racks) * self.circuit_wavelengths()) as usize;
        if ports > MAX_PLANNED_PORTS {
            let allowed = "at most 256 ports at the circuit switch: racks x ocs_wavelengths x fibres of a rack";
            return wrong("scheduler", format!("by demand with {ports} ports"), allowed);
        }
        for (key, time) in times {
            if let Some(time) = time.filter(|time| *time > MAX_TIME) {
                return wrong(key, time.to_string(), "at most 100s");
            }
        }
        if self.ocs_first_message_delay > MAX_TIME {
            let allowed = "at most 100s with a scheduler by demand";
            return wrong("ocs_first_message_delay", self.ocs_first_message_delay.to_string(), allowed);
        }
        if self.largest_circuit_packet_ps() > self.demand_limit().ps() {
            let allowed = "at least the time of the largest packet over a circuit (photonic_packet_max at tor_rate, and the ToR's start-up)";
            return wrong("demand_limit", self.demand_limit().to_string(), allowed);
        }
        Ok(())
    }

    fn check_packets(&self) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if self.decision == Decision::ByKind && self.circuit_kinds.is_empty() {
            let allowed = "some of calls, storage, shuffle and other, with decision = \"by-kind\"";
            return wrong("circuit_kinds", "[]".to_owned(), allowed);
        }
        if self.decision == Decision::ByDestination && self.circuit_destinations.is_empty() {
            let allowed = "names of hosts and racks, with decision = \"by-destination\"";
            return wrong("circuit_destinations", "[]".to_owned(), allowed);
        }
        if let Some(history) = self.prediction_history {
            if self.decision != Decision::ByPrediction {
                let allowed = "leave it out: it belongs to decision = \"by-prediction\"";
                return wrong("prediction_history", history.to_string(), allowed);
            }
            if history == 0 || history > MAX_HISTORY {
                return wrong("prediction_history", history.to_string(), "from 1 to 1000000 messages");
            }
        }
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
            return wrong("tor_per_3_byte_delay", three.to_string(), "only one of TorPer3ByteDelay and tor_byte_delay");
        }
        if let (Some(_), Some(length)) = (self.cable_delay, self.cable_length) {
            return wrong("cable_length", length.to_string(), "only one of cable_length and cable_delay");
        }
        if self.tor_max_messages == 0 {
            return wrong("tor_max_messages", "0".to_owned(), "at least 1 packet");
        }
        if self.tor_ocs_max_messages == Some(0) {
            return wrong("tor_ocs_max_messages", "0".to_owned(), "at least 1 packet");
        }
        if self.tor_output_buffer == Some(0) {
            return wrong("tor_output_buffer", "0".to_owned(), "at least 1 packet");
        }
        if self.window == 0 {
            return wrong("window", "0".to_owned(), "at least 1 packet");
        }
        if let (Some(most), Resequencer::Tor) = (self.resends, self.resequencer) {
            return wrong(
                "resends",
                most.to_string(),
                "no limit where ToRs put packets in order (resequencer = \"tor\")",
            );
        }
        Ok(())
    }

    /// Refuses what only synthetic traffic can bear.
    pub(super) fn check_for_jobs(&self) -> Result<(), FabricError> {
        let Some(most) = self.resends else { return Ok(()) };
        let allowed =
            "no limit where messages are waited for (a job, Dimemas); it is for synthetic traffic ([traffic])";
        Err(FabricError::Value { key: "resends", value: most.to_string(), allowed })
    }

    fn check_fibers(&self, racks: usize) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if self.wavelengths == 0 || self.wavelengths > 1_024 {
            return wrong("wavelengths", self.wavelengths.to_string(), "from 1 to 1024");
        }
        if let Some(number) = self.ocs_wavelengths.filter(|number| *number == 0 || *number > 1_024) {
            return wrong("ocs_wavelengths", number.to_string(), "from 1 to 1024");
        }
        for (key, fibers) in [("fibers", self.fibers), ("ocs_fibers", self.ocs_fibers)] {
            if let Some(fibers) = fibers.filter(|fibers| (*fibers as usize) < racks) {
                return wrong(key, fibers.to_string(), "at least one for each rack's ToR");
            }
            // Each fibre of a ToR has up to 1024 wavelengths, each of them a channel with a number of its own.
            if let Some(fibers) = fibers.filter(|fibers| *fibers as usize / racks > 64 || *fibers > 1 << 13) {
                return wrong(key, fibers.to_string(), "at most 64 for each rack's ToR, and 8192 in all");
            }
        }
        Ok(())
    }

    fn check_optics(&self, racks: usize, hosts: usize) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if let Some(most) = self.max_destinations.filter(|most| (*most as usize) < hosts) {
            return wrong(
                "max_destinations",
                format!("{most} with {hosts} hosts"),
                "at least as many as there are hosts",
            );
        }
        self.check_fibers(racks)?;
        if let Some(aod) = &self.aod {
            let least = if aod.configured { racks } else { racks.min(2) };
            if let Some(ports) = aod.ports.filter(|ports| (*ports as usize) < least) {
                let allowed = "at least 2, for a packet needs two ToRs; one for each ToR where all are configured";
                return wrong("aod.ports", ports.to_string(), allowed);
            }
            if aod.retry.ps() == 0 {
                return wrong("aod.retry", aod.retry.to_string(), "above 0");
            }
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
