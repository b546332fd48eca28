//! How a run is to be made.

/// A thread more is worth it from so many hosts on: a window of fewer is over sooner than threads have met.
pub const HOSTS_OF_A_THREAD: usize = 2_048;

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
    /// Into how many parts a network of `hosts` hosts is cut.
    #[must_use]
    pub fn parts(self, hosts: usize) -> u16 {
        let most = if self.always { self.threads } else { self.threads.min(hosts / HOSTS_OF_A_THREAD) };
        u16::try_from(most.max(1)).unwrap_or(u16::MAX)
    }

    /// Why it cannot be in windows, if it cannot.
    #[must_use]
    pub fn by_events(self) -> Option<String> {
        self.asks_back.map(|key| format!("traffic.{key} is not known to runs in windows"))
    }
}
