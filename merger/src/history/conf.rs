//! `*_conf.xml`: the configuration with which a job ran.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use trace::files;

/// The share of completed maps at which reduces are scheduled, as settings of Hadoop 2 and 3 and of Hadoop 1.x.
pub(crate) const SLOW_START: &str = "mapreduce.job.reduce.slowstart.completedmaps";
pub(crate) const SLOW_START_1: &str = "mapred.reduce.slowstart.completed.maps";

/// Settings that are asked for: a configuration has a thousand more.
const KEPT: [&str; 2] = [SLOW_START, SLOW_START_1];

/// Reads of a Hadoop configuration the settings that are asked for; what is cut off is left out.
///
/// The files are written by Hadoop itself: `<property><name>N</name><value>V</value>...</property>`, one after the
/// other, without attributes that matter or nesting. That is all that is understood here.
///
/// # Errors
/// If the file cannot be read, or is larger than any configuration.
pub fn read_configuration(input: File) -> io::Result<BTreeMap<String, String>> {
    Ok(properties(&String::from_utf8_lossy(&files::read_whole(input)?), &KEPT))
}

fn properties(text: &str, kept: &[&str]) -> BTreeMap<String, String> {
    text.split("<property>")
        .skip(1)
        .filter_map(|property| {
            let property = property.split_once("</property>")?.0;
            let name = element(property, "name").filter(|name| kept.contains(&name.as_str()))?;
            Some((name, element(property, "value").unwrap_or_default()))
        })
        .collect()
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescape(value.trim()))
}

fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_off_property_is_left_out() {
        let text = "<configuration><property><name>a</name><value>1 &lt; 2</value><final>false</final></property>\n\
                    <property><name>b</name><val";
        let read = properties(text, &["a", "b"]);
        assert_eq!(read.get("a").map(String::as_str), Some("1 < 2"));
        assert_eq!(read.len(), 1);
        assert!(properties(text, &["b", "c"]).is_empty());
    }
}
