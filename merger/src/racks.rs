//! Racks of hosts, as the job history names them.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::PathBuf;

use serde_json::Value;
use trace::files;

/// Racks by host name, from the attempts in `job/*.jhist` of captures. What cannot be read is left to the reader of the
/// histories themselves, who counts it.
#[must_use]
pub fn of_history(captures: &[PathBuf]) -> BTreeMap<String, String> {
    let mut racks = BTreeMap::new();
    for capture in captures {
        let Ok(entries) = std::fs::read_dir(capture.join("job")) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".jhist")));
        paths.sort();
        for path in paths {
            let Ok(input) = files::open(&path) else { continue };
            for line in input.lines().map_while(Result::ok).filter(|line| line.contains("\"rackname\"")) {
                if let Ok(event) = serde_json::from_str::<Value>(&line) {
                    find(&event, &mut racks);
                }
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
