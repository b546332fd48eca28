//! The modules of a crate, from its source files: what each defines, takes in and names.
//!
//! Tests inside a module (`#[cfg(test)]`) are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The words of a path: `["crate", "fabric", "build"]`.
pub(super) type Words = Vec<String>;

/// One module: a file, or a block within a file.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The file in which it stands, as an index into [`Crate::files`].
    pub(super) file: usize,
    /// Its own path from the crate's root, without `crate`.
    pub(super) path: Words,
    /// Items that are defined here.
    pub(super) defines: BTreeSet<String>,
    /// Child modules, by their index in [`Crate::modules`].
    pub(super) children: BTreeMap<String, usize>,
    /// What `use` brings in: name here, path, and whether others may take it from here (`pub use`).
    pub(super) imports: Vec<Import>,
    /// Paths in the code.
    pub(super) names: BTreeSet<Words>,
}

/// One name of a `use`.
#[derive(Clone, Debug)]
pub(super) struct Import {
    /// `*` for all names.
    pub(super) name: String,
    pub(super) path: Words,
    pub(super) public: bool,
}

/// A crate's modules; the first is its root.
#[derive(Debug, Default)]
pub struct Crate {
    pub(super) files: Vec<PathBuf>,
    pub(super) modules: Vec<Module>,
}

impl Crate {
    /// Reads the crate whose root is `root`.
    ///
    /// # Errors
    /// If a file cannot be read or is no Rust.
    pub fn read(root: &Path) -> Result<Self> {
        Self::of(root, &|path| fs::read_to_string(path).with_context(|| path.display().to_string()))
    }

    /// The files of its modules, tests inside them apart.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// As [`Self::read`], with files from elsewhere.
    ///
    /// # Errors
    /// As there.
    pub fn of(root: &Path, read: &dyn Fn(&Path) -> Result<String>) -> Result<Self> {
        let mut this = Self::default();
        this.modules.push(Module::default());
        let folder = root.parent().context("a file lies in a folder")?;
        this.file(0, root, folder, read)?;
        Ok(this)
    }

    /// Reads the file of a module whose children's files lie in `folder`.
    fn file(
        &mut self,
        module: usize,
        path: &Path,
        folder: &Path,
        read: &dyn Fn(&Path) -> Result<String>,
    ) -> Result<()> {
        let text = read(path)?;
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{}: {error}", path.display()))?;
        self.modules[module].file = self.files.len();
        self.files.push(path.into());
        self.items(module, tokens, folder, read)
    }

    fn items(
        &mut self,
        module: usize,
        tokens: TokenStream,
        folder: &Path,
        read: &dyn Fn(&Path) -> Result<String>,
    ) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut public) = (0, false);
        while at < tokens.len() {
            if let Some(behind) = test_item(&tokens, at) {
                at = behind;
                continue;
            }
            let word = word(&tokens, at);
            let next = self::word(&tokens, at + 1);
            match word.as_deref() {
                Some("pub") => public = true,
                Some("use") => {
                    let end = end_of_use(&tokens, at);
                    let mut tree = Vec::new();
                    use_tree(&tokens[at + 1..end], &mut Vec::new(), &mut tree);
                    self.modules[module].imports.extend(tree.into_iter().map(|(name, path)| Import {
                        name,
                        path,
                        public,
                    }));
                    (at, public) = (end, false);
                }
                Some("mod") if next.is_some() => {
                    let name = next.unwrap_or_default();
                    at += 2;
                    let child = self.modules.len();
                    let mut path = self.modules[module].path.clone();
                    path.push(name.clone());
                    self.modules.push(Module { file: self.modules[module].file, path, ..Module::default() });
                    self.modules[module].children.insert(name.clone(), child);
                    let inner = folder.join(&name);
                    if let Some(TokenTree::Group(group)) = tokens.get(at) {
                        self.items(child, group.stream(), &inner, read)?;
                    } else {
                        let (flat, nested) = (folder.join(format!("{name}.rs")), inner.join("mod.rs"));
                        let path = if read(&nested).is_ok() { nested } else { flat };
                        self.file(child, &path, &inner, read)?;
                    }
                    public = false;
                }
                Some("struct" | "enum" | "union" | "trait" | "type" | "static" | "const" | "fn") => {
                    if let Some(name) =
                        next.filter(|name| !["fn", "unsafe", "extern", "mut", "async"].contains(&name.as_str()))
                    {
                        self.modules[module].defines.insert(name);
                    }
                    public = false;
                }
                Some("macro_rules") => {
                    self.modules[module].defines.extend(self::word(&tokens, at + 2));
                }
                Some("impl") => public = false,
                _ => {}
            }
            if !matches!(word.as_deref(), Some("use" | "mod")) {
                let names = &mut self.modules[module].names;
                at = path_at(&tokens, at, names);
                continue;
            }
            at += 1;
        }
        Ok(())
    }
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_sign(tokens: &[TokenTree], at: usize, sign: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn group_at(tokens: &[TokenTree], at: usize) -> Option<&Group> {
    match tokens.get(at) {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

/// Where the item behind `#[cfg(test)]` ends.
fn test_item(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let attribute = group_at(tokens, at + 1).filter(|_| is_sign(tokens, at, '#'))?;
    if attribute.stream().to_string().replace(' ', "") != "cfg(test)" {
        return None;
    }
    let ends = |at: &usize| {
        is_sign(tokens, *at, ';') || group_at(tokens, *at).is_some_and(|group| group.delimiter() == Delimiter::Brace)
    };
    (at + 2..tokens.len()).find(ends).map(|end| end + 1)
}

fn end_of_use(tokens: &[TokenTree], from: usize) -> usize {
    (from..tokens.len()).find(|at| is_sign(tokens, *at, ';')).unwrap_or(tokens.len())
}

/// The names of a `use`, each with its path.
fn use_tree(tokens: &[TokenTree], above: &mut Words, found: &mut Vec<(String, Words)>) {
    let mut path = above.clone();
    let mut name = None;
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(ident) if ident == "as" => {
                name = word(tokens, at + 1);
                at += 1;
            }
            TokenTree::Ident(ident) if ident == "self" && !path.is_empty() => {}
            TokenTree::Ident(ident) => path.push(ident.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' => name = Some("*".to_owned()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
                    if !part.is_empty() {
                        use_tree(part, &mut path, found);
                    }
                }
                return;
            }
            _ => {}
        }
        at += 1;
    }
    if let Some(last) = path.last() {
        found.push((name.unwrap_or_else(|| last.clone()), path.clone()));
    }
}

/// Takes the path that begins at `at`, or what a group holds; where it ends.
fn path_at(tokens: &[TokenTree], at: usize, names: &mut BTreeSet<Words>) -> usize {
    if let Some(group) = group_at(tokens, at) {
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let mut within = 0;
        while within < inner.len() {
            within = test_item(&inner, within).unwrap_or_else(|| path_at(&inner, within, names));
        }
        return at + 1;
    }
    let Some(first) = word(tokens, at) else { return at + 1 };
    // A field or a method, not a name of a module; but a range ends in a name.
    let behind_dot = at > 0 && is_sign(tokens, at - 1, '.') && !(at > 1 && is_sign(tokens, at - 2, '.'));
    let mut path = vec![first];
    let mut at = at + 1;
    while is_sign(tokens, at, ':') && is_sign(tokens, at + 1, ':') {
        let Some(next) = word(tokens, at + 2) else { break };
        path.push(next);
        at += 3;
    }
    if !behind_dot {
        names.insert(path);
    }
    at
}
