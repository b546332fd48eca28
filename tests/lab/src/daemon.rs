//! Hadoop's daemons: what starts each, and how it shows that it is ready.

/// A kind of daemon.
#[derive(Clone, Copy, Debug)]
pub struct DaemonKind {
    /// Role, as in the trace.
    pub role: &'static str,
    /// Main class.
    pub main_class: &'static str,
    /// Program of Hadoop's that starts it.
    pub program: &'static str,
    /// What that is told.
    pub subcommand: &'static str,
    /// Variable of the options of its JVM.
    pub options: &'static str,
    /// Heap, MiB.
    pub heap_mib: u32,
    /// Whether it runs on the master or on each worker.
    pub on_master: bool,
    /// Daemons of a lower wave have to be ready before those of a higher one start.
    pub wave: u8,
    /// When others can use it.
    pub ready: Ready,
}

/// How it shows that a daemon is ready, without talking to it (that would be in the capture).
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// It listens on a TCP port.
    Listens(u16),
    /// Its log has said something.
    Says(&'static str),
}
