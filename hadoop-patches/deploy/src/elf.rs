//! How a program is linked, by the headers of its file: one that needs nothing of the host runs on all of them.
//!
//! Source: elf(5). Only what a Linux of 64 bits starts is told apart.

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// It needs no library of the host.
    Static,
    /// It names a loader, which looks for libraries on the host.
    Dynamic,
    /// This is no program in the format that is known here.
    Unknown,
}

impl Linking {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamically linked",
            Self::Unknown => "of an unknown format",
        }
    }
}

/// Type of the program header that names a loader.
const PT_INTERP: u64 = 3;

/// Reads how a program is linked.
#[must_use]
pub fn linking(bytes: &[u8]) -> Linking {
    // ELF, 64 bits, least byte first.
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Linking::Unknown;
    }
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    let types = || -> Option<Vec<u64>> {
        let (from, each, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count).map(|n| number(usize::try_from(from.checked_add(n * each)?).ok()?, 4)).collect()
    };
    match types() {
        Some(types) if types.is_empty() => Linking::Unknown,
        Some(types) if types.contains(&PT_INTERP) => Linking::Dynamic,
        Some(_) => Linking::Static,
        None => Linking::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// A program with headers of these types.
    fn program(types: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[32], bytes[54], bytes[56]) = (64, 56, types.len() as u8);
        for kind in types {
            bytes.push(*kind);
            bytes.extend([0; 55]);
        }
        bytes
    }

    #[test]
    fn a_loader_makes_the_difference() {
        assert_eq!(linking(&program(&[1, 2])), Linking::Static);
        assert_eq!(linking(&program(&[6, 3, 1])), Linking::Dynamic);
        // What tests run in is linked as cargo does by default.
        assert_eq!(linking(&std::fs::read("/proc/self/exe").unwrap()), Linking::Dynamic);
    }

    #[test]
    fn what_is_cut_off_or_no_program_is_not_known() {
        let whole = program(&[1, 3]);
        for length in 0..whole.len() - 55 {
            assert_eq!(linking(&whole[..length]), Linking::Unknown, "{length}");
        }
        assert_eq!(linking(b"#!/bin/sh\n"), Linking::Unknown);
        let mut wild = whole;
        wild[32..40].fill(0xff);
        assert_eq!(linking(&wild), Linking::Unknown);
    }
}
