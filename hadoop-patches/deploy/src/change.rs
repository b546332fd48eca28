//! Replacing configuration files: staged beside, looked at, moved; each move undone if a later one fails.

use crate::answer::HostAnswer;
use crate::edits::Edit;
use crate::fleet::{Fleet, Outcome};
use crate::scripts;
use crate::ssh::{Session, SshError};

/// Lays the new files beside those that they will replace, on all hosts. Everything that can fail fails here.
pub fn stage(fleet: &Fleet, edits: &[Vec<Edit>]) -> Vec<Outcome<()>> {
    fleet.each_with("stage", edits, |session, edits| stage_on(session, edits))
}

fn stage_on(session: &Session, edits: &[Edit]) -> Result<(), SshError> {
    let what = "lay new files beside the old ones";
    let new: Vec<&Edit> = edits.iter().filter(|edit| edit.then.is_some()).collect();
    if new.is_empty() {
        return Ok(());
    }
    let paths: Vec<String> = new.iter().flat_map(|edit| kept(edit)).collect();
    session.run(what, &[], &paths, scripts::STAGE_BEGIN)?;
    for edit in &new {
        session.put_as(
            edit.keeper,
            edit.then.as_deref().unwrap_or_default(),
            &format!("{}.hadoptic-new", edit.path),
        )?;
    }
    let sums: Vec<String> = new.iter().flat_map(|edit| kept(edit).into_iter().chain([edit.sum_then()])).collect();
    session.run(what, &[], &sums, scripts::STAGE_END)?;
    Ok(())
}

/// A file and as whom it is worked on.
fn kept(edit: &Edit) -> [String; 2] {
    [edit.path.clone(), edit.keeper.to_string()]
}

/// Takes away what was staged and not moved.
pub fn unstage(fleet: &Fleet, edits: &[Vec<Edit>]) {
    let _ = fleet.each_with("tidy up", edits, |session, edits| {
        let paths: Vec<String> = edits.iter().flat_map(kept).collect();
        session.run("take away staged files", &[], &paths, scripts::UNSTAGE)
    });
}

/// Moves the staged files of the edits that `which` selects to their place, on all hosts, if the jar there has this
/// checksum ("" = no matter).
pub fn commit(
    fleet: &Fleet,
    label: &'static str,
    edits: &[Vec<Edit>],
    jar: (&str, &str),
    which: impl Fn(&Edit) -> bool + Sync,
) -> Vec<Outcome<()>> {
    fleet.each_with(label, edits, |session, edits| {
        let chosen: Vec<&Edit> = edits.iter().filter(|edit| which(edit)).collect();
        commit_on(session, &chosen, jar)
    })
}

fn commit_on(session: &Session, edits: &[&Edit], (jar, sum): (&str, &str)) -> Result<(), SshError> {
    let what = "replace configuration files";
    let arguments: Vec<String> = edits
        .iter()
        .flat_map(|edit| {
            let kind = if edit.then.is_some() { "new" } else { "delete" };
            kept(edit).into_iter().chain([edit.sum_now(), kind.to_owned()])
        })
        .collect();
    let printed = session.run(what, &[("JAR", jar), ("SUM_JAR", sum)], &arguments, scripts::COMMIT)?;
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    HostAnswer::parse("commit", &printed).map_err(failed).map(drop)
}

/// Brings back what the edits that `which` selects have replaced; a file that was not replaced yet stays. Says what could
/// not be brought back.
pub fn undo(fleet: &Fleet, edits: &[Vec<Edit>], which: impl Fn(&Edit) -> bool + Sync) -> Vec<String> {
    let undone = fleet.each_with("undo", edits, |session, edits| {
        for edit in edits.iter().filter(|edit| which(edit)) {
            let back = edit.undo();
            stage_on(session, std::slice::from_ref(&back))?;
            match commit_on(session, &[&back], ("", "")) {
                Ok(()) => {}
                // It holds what it held before, or what others made of it: either way it is not ours.
                Err(SshError::Failed { message, .. }) if message.contains("was changed by others") => {
                    session.run("take away a staged file", &[], &kept(edit), scripts::UNSTAGE)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    });
    fleet
        .hosts
        .iter()
        .zip(undone)
        .filter_map(|((host, _), outcome)| {
            outcome.err().map(|reason| {
                format!("{host}: its files may be changed already ({reason}); run `hadoptic remove` once it answers")
            })
        })
        .collect()
}
