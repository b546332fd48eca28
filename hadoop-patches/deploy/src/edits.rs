//! What is to be changed in a host's configuration, worked out here and not there.

use crate::digest;
use crate::env_block;
use crate::facts::{EDITABLE, Facts};
use crate::installed::{EditRecord, Installed};
use crate::site_xml;
use crate::versions::{self, Generation};

/// A file that gets other bytes, or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Its name in the configuration.
    pub name: String,
    /// Where it lies.
    pub path: String,
    /// As whom it is replaced: see [`crate::answer::RemoteFile::keeper`].
    pub keeper: u32,
    /// What it holds now; `None`: there is none.
    pub now: Option<Vec<u8>>,
    /// What it shall hold; `None`: it goes.
    pub then: Option<Vec<u8>>,
}

impl Edit {
    /// Checksum of what it holds now, "-" = there is none.
    #[must_use]
    pub fn sum_now(&self) -> String {
        sum(self.now.as_deref())
    }

    /// Checksum of what it shall hold.
    #[must_use]
    pub fn sum_then(&self) -> String {
        sum(self.then.as_deref())
    }

    /// Whether task JVMs depend on it.
    #[must_use]
    pub fn is_of_tasks(&self) -> bool {
        self.name == "mapred-site.xml"
    }

    /// What undoes it.
    #[must_use]
    pub fn undo(&self) -> Self {
        Self { now: self.then.clone(), then: self.now.clone(), ..self.clone() }
    }
}

fn sum(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "-".to_owned(), digest::of)
}

/// How JVMs get the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    /// The option itself, "-javaagent:...".
    pub agent: String,
    /// The program that prints it where the jar is whole.
    pub launcher: String,
}

impl AgentOption {
    /// What stands among the options of tasks. The shell that starts a container of YARN asks the launcher; in 1.x nothing
    /// is evaluated.
    #[must_use]
    pub fn of_tasks(&self, generation: Generation) -> String {
        match generation {
            Generation::One => self.agent.clone(),
            Generation::Two | Generation::Three => format!("$({})", self.launcher),
        }
    }
}

/// A host's edits, with what shall be remembered of them and the copies to keep.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// What changes; a file that is already as it shall be is not among them.
    pub edits: Vec<Edit>,
    /// All files of ours, changed now or before.
    pub records: Vec<EditRecord>,
    /// Copies of what was there before, by name.
    pub backups: Vec<(String, Vec<u8>)>,
}

/// The edits that bring the agent into a host's configuration.
///
/// # Errors
/// Says of which file, and what is to be done.
pub fn install(facts: &Facts, generation: Generation, option: &AgentOption, clients: bool) -> Result<Planned, String> {
    let there: Vec<&str> = EDITABLE.into_iter().filter(|name| facts.answer.file(name).is_some()).collect();
    let lines = versions::env_lines(generation, &there, &option.launcher, clients);
    let mut planned = Planned::default();
    for name in EDITABLE {
        let now = facts.answer.file(name).map(|file| file.bytes.clone());
        let path = facts.path(name);
        let in_file = |error: String| format!("{path}: {error}");
        let wanted = lines.iter().find(|(file, _)| *file == name).map(|(_, lines)| lines);
        let then = match (name, wanted) {
            ("mapred-site.xml", _) => {
                let text = match &now {
                    Some(bytes) => text_of(bytes).map_err(in_file)?,
                    None => site_xml::EMPTY.to_owned(),
                };
                let earlier = earlier_agents(facts);
                site_xml::install(&text, versions::properties(generation), &option.of_tasks(generation), &earlier)
                    .map_err(|error| in_file(error.to_string()))?
                    .into_bytes()
            }
            (_, Some(lines)) => env_block::install(now.as_deref().unwrap_or_default(), lines)
                .map_err(|error| in_file(error.to_string()))?,
            (_, None) => continue,
        };
        let keeper = keeper(facts, name, &path)?;
        remember(&mut planned, facts, Edit { name: name.to_owned(), path, keeper, now, then: Some(then) })?;
    }
    Ok(planned)
}

fn remember(planned: &mut Planned, facts: &Facts, edit: Edit) -> Result<(), String> {
    let before = without(facts, &edit.name, edit.now.as_deref())?;
    let old = facts.installed.iter().flat_map(|installed| &installed.edits).find(|old| old.path == edit.path);
    let kept = old.filter(|old| old.after == edit.sum_now());
    let record = EditRecord {
        name: edit.name.clone(),
        path: edit.path.clone(),
        before: kept.map_or_else(|| sum(before.as_deref()), |old| old.before.clone()),
        after: edit.sum_then(),
    };
    // A copy that an earlier run made is nearer to the original than what is worked out from its edit.
    if let Some(before) = before.filter(|_| kept.is_none()) {
        planned.backups.push((edit.name.clone(), before));
    }
    planned.records.push(record);
    if edit.now != edit.then {
        planned.edits.push(edit);
    }
    Ok(())
}

/// The edits that take everything of ours out of a host's configuration.
///
/// # Errors
/// Says of which file, and what is to be done.
pub fn remove(facts: &Facts) -> Result<Vec<Edit>, String> {
    let mut edits = Vec::new();
    for name in EDITABLE {
        let Some(file) = facts.answer.file(name) else { continue };
        let then = without(facts, name, Some(&file.bytes))?;
        let (name, path, keeper) = (name.to_owned(), file.path.clone(), file.keeper);
        let edit = Edit { name, path, keeper, now: Some(file.bytes.clone()), then };
        if edit.now != edit.then {
            edits.push(edit);
        }
    }
    // Of tasks first: they are what a missing jar would kill.
    edits.sort_by_key(|edit| !edit.is_of_tasks());
    Ok(edits)
}

/// What a file was before us. The copy that was kept, if nobody else has edited since; else what others made of it,
/// without our part.
fn without(facts: &Facts, name: &str, now: Option<&[u8]>) -> Result<Option<Vec<u8>>, String> {
    let Some(now) = now else { return Ok(None) };
    let path = facts.path(name);
    let record =
        facts.installed.iter().flat_map(|installed: &Installed| &installed.edits).find(|record| record.path == path);
    if let Some(record) = record.filter(|record| record.after == digest::of(now)) {
        if record.before == "-" {
            return Ok(None);
        }
        let backup =
            facts.answer.file(&format!("backup/{name}")).filter(|copy| digest::of(&copy.bytes) == record.before);
        if let Some(copy) = backup {
            return Ok(Some(copy.bytes.clone()));
        }
    }
    let in_file = |error: String| format!("{path}: {error}");
    let left = if name == "mapred-site.xml" {
        match text_of(now) {
            Ok(text) => site_xml::remove(&text, &earlier_agents(facts))
                .map_err(|error| in_file(error.to_string()))?
                .into_bytes(),
            // We never wrote into such a file.
            Err(_) => now.to_vec(),
        }
    } else {
        env_block::remove(now).map_err(|error| in_file(error.to_string()))?
    };
    let ours = record.is_some_and(|record| record.before == "-");
    Ok(Some(left).filter(|left| !(ours && (left.is_empty() || left == site_xml::EMPTY.as_bytes()))))
}

fn earlier_agents(facts: &Facts) -> Vec<String> {
    let of = |installed: &Installed| [installed.agent.clone(), versions::launched(&installed.prefix)];
    facts.installed.iter().flat_map(of).collect()
}

fn keeper(facts: &Facts, name: &str, path: &str) -> Result<u32, String> {
    facts.keeper(name).ok_or_else(|| {
        format!(
            "{path}: several users can change what stands on the way there, so root writes nothing: chmod go-w its folders, or \
             use --programs-only and add the lines by hand"
        )
    })
}

fn text_of(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| "is not UTF-8: convert it (iconv -t UTF-8), or add the agent by hand".to_owned())
}
