//! Wakes a thread that waits until something is due: rung by another thread or by a signal, so that nobody has to look at
//! flags many times a second.
//!
//! Behind feature `agent`.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A bell; clones are the same one. It is heard until it is silenced, also by whoever begins to listen later.
#[derive(Clone, Debug)]
pub struct Waker {
    write_end: Arc<UnixStream>,
    read_end: Arc<UnixStream>,
}

impl Waker {
    /// A bell that has not been rung.
    ///
    /// # Errors
    /// If the process may not open any more files.
    pub fn new() -> io::Result<Self> {
        let (write_end, read_end) = UnixStream::pair()?;
        for end in [&write_end, &read_end] {
            end.set_nonblocking(true)?;
        }
        Ok(Self { write_end: Arc::new(write_end), read_end: Arc::new(read_end) })
    }

    /// Rings it; never waits.
    pub fn wake(&self) {
        // One that has been rung often enough to be full is heard anyway.
        let _ = (&*self.write_end).write(&[1]);
    }

    /// What a handler of signals writes a byte into to ring it.
    ///
    /// # Errors
    /// If the process may not open any more files.
    pub fn sender(&self) -> io::Result<UnixStream> {
        self.write_end.try_clone()
    }

    /// Forgets that it was rung.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while (&*self.read_end).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    /// Waits until it is rung, one of `others` has something to read or has failed, or `limit` is over. The bell is silent
    /// afterwards. Returns whether there is something about one of the others.
    ///
    /// # Errors
    /// If the kernel cannot wait for these.
    pub fn wait<'a>(&self, others: impl IntoIterator<Item = BorrowedFd<'a>>, limit: Duration) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        fds.extend(others.into_iter().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match poll(&mut fds, up_to(limit)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        if fds.first().is_some_and(happened) {
            self.clear();
        }
        Ok(fds.iter().skip(1).any(happened))
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }
}

/// poll(2) counts milliseconds: rounded up, as a wait that ends too early is followed by another one.
fn up_to(limit: Duration) -> PollTimeout {
    let milliseconds = limit.as_nanos().div_ceil(1_000_000);
    i32::try_from(milliseconds).ok().and_then(|ms| PollTimeout::try_from(ms).ok()).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::Waker;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn whoever_waits_is_woken_also_by_what_was_rung_before() {
        let waker = Waker::new().unwrap();
        for _ in 0..100_000 {
            waker.wake();
        }
        assert!(!waker.wait([], LONG).unwrap());
        let began = Instant::now();
        assert!(!waker.wait([], Duration::from_millis(20)).unwrap(), "it is silent after it was heard");
        assert!(began.elapsed() >= Duration::from_millis(20));
        let other = waker.clone();
        let ringer = thread::spawn(move || other.wake());
        assert!(!waker.wait([], LONG).unwrap());
        ringer.join().unwrap();
        waker.sender().unwrap().write_all(&[1]).unwrap();
        assert!(!waker.wait([], LONG).unwrap());
    }

    #[test]
    fn others_are_told_from_the_bell() {
        let waker = Waker::new().unwrap();
        let (mut writer, reader) = UnixStream::pair().unwrap();
        waker.wake();
        assert!(!waker.wait([reader.as_fd()], LONG).unwrap());
        writer.write_all(&[1]).unwrap();
        assert!(waker.wait([reader.as_fd()], LONG).unwrap());
    }
}
