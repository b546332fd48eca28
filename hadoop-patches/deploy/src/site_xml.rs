//! Task JVMs' options in a `mapred-site.xml` that belongs to others.
//!
//! The file is parsed to know what it says, and edited as text, so that comments and layout stay. A property that it
//! names gets the agent behind its value, in place; those that it does not name come in a block of ours between two
//! comments, with the version's default before the agent. Both go without a trace.

use roxmltree::{Document, Node, ParsingOptions};

use crate::versions::{JAR, LAUNCHER, Property};

/// How the comment before our properties begins.
pub const BEGIN: &str = "<!-- >>> hadoptic";
/// The comment behind them.
pub const END: &str = "<!-- <<< hadoptic -->";
const ABOUT: &str = ": set by `hadoptic install`, taken out by `hadoptic remove`";
const WAS_EMPTY: &str = ", in an element that had no end tag";
const ROOT_END: &str = "</configuration>";

/// A file without a property, for a host that has none.
pub const EMPTY: &str = "<?xml version=\"1.0\"?>\n<configuration>\n</configuration>\n";

/// Why a file cannot be edited.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SiteError {
    /// It is no XML.
    #[error("is no XML that Hadoop would read: {0}")]
    NoXml(String),
    /// Its root is another element.
    #[error("begins with <{0}> and not with <configuration>")]
    NoConfiguration(String),
    /// Our block is damaged.
    #[error(
        "holds a part of a block of hadoptic (\"{BEGIN}\" or \"{END}\" without the other, or twice): repair or delete it by hand"
    )]
    BrokenBlock,
    /// An agent that somebody else put there.
    #[error("loads {JAR} already, by other hands: take that out first, a JVM must not get the agent twice")]
    AgentByHand,
    /// A final property of a form that cannot be appended to.
    #[error("property {0} is final and its value is empty, or has comments in it: write it as <value>OPTIONS</value>")]
    Odd(&'static str),
    /// What another file says is unknown here.
    #[error(
        "takes in other files (xi:include), which may set {0}: name that property in this file, with the value that it \
         shall have without hadoptic"
    )]
    Includes(&'static str),
    /// A check after editing failed: a fault of this program.
    #[error("would say something else of {0} after the edit: left alone. Please report this with the file")]
    Changed(String),
}

/// The file with the agent in these properties. `earlier` are the agents that earlier runs may have put there.
///
/// # Errors
/// If it cannot be edited; the message says what is to be done.
pub fn install(text: &str, properties: &[Property], agent: &str, earlier: &[String]) -> Result<String, SiteError> {
    let base = remove(text, &[earlier, &[agent.to_owned()]].concat())?;
    if base.contains(JAR) || base.contains(LAUNCHER) {
        return Err(SiteError::AgentByHand);
    }
    let document = parse(&base)?;
    let mut insertions: Vec<(usize, String)> = Vec::new();
    let mut block = String::new();
    let mut expected: Vec<(&str, String)> = Vec::new();
    for property in properties {
        let appended = |before: &str| format!("{} {agent}", before.trim_end()).trim_start().to_owned();
        let found = effective(&document, property.name);
        match found {
            Some(found) => {
                expected.push((property.name, appended(&found.text)));
                match found.end_of_value(&base) {
                    Some(at) => insertions.push((at, format!(" {agent}"))),
                    None if found.is_final => return Err(SiteError::Odd(property.name)),
                    None => push_property(&mut block, property.name, &appended(&found.text)),
                }
            }
            None => {
                let Some(default) = property.default else { continue };
                if includes(&document) {
                    return Err(SiteError::Includes(property.name));
                }
                expected.push((property.name, appended(default)));
                push_property(&mut block, property.name, &appended(default));
            }
        }
    }
    let mut edited = base.clone();
    if !block.is_empty() {
        let (range, text) = place_of_block(&document, &base, &block)?;
        // Behind all values, so those before it stay where they are.
        edited.replace_range(range, &text);
    }
    insertions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, agent) in insertions {
        edited.insert_str(at, &agent);
    }
    prove(&document, &edited, &expected)?;
    Ok(edited)
}

/// The file without our block, and without these agents in the values of others.
///
/// # Errors
/// If a part of a block is there.
pub fn remove(text: &str, agents: &[String]) -> Result<String, SiteError> {
    let mut text = without_block(text)?;
    for agent in agents {
        let wanted = format!(" {agent}");
        let mut from = 0;
        while let Some(at) = text[from..].find(&wanted).map(|at| at + from) {
            let behind = text[at + wanted.len()..].chars().next();
            // A longer one is another one.
            if behind.is_none_or(|c| c.is_whitespace() || "<]\"'".contains(c)) {
                text.replace_range(at..at + wanted.len(), "");
                from = at;
            } else {
                from = at + wanted.len();
            }
        }
    }
    Ok(text)
}

/// Whether the file holds our block or an agent.
#[must_use]
pub fn is_in(text: &str) -> bool {
    text.contains(BEGIN) || text.contains(END) || text.contains(JAR) || text.contains(LAUNCHER)
}

fn parse(text: &str) -> Result<Document<'_>, SiteError> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| SiteError::NoXml(error.to_string()))?;
    match document.root_element().tag_name().name() {
        "configuration" => Ok(document),
        other => Err(SiteError::NoConfiguration(other.to_owned())),
    }
}

fn without_block(text: &str) -> Result<String, SiteError> {
    let (Some(from), Some(end)) = (text.find(BEGIN), text.find(END)) else {
        return if text.contains(BEGIN) || text.contains(END) {
            Err(SiteError::BrokenBlock)
        } else {
            Ok(text.to_owned())
        };
    };
    let to = end + END.len();
    if from > end || text[from + BEGIN.len()..].contains(BEGIN) || text[to..].contains(END) {
        return Err(SiteError::BrokenBlock);
    }
    let (before, block, behind) = (&text[..from], &text[from..to], &text[to..]);
    let behind = behind.strip_prefix('\n').unwrap_or(behind);
    let first_line = block.lines().next().unwrap_or_default();
    if first_line.contains(WAS_EMPTY)
        && let (Some(before), Some(behind)) = (before.strip_suffix('>'), behind.strip_prefix(ROOT_END))
    {
        return Ok(format!("{before}/>{behind}"));
    }
    Ok(format!("{before}{behind}"))
}

/// A property as Hadoop would take it: the first that is final, else the last.
struct Effective<'a, 'input> {
    value: Value<'a, 'input>,
    text: String,
    is_final: bool,
}

enum Value<'a, 'input> {
    Element(Node<'a, 'input>),
    /// Where the attribute's value ends.
    Attribute(usize),
    /// There is none; yet no later one counts if it is final.
    Missing,
}

impl Effective<'_, '_> {
    /// Where the agent can be put in; `None` where no text could be appended to.
    fn end_of_value(&self, source: &str) -> Option<usize> {
        let node = match self.value {
            Value::Attribute(end) => return Some(end),
            Value::Element(node) => node,
            Value::Missing => return None,
        };
        let range = node.range();
        let whole = &source[range.clone()];
        let close = whole.rfind("</")?;
        let open = whole.find('>')? + 1;
        let inner = whole.get(open..close)?;
        if inner.contains("<!--") || inner.contains("<?") {
            return None;
        }
        let trimmed = inner.trim_end();
        let marked = trimmed.trim_start().strip_prefix("<![CDATA[");
        let end = match marked {
            Some(rest) if rest.find("]]>") == Some(rest.len() - 3) => trimmed.len() - 3,
            Some(_) => return None,
            None if trimmed.contains("<![CDATA[") => return None,
            None => trimmed.len(),
        };
        Some(range.start + open + end)
    }
}

fn properties<'a, 'input>(document: &'a Document<'input>) -> impl Iterator<Item = (String, Effective<'a, 'input>)> {
    document.descendants().filter(|node| node.has_tag_name("property")).filter_map(|property| {
        let child = |name: &str| property.children().find(|node| node.has_tag_name(name));
        let text =
            |node: Node<'_, '_>| node.descendants().filter(Node::is_text).filter_map(|t| t.text()).collect::<String>();
        let of = |name: &str| child(name).map(text).or_else(|| property.attribute(name).map(str::to_owned));
        let name = of("name")?.trim().to_owned();
        let is_final = of("final").is_some_and(|text| text.trim() == "true");
        let value = match (child("value"), property.attributes().find(|a| a.name() == "value")) {
            (Some(node), _) => Value::Element(node),
            (None, Some(attribute)) => Value::Attribute(attribute.range_value().end),
            (None, None) if is_final => Value::Missing,
            (None, None) => return None,
        };
        Some((name, Effective { value, text: of("value").unwrap_or_default(), is_final }))
    })
}

fn effective<'a, 'input>(document: &'a Document<'input>, name: &str) -> Option<Effective<'a, 'input>> {
    let mut found = None;
    for (_, property) in properties(document).filter(|(other, _)| other == name) {
        let is_final = property.is_final;
        found = Some(property);
        if is_final {
            break;
        }
    }
    found
}

fn includes(document: &Document<'_>) -> bool {
    document.descendants().any(|node| node.tag_name().name() == "include")
}

fn push_property(block: &mut String, name: &str, value: &str) {
    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    block.push_str(&format!("  <property>\n    <name>{name}</name>\n    <value>{value}</value>\n  </property>\n"));
}

/// What to replace by which text.
fn place_of_block(
    document: &Document<'_>,
    source: &str,
    properties: &str,
) -> Result<(std::ops::Range<usize>, String), SiteError> {
    let root = document.root_element().range();
    let whole = &source[root.clone()];
    if let Some(close) = whole.rfind("</") {
        let at = root.start + close;
        let line = source[..at].rfind('\n').map_or(at, |end| end + 1);
        // At the beginning of the line, if nothing else stands in it.
        let at = if source[line..at].trim().is_empty() && line > root.start { line } else { at };
        return Ok((at..at, format!("{BEGIN}{ABOUT} -->\n{properties}{END}\n")));
    }
    if !whole.ends_with("/>") {
        return Err(SiteError::NoXml("the end of <configuration> was not found".to_owned()));
    }
    let text = format!(">{BEGIN}{ABOUT}{WAS_EMPTY} -->\n{properties}{END}\n{ROOT_END}");
    Ok((root.end - 2..root.end, text))
}

/// The edited file says what it shall, and of all other properties what it said before.
fn prove(before: &Document<'_>, edited: &str, expected: &[(&str, String)]) -> Result<(), SiteError> {
    let after = parse(edited)?;
    let changed = |name: &str| Err(SiteError::Changed(name.to_owned()));
    for (name, value) in expected {
        let said = effective(&after, name).map(|found| found.text.trim().to_owned());
        if said.as_deref() != Some(value.trim()) {
            return changed(name);
        }
    }
    for (name, _) in properties(before).filter(|(name, _)| !expected.iter().any(|(other, _)| other == name)) {
        let was = effective(before, &name).map(|found| found.text);
        if effective(&after, &name).map(|found| found.text) != was {
            return changed(&name);
        }
    }
    Ok(())
}
