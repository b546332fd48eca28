//! Some of the readings of figures 19 and 21: those in which keys have given values (`replay lightness --fit --set`).

use netsim::fabric::FabricConfig;
use netsim::units::Rate;
use toml::{Table, Value};

use super::fit::{Fit, InfiniBand, Optics, Reading};
use crate::experiment::{ExperimentError, Override};

/// Keys in which readings differ, for errors.
const TRIED: &str = "of OPS and OCS flit_size, photonic_packet_max, window, cable_to_ops, cable_from_ops, cable_to_ocs, cable_from_ocs, server_rate, \
                     ops_serialises_again and ops_byte_delay, of InfiniBand flit, mtu, start and topology.uplink.delay; its rate is what is searched";
/// A rate of InfiniBand that no reading has.
const NO_RATE: Rate = Rate::from_bps(1_000);

/// Readings.
pub struct Chosen {
    optics: Vec<(u32, Optics)>,
    networks: Vec<(u32, InfiniBand)>,
}

impl Chosen {
    /// Those in which each key of `changes` has the value that it is given: a key of OPS and OCS there, one of InfiniBand there.
    ///
    /// # Errors
    /// If a change is of no key of either network, or no reading has all of these values.
    pub fn by(changes: &[Override]) -> Result<Self, ExperimentError> {
        let mut optics: Vec<(u32, Optics)> = Vec::new();
        let mut networks: Vec<(u32, InfiniBand)> = Vec::new();
        for Reading { flit, optics: of_optics, infiniband } in Reading::all() {
            // OPS and OCS change least often from reading to reading.
            if optics.last() != Some(&(flit, of_optics)) {
                optics.push((flit, of_optics));
            }
            if !networks.contains(&(flit, infiniband)) {
                networks.push((flit, infiniband));
            }
        }
        let (any_optics, any_network) = (optics[0].1, networks[0].1);
        let lightness = |(flit, optics): &(u32, Optics)| {
            Reading { flit: *flit, optics: *optics, infiniband: any_network }.lightness()
        };
        let infiniband = |(flit, infiniband): &(u32, InfiniBand)| {
            Reading { flit: *flit, optics: any_optics, infiniband: *infiniband }.infiniband(NO_RATE)
        };
        for change in changes {
            let wrong = |reason: String| ExperimentError::Wrong { place: change.argument().to_owned(), reason };
            if !change.is_of("fabric") {
                return Err(wrong(format!("with --fit a path begins with fabric: {TRIED}")));
            }
            let in_optics = optics.first().is_some_and(|first| changed(lightness(first), change).is_ok());
            let in_networks = networks.first().is_some_and(|first| changed(infiniband(first), change).is_ok());
            if !in_optics && !in_networks {
                let why = optics.first().and_then(|first| changed(lightness(first), change).err()).unwrap_or_default();
                let why = why.split_once(", expected one of").map_or(why.as_str(), |(why, _)| why);
                return Err(wrong(format!(
                    "neither OPS and OCS nor InfiniBand have such a key or value ({why}): {TRIED}"
                )));
            }
            optics.retain(|one| !in_optics || has(lightness(one), change));
            networks.retain(|one| !in_networks || has(infiniband(one), change));
            if optics.is_empty() || networks.is_empty() {
                return Err(wrong(format!("no reading has this value; they differ in keys {TRIED}")));
            }
        }
        Ok(Self { optics, networks })
    }

    /// Whether a reading is one of them.
    #[must_use]
    pub fn has(&self, reading: &Reading) -> bool {
        self.optics.contains(&(reading.flit, reading.optics))
            && self.networks.contains(&(reading.flit, reading.infiniband))
    }

    /// Those of `fits`, in their order.
    #[must_use]
    pub fn of(&self, fits: Vec<Fit>) -> Vec<Fit> {
        fits.into_iter().filter(|fit| self.has(&fit.reading)).collect()
    }
}

/// A fabric with another value of a key, or why it cannot be read.
fn changed(keys: Table, change: &Override) -> Result<FabricConfig, String> {
    let mut whole = Table::from_iter([("fabric".to_owned(), Value::Table(keys))]);
    change.apply(&mut whole).map_err(|error| error.to_string())?;
    let fabric = whole.remove("fabric").unwrap_or_else(|| Value::Table(Table::new()));
    fabric.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Whether a fabric stays as it is when a key gets its value.
fn has(keys: Table, change: &Override) -> bool {
    let before = Value::Table(keys.clone()).try_into::<FabricConfig>();
    changed(keys, change).is_ok_and(|after| before.is_ok_and(|before| before == after))
}
