//! `*_conf.xml`: the configuration with which a job ran.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use memchr::memmem::Finder;
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
    Ok(properties(&files::read_whole(input)?, &KEPT))
}

fn properties(text: &[u8], kept: &[&str]) -> BTreeMap<String, String> {
    let [name, value] = ["name", "value"].map(Element::new);
    let of_property = |property: &[u8]| {
        let found = name.of(property)?;
        let setting = kept.iter().find(|setting| setting.as_bytes() == found)?;
        let value = String::from_utf8_lossy(value.of(property).unwrap_or_default());
        Some(((*setting).to_owned(), unescape(&value)))
    };
    Element::new("property").all(text).filter_map(of_property).collect()
}

/// Finds an element by its name.
struct Element {
    begin: Finder<'static>,
    end: Finder<'static>,
}

impl Element {
    fn new(name: &str) -> Self {
        let [begin, end] = ["<", "</"].map(|opening| Finder::new(&format!("{opening}{name}>")).into_owned());
        Self { begin, end }
    }

    /// What stands in the first one, without blanks around.
    fn of<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.all(text).next().map(<[u8]>::trim_ascii)
    }

    /// What stands in each one that has an end.
    fn all<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (_, from) = rest.split_at_checked(self.begin.find(rest)? + self.begin.needle().len())?;
            let (inside, behind) = from.split_at_checked(self.end.find(from)?)?;
            rest = behind;
            Some(inside)
        })
    }
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
        let read = properties(text.as_bytes(), &["a", "b"]);
        assert_eq!(read.get("a").map(String::as_str), Some("1 < 2"));
        assert_eq!(read.len(), 1);
        assert!(properties(text.as_bytes(), &["b", "c"]).is_empty());
    }

    #[test]
    fn a_setting_is_found_by_its_name_alone_and_the_last_one_counts() {
        let property =
            |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
        let text = [
            property("a", "1"),
            property(" b ", " the a of a "),
            property("aa", "2"),
            "<property><value>no name</value></property><property><name>c</name></property>".to_owned(),
            property("a", "3"),
        ];
        let read = properties(text.concat().as_bytes(), &["a", "b", "c"]);
        let read: Vec<(&str, &str)> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, [("a", "3"), ("b", "the a of a"), ("c", "")]);
    }
}
