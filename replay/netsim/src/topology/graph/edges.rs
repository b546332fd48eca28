//! Edge lists: one line a cable.
//!
//! ```text
//! # Two switches and a host at each.
//! host: h0 h1
//! switch: s0 s1
//! class: fast rate=100Gbps length=10m
//! h0 s0
//! h1 s1
//! s0 s1 fast x2 buffer="64 packets"
//! ```

use super::text::{Graph, GraphEdge, LinkText, Nodes, Wrong};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A word of a line.
struct Word {
    text: String,
    /// Where its first = stands that is in no quotes.
    equals: Option<usize>,
    quoted: bool,
}

/// The words of a line: separated by blanks, comments left out; quotes hold blanks together.
fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        if letter == '#' && word.is_none() {
            break;
        }
        let word = word.get_or_insert_with(|| Word { text: String::new(), equals: None, quoted: false });
        match letter {
            '"' => {
                word.quoted = true;
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => word.text.extend(letters.next().map(|escaped| match escaped {
                            'n' => '\n',
                            'r' => '\r',
                            other => other,
                        })),
                        Some(other) => word.text.push(other),
                        None => return Err("a quote is opened and not closed".to_owned()),
                    }
                }
            }
            '=' => {
                word.equals.get_or_insert(word.text.len());
                word.text.push('=');
            }
            other => word.text.push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads an edge list.
pub(super) fn parse(text: &str) -> Result<Graph, Wrong> {
    let mut nodes = Nodes::default();
    let mut classes = BTreeMap::new();
    let mut edges = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |reason| Wrong { line, reason };
        let words = words(content).map_err(wrong)?;
        let Some((first, rest)) = words.split_first() else { continue };
        match first.text.as_str() {
            _ if first.quoted => edges.push(edge(&mut nodes, &words, line).map_err(wrong)?),
            kind @ ("host:" | "switch:") => {
                for name in rest {
                    nodes.declare(&name.text, kind == "host:").map_err(wrong)?;
                }
            }
            "class:" => {
                let (name, class) = class(rest).map_err(wrong)?;
                if classes.insert(name.clone(), class).is_some() {
                    return Err(wrong(format!("class {name} is defined twice")));
                }
            }
            _ => edges.push(edge(&mut nodes, &words, line).map_err(wrong)?),
        }
    }
    Ok(nodes.finish(classes, edges))
}

/// `NAME key=value...`
fn class(words: &[Word]) -> Result<(String, LinkText), String> {
    let Some((name, keys)) = words.split_first() else {
        return Err("class: needs a name, then keys such as rate=10Gbps".to_owned());
    };
    let mut link = LinkText::default();
    for word in keys {
        key(word, &mut link)?;
    }
    Ok((name.text.clone(), link))
}

/// Takes a word `key=value`.
fn key(word: &Word, link: &mut LinkText) -> Result<(), String> {
    let Some(equals) = word.equals else {
        return Err(format!("\"{}\" is no key=value, such as rate=10Gbps", word.text));
    };
    let (name, value) = (&word.text[..equals], &word.text[equals + 1..]);
    if link.take(name, value)? {
        return Ok(());
    }
    Err(format!("a link has no key \"{name}\"; there are rate, delay, latency, length, buffer, burst"))
}

/// `A B [CLASS] [xN] [key=value]...`
fn edge(nodes: &mut Nodes, words: &[Word], line: usize) -> Result<GraphEdge, String> {
    let [a, b, rest @ ..] = words else {
        return Err(format!("\"{}\" alone is no cable: two nodes are needed, A B", words[0].text));
    };
    let mut edge = GraphEdge {
        ends: (nodes.number(&a.text), nodes.number(&b.text)),
        class: None,
        cables: 1,
        link: LinkText::default(),
        line,
    };
    for word in rest {
        let count = word
            .text
            .strip_prefix('x')
            .filter(|digits| !word.quoted && !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
        if word.equals.is_some() {
            key(word, &mut edge.link)?;
        } else if let Some(count) = count {
            edge.cables = count
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(|| format!("\"{}\": x1 to x{} cables are possible", word.text, u32::MAX))?;
        } else if edge.class.replace(word.text.clone()).is_some() {
            return Err(format!("\"{}\" is a second class; a line is A B CLASS xN key=value...", word.text));
        }
    }
    Ok(edge)
}

/// A word as it is read back.
fn word(text: &str) -> String {
    let plain = |letter: char| !letter.is_whitespace() && !matches!(letter, '"' | '\\' | '=' | '#');
    let means_more = matches!(text, "host:" | "switch:" | "class:") || text.starts_with('x');
    if !text.is_empty() && text.chars().all(plain) && !means_more {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{escaped}\"")
}

/// Writes an edge list.
pub(super) fn write(graph: &Graph) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    for (kind, host) in [("host:", true), ("switch:", false)] {
        for names in graph.nodes.iter().filter(|node| node.1 == host).collect::<Vec<_>>().chunks(16) {
            let names: Vec<String> = names.iter().map(|(name, _)| word(name)).collect();
            let _ = writeln!(text, "{kind} {}", names.join(" "));
        }
    }
    let keys = |link: &LinkText| -> String {
        link.keys().into_iter().map(|(key, value)| format!(" {key}={}", word(&value))).collect()
    };
    for (name, link) in &graph.classes {
        let _ = writeln!(text, "class: {}{}", word(name), keys(link));
    }
    for edge in &graph.edges {
        let (a, b) = (word(&graph.nodes[edge.ends.0].0), word(&graph.nodes[edge.ends.1].0));
        let class = edge.class.as_ref().map_or(String::new(), |class| format!(" {}", word(class)));
        let cables = if edge.cables == 1 { String::new() } else { format!(" x{}", edge.cables) };
        let _ = writeln!(text, "{a} {b}{class}{cables}{}", keys(&edge.link));
    }
    text
}
