//! Opening an interface: the kernel's ring and filter.

use pcap::{Active, Capture, Precision};

use crate::counters::InterfaceCounter;
use crate::filter;
use crate::follow::Shared;
use crate::frame::LinkLayer;
use crate::interfaces::Interface;
use crate::keep::KeepRule;
use crate::pending::HoldRule;
use crate::redact::Secrets;

/// The kernel hands over a part of the ring that is not full after this time, milliseconds.
const HAND_OVER_MS: i32 = 100;

/// How interfaces are recorded.
#[derive(Clone, Debug)]
pub struct CaptureSettings {
    /// Filter, in the syntax of pcap-filter(7); empty = everything.
    pub filter: String,
    /// Captured bytes of a frame at most.
    pub snap_length: u32,
    /// The kernel's ring, bytes.
    pub ring_bytes: u32,
    /// What is kept of payloads.
    pub keep: KeepRule,
    /// Whether secrets stay in it.
    pub secrets: Secrets,
    /// Bounds of what waits until it is known whether it is Hadoop's.
    pub hold: HoldRule,
    /// Whether an interface that vanished is recorded on when it comes back.
    pub reopen: bool,
    /// Whether interfaces that come up later are recorded as well.
    pub new_interfaces: bool,
}

/// Why an interface cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel does not let us.
    #[error(
        "no permission to record interface {interface} ({reason}): run as root, or give the program the right with \
         `setcap cap_net_raw+ep PATH/sniffer`"
    )]
    Permission {
        /// The network interface.
        interface: String,
        /// What libpcap says.
        reason: String,
    },
    /// libpcap cannot open it.
    #[error("interface {interface} cannot be opened: {reason}")]
    Open {
        /// The network interface.
        interface: String,
        /// What libpcap says.
        reason: String,
    },
    /// The filter does not compile.
    #[error("filter \"{filter}\" cannot be set on {interface}: {reason} (see `man 7 pcap-filter`)")]
    Filter {
        /// Which interface.
        interface: String,
        /// The filter.
        filter: String,
        /// What libpcap says.
        reason: String,
    },
    /// It carries something that is not understood.
    #[error("interface {interface} has link type {linktype}, in which no IP packets are known to be found")]
    Link {
        /// Which interface.
        interface: String,
        /// libpcap's number.
        linktype: i32,
    },
}

/// An open interface: the kernel already collects its packets.
pub struct OpenInterface {
    pub(crate) capture: Capture<Active>,
    pub(crate) link: LinkLayer,
    pub(crate) counter: InterfaceCounter,
}

/// Opens an interface and sets the filter: that of `following`, if Hadoop's ports are followed, else that of the settings.
///
/// # Errors
/// If the right is missing, the interface cannot be opened, or the filter does not compile.
pub fn open(
    interface: &Interface,
    settings: &CaptureSettings,
    following: Option<&Shared>,
) -> Result<OpenInterface, OpenError> {
    let name = || interface.name.clone();
    // First: what is seen has been counted then, also of packets that pass meanwhile.
    let counter = InterfaceCounter::begin(&interface.name, interface.loopback);
    let capture = Capture::from_device(interface.name.as_str())
        .map(|capture| {
            capture
                .snaplen(i32::try_from(settings.snap_length).unwrap_or(i32::MAX))
                .buffer_size(i32::try_from(settings.ring_bytes).unwrap_or(i32::MAX))
                .timeout(HAND_OVER_MS)
                .precision(Precision::Nano)
                .promisc(false)
        })
        .and_then(Capture::open)
        .map_err(|error| {
            let reason = error.to_string();
            let permission = ["ermission", "not permitted", "Try running as root"];
            if permission.iter().any(|word| reason.contains(word)) {
                OpenError::Permission { interface: name(), reason }
            } else {
                OpenError::Open { interface: name(), reason }
            }
        })?;
    let linktype = capture.get_datalink().0;
    let link = LinkLayer::of_linktype(linktype).ok_or_else(|| OpenError::Link { interface: name(), linktype })?;
    let mut capture =
        capture.setnonblock().map_err(|error| OpenError::Open { interface: name(), reason: error.to_string() })?;
    if let Some(shared) = following {
        let followed = shared.followed();
        let program = filter::program(&followed.filtered_by(), followed.ephemeral_from, settings.snap_length);
        filter::attach(&capture, &program).map_err(|error| OpenError::Filter {
            interface: name(),
            filter: "Hadoop's ports".to_owned(),
            reason: error.to_string(),
        })?;
    } else if !settings.filter.is_empty() {
        capture.filter(&settings.filter, true).map_err(|error| OpenError::Filter {
            interface: name(),
            filter: settings.filter.clone(),
            reason: error.to_string(),
        })?;
    }
    Ok(OpenInterface { capture, link, counter })
}

impl OpenInterface {
    /// What its frames begin with.
    #[must_use]
    pub fn link(&self) -> LinkLayer {
        self.link
    }
}

/// The name of an interface's packet file.
#[must_use]
pub fn file_name(interface: &str) -> String {
    format!("packets-{}.hpk", interface.replace('/', "_"))
}
