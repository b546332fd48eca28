//! How a run is to be made.

/// A thread more is worth it from so many hosts on: a window of fewer is over sooner than threads have met.
pub const HOSTS_OF_A_THREAD: usize = 2_048;

/// Parts of a thread, where a part more costs little: threads take over what others have not begun, so that none waits long for another.
const PARTS_OF_A_THREAD: usize = 4;

/// Why a network is not run in windows; nothing where they would be of no use.
pub struct Unsuited(pub Option<String>);

/// How a run is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowsWanted {
    /// Threads that there are for it.
    pub threads: usize,
    /// Whether it is to be in windows even where events are quicker.
    pub always: bool,
    /// The key that a run in windows knows nothing of, mostly as hosts ask by it what happens elsewhere, so that it must be by events.
    pub asks_back: Option<&'static str>,
}

impl WindowsWanted {
    /// Into how many parts a network of `hosts` hosts is cut: one for each thread.
    #[must_use]
    pub fn parts(self, hosts: usize) -> u16 {
        u16::try_from(self.threads_for(hosts)).unwrap_or(u16::MAX)
    }

    /// The same where there are more parts than threads, so that threads can share them out anew in each window.
    #[must_use]
    pub fn parts_to_share(self, hosts: usize) -> u16 {
        let threads = self.threads_for(hosts);
        let parts = if threads > 1 { (threads * PARTS_OF_A_THREAD).min(hosts / HOSTS_OF_A_THREAD) } else { 1 };
        u16::try_from(parts.max(threads)).unwrap_or(u16::MAX)
    }

    /// Threads that run a network of `hosts` hosts.
    fn threads_for(self, hosts: usize) -> usize {
        let most = if self.always { self.threads } else { self.threads.min(hosts / HOSTS_OF_A_THREAD) };
        most.max(1)
    }

    /// Why it cannot be in windows, if it cannot.
    #[must_use]
    pub fn by_events(self) -> Option<String> {
        self.asks_back.map(|key| format!("traffic.{key} is not known to runs in windows"))
    }
}
