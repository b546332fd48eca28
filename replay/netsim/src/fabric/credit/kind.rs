//! `credit` as a kind of fabric.

use super::windows::Windowed as WindowedCredit;
use super::{Credit, CreditConfig};
use crate::fabric::flows::Flows;
use crate::fabric::packet::Observer;
use crate::fabric::windowed::{Windowed, Windowing};
use crate::fabric::windows::{Unsuited, WindowsWanted};
use crate::fabric::{FabricError, FabricKind};
use crate::topology::HostPlace;

impl FabricKind for CreditConfig {
    type Flows = Flows<Credit<()>>;
    type Packets<O: Observer> = Credit<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError> {
        Ok(Flows::new(Credit::new(self, hosts, ())?, self.loopback))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Credit<O>, FabricError> {
        Credit::new(self, hosts, observer)
    }

    fn windowed(&self, hosts: &[HostPlace], wanted: WindowsWanted) -> Result<Windowing, FabricError> {
        Ok(match WindowedCredit::new(self, hosts, wanted)? {
            Ok(network) => Windowing::Windows(Windowed::Credit(Box::new(network))),
            Err(Unsuited(reason)) => Windowing::Events(reason),
        })
    }

    crate::fabric::kinds::network_keys! {}
}
