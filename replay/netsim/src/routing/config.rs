//! The `routing` key.

use super::vcs::{BubbleAt, BubbleConfig, BubbleMode, Dally, DallyConfig, Directions, Equals, Order, RoomUnit, Ties};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// How a switch chooses where a packet goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The link and virtual lane with the most credits, among so many lanes (default: `fabric.vls`).
    AdaptiveVls(Option<u8>),
    /// Any shortest way with room, an escape where none has.
    MinimalAdaptive,
    /// The first link on a shortest way.
    Shortest,
    /// Never up after down.
    UpDown,
    /// Dimension by dimension, datelines on rings.
    Dor,
    /// The same with another choice among shortest ways.
    DorTies(Ties),
    /// Dimension by dimension, bubbles on rings.
    Bubble,
    /// INSEE's Dally router.
    Dally(DallyConfig),
    /// INSEE's bubble router.
    BubbleVls(BubbleConfig),
    /// As the topology's file says.
    File,
    /// As a routing file says, which is found relative to the experiment's file.
    Table(PathBuf),
}

/// The forms of a table but that of a file, for messages.
const FORMS: &str = "{ dor = \"draw\" }, { dally = \"MODE\" }, { bubble = \"MODE\" }, { adaptive = \"link-and-vl\" }";

/// A routing file has this key alone.
const TABLE: &str = "table";

/// What `adaptive` chooses in a table.
const LINK_AND_VL: &str = "link-and-vl";

/// Virtual lanes at most.
const MAX_VLS: i64 = 15;

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
        !self.needs_credits() && !matches!(self, Self::EcmpPacket | Self::Random | Self::Bubble)
    }

    /// Whether switches choose by their credits or virtual lanes, which `credit` alone has.
    #[must_use]
    pub const fn needs_credits(&self) -> bool {
        matches!(
            self,
            Self::Adaptive
                | Self::AdaptiveVls(_)
                | Self::MinimalAdaptive
                | Self::DorTies(Ties::Draw)
                | Self::Dally(_)
                | Self::BubbleVls(_)
        )
    }

    /// The same, with `vls` classes of virtual lanes where it does not say how many, or as many as it needs.
    #[must_use]
    pub fn with_vls(&self, vls: u8) -> Self {
        let or_all = |vcs: Option<u8>, least: u8| vcs.or(Some(vls.max(least)));
        match self {
            Self::AdaptiveVls(vcs) => Self::AdaptiveVls(or_all(*vcs, 1)),
            Self::Dally(dally) if dally.mode == Dally::Adaptive => {
                Self::Dally(DallyConfig { vcs: or_all(dally.vcs, 3), ..*dally })
            }
            Self::BubbleVls(bubble) => {
                Self::BubbleVls(BubbleConfig { vcs: or_all(bubble.vcs, bubble.least()), ..*bubble })
            }
            other => other.clone(),
        }
    }

    /// Takes a file that it names as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Self::Table(file) = self {
            *file = folder.join(&*file);
        }
    }

    /// Its name, if it is one alone.
    const fn name(&self) -> Option<&'static str> {
        Some(match self {
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
            Self::AdaptiveVls(_) | Self::DorTies(_) | Self::Dally(_) | Self::BubbleVls(_) | Self::Table(_) => {
                return None;
            }
        })
    }

    /// Its keys, if it is a table.
    fn keys(&self) -> Vec<(&'static str, Value)> {
        let vcs = |vcs: &Option<u8>| vcs.map(|vcs| ("vcs", Value::Integer(vcs.into())));
        let choice = |key, name: &str| (key, Value::String(name.to_owned()));
        match self {
            Self::Table(file) => vec![choice(TABLE, &file.display().to_string())],
            Self::DorTies(ties) => vec![choice("dor", ties.name())],
            Self::AdaptiveVls(number) => [choice("adaptive", LINK_AND_VL)].into_iter().chain(vcs(number)).collect(),
            Self::Dally(dally) => {
                let order = (dally.order != Order::Dim).then(|| choice("order", dally.order.name()));
                let ties = (dally.ties != Ties::Draw).then(|| choice("ties", dally.ties.name()));
                let more = order.into_iter().chain(ties).chain(vcs(&dally.vcs));
                [choice("dally", dally.mode.name())].into_iter().chain(more).collect()
            }
            Self::BubbleVls(bubble) => {
                let at = (bubble.bubble_at != BubbleAt::Next).then(|| choice("bubble_at", bubble.bubble_at.name()));
                let ties = (bubble.ties != Ties::Draw).then(|| choice("ties", bubble.ties.name()));
                let equals = (bubble.equals != Equals::Draw).then(|| choice("equals", bubble.equals.name()));
                let all = bubble.directions == Directions::All;
                let directions = (!all).then(|| choice("directions", bubble.directions.name()));
                let room = (bubble.room != RoomUnit::Credits).then(|| choice("room", bubble.room.name()));
                let picks = equals.into_iter().chain(room).chain(directions);
                let more = at.into_iter().chain(picks).chain(ties).chain(vcs(&bubble.vcs));
                [choice("bubble", bubble.mode.name())].into_iter().chain(more).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The one that `keys` say; `None` if they are no form of a table.
    fn of_table(keys: &Table) -> Option<Result<Self, String>> {
        let (main, others): (&str, &[&str]) = [
            (TABLE, &[][..]),
            ("dor", &[]),
            ("dally", &["order", "ties", "vcs"]),
            ("bubble", &["bubble_at", "equals", "room", "directions", "ties", "vcs"]),
            ("adaptive", &["vcs"]),
        ]
        .into_iter()
        .find(|(main, _)| keys.contains_key(*main))?;
        if let Some(unknown) = keys.keys().find(|key| *key != main && !others.contains(&key.as_str())) {
            let known = if others.is_empty() { "no other key".to_owned() } else { others.join(", ") };
            return Some(Err(format!("routing.{unknown} is not known: beside {main} it takes {known}")));
        }
        let text = keys.get(main).and_then(Value::as_str)?;
        Some(Self::of_keys(main, text, keys))
    }

    fn of_keys(main: &str, text: &str, keys: &Table) -> Result<Self, String> {
        let wrong = |key: &str, names: String| {
            let given = keys.get(key).map(ToString::to_string).unwrap_or_default();
            format!("routing.{key} = {given} is not known: it takes {names}")
        };
        let named = |key: &str| keys.get(key).map(|value| value.as_str().unwrap_or_default());
        let ties =
            || named("ties").map_or(Ok(Ties::Draw), |name| Ties::named(name).map_err(|names| wrong("ties", names)));
        let vcs = |least: u8| match keys.get("vcs") {
            None => Ok(None),
            Some(Value::Integer(number)) if (i64::from(least)..=MAX_VLS).contains(number) => {
                Ok(u8::try_from(*number).ok())
            }
            Some(_) => Err(wrong("vcs", format!("{least} to {MAX_VLS} classes of virtual lanes"))),
        };
        match main {
            TABLE => Ok(Self::Table(text.into())),
            "dor" => Ties::named(text).map(Self::DorTies).map_err(|names| wrong("dor", names)),
            "dally" => {
                let mode = Dally::named(text).map_err(|names| wrong("dally", names))?;
                let order =
                    named("order").map_or(Ok(Order::Dim), Order::named).map_err(|names| wrong("order", names))?;
                if mode != Dally::Adaptive && keys.contains_key("vcs") {
                    return Err(wrong("vcs", format!("it with dally = \"adaptive\" only; {mode} has 2 classes")));
                }
                Ok(Self::Dally(DallyConfig { mode, order, ties: ties()?, vcs: vcs(3)? }))
            }
            "bubble" => {
                let mode = BubbleMode::named(text).map_err(|names| wrong("bubble", names))?;
                let at = named("bubble_at").map_or(Ok(BubbleAt::Next), BubbleAt::named);
                let bubble_at = at.map_err(|names| wrong("bubble_at", names))?;
                let equals = named("equals").map_or(Ok(Equals::Draw), Equals::named);
                let equals = equals.map_err(|names| wrong("equals", names))?;
                let room = named("room").map_or(Ok(RoomUnit::Credits), RoomUnit::named);
                let room = room.map_err(|names| wrong("room", names))?;
                let compared = ["equals", "room"].into_iter().find(|key| keys.contains_key(*key));
                if let Some(key) = compared.filter(|_| mode != BubbleMode::Shortest) {
                    return Err(wrong(key, "it with bubble = \"shortest\" only, which compares room".to_owned()));
                }
                let directions = named("directions").map_or(Ok(Directions::All), Directions::named);
                let directions = directions.map_err(|names| wrong("directions", names))?;
                let bubble = BubbleConfig { mode, bubble_at, equals, room, directions, ties: ties()?, vcs: None };
                Ok(Self::BubbleVls(BubbleConfig { vcs: vcs(bubble.least())?, ..bubble }))
            }
            _ if text == LINK_AND_VL => Ok(Self::AdaptiveVls(vcs(1)?)),
            _ => Err(wrong(main, format!("\"{LINK_AND_VL}\"; the link alone is chosen by routing = \"adaptive\""))),
        }
    }
}

impl fmt::Display for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(file) => write!(f, "{{ table = \"{}\" }}", file.display()),
            _ => match self.name() {
                Some(name) => f.write_str(name),
                None => {
                    let keys: Vec<String> = self.keys().iter().map(|(key, value)| format!("{key} = {value}")).collect();
                    write!(f, "{{ {} }}", keys.join(", "))
                }
            },
        }
    }
}

impl Serialize for RoutingConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(name) = self.name() {
            return serializer.serialize_str(name);
        }
        let mut map = serializer.serialize_map(None)?;
        if let Self::Table(file) = self {
            map.serialize_entry(TABLE, file)?;
        } else {
            self.keys().iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RoutingConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let found = match &given {
            Value::String(name) => Self::NAMED.into_iter().find(|routing| routing.name() == Some(name)).map(Ok),
            Value::Table(keys) => Self::of_table(keys),
            _ => None,
        };
        let unknown = || {
            // A list is none, whatever it holds.
            let given = if given.is_array() { "[...]".to_owned() } else { given.to_string() };
            let names = Self::NAMED.map(|routing| format!("\"{routing}\"")).join(", ");
            format!("routing = {given} is not known: it takes {FORMS}, {names} or {{ table = \"FILE\" }}")
        };
        found.unwrap_or_else(|| Err(unknown())).map_err(D::Error::custom)
    }
}
