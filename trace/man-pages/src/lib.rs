//! Manual pages of a program and its subcommands, from the definition of its command line.
//!
//! What clap prints after the options (`after_help`) becomes sections: what follows "Examples:" is EXAMPLES, what follows "Exit code:" is
//! EXIT STATUS, and the rest is NOTES. Indented lines stay as they are.

mod after_help;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

const SECTION: &str = "1";

/// Options of a subcommand `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  PROGRAM man | man -l -                    read it here and now
  PROGRAM man --out ~/.local/share/man/man1

Exit code: 0 = done, 2 = could not run.")]
pub struct ManArgs {
    /// Folder for the pages of the program and of all its subcommands; made if missing. Without it the program's own goes
    /// to stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManArgs {
    /// Writes the pages of a program.
    ///
    /// # Errors
    /// If a file, the folder or stdout cannot be written.
    pub fn write(&self, program: Command) -> io::Result<()> {
        let pages = pages(program)?;
        match &self.out {
            Some(folder) => write_into(folder, &pages),
            None => pages.first().map_or(Ok(()), |page| io::stdout().lock().write_all(page.text.as_bytes())),
        }
    }
}

fn write_into(folder: &Path, pages: &[Page]) -> io::Result<()> {
    let with_path =
        |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| with_path(folder, error))?;
    for page in pages {
        let path = folder.join(&page.file);
        fs::write(&path, &page.text).map_err(|error| with_path(&path, error))?;
    }
    Ok(())
}

/// A page of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// As `merger-build.1`.
    pub file: String,
    /// In the language of man(7).
    pub text: String,
}

/// The page of a program first, then those of its subcommands.
///
/// # Errors
/// None but those of writing into memory.
pub fn pages(program: Command) -> io::Result<Vec<Page>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let source = format!("{} {}", program.get_name(), program.get_version().unwrap_or_default());
    let mut pages = Vec::new();
    add(&program, None, source.trim(), &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, parent: Option<&str>, source: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let text = page(command, parent, source)?;
    pages.push(Page { file: format!("{name}.{SECTION}"), text });
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        add(subcommand, Some(&name), source, pages)?;
    }
    Ok(())
}

fn page(command: &Command, parent: Option<&str>, source: &str) -> io::Result<String> {
    let man = Man::new(command.clone()).section(SECTION).source(source).manual("Hadoptic");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    let mut rest = Roff::new();
    after_help::sections(&after.unwrap_or_default(), &mut rest);
    if let Some(parent) = parent {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([roman(format!("{parent}({SECTION})"))]);
    }
    rest.to_writer(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::{Arg, Command};

    use super::pages;

    fn program() -> Command {
        let run = Command::new("run")
            .about("Runs it")
            .arg(Arg::new("set").long("set").help("Sets .this to 'that'"))
            .arg(Arg::new("secret").long("secret").hide(true))
            .after_help(
                "It ends by itself.\n\nExamples:\n  tool run --set a \\\n      --set b\n  tool run\n\nRESULTS has\n\
                 all.\n\nExit codes: 0 done; 2 could not run.",
            );
        Command::new("tool")
            .version("1.2")
            .about("A tool")
            .subcommand(run)
            .subcommand(Command::new("hidden").hide(true))
    }

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let files: Vec<String> = pages(program()).unwrap().into_iter().map(|page| page.file).collect();
        assert_eq!(files, ["tool.1", "tool-run.1"]);
    }

    #[test]
    fn what_stands_behind_the_options_becomes_sections_and_examples_keep_their_lines() {
        let pages = pages(program()).unwrap();
        assert!(pages[0].text.contains(".TH tool 1  \"tool 1.2\" Hadoptic"), "{}", pages[0].text);
        let text = &pages[1].text;
        let (_, rest) = text.split_once(".SH NOTES\n").unwrap();
        let wanted = "It ends by itself.\n.SH EXAMPLES\n.PP\n.RS 4\n.nf\ntool run \\-\\-set a \\\\\n    \\-\\-set b\n\
                      tool run\n.fi\n.RE\n.PP\nRESULTS has\nall.\n.SH \"EXIT STATUS\"\n0 done; 2 could not run.\n\
                      .SH \"SEE ALSO\"\ntool(1)\n";
        assert_eq!(rest, wanted, "{text}");
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn help_that_begins_like_a_request_stays_text() {
        let tool = Command::new("tool").after_help("Example:\n  .so /etc/passwd\n  'twas\n\n.so /etc/passwd");
        let text = &pages(tool).unwrap()[0].text;
        assert!(!text.lines().any(|line| line.starts_with(".so") || line.starts_with("'twas")), "{text}");
    }
}
