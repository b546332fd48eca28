//! Racks of hosts, as the job history names them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use trace::files;
use trace::jhist::Events;

use crate::history::job_folder;

/// Racks by host name, from the attempts in `job/*.jhist` of captures. What cannot be read is left to the reader of the
/// histories themselves, who counts it.
#[must_use]
pub fn of_history(captures: &[PathBuf]) -> BTreeMap<String, String> {
    let mut racks = BTreeMap::new();
    for capture in captures {
        let Ok(Some(folder)) = job_folder(capture) else { continue };
        let names = folder.names().map(|names| names.names).unwrap_or_default();
        for name in names.iter().filter(|name| name.contains(".jhist")) {
            let Ok(input) = folder.file(name).and_then(files::unpacked) else { continue };
            for event in Events::new(input).map_while(Result::ok) {
                find(&event, &mut racks);
            }
        }
    }
    racks
}

/// An object with a host and its rack, however deep: Avro wraps what may be null in objects of its own.
fn find(value: &Value, racks: &mut BTreeMap<String, String>) {
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
