//! Lines of the table.

use serde_json::{Value, json};

/// One line of the table.
pub struct Figure {
    pub name: String,
    pub ours: f64,
    pub peer: Option<(&'static str, f64)>,
    pub unit: &'static str,
    /// Whether more is better: a ratio above 1 then says that ours is better by so much.
    pub more_is_better: bool,
}

impl Figure {
    /// A line without a peer.
    pub fn alone(name: &str, what: &str, ours: f64, unit: &'static str, more_is_better: bool) -> Self {
        Self { name: format!("{name}: {what}"), ours, peer: None, unit, more_is_better }
    }

    /// How many times better ours is; `None` without a peer.
    pub fn ratio(&self) -> Option<f64> {
        let (_, peer) = self.peer?;
        Some(if self.more_is_better { self.ours / peer } else { peer / self.ours })
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer.map(|(_, value)| value),
            "ratio": self.ratio(),
            "unit": self.unit,
            "peer_name": self.peer.map(|(name, _)| name),
        })
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
