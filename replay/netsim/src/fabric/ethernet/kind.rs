//! `ethernet` as a kind of fabric.

use super::windows::Windowed as WindowedEthernet;
use super::{Ethernet, EthernetConfig};
use crate::fabric::flow_packets::FlowPackets;
use crate::fabric::packet::Observer;
use crate::fabric::windowed::{Windowed, Windowing};
use crate::fabric::windows::{Unsuited, WindowsWanted};
use crate::fabric::{FabricError, FabricKind};
use crate::topology::HostPlace;

impl FabricKind for EthernetConfig {
    type Flows = Ethernet;
    type Packets<O: Observer> = FlowPackets<Ethernet, O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Ethernet, FabricError> {
        Ethernet::new(self, hosts)
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Self::Packets<O>, FabricError> {
        Ok(FlowPackets::new(Ethernet::new(self, hosts)?, observer))
    }

    fn windowed(&self, hosts: &[HostPlace], wanted: WindowsWanted) -> Result<Windowing, FabricError> {
        Ok(match WindowedEthernet::new(self, hosts, wanted)? {
            Ok(network) => Windowing::Windows(Windowed::Ethernet(Box::new(network))),
            Err(Unsuited(reason)) => Windowing::Events(reason),
        })
    }

    crate::fabric::kinds::network_keys! {}
}
