//! Tests that return before their end: such a test counts as passed, though it was not run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The test functions below `folder` (built ones apart) that return before their end, as "FILE: TEST".
///
/// # Errors
/// If a file cannot be read or is no Rust.
pub fn early_returns(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in sources(folder)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let tests = early_returns_in(&text).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(folder).unwrap_or(&path).display();
        found.extend(tests.iter().map(|test| format!("{shown}: {test}")));
    }
    Ok(found)
}

/// The test functions of a file that return before their end.
///
/// # Errors
/// If it is no Rust.
pub fn early_returns_in(text: &str) -> Result<Vec<String>> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
    let mut found = Vec::new();
    look(tokens, &mut found);
    Ok(found)
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        } else if path.is_dir() {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn look(tokens: TokenStream, found: &mut Vec<String>) {
    let (mut is_test, mut name) = (false, None);
    let mut before: Option<TokenTree> = None;
    for token in tokens {
        match &token {
            TokenTree::Group(group) if is_attribute(before.as_ref(), group) => {
                is_test |= group.stream().to_string() == "test";
            }
            TokenTree::Ident(ident) if is_test && before.as_ref().is_some_and(|word| word.to_string() == "fn") => {
                name = Some(ident.to_string());
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                match name.take().filter(|_| returns(group.stream())) {
                    Some(name) => found.push(name),
                    None => look(group.stream(), found),
                }
                is_test = false;
            }
            _ => {}
        }
        before = Some(token);
    }
}

fn is_attribute(before: Option<&TokenTree>, group: &Group) -> bool {
    let is_behind_sign = matches!(before, Some(TokenTree::Punct(sign)) if sign.as_char() == '#');
    is_behind_sign && group.delimiter() == Delimiter::Bracket
}

/// Whether there is a `return` that is none of a closure's or of a function's inside, and returns nothing: what a property
/// test says of a case that it does not take has a value.
fn returns(tokens: TokenStream) -> bool {
    let (mut before, mut is_function) = (None, false);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Ident(word) if word == "return" && ends(tokens.peek()) => return true,
            TokenTree::Ident(word) if word == "fn" => is_function = true,
            TokenTree::Group(group) => {
                let is_closure = matches!(&before, Some(TokenTree::Punct(sign)) if sign.as_char() == '|');
                let is_body = group.delimiter() == Delimiter::Brace;
                if !(is_body && (is_closure || is_function)) && returns(group.stream()) {
                    return true;
                }
                is_function &= !is_body;
            }
            _ => {}
        }
        before = Some(token);
    }
    false
}

/// Whether nothing follows of a statement.
fn ends(next: Option<&TokenTree>) -> bool {
    next.is_none_or(|next| matches!(next, TokenTree::Punct(sign) if sign.as_char() == ';'))
}
