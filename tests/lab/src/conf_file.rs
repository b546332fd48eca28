//! Files of Hadoop's configuration.

/// A file of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfFile {
    /// Its name in the configuration folder.
    pub name: &'static str,
    /// Its contents.
    pub contents: String,
}

/// Properties of which the names are known here.
#[must_use]
pub fn owned<const N: usize>(properties: [(&str, String); N]) -> Vec<(String, String)> {
    properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Writes properties as Hadoop reads them.
#[must_use]
pub fn site_xml(properties: &[(String, String)]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\"?>\n<configuration>\n");
    for (key, value) in properties {
        xml.push_str(&format!("  <property><name>{}</name><value>{}</value></property>\n", escape(key), escape(value)));
    }
    xml.push_str("</configuration>\n");
    xml
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
