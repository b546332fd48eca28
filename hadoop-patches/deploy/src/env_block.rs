//! A block of lines of ours in a shell file that belongs to others (`hadoop-env.sh` and its like).
//!
//! The block stands at the file's end, so that it sees what the file sets. Taking it out leaves the very bytes from
//! before: what had to be put before it, because the last line had no end, is told by its first line.

/// How the block's first line begins.
pub const BEGIN: &str = "# >>> hadoptic";
/// The block's last line.
pub const END: &str = "# <<< hadoptic";
const ABOUT: &str = ": set by `hadoptic install`, taken out by `hadoptic remove`";
const ONE_END: &str = ", 1 line end before it";
const TWO_ENDS: &str = ", 2 line ends before it";

/// Why a file's block cannot be told from the rest.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlockError {
    /// It begins and does not end.
    #[error("line {0} begins a block of hadoptic that has no end (a line \"{END}\"): repair or delete it by hand")]
    NoEnd(usize),
    /// It ends and did not begin.
    #[error("line {0} ends a block of hadoptic that did not begin (a line \"{BEGIN}\"): repair or delete it by hand")]
    NoBegin(usize),
    /// There are two.
    #[error("line {0} begins a second block of hadoptic: delete one of them by hand")]
    Twice(usize),
}

struct Block {
    /// With the line ends that were put before it.
    from: usize,
    to: usize,
}

/// Whether a file has a block, whole or not.
#[must_use]
pub fn is_in(file: &[u8]) -> bool {
    file.split(|byte| *byte == b'\n').any(|line| line.starts_with(BEGIN.as_bytes()) || line == END.as_bytes())
}

/// The file with these lines as its block, whether or not it had one. Each line is without its end.
///
/// # Errors
/// If there is a block that is not whole.
pub fn install(file: &[u8], lines: &[String]) -> Result<Vec<u8>, BlockError> {
    let mut text = remove(file)?;
    // A backslash at the end would join the first line of the block to the last line of the file.
    let joined = text.ends_with(b"\\") || text.ends_with(b"\\\n");
    let ends = usize::from(!text.is_empty() && !text.ends_with(b"\n")) + usize::from(joined);
    text.extend(std::iter::repeat_n(b'\n', ends));
    let ends_line = ["", ONE_END, TWO_ENDS].get(ends).copied().unwrap_or_default();
    text.extend_from_slice(format!("{BEGIN}{ABOUT}{ends_line}\n").as_bytes());
    for line in lines {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(format!("{END}\n").as_bytes());
    Ok(text)
}

/// The file without its block; one that has none is returned as it is.
///
/// # Errors
/// If there is a block that is not whole.
pub fn remove(file: &[u8]) -> Result<Vec<u8>, BlockError> {
    let Some(block) = find(file)? else { return Ok(file.to_vec()) };
    let mut text = file[..block.from].to_vec();
    text.extend_from_slice(&file[block.to..]);
    Ok(text)
}

fn find(file: &[u8]) -> Result<Option<Block>, BlockError> {
    let mut found: Option<Block> = None;
    let mut begun: Option<(usize, usize, usize)> = None;
    let mut at = 0;
    for (number, line) in file.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = number + 1;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.starts_with(BEGIN.as_bytes()) {
            if begun.is_some() || found.is_some() {
                return Err(BlockError::Twice(number));
            }
            let ends = if text.ends_with(ONE_END.as_bytes()) {
                1
            } else if text.ends_with(TWO_ENDS.as_bytes()) {
                2
            } else {
                0
            };
            begun = Some((at, ends, number));
        } else if text == END.as_bytes() {
            let Some((from, ends, _)) = begun.take() else { return Err(BlockError::NoBegin(number)) };
            let to = at + line.len();
            // Where others went on behind the block, their line must not join the one before it.
            let own = if to == file.len() { ends } else { 0 };
            let before = file[..from].iter().rev().take(own).take_while(|byte| **byte == b'\n').count();
            found = Some(Block { from: from - before, to });
        }
        at += line.len();
    }
    match begun {
        Some((_, _, number)) => Err(BlockError::NoEnd(number)),
        None => Ok(found),
    }
}
