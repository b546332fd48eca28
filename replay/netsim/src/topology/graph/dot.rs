//! DOT, Graphviz' language, as far as it describes networks.
//!
//! Nodes are hosts if their `type` is "host" (or "switch" if not); where no node has one, if their names begin with H or h.
//! Edges may have `class`, `cables` and the keys of a link; whatever else is in brackets is for pictures. In a digraph an
//! edge there and an edge back are one cable, and `comment` may have routes. Subgraphs may hold nodes and edges; an edge cannot
//! lead to a whole one.

use super::comments::{Comment, resolve};
use super::text::{Graph, GraphEdge, LinkText, NO_ROUTE, Nodes, Wrong};
use crate::count::count;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name, number or quoted text; quoted ones are no keywords.
    Id { text: String, quoted: bool },
    /// `--` or `->`.
    Edge { directed: bool },
    /// `{ } [ ] ; , = :`
    Sign(char),
}

/// Cuts a text into tokens with their lines.
struct Lexer<'t> {
    letters: Peekable<Chars<'t>>,
    line: usize,
    line_begins: bool,
}

impl Lexer<'_> {
    fn letter(&mut self) -> Option<char> {
        let letter = self.letters.next()?;
        if letter == '\n' {
            self.line += 1;
            self.line_begins = true;
        } else if !letter.is_whitespace() {
            self.line_begins = false;
        }
        Some(letter)
    }

    fn wrong<T>(&self, reason: String) -> Result<T, Wrong> {
        Err(Wrong { line: self.line, reason })
    }

    fn rest_of_line(&mut self) {
        while self.letters.peek().is_some_and(|letter| *letter != '\n') {
            self.letter();
        }
    }

    /// The next token; `None` at the end.
    fn token(&mut self) -> Result<Option<Token>, Wrong> {
        loop {
            let line_begins = self.line_begins;
            let Some(letter) = self.letter() else { return Ok(None) };
            return Ok(Some(match letter {
                _ if letter.is_whitespace() => continue,
                '#' if line_begins => {
                    self.rest_of_line();
                    continue;
                }
                '/' => {
                    self.comment()?;
                    continue;
                }
                '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' => Token::Sign(letter),
                '"' => self.quoted()?,
                '<' => self.html()?,
                '-' => match self.letters.peek() {
                    Some('-') => {
                        self.letter();
                        Token::Edge { directed: false }
                    }
                    Some('>') => {
                        self.letter();
                        Token::Edge { directed: true }
                    }
                    Some(digit) if digit.is_ascii_digit() || *digit == '.' => self.word(letter),
                    _ => return self.wrong("\"-\" begins neither -- nor -> nor a number".to_owned()),
                },
                _ if is_of_word(letter) => self.word(letter),
                _ => return self.wrong(format!("\"{letter}\" begins nothing of a graph")),
            }));
        }
    }

    fn comment(&mut self) -> Result<(), Wrong> {
        match self.letter() {
            Some('/') => self.rest_of_line(),
            Some('*') => {
                let mut star = false;
                loop {
                    match self.letter() {
                        Some('/') if star => break,
                        Some(letter) => star = letter == '*',
                        None => return self.wrong("a comment is opened and not closed".to_owned()),
                    }
                }
            }
            _ => return self.wrong("\"/\" begins no comment".to_owned()),
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<Token, Wrong> {
        let mut text = String::new();
        loop {
            match self.letter() {
                Some('"') => return Ok(Token::Id { text, quoted: true }),
                // Only quotes are escaped in DOT; a backslash before anything else stays, but for its own double.
                Some('\\') => match self.letter() {
                    Some(letter @ ('"' | '\\')) => text.push(letter),
                    Some('\n') => {}
                    Some(other) => text.extend(['\\', other]),
                    None => return self.wrong("a quote is opened and not closed".to_owned()),
                },
                Some(letter) => text.push(letter),
                None => return self.wrong("a quote is opened and not closed".to_owned()),
            }
        }
    }

    fn html(&mut self) -> Result<Token, Wrong> {
        let (mut text, mut depth) = (String::new(), 1u32);
        loop {
            match self.letter() {
                Some('>') if depth == 1 => return Ok(Token::Id { text, quoted: true }),
                Some(letter) => {
                    match letter {
                        '<' => depth += 1,
                        '>' => depth -= 1,
                        _ => {}
                    }
                    text.push(letter);
                }
                None => return self.wrong("\"<\" is opened and not closed".to_owned()),
            }
        }
    }

    fn word(&mut self, first: char) -> Token {
        let mut text = String::from(first);
        while let Some(letter) = self.letters.peek().copied().filter(|letter| is_of_word(*letter)) {
            text.push(letter);
            self.letter();
        }
        Token::Id { text, quoted: false }
    }
}

/// Letters, digits, underscores, points (of numbers), and whatever is beyond ASCII.
fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.') || (!letter.is_ascii() && !letter.is_whitespace())
}

/// Keys in brackets, in order.
type Attributes = Vec<(String, String)>;

struct Parser {
    /// Tokens with their lines, the next one last.
    tokens: Vec<(Token, usize)>,
    line: usize,
    directed: bool,
    nodes: Nodes,
    edges: Vec<GraphEdge>,
    comments: Vec<Comment>,
    /// Edges of a digraph by their ends that wait for one back, as places in `edges`, in order of appearance.
    one_way: HashMap<(usize, usize), VecDeque<usize>>,
    /// Edges of a strict graph; of one that is no digraph, whatever their direction.
    strict: Option<HashMap<(usize, usize), ()>>,
}

/// How deep subgraphs may lie in each other.
const MAX_DEEP: u32 = 100;

/// Reads a graph, which warnings call `file`.
pub(super) fn parse(text: &str, file: &str) -> Result<Graph, Wrong> {
    let mut lexer = Lexer { letters: text.chars().peekable(), line: 1, line_begins: true };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        tokens.push((token, lexer.line));
    }
    tokens.reverse();
    let mut parser = Parser {
        tokens,
        line: 1,
        directed: false,
        nodes: Nodes::default(),
        edges: Vec::new(),
        comments: Vec::new(),
        one_way: HashMap::new(),
        strict: None,
    };
    parser.graph()?;
    parser.all_lead_back()?;
    let mut graph = parser.nodes.finish(BTreeMap::new(), parser.edges);
    resolve(&mut graph, &parser.comments, file)?;
    Ok(graph)
}

impl Parser {
    fn next(&mut self) -> Option<Token> {
        let (token, line) = self.tokens.pop()?;
        self.line = line;
        Some(token)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.last().map(|(token, _)| token)
    }

    /// Takes a sign if it is the next token.
    fn sign(&mut self, sign: char) -> bool {
        let there = self.peek() == Some(&Token::Sign(sign));
        if there {
            self.next();
        }
        there
    }

    /// Takes a keyword if it is the next token.
    fn keyword(&mut self, keyword: &str) -> bool {
        let there =
            matches!(self.peek(), Some(Token::Id { text, quoted: false }) if text.eq_ignore_ascii_case(keyword));
        if there {
            self.next();
        }
        there
    }

    fn wrong<T>(&self, reason: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong { line: self.line, reason: reason.into() })
    }

    fn expect(&mut self, sign: char) -> Result<(), Wrong> {
        if self.sign(sign) {
            return Ok(());
        }
        let found = self.next().map_or("the end".to_owned(), shown);
        self.wrong(format!("\"{sign}\" is needed, but there is {found}"))
    }

    fn id(&mut self, what: &str) -> Result<String, Wrong> {
        match self.next() {
            Some(Token::Id { text, .. }) => Ok(text),
            other => {
                let found = other.map_or("the end".to_owned(), shown);
                self.wrong(format!("{what} is needed, but there is {found}"))
            }
        }
    }

    fn graph(&mut self) -> Result<(), Wrong> {
        if self.keyword("strict") {
            self.strict = Some(HashMap::new());
        }
        self.directed = self.keyword("digraph");
        if !self.directed && !self.keyword("graph") {
            self.next();
            return self.wrong("a graph begins with \"graph {\" or \"digraph {\"");
        }
        if matches!(self.peek(), Some(Token::Id { .. })) {
            self.next();
        }
        self.expect('{')?;
        self.statements(&Vec::new(), &Vec::new(), 0)?;
        match self.next() {
            None => Ok(()),
            Some(token) => self.wrong(format!("nothing may follow the graph, but there is {}", shown(token))),
        }
    }

    /// Statements up to the closing brace, with what nodes and edges have by default.
    fn statements(&mut self, node: &Attributes, edge: &Attributes, depth: u32) -> Result<(), Wrong> {
        if depth > MAX_DEEP {
            return self.wrong(format!("subgraphs lie more than {MAX_DEEP} deep in each other"));
        }
        let (mut node, mut edge) = (node.clone(), edge.clone());
        loop {
            if self.sign('}') {
                return Ok(());
            }
            if self.sign(';') {
                continue;
            }
            if self.keyword("graph") {
                self.attributes()?;
            } else if self.keyword("node") {
                node.extend(self.attributes()?);
            } else if self.keyword("edge") {
                edge.extend(self.attributes()?);
            } else if self.keyword("subgraph") {
                if matches!(self.peek(), Some(Token::Id { .. })) {
                    self.next();
                }
                self.expect('{')?;
                self.subgraph(&node, &edge, depth)?;
            } else if self.sign('{') {
                self.subgraph(&node, &edge, depth)?;
            } else {
                self.node_or_edge(&node, &edge)?;
            }
        }
    }

    fn subgraph(&mut self, node: &Attributes, edge: &Attributes, depth: u32) -> Result<(), Wrong> {
        self.statements(node, edge, depth + 1)?;
        match self.peek() {
            Some(Token::Edge { .. }) => self.wrong("an edge cannot lead from or to a whole subgraph here"),
            _ => Ok(()),
        }
    }

    fn node_or_edge(&mut self, node: &Attributes, edge: &Attributes) -> Result<(), Wrong> {
        let first = self.id("a node, an edge or \"}\"")?;
        if self.sign('=') {
            self.id("a value")?;
            return Ok(());
        }
        self.port()?;
        let mut ends = vec![self.nodes.number(&first)];
        while let Some(Token::Edge { directed }) = self.peek() {
            if *directed != self.directed {
                self.next();
                return self.wrong(if self.directed { "a digraph has edges ->" } else { "a graph has edges --" });
            }
            self.next();
            if matches!(self.peek(), Some(Token::Sign('{'))) || self.keyword("subgraph") {
                return self.wrong("an edge cannot lead from or to a whole subgraph here");
            }
            let end = self.id("a node behind the edge")?;
            self.port()?;
            ends.push(self.nodes.number(&end));
        }
        let line = self.line;
        let given = self.attributes()?;
        self.line = line;
        match ends.as_slice() {
            [_] => {
                let said = node.iter().chain(&given).rev().find(|(key, _)| key == "type");
                match said.map(|(_, kind)| kind.as_str()) {
                    None => Ok(()),
                    Some(kind @ ("host" | "switch")) => {
                        self.nodes.declare(&first, kind == "host").map_err(|reason| Wrong { line, reason })
                    }
                    Some(other) => self.wrong(format!("type = \"{other}\": a node's type is host or switch")),
                }
            }
            ends => {
                let attributes: Attributes = edge.iter().chain(&given).cloned().collect();
                for two in ends.windows(2) {
                    self.edge((two[0], two[1]), &attributes)?;
                }
                Ok(())
            }
        }
    }

    /// A port of a node, and the side of that: for pictures.
    fn port(&mut self) -> Result<(), Wrong> {
        while self.sign(':') {
            self.id("the name of a port")?;
        }
        Ok(())
    }

    /// Any number of brackets.
    fn attributes(&mut self) -> Result<Attributes, Wrong> {
        let mut attributes = Vec::new();
        while self.sign('[') {
            while !self.sign(']') {
                let key = self.id("a key or \"]\"")?;
                let value = if self.sign('=') { self.id("a value")? } else { "true".to_owned() };
                attributes.push((key, value));
                if !self.sign(',') {
                    self.sign(';');
                }
            }
        }
        Ok(attributes)
    }

    fn edge(&mut self, ends: (usize, usize), attributes: &Attributes) -> Result<(), Wrong> {
        if let Some(strict) = &mut self.strict {
            let same = if self.directed { ends } else { (ends.0.min(ends.1), ends.0.max(ends.1)) };
            if strict.insert(same, ()).is_some() {
                if self.directed && attributes.iter().any(|(key, _)| key == "comment") {
                    return self
                        .wrong("a strict digraph has no parallel edges, but this one has routes: leave strict out");
                }
                return Ok(());
            }
        }
        let mut comment = None;
        let mut edge = GraphEdge { ends, class: None, cables: 1, link: LinkText::default(), line: self.line };
        for (key, value) in attributes {
            match key.as_str() {
                "class" => edge.class = Some(value.clone()),
                "cables" => {
                    let cables = value.parse().ok().filter(|cables| *cables > 0);
                    edge.cables = match cables {
                        Some(cables) => cables,
                        None => return self.wrong(format!("cables = \"{value}\": a number from 1 on is needed")),
                    };
                }
                "comment" if self.directed => comment = Some(value.clone()),
                key => {
                    edge.link.take(key, value).map_err(|reason| Wrong { line: self.line, reason })?;
                }
            }
        }
        if self.directed {
            if let Some(there) = self.one_way.get_mut(&(ends.1, ends.0)).and_then(VecDeque::pop_front) {
                self.comment(comment, 2 * there + 1);
                return self.edge_back(&edge, there);
            }
            self.comment(comment, 2 * self.edges.len());
            self.one_way.entry(ends).or_default().push_back(self.edges.len());
        }
        self.edges.push(edge);
        Ok(())
    }

    /// Notes what an edge says of routes.
    fn comment(&mut self, text: Option<String>, link: usize) {
        self.comments.extend(text.map(|text| Comment { link: count(link), text, line: self.line }));
    }

    /// Refuses an edge of a digraph without one back.
    fn all_lead_back(&self) -> Result<(), Wrong> {
        let first = self.one_way.values().flatten().min();
        let Some(edge) = first.and_then(|edge| self.edges.get(*edge)) else { return Ok(()) };
        let (from, to) = (self.nodes.name(edge.ends.0), self.nodes.name(edge.ends.1));
        let reason = format!(
            "{from} -> {to} has no edge back, and cables carry both ways: add {to} -> {from}, or write a graph with --"
        );
        Err(Wrong { line: edge.line, reason })
    }

    /// The other direction of a cable: it may say nothing of its link, or the same as the direction before it.
    fn edge_back(&self, back: &GraphEdge, there: usize) -> Result<(), Wrong> {
        let there = &self.edges[there];
        let silent = back.class.is_none() && back.cables == 1 && back.link == LinkText::default();
        let same = back.class == there.class && back.cables == there.cables && back.link == there.link;
        if silent || same {
            return Ok(());
        }
        self.wrong(format!(
            "the edge back of line {} says another link; both directions of a cable have the same class, cables and link",
            there.line
        ))
    }
}

fn shown(token: Token) -> String {
    match token {
        Token::Id { text, .. } => format!("\"{text}\""),
        Token::Edge { directed } => if directed { "\"->\"" } else { "\"--\"" }.to_owned(),
        Token::Sign(sign) => format!("\"{sign}\""),
    }
}

/// A text in quotes, as it is read back.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a graph; one with routes as a digraph. DOT has no classes of links: every edge says all of its link.
pub(super) fn write(graph: &Graph) -> String {
    let routed = !graph.routes.is_empty();
    let mut text = String::from(if routed { "digraph network {\n" } else { "graph network {\n" });
    let comments = comments(graph);
    // Writing to a String does not fail.
    for (name, host) in &graph.nodes {
        let (kind, shape) = if *host { ("host", "ellipse") } else { ("switch", "box") };
        let _ = writeln!(text, "  {} [type={kind}, shape={shape}];", quoted(name));
    }
    for (number, edge) in graph.edges.iter().enumerate() {
        let (a, b) = (&graph.nodes[edge.ends.0].0, &graph.nodes[edge.ends.1].0);
        let mut link = edge.link;
        let class = edge.class.as_ref().filter(|class| match graph.classes.get(*class) {
            Some(of_class) => {
                link = LinkText {
                    rate: link.rate.or(of_class.rate),
                    delay: link.delay.or(of_class.delay),
                    buffer: link.buffer.or(of_class.buffer),
                    burst: link.burst.or(of_class.burst),
                };
                false
            }
            None => true,
        });
        let mut keys: Vec<String> = class.map(|class| format!("class={}", quoted(class))).into_iter().collect();
        if edge.cables != 1 {
            keys.push(format!("cables={}", edge.cables));
        }
        keys.extend(link.keys().into_iter().map(|(key, value)| format!("{key}={}", quoted(&value))));
        if !routed {
            let _ = writeln!(text, "  {} -- {}{};", quoted(a), quoted(b), in_brackets(&keys));
            continue;
        }
        for (from, to, link) in [(a, b, 2 * number), (b, a, 2 * number + 1)] {
            let comment = comments.get(link).filter(|comment| !comment.is_empty());
            let keys: Vec<String> =
                comment.map(|comment| format!("comment={}", quoted(comment))).into_iter().chain(keys.clone()).collect();
            let _ = writeln!(text, "  {} -> {}{};", quoted(from), quoted(to), in_brackets(&keys));
        }
    }
    text.push_str("}\n");
    text
}

fn in_brackets(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" [{}]", keys.join(", ")) }
}

/// The comments of both directions of each edge: the hosts whose packets take them. Empty without routes.
fn comments(graph: &Graph) -> Vec<String> {
    if graph.routes.is_empty() {
        return Vec::new();
    }
    let hosts = graph.hosts();
    let of_host = |link: usize| if graph.from(count(link)) < hosts { "*".to_owned() } else { String::new() };
    let mut comments: Vec<String> = (0..2 * graph.edges.len()).map(of_host).collect();
    for row in graph.routes.chunks(hosts.max(1)) {
        for (to, link) in row.iter().enumerate().filter(|(_, link)| **link != NO_ROUTE) {
            let comment = &mut comments[*link as usize];
            if !comment.is_empty() {
                comment.push(',');
            }
            comment.push_str(&graph.nodes[to].0);
        }
    }
    comments
}
