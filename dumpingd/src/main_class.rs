//! The main class of a JVM, from its command line. Nothing else of a command line is ever kept: arguments carry secrets.

/// Options of the `java` launcher whose value is the next argument (java(1)).
const JAVA_OPTIONS_WITH_VALUE: [&str; 12] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--patch-module",
    "--limit-modules",
];

/// Options of `jsvc`, which starts secure DataNodes, whose value is the next argument (jsvc(1)).
const JSVC_OPTIONS_WITH_VALUE: [&str; 11] = [
    "-jvm",
    "-cwd",
    "-home",
    "-java-home",
    "-outfile",
    "-errfile",
    "-pidfile",
    "-wait",
    "-user",
    "-umask",
    "-procname",
];

/// Bytes of a name that is kept at most; what is longer is cut there.
const MAX_NAME_BYTES: usize = 512;

/// The main class; for `-jar FILE` the file's name, for `-m MODULE/CLASS` the class. `None` if the command line names
/// none (an argument file `@FILE`, for example).
#[must_use]
pub fn of_command_line<S: AsRef<str>>(arguments: &[S]) -> Option<String> {
    name_in(arguments).map(|mut name| {
        name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        name
    })
}

fn name_in<S: AsRef<str>>(arguments: &[S]) -> Option<String> {
    let mut arguments = arguments.iter().map(AsRef::as_ref);
    let program = arguments.next()?;
    let is_jsvc = base_name(program).starts_with("jsvc");
    while let Some(argument) = arguments.next() {
        if argument == "-jar" {
            return arguments.next().map(|jar| base_name(jar).to_owned());
        }
        if argument == "-m" || argument == "--module" {
            let module = arguments.next()?;
            return Some(module.rsplit('/').next().unwrap_or(module).to_owned());
        }
        if let Some(module) = argument.strip_prefix("--module=") {
            return Some(module.rsplit('/').next().unwrap_or(module).to_owned());
        }
        let takes_value =
            JAVA_OPTIONS_WITH_VALUE.contains(&argument) || is_jsvc && JSVC_OPTIONS_WITH_VALUE.contains(&argument);
        if takes_value {
            arguments.next();
        } else if !argument.starts_with('-') {
            return is_class_name(argument).then(|| argument.replace('/', "."));
        }
    }
    None
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether this may be the name of a class: an argument file, a source file or something unforeseen is not recorded.
fn is_class_name(text: &str) -> bool {
    text.len() <= MAX_NAME_BYTES
        && text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
        && !text.ends_with(".java")
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '/'))
}
