//! Which of some names may have been meant.

/// The name that differs least from `asked`, in no more than a third of it.
pub(crate) fn nearest<'n>(asked: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |name: &str| strsim::damerau_levenshtein(asked, name);
    let (far, near) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (far <= asked.chars().count().div_ceil(3)).then_some(near)
}
