//! Which file needs what of which other file, and where that runs in a circle.
//!
//! A file needs another one if its code names something that is defined there, directly or by way of a `pub use`; handing a
//! name on is no need. Calls of methods are not seen: `impl` blocks of one type in several files count by the type's name.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Crate, Module, Words};

/// Names that a file takes from another one, by the files' indices.
type Needs = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Files that need each other, with what ties them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The files, in order.
    pub files: Vec<String>,
    /// `FILE -> FILE: NAMES`, a line each.
    pub ties: Vec<String>,
}

/// All circles of a crate; `name` says how a file is called.
#[must_use]
pub fn circles(of: &Crate, name: &dyn Fn(&std::path::Path) -> String) -> Vec<Circle> {
    let needs = needs(of);
    let reaches = |from: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            open.extend(
                needs.keys().filter(|(begin, _)| *begin == at).map(|(_, end)| *end).filter(|end| seen.insert(*end)),
            );
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..of.files.len()).map(reaches).collect();
    let mut found = Vec::new();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for file in 0..of.files.len() {
        if !reached[file].contains(&file) || done.contains(&file) {
            continue;
        }
        let members: Vec<usize> =
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        done.extend(&members);
        let within = |(from, to): &(usize, usize)| members.contains(from) && members.contains(to);
        let tie = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{} -> {}: {}", name(&of.files[*from]), name(&of.files[*to]), names.join(", "))
        };
        let ties = needs.iter().filter(|(ends, _)| within(ends)).map(tie).collect();
        let mut files: Vec<String> = members.iter().map(|file| name(&of.files[*file])).collect();
        files.sort();
        found.push(Circle { files, ties });
    }
    found
}

fn needs(of: &Crate) -> Needs {
    let mut needs = Needs::new();
    for (index, module) in of.modules.iter().enumerate() {
        let mut add = |path: &Words| {
            if let Some((file, item)) = of.defined(index, path).filter(|(file, _)| *file != module.file) {
                needs.entry((module.file, file)).or_default().insert(item);
            }
        };
        module.names.iter().for_each(&mut add);
        for import in module.imports.iter().filter(|import| !import.public && import.name != "*" && import.name != "_")
        {
            add(&import.path);
        }
    }
    needs
}

/// More `use` behind each other than anybody writes; they may run in a circle themselves.
const MAX_DEPTH: u32 = 16;

impl Crate {
    /// The item that `path` names and the file in which it is defined; `None` for what is of another crate, or a module alone.
    fn defined(&self, module: usize, path: &[String]) -> Option<(usize, String)> {
        let (found, rest) = self.module(module, path, 0)?;
        let item = rest.first()?;
        // What a module of the crate has, and no word of it defines or takes in, a macro has made there.
        let by_macro = || (found != 0).then(|| self.modules[found].file);
        Some((self.item(found, item, 0).or_else(by_macro)?, item.clone()))
    }

    /// The module to which `path` leads as seen from `module`, and what is left of it behind that.
    fn module(&self, module: usize, path: &[String], depth: u32) -> Option<(usize, Words)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (first, behind) = path.split_first()?;
        match first.as_str() {
            "crate" => return Some(self.descend(0, behind)),
            "self" => return Some(self.descend(module, behind)),
            "super" => {
                let above = self.parent(module)?;
                let further = behind.first().is_some_and(|word| word == "super");
                return if further { self.module(above, behind, depth) } else { Some(self.descend(above, behind)) };
            }
            _ => {}
        }
        let here = &self.modules[module];
        if here.children.contains_key(first) || here.defines.contains(first) {
            return Some(self.descend(module, path));
        }
        if let Some(import) = here.imports.iter().find(|import| import.name == *first) {
            let whole: Words = own(here, &import.path)?.iter().chain(behind).cloned().collect();
            return self.module(module, &whole, depth + 1);
        }
        here.imports.iter().filter(|import| import.name == "*").find_map(|glob| {
            let (found, rest) = self.module(module, own(here, &glob.path)?, depth + 1)?;
            let holds = rest.is_empty() && found != module && self.item(found, first, depth + 1).is_some();
            holds.then(|| (found, path.to_vec()))
        })
    }

    fn descend(&self, mut module: usize, mut path: &[String]) -> (usize, Words) {
        while let Some(child) = path.first().and_then(|name| self.modules[module].children.get(name)) {
            (module, path) = (*child, &path[1..]);
        }
        (module, path.to_vec())
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let path = &self.modules[module].path;
        let above = &path[..path.len().checked_sub(1)?];
        self.modules.iter().position(|other| other.path == above)
    }

    /// The file in which `item` of a module is defined, through what the module hands on.
    fn item(&self, module: usize, item: &str, depth: u32) -> Option<usize> {
        let here = &self.modules[module];
        if depth > MAX_DEPTH {
            return None;
        }
        if here.defines.contains(item) {
            return Some(here.file);
        }
        here.imports.iter().filter(|import| import.name == item || import.name == "*").find_map(|import| {
            let (found, rest) = self.module(module, own(here, &import.path)?, depth + 1)?;
            match rest.first() {
                Some(last) => self.item(found, last, depth + 1),
                None if import.name == "*" => self.item(found, item, depth + 1),
                None => None,
            }
        })
    }
}

/// A path that stays in the crate; one of another crate would be looked for for ever (`use x::x`).
fn own<'a>(here: &Module, path: &'a [String]) -> Option<&'a [String]> {
    let first = path.first()?;
    let stays = ["crate", "self", "super"].contains(&first.as_str()) || here.children.contains_key(first);
    stays.then_some(path)
}
