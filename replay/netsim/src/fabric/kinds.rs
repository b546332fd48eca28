//! What a kind of fabric is to the rest: one implementation of [`FabricKind`] beside its model, one line in a list of kinds.

use super::FabricError;
use super::packet::{Observer, PacketFabric};
use super::windowed::Windowing;
use super::windows::WindowsWanted;
use crate::network::Network;
use crate::routing::RoutingConfig;
use crate::topology::{HostPlace, TopologyConfig};
use crate::units::DurationPs;
use std::path::Path;

/// How many hosts, and racks of hosts, a fabric has by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Hosts, where its keys say so.
    pub hosts: Option<u32>,
    /// Racks, where its keys say so.
    pub racks: Option<u32>,
    /// Whether each host has a rack of its own where nothing else is said; else all share one.
    pub apart: bool,
}

/// A kind of fabric, implemented by its configuration.
pub trait FabricKind {
    /// Its network of flows, for recorded jobs and whatever else knows connections.
    type Flows: Network;
    /// Its network of packets, seen by an observer, for synthetic traffic.
    type Packets<O: Observer>: PacketFabric<O>;

    /// Builds its network of flows for `hosts`, whose [`HostIndex`](crate::network::HostIndex) is their index here.
    ///
    /// # Errors
    /// When a value makes no sense, or the topology has no room for the hosts; the error names key, value and what is
    /// allowed.
    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError>;

    /// Builds its network of packets for `hosts` (none: as many as its topology has), seen by `observer`.
    ///
    /// # Errors
    /// As [`FabricKind::flows`].
    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Self::Packets<O>, FabricError>;

    /// The same network, to be run in windows where it can be and that is wanted.
    ///
    /// # Errors
    /// As [`FabricKind::flows`].
    fn windowed(&self, hosts: &[HostPlace], wanted: WindowsWanted) -> Result<Windowing, FabricError> {
        let _ = (hosts, wanted);
        Ok(Windowing::Events(None))
    }

    /// The width of the intervals of the traffic over time.
    fn interval(&self) -> DurationPs;

    /// Changes the width of the intervals of the traffic over time.
    fn set_interval(&mut self, interval: DurationPs);

    /// The topology, the routing and the seed of a fabric of links and switches.
    fn network(&self) -> Option<(&TopologyConfig, &RoutingConfig, u64)> {
        None
    }

    /// How many hosts and racks it has by itself.
    fn places(&self) -> Places {
        let (hosts, racks) = self.network().map(|(topology, _, _)| topology.places()).unwrap_or_default();
        Places { hosts, racks, apart: false }
    }

    /// Takes the files that it names as relative to `folder`.
    fn relative_to(&mut self, folder: &Path) {
        let _ = folder;
    }
}

/// Declares a list of kinds: the enum of their configurations (a `[fabric]` table, chosen by its key `kind`), and those of
/// their networks, which hand each call on to the kind that it is.
macro_rules! fabric_kinds {
    (
        $(#[$config_doc:meta])* config $Config:ident,
        $(#[$flows_doc:meta])* flows $Flows:ident,
        $(#[$packets_doc:meta])* packets $Packets:ident,
        kinds { $( $(#[$doc:meta])* $name:literal => $Kind:ident($kind_config:ty) ),+ $(,)? }
    ) => {
        $(#[$config_doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $Config {
            $( $(#[$doc])* #[serde(rename = $name)] $Kind($kind_config), )+
        }

        $(#[$flows_doc])*
        pub enum $Flows {
            $( $(#[$doc])* $Kind(Box<<$kind_config as $crate::fabric::FabricKind>::Flows>), )+
        }

        $(#[$packets_doc])*
        pub enum $Packets<O: $crate::fabric::packet::Observer> {
            $( $(#[$doc])* $Kind(Box<<$kind_config as $crate::fabric::FabricKind>::Packets<O>>), )+
        }

        impl $Config {
            /// The kinds that there are, as configurations call them.
            pub const KINDS: &[&str] = &[$( $name ),+];

            /// The fabric's `kind`, as configurations and summaries call it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $( Self::$Kind(_) => $name, )+ }
            }
        }

        impl $crate::fabric::FabricKind for $Config {
            type Flows = $Flows;
            type Packets<O: $crate::fabric::packet::Observer> = $Packets<O>;

            fn flows(
                &self,
                hosts: &[$crate::topology::HostPlace],
            ) -> Result<Self::Flows, $crate::fabric::FabricError> {
                $crate::fabric::limits::check(self)?;
                $crate::fabric::figures::check_interval(self.interval())?;
                Ok(match self {
                    $( Self::$Kind(config) => $Flows::$Kind(Box::new(config.flows(hosts)?)), )+
                })
            }

            fn packets<O: $crate::fabric::packet::Observer>(
                &self,
                hosts: &[$crate::topology::HostPlace],
                observer: O,
            ) -> Result<Self::Packets<O>, $crate::fabric::FabricError> {
                $crate::fabric::limits::check(self)?;
                $crate::fabric::figures::check_interval(self.interval())?;
                Ok(match self {
                    $( Self::$Kind(config) => $Packets::$Kind(Box::new(config.packets(hosts, observer)?)), )+
                })
            }

            fn windowed(
                &self,
                hosts: &[$crate::topology::HostPlace],
                wanted: $crate::fabric::windows::WindowsWanted,
            ) -> Result<$crate::fabric::windowed::Windowing, $crate::fabric::FabricError> {
                $crate::fabric::limits::check(self)?;
                $crate::fabric::figures::check_interval(self.interval())?;
                match self { $( Self::$Kind(config) => config.windowed(hosts, wanted), )+ }
            }

            fn interval(&self) -> $crate::units::DurationPs {
                match self { $( Self::$Kind(config) => config.interval(), )+ }
            }

            fn set_interval(&mut self, interval: $crate::units::DurationPs) {
                match self { $( Self::$Kind(config) => config.set_interval(interval), )+ }
            }

            fn network(
                &self,
            ) -> Option<(&$crate::topology::TopologyConfig, &$crate::routing::RoutingConfig, u64)> {
                match self { $( Self::$Kind(config) => config.network(), )+ }
            }

            fn places(&self) -> $crate::fabric::Places {
                match self { $( Self::$Kind(config) => config.places(), )+ }
            }

            fn relative_to(&mut self, folder: &std::path::Path) {
                match self { $( Self::$Kind(config) => config.relative_to(folder), )+ }
            }
        }

        $crate::fabric::kinds::each_kind!{ [$($Kind)+] {} $Flows }
        $crate::fabric::kinds::each_kind!{ [$($Kind)+] {O: $crate::fabric::packet::Observer} $Packets }

        impl $crate::network::Network for $Flows {
            fn open_flow(
                &mut self,
                source: $crate::network::HostIndex,
                destination: $crate::network::HostIndex,
            ) -> $crate::network::FlowId {
                match self { $( Self::$Kind(network) => network.open_flow(source, destination), )+ }
            }

            fn open_connection(
                &mut self,
                client: $crate::network::HostIndex,
                server: $crate::network::HostIndex,
            ) -> ($crate::network::FlowId, $crate::network::FlowId) {
                match self { $( Self::$Kind(network) => network.open_connection(client, server), )+ }
            }

            fn describe(&mut self, flow: $crate::network::FlowId, kind: $crate::network::FlowKind) {
                match self { $( Self::$Kind(network) => network.describe(flow, kind), )+ }
            }

            fn send(
                &mut self,
                now: $crate::time::SimTime,
                flow: $crate::network::FlowId,
                bytes: u64,
                token: $crate::network::Token,
            ) {
                match self { $( Self::$Kind(network) => network.send(now, flow, bytes, token), )+ }
            }

            fn send_part(
                &mut self,
                now: $crate::time::SimTime,
                flow: $crate::network::FlowId,
                bytes: u64,
                of_bytes: u64,
                token: $crate::network::Token,
            ) {
                match self { $( Self::$Kind(network) => network.send_part(now, flow, bytes, of_bytes, token), )+ }
            }
        }

        impl<O: $crate::fabric::packet::Observer> $crate::fabric::packet::PacketFabric<O> for $Packets<O> {
            fn send(&mut self, now: $crate::time::SimTime, message: &$crate::fabric::packet::Message) {
                match self { $( Self::$Kind(network) => network.send(now, message), )+ }
            }

            fn send_part(
                &mut self,
                now: $crate::time::SimTime,
                message: &$crate::fabric::packet::Message,
                of_bytes: u64,
            ) {
                match self { $( Self::$Kind(network) => network.send_part(now, message, of_bytes), )+ }
            }

            fn observer(&mut self) -> &mut O {
                match self { $( Self::$Kind(network) => network.observer(), )+ }
            }

            fn link_time(
                &self,
            ) -> Result<$crate::fabric::packet::LinkTime, $crate::fabric::packet::HostLinksDiffer> {
                match self { $( Self::$Kind(network) => network.link_time(), )+ }
            }

            fn waits_more_than(&self, host: $crate::network::HostIndex, most: u64) -> Option<bool> {
                match self { $( Self::$Kind(network) => network.waits_more_than(host, most), )+ }
            }

            fn is_full(&self, message: &$crate::fabric::packet::Message, most: u64, in_any: bool) -> Option<bool> {
                match self { $( Self::$Kind(network) => network.is_full(message, most, in_any), )+ }
            }

            fn occupancy(&self) -> Option<(u64, u64)> {
                match self { $( Self::$Kind(network) => network.occupancy(), )+ }
            }

            fn lose_blocked_heads(&mut self) -> bool {
                match self { $( Self::$Kind(network) => network.lose_blocked_heads(), )+ }
            }

            fn expect_whole_cycles(&mut self) {
                match self { $( Self::$Kind(network) => network.expect_whole_cycles(), )+ }
            }

            fn count_occupancy(&mut self) -> bool {
                match self { $( Self::$Kind(network) => network.count_occupancy(), )+ }
            }

            fn occupancy_times(&self, now: $crate::time::SimTime) -> Vec<Vec<u64>> {
                match self { $( Self::$Kind(network) => network.occupancy_times(now), )+ }
            }

            fn log_hops(&mut self, wanted: &$crate::fabric::hop_records::LogWanted) -> bool {
                match self { $( Self::$Kind(network) => network.log_hops(wanted), )+ }
            }

            fn take_hop_log(
                &mut self,
                end: $crate::time::SimTime,
            ) -> Option<$crate::fabric::hop_records::HopRecords> {
                match self { $( Self::$Kind(network) => network.take_hop_log(end), )+ }
            }

            fn lanes(&self) -> u32 {
                match self { $( Self::$Kind(network) => network.lanes(), )+ }
            }

            fn lane_bytes(&self, now: $crate::time::SimTime) -> Vec<u64> {
                match self { $( Self::$Kind(network) => network.lane_bytes(now), )+ }
            }
        }
    };
}

/// Hands the calls of a [`Simulation`](crate::network::Simulation) on to the kind that it is.
macro_rules! each_kind {
    ([$($Kind:ident)+] {$($param:ident: $bound:path)?} $Type:ident) => {
        impl$(<$param: $bound>)? $crate::network::Simulation for $Type$(<$param>)? {
            fn hosts(&self) -> u32 {
                match self { $( Self::$Kind(network) => network.hosts(), )+ }
            }

            fn next_event(&self) -> Option<$crate::time::SimTime> {
                match self { $( Self::$Kind(network) => network.next_event(), )+ }
            }

            fn advance(
                &mut self,
                until: $crate::time::SimTime,
                deliveries: &mut Vec<$crate::network::Delivery>,
            ) -> $crate::time::SimTime {
                match self { $( Self::$Kind(network) => network.advance(until, deliveries), )+ }
            }

            fn run_before(&mut self, until: $crate::time::SimTime) {
                match self { $( Self::$Kind(network) => network.run_before(until), )+ }
            }

            fn events(&self) -> u64 {
                match self { $( Self::$Kind(network) => network.events(), )+ }
            }

            fn figures(&self) -> $crate::network::NetworkFigures {
                match self { $( Self::$Kind(network) => network.figures(), )+ }
            }
        }
    };
}

/// What [`FabricKind`] asks of a configuration with the key `interval`.
macro_rules! interval_key {
    () => {
        fn interval(&self) -> $crate::units::DurationPs {
            self.interval
        }

        fn set_interval(&mut self, interval: $crate::units::DurationPs) {
            self.interval = interval;
        }
    };
}

/// What [`FabricKind`] asks of a fabric of links and switches: a configuration with the keys `interval`, `topology`, `routing` and `seed`.
macro_rules! network_keys {
    () => {
        $crate::fabric::kinds::interval_key! {}

        fn network(&self) -> Option<(&$crate::topology::TopologyConfig, &$crate::routing::RoutingConfig, u64)> {
            Some((&self.topology, &self.routing, self.seed))
        }

        fn relative_to(&mut self, folder: &std::path::Path) {
            self.topology.relative_to(folder);
            self.routing.relative_to(folder);
        }
    };
}

/// [`FabricKind`] of a configuration with the keys of `network_keys` and `loopback`: a network of packets, and of flows over them.
macro_rules! packet_kind {
    ($Config:ty => $Network:ident) => {
        impl $crate::fabric::FabricKind for $Config {
            type Flows = $crate::fabric::flows::Flows<$Network<()>>;
            type Packets<O: $crate::fabric::packet::Observer> = $Network<O>;

            fn flows(&self, hosts: &[$crate::topology::HostPlace]) -> Result<Self::Flows, $crate::fabric::FabricError> {
                Ok($crate::fabric::flows::Flows::new($Network::new(self, hosts, ())?, self.loopback))
            }

            fn packets<O: $crate::fabric::packet::Observer>(
                &self,
                hosts: &[$crate::topology::HostPlace],
                observer: O,
            ) -> Result<$Network<O>, $crate::fabric::FabricError> {
                $Network::new(self, hosts, observer)
            }

            $crate::fabric::kinds::network_keys! {}
        }
    };
}

pub(super) use {each_kind, fabric_kinds, interval_key, network_keys, packet_kind};
