//! The ports on which Hadoop's servers listen: those of each version's defaults, and what a cluster's configuration says.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::hostile;
use crate::ports::PortSet;

/// Files of a configuration, and bytes of each, at most.
const MAX_FILES: usize = 256;
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Where servers listen unless they are told otherwise: `*-default.xml` of Apache Hadoop 1.2.1, 2.10.2 and 3.4.2, and
/// what distributions set for the two addresses that have no default (`fs.default.name`, `mapred.job.tracker`).
const DEFAULTS: [(&str, &[u16]); 6] = [
    (
        "file system of all versions: NameNode (also as often configured), ZKFC, JournalNode",
        &[8020, 9000, 9820, 8019, 8480, 8481, 8485],
    ),
    (
        "HDFS until 2.x: NameNode, SecondaryNameNode, DataNode, backup node",
        &[50070, 50470, 50090, 50091, 50010, 50020, 50075, 50475, 50100, 50105],
    ),
    (
        "HDFS since 3.0: NameNode, SecondaryNameNode, DataNode, provided storage, router",
        &[9870, 9871, 9868, 9869, 9866, 9864, 9865, 9867, 50200, 8888, 8111, 50071, 50072],
    ),
    (
        "MapReduce 1: JobTracker (as configured by most), its web server, TaskTracker's shuffle",
        &[8021, 9001, 50030, 50060],
    ),
    (
        "YARN: ResourceManager, NodeManager, their web servers, proxies, timeline",
        &[8030, 8031, 8032, 8033, 8047, 8088, 8090, 8040, 8042, 8044, 8045, 8048, 8049, 8089, 10200, 8188, 8190, 8046],
    ),
    ("MapReduce on YARN: shuffle, history", &[13562, 10020, 10033, 19888, 19890]),
];

/// The ports of all versions' defaults.
#[must_use]
pub fn defaults() -> PortSet {
    DEFAULTS.iter().flat_map(|(_, ports)| ports.iter().copied()).collect()
}

/// Words in the names of properties whose values hold ports: everything else that looks like a port is a size, a time
/// or a path.
const TELLING: [&str; 9] =
    ["address", "port", "defaultFS", "fs.default.name", "job.tracker", "bind", "hostname", "uri", "edits.dir"];

/// What a configuration said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// Its ports.
    pub ports: PortSet,
    /// Files and values that could not be used, in words.
    pub problems: Vec<String>,
}

/// Reads all `*-site.xml` of a folder; later files and properties stand over earlier ones.
///
/// # Errors
/// If the folder cannot be read, or holds no such file.
pub fn read_folder(folder: &Path) -> io::Result<Configured> {
    let files = hostile::names_ending(folder, "-site.xml", MAX_FILES)?;
    if files.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no *-site.xml in it"));
    }
    let mut found = Configured::default();
    let mut properties = BTreeMap::new();
    for file in files {
        let text = hostile::read_small(&file, MAX_FILE_BYTES, true).map_err(|error| error.to_string());
        match text.and_then(|text| properties_of(&String::from_utf8_lossy(&text))) {
            Ok(read) => properties.extend(read),
            Err(reason) => found.problems.push(format!("{} is left out: {reason}", file.display())),
        }
    }
    for (name, value) in &properties {
        if TELLING.iter().any(|word| name.contains(word)) {
            take(name, &resolve(value, &properties), &mut found);
        }
    }
    Ok(found)
}

/// Names and values of a configuration file.
///
/// # Errors
/// Says why the text is none.
pub fn properties_of(text: &str) -> Result<BTreeMap<String, String>, String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, nodes_limit: 100_000, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "configuration" {
        return Err(format!("its root element is <{}>, not <configuration>", root.tag_name().name()));
    }
    let of = |property: roxmltree::Node<'_, '_>, name: &str| {
        let element = property.children().find(|child| child.tag_name().name() == name)?;
        Some(element.text().unwrap_or_default().trim().to_owned())
    };
    let properties = root.children().filter(|child| child.tag_name().name() == "property");
    Ok(properties.filter_map(|property| Some((of(property, "name")?, of(property, "value")?))).collect())
}

/// Puts other properties in for `${name}`, as Hadoop does, twenty deep at most.
fn resolve(value: &str, properties: &BTreeMap<String, String>) -> String {
    let mut value = value.to_owned();
    for _ in 0..20 {
        let Some(begin) = value.find("${") else { break };
        let Some(end) = value[begin..].find('}') else { break };
        let Some(other) = properties.get(&value[begin + 2..begin + end]) else { break };
        value.replace_range(begin..=begin + end, other);
        if value.len() > 10_000 {
            break;
        }
    }
    value
}

/// Takes the ports out of a value: "host:port", several of them, addresses with a path behind, a port or a range alone.
fn take(name: &str, value: &str, found: &mut Configured) {
    let is_port = name.ends_with("port") || name.ends_with("port-range") || name.ends_with("ports");
    for part in value.split([',', ';', ' ', '\n', '\t']).map(str::trim).filter(|part| !part.is_empty()) {
        // A range behind the colon is none of Hadoop's forms; a lone one is (yarn.app.mapreduce.am.job.client.port-range).
        let (text, alone) = match part.rsplit_once(':') {
            Some((_, behind)) => (behind.split('/').next().unwrap_or_default(), false),
            None if is_port => (part, true),
            None => continue,
        };
        let (first, last) = text.split_once('-').filter(|_| alone).unwrap_or((text, text));
        match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => (first..=last).for_each(|port| found.ports.insert(port)),
            _ if text.is_empty() || text.starts_with("//") || !text.starts_with(|c: char| c.is_ascii_digit()) => {}
            _ => found.problems.push(format!("{name}: no port in \"{part}\"")),
        }
    }
}
