//! Text behind the options, as sections.

use clap_mangen::roff::{Roff, roman};

/// What a paragraph begins with, and the section that it opens.
const OPENERS: [(&str, &str); 4] = [
    ("Examples:", "EXAMPLES"),
    ("Example:", "EXAMPLES"),
    ("Exit codes:", "EXIT STATUS"),
    ("Exit code:", "EXIT STATUS"),
];

/// Writes the sections of a text. A paragraph that opens none goes on with the one before; the first ones are NOTES.
pub(crate) fn sections(text: &str, roff: &mut Roff) {
    let mut section = "";
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let opened = OPENERS.iter().find_map(|(words, name)| Some((*name, paragraph.strip_prefix(words)?)));
        let (name, body) = opened.unwrap_or((if section.is_empty() { "NOTES" } else { section }, paragraph));
        let begins = name != section;
        if begins {
            roff.control("SH", [name]);
            section = name;
        }
        let lines: Vec<&str> = body.lines().skip_while(|line| line.trim().is_empty()).collect();
        for (number, run) in lines.chunk_by(|a, b| is_indented(a) == is_indented(b)).enumerate() {
            // Text behind a heading on its line has a space before it.
            let on_heading = opened.is_some() && number == 0 && !body.starts_with('\n');
            if is_indented(run[0]) && !on_heading {
                as_it_is(run, roff);
            } else {
                if !begins || number > 0 {
                    roff.control("PP", []);
                }
                run.iter().for_each(|line| {
                    roff.text([roman(line.trim_start())]);
                });
            }
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with(' ')
}

/// Lines that are not filled, without the indent that all have.
fn as_it_is(lines: &[&str], roff: &mut Roff) {
    let indent = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    roff.control("PP", []);
    roff.control("RS", ["4"]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(&line[indent..])]);
    }
    roff.control("fi", []);
    roff.control("RE", []);
}
