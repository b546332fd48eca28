//! What a login shell prints before it runs what it was asked: start files greet, and what they say is no answer.

use std::io::Read;

/// A command on a host prints this before it does anything else.
pub(crate) const MARK: &str = "hadoptic: the answer begins";
/// A greeting that is longer is none.
const MAX_BANNER: usize = 64 << 10;

/// Reads on until behind the mark and the end of its line.
///
/// # Errors
/// What was printed, if the mark does not come.
pub(crate) fn skip(from: &mut dyn Read) -> Result<(), Vec<u8>> {
    let end = format!("{MARK}\n");
    let mut banner = Vec::new();
    // One byte after the other: what is behind the mark is not ours to read.
    let mut byte = [0];
    while !banner.ends_with(end.as_bytes()) {
        match from.read(&mut byte) {
            Ok(1) if banner.len() < MAX_BANNER => banner.push(byte[0]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => return Err(banner),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{MARK, MAX_BANNER, skip};

    #[test]
    fn the_answer_is_what_comes_behind_the_mark() {
        for banner in ["", "Welcome!\n", "no end of line, ", MARK, "\u{1b}[31m\n\n"] {
            let printed = format!("{banner}{MARK}\n{MARK}\nanswer");
            let mut from = printed.as_bytes();
            assert_eq!(skip(&mut from), Ok(()));
            let mut answer = String::new();
            from.read_to_string(&mut answer).unwrap_or_default();
            assert_eq!(answer, format!("{MARK}\nanswer"), "{banner:?}");
        }
    }

    #[test]
    fn who_never_begins_is_heard() {
        assert_eq!(
            skip(&mut "This account is not available.\n".as_bytes()),
            Err(b"This account is not available.\n".to_vec())
        );
        assert_eq!(skip(&mut std::io::repeat(b'x')).map_err(|said| said.len()), Err(MAX_BANNER));
    }
}
