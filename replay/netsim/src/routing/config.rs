//! The `routing` key.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;

/// How a switch chooses where a packet goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingConfig {
    /// Equal-cost multi-path by a hash of the flow, as Ethernet switches do.
    #[default]
    Ecmp,
    /// Equal-cost multi-path by a hash of the packet.
    EcmpPacket,
    /// The destination's number modulo the number of links: one way for each destination.
    DModK,
    /// The source's number modulo the number of links.
    SModK,
    /// Any link, drawn for each packet and switch.
    Random,
    /// The link with the most credits.
    Adaptive,
    /// Any shortest way with room, an escape where none has.
    MinimalAdaptive,
    /// The first link on a shortest way.
    Shortest,
    /// Never up after down.
    UpDown,
    /// Dimension by dimension, datelines on rings.
    Dor,
    /// Dimension by dimension, bubbles on rings.
    Bubble,
    /// As the topology's file says.
    File,
    /// As a routing file says, which is found relative to the experiment's file.
    Table(PathBuf),
}

impl RoutingConfig {
    /// Those that are a name alone.
    const NAMED: [Self; 12] = [
        Self::Ecmp,
        Self::EcmpPacket,
        Self::DModK,
        Self::SModK,
        Self::Random,
        Self::Adaptive,
        Self::MinimalAdaptive,
        Self::Shortest,
        Self::UpDown,
        Self::Dor,
        Self::Bubble,
        Self::File,
    ];

    /// Whether all packets of a flow take one way.
    #[must_use]
    pub const fn keeps_flows(&self) -> bool {
        !matches!(self, Self::EcmpPacket | Self::Random | Self::Adaptive | Self::MinimalAdaptive | Self::Bubble)
    }

    /// Whether switches choose by their credits.
    #[must_use]
    pub const fn needs_credits(&self) -> bool {
        matches!(self, Self::Adaptive | Self::MinimalAdaptive)
    }

    /// Takes a file that it names as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Self::Table(file) = self {
            *file = folder.join(&*file);
        }
    }
}

impl fmt::Display for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ecmp => "ecmp",
            Self::EcmpPacket => "ecmp-packet",
            Self::DModK => "d-mod-k",
            Self::SModK => "s-mod-k",
            Self::Random => "random",
            Self::Adaptive => "adaptive",
            Self::MinimalAdaptive => "minimal-adaptive",
            Self::Shortest => "shortest",
            Self::UpDown => "up-down",
            Self::Dor => "dor",
            Self::Bubble => "bubble",
            Self::File => "file",
            Self::Table(file) => return write!(f, "{{ table = \"{}\" }}", file.display()),
        })
    }
}

impl<'de> Deserialize<'de> for RoutingConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let found = match &given {
            Value::String(name) => Self::NAMED.into_iter().find(|routing| routing.to_string() == *name),
            Value::Table(keys) if keys.len() == 1 => {
                keys.get("table").and_then(Value::as_str).map(|file| Self::Table(file.into()))
            }
            _ => None,
        };
        found.ok_or_else(|| {
            // A list is none, whatever it holds.
            let given = if given.is_array() { "[...]".to_owned() } else { given.to_string() };
            let names = Self::NAMED.map(|routing| format!("\"{routing}\"")).join(", ");
            D::Error::custom(format!("routing = {given} is not known: it takes {names} or {{ table = \"FILE\" }}"))
        })
    }
}
