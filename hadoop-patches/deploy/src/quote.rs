//! Text on its way into a shell on a host: quoted, never evaluated.

use std::fmt::Write as _;

/// A word for a POSIX shell that stands for exactly this text.
#[must_use]
pub fn word(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        if c == '\'' {
            quoted.push_str("'\\''");
        } else {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

/// Words, separated by blanks.
#[must_use]
pub fn words<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| word(text.as_ref())).collect();
    quoted.join(" ")
}

/// A script whose variables are set first. It stands in a function, so that the shell has read all of it before it
/// runs, and that no program of the script reads the rest of it as its input.
#[must_use]
pub fn script(variables: &[(&str, &str)], arguments: &[String], body: &str) -> String {
    let mut text = String::from(
        "LC_ALL=C\nexport LC_ALL\nPATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
    );
    for (name, value) in variables {
        let _ = writeln!(text, "{name}={}", word(value));
    }
    text.push_str("main() {\n");
    text.push_str(body);
    text.push_str("\n}\n");
    let _ = writeln!(text, "main {} </dev/null\nexit $?", words(arguments));
    text
}

/// Whether a path can stand in a JVM's options, which shells cut at blanks, the agent at commas and XML at angles.
///
/// # Errors
/// Says what is wrong with it.
pub fn plain_path(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/+@%-".contains(c);
    if !text.starts_with('/') {
        return Err(format!("\"{text}\" is no absolute path"));
    }
    if let Some(odd) = text.chars().find(|c| !plain(*c)) {
        return Err(format!(
            "\"{text}\" holds {odd:?}: it has to stand in the options of Java, so only letters, digits and . _ / + @ % - will do"
        ));
    }
    if text.split('/').any(|part| part == "..") || text == "/" {
        return Err(format!("\"{text}\" will not do: give a folder, without '..'"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}
