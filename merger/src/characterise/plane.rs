//! Control and data.

use trace::rows::MessageKind;

use crate::sums::add;

/// For what a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Calls, negotiations, requests, acknowledgements: what grows with tasks and time.
    Control,
    /// Packets of blocks and map outputs: what grows with the data.
    Data,
    /// Not understood.
    Unknown,
}

impl Plane {
    /// That of a kind of messages.
    #[must_use]
    pub fn of(kind: MessageKind) -> Self {
        match kind {
            MessageKind::BlockData | MessageKind::ShuffleResponse => Self::Data,
            MessageKind::Unknown => Self::Unknown,
            MessageKind::RpcConnect
            | MessageKind::RpcRequest
            | MessageKind::RpcResponse
            | MessageKind::RpcPing
            | MessageKind::Sasl
            | MessageKind::BlockRequest
            | MessageKind::BlockResponse
            | MessageKind::BlockAck
            | MessageKind::BlockStatus
            | MessageKind::ShuffleRequest
            | MessageKind::HttpRequest
            | MessageKind::HttpResponse => Self::Control,
        }
    }

    /// Its name in tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
            Self::Unknown => "unknown",
        }
    }
}

/// Bytes by plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Of control.
    pub control: u64,
    /// Of data.
    pub data: u64,
    /// Not understood.
    pub unknown: u64,
}

impl Bytes {
    /// Adds bytes of a plane.
    pub fn add(&mut self, plane: Plane, bytes: u64) {
        let sum = match plane {
            Plane::Control => &mut self.control,
            Plane::Data => &mut self.data,
            Plane::Unknown => &mut self.unknown,
        };
        add(sum, bytes);
    }
}
