//! Racks of hosts, as attempts in a job history name them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Adds what an event says of racks, by host name.
///
/// An object with a host and its rack, however deep: Avro wraps what may be null in objects of its own.
pub(super) fn find(value: &Value, racks: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(host), Some(rack)) = (text(fields.get("hostname")), text(fields.get("rackname")))
                && rack.starts_with('/')
            {
                racks.insert(host.to_owned(), rack.to_owned());
            }
            fields.values().for_each(|field| find(field, racks));
        }
        Value::Array(values) => values.iter().for_each(|value| find(value, racks)),
        _ => {}
    }
}

fn text(value: Option<&Value>) -> Option<&str> {
    match value? {
        Value::String(text) => Some(text),
        Value::Object(wrapped) => wrapped.get("string")?.as_str(),
        _ => None,
    }
}
