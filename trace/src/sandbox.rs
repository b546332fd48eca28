//! A cell for an agent: what it could do without needing it is taken from it, where the kernel can.
//!
//! Behind feature `agent`. Three walls, each of which a kernel may lack; what stands goes into the manifest's `sandbox`, what
//! is missing into its `notes`, and the agent goes on:
//!
//! - [`read_only_view`]: a mount namespace in which everything but the agent's own folders is read-only. It needs
//!   CAP_SYS_ADMIN, and comes before that is given up.
//! - Landlock (Linux 5.13): files may be read below some folders only, and written below others; no TCP, no signals.
//!   Not for whom looks into other processes: the kernel denies /proc/PID/fd to whoever is in a Landlock domain.
//! - seccomp: system calls that no agent makes fail with EPERM: starting programs, looking into memory of others, mounting,
//!   modules, BPF, other users, namespaces. What is not on the list goes on as before, so that another libc or kernel does
//!   not end an agent.
//!
//! All belong to a thread and to those that it starts: this has to happen before an agent starts others.

mod calls;
mod files;
mod needs;
mod view;

pub use needs::Needs;
pub use view::read_only_view;

/// What stands, and what the reader should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walls {
    /// By name: "mounts", "landlock", "seccomp".
    pub standing: Vec<String>,
    /// What the kernel lacks or refuses.
    pub notes: Vec<String>,
}

impl Walls {
    /// Adds a wall that stands, or says why it does not.
    pub fn add(&mut self, name: &str, built: Result<Option<String>, String>) {
        match built {
            Ok(remark) => {
                self.standing.push(name.to_owned());
                self.notes.extend(remark);
            }
            Err(why) => self.notes.push(format!("sandbox: no {name}: {why}")),
        }
    }
}

/// Shuts this thread, and those that it starts, into what it needs. Comes last, when all is open.
#[must_use]
pub fn confine(needs: &Needs) -> Walls {
    let mut walls = Walls::default();
    if needs.looks_into_processes {
        walls.notes.push("sandbox: no landlock, as it would deny the look into other processes".to_owned());
    } else {
        walls.add("landlock", files::restrict(needs));
    }
    walls.add("seccomp", calls::deny(needs).map(|()| None));
    walls
}

/// The same and the view, for an agent that has all its rights still and gives them up by `give_up` between the two. With
/// `keeps_capabilities` there is no wall.
///
/// # Errors
/// Those of `give_up`.
pub fn confine_around<E>(
    needs: &Needs,
    keeps_capabilities: bool,
    give_up: impl FnOnce() -> Result<Vec<String>, E>,
) -> Result<(Vec<String>, Walls), E> {
    if keeps_capabilities {
        return Ok((give_up()?, Walls::default()));
    }
    let mut walls = Walls::default();
    walls.add("mounts", read_only_view(&needs.writes).map_err(|error| error.to_string()));
    let capabilities = give_up()?;
    let rest = confine(needs);
    walls.standing.extend(rest.standing);
    walls.notes.extend(rest.notes);
    Ok((capabilities, walls))
}
