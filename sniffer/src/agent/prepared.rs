//! An interface before its thread starts: open, with its files.

use std::sync::Arc;

use trace::agent_error::AgentError;
use trace::manifest::InterfaceManifest;
use trace::packet::PacketFileHeader;

use super::settings::RunSettings;
use crate::capture::{self, OpenInterface};
use crate::disk_quota::DiskQuota;
use crate::interfaces::Interface;
use crate::pcapng::PcapngSink;
use crate::sink::PacketSink;

/// An interface that is open, and its files.
pub(super) struct Prepared {
    pub(super) interface: Interface,
    pub(super) open: OpenInterface,
    pub(super) sink: PacketSink,
    pub(super) pcapng: Option<PcapngSink>,
}

/// What the manifest says of an interface at first.
pub(super) fn about(interface: &Interface) -> InterfaceManifest {
    InterfaceManifest {
        name: interface.name.clone(),
        file: capture::file_name(&interface.name),
        addresses: interface.addresses.iter().map(ToString::to_string).collect(),
        ..InterfaceManifest::default()
    }
}

impl Prepared {
    /// Opens the files of an interface.
    pub(super) fn new(
        interface: Interface,
        open: OpenInterface,
        settings: &RunSettings,
        host: &str,
        started_ns: u64,
    ) -> Result<Self, AgentError> {
        let header = PacketFileHeader {
            host: host.to_owned(),
            interface: interface.name.clone(),
            loopback: interface.loopback,
            snap_length: settings.capture.snap_length,
            started_ns,
        };
        let path = settings.out.join(capture::file_name(&interface.name));
        let sink = PacketSink::open(&path, &header).map_err(AgentError::file(&path))?;
        let beside = path.with_extension("pcapng");
        let pcapng = settings.pcapng.then(|| PcapngSink::open(&beside, &header, open.link())).transpose();
        let pcapng = pcapng.map_err(AgentError::file(&beside))?;
        Ok(Self { interface, open, sink, pcapng })
    }

    pub(super) fn keep_within(&mut self, quota: &Arc<DiskQuota>) {
        self.sink.keep_within(quota);
        if let Some(pcapng) = &mut self.pcapng {
            pcapng.keep_within(quota);
        }
    }
}
