//! Results without what depends on the machine or the moment: how long it took, how much memory, where the files lie.

use std::path::Path;

use serde_json::Value;

/// Keys of JSON objects, and columns of `sweep.csv`, that depend on the machine.
const OF_THE_MACHINE: [&str; 5] = ["wall_s", "cpu_s", "memory_peak_bytes", "event_rate", "parallel"];

/// A file as it is digested; `None` for `sweep.parquet`, which has the rows of `sweep.csv` and their times.
pub(super) fn file(path: &Path, bytes: &[u8], work: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?.to_string_lossy();
    match path.extension().and_then(|extension| extension.to_str()) {
        _ if name == "sweep.parquet" => None,
        Some("parquet") => Some(bytes.to_vec()),
        Some("csv") => Some(without_columns(&String::from_utf8_lossy(bytes)).into_bytes()),
        _ => Some(printed(bytes, work)),
    }
}

/// JSON, or any other text, as it is digested.
pub(super) fn printed(bytes: &[u8], work: &Path) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).replace(&*work.to_string_lossy(), "WORK");
    match serde_json::from_str::<Value>(&text) {
        Ok(mut value @ (Value::Object(_) | Value::Array(_))) => {
            without_keys(&mut value);
            value.to_string().into_bytes()
        }
        _ => text.into_bytes(),
    }
}

fn without_keys(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_keys),
        Value::Object(fields) => {
            for (key, field) in fields {
                if OF_THE_MACHINE.contains(&key.as_str()) {
                    *field = if field.is_number() { Value::from(0) } else { Value::Null };
                } else {
                    without_keys(field);
                }
            }
        }
        _ => {}
    }
}

fn without_columns(text: &str) -> String {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().map(|line| line.split(',').collect()).unwrap_or_default();
    let mut rows = vec![header.join(",")];
    for line in lines {
        let cells = line.split(',').enumerate().map(|(at, cell)| match header.get(at) {
            Some(name) if OF_THE_MACHINE.contains(name) => "0",
            _ => cell,
        });
        rows.push(cells.collect::<Vec<_>>().join(","));
    }
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_machine_is_taken_out() {
        let work = Path::new("/tmp/abc");
        let json = br#"{"a": {"wall_s": 1.5, "b": [{"cpu_s": 2}]}, "trace": "/tmp/abc/wordcount"}"#;
        let stated = String::from_utf8(printed(json, work)).unwrap_or_default();
        assert_eq!(stated, r#"{"a":{"b":[{"cpu_s":0}],"wall_s":0},"trace":"WORK/wordcount"}"#);
        assert_eq!(without_columns("load,wall_s,x\n0.1,3.2,7\n"), "load,wall_s,x\n0.1,0,7");
        assert_eq!(file(Path::new("r/sweep.parquet"), b"PAR1", work), None);
    }
}
