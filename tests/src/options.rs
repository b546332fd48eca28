//! Values of options that several programs have.

/// A number of runs or threads.
///
/// # Errors
/// If it is none, or 0.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number from 1 on is needed".to_owned()),
        Ok(number) => Ok(number),
    }
}
