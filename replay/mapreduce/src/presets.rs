//! Presets of clusters, profiles of jobs, and jobs that repeat: what stands in a job file for more than it says.

use netsim::units::{DurationPs, UnitError};

use crate::error::JobError;

/// Profiles of jobs, by name.
const PROFILES: [(&str, &str); 5] = [
    ("terasort", include_str!("../profiles/terasort.toml")),
    ("wordcount", include_str!("../profiles/wordcount.toml")),
    ("protein-clustering", include_str!("../profiles/protein-clustering.toml")),
    ("scan", include_str!("../profiles/scan.toml")),
    ("join", include_str!("../profiles/join.toml")),
];
/// Presets of clusters, by name.
const CLUSTERS: [(&str, &str); 1] = [("hec", include_str!("../profiles/hec.toml"))];

/// Most jobs that `count` keys make, and how large they may be together, as bytes of TOML: a small file must not fill memory.
const MAX_JOBS: u64 = 10_000;
const MAX_REPEATED_BYTES: u64 = 64 << 20;

/// Puts what they stand for in the place of presets, counts and profiles.
pub(crate) fn expand(table: &mut toml::Table) -> Result<(), JobError> {
    expand_cluster(table)?;
    repeat_jobs(table)?;
    expand_jobs(table)
}

/// A preset by its name.
fn preset(key: &str, name: &toml::Value, known: &[(&str, &str)]) -> Result<toml::Table, JobError> {
    let text = name.as_str().and_then(|name| known.iter().find(|(known, _)| *known == name));
    let Some((_, text)) = text else {
        let known = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(JobError::value(key, name, format!("there are: {known}")));
    };
    text.parse().map_err(|error: toml::de::Error| JobError::Toml(error.to_string()))
}

/// Puts the keys of `cluster.preset` below those that are given.
fn expand_cluster(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Table(given)) = table.get_mut("cluster") else { return Ok(()) };
    let Some(name) = given.remove("preset") else { return Ok(()) };
    let preset = preset("cluster.preset", &name, &CLUSTERS)?;
    if let Some(toml::Value::Table(keys)) = preset.get("cluster") {
        for (key, value) in keys {
            given.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// Puts `count` jobs in the place of the table that has this key, each submitted `every` so long after the one before. They have
/// its name, or that of its profile, with a number from 1 on.
fn repeat_jobs(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Array(given)) = table.get_mut("job") else { return Ok(()) };
    let mut jobs = Vec::new();
    for job in std::mem::take(given) {
        let toml::Value::Table(mut keys) = job else {
            jobs.push(job);
            continue;
        };
        let (count, every) = (keys.remove("count"), keys.remove("every"));
        let Some(count) = count else {
            if let Some(every) = every {
                return Err(JobError::value("job.every", every, "it is for jobs that have a `count`"));
            }
            jobs.push(keys.into());
            continue;
        };
        let number = count.as_integer().and_then(|count| u64::try_from(count).ok());
        let Some(number) = number.filter(|number| *number > 0 && jobs.len() as u64 + number <= MAX_JOBS) else {
            let reason = format!("a whole number from 1 on, with at most {MAX_JOBS} jobs in all");
            return Err(JobError::value("job.count", count, reason));
        };
        if (keys.to_string().len() as u64).saturating_mul(number) > MAX_REPEATED_BYTES {
            let reason = format!("so many of this job are larger than {MAX_REPEATED_BYTES} bytes together");
            return Err(JobError::value("job.count", count, reason));
        }
        let every = duration("job.every", every.as_ref())?;
        let first = duration("job.submit", keys.get("submit"))?;
        let name = keys.get("name").or_else(|| keys.get("profile")).and_then(toml::Value::as_str);
        let name = name.unwrap_or("job").to_owned();
        for copy in 0..number {
            let after = every.0.checked_mul(copy).and_then(|after| after.checked_add(first.0));
            let Some(submit) = after.map(DurationPs) else {
                return Err(JobError::value("job.every", every, "the last of these jobs is submitted too late"));
            };
            let mut keys = keys.clone();
            keys.insert("name".to_owned(), format!("{name}-{}", copy + 1).into());
            keys.insert("submit".to_owned(), submit.to_string().into());
            jobs.push(keys.into());
        }
    }
    *given = jobs;
    Ok(())
}

/// A duration of a table; 0 where it says none.
fn duration(key: &str, value: Option<&toml::Value>) -> Result<DurationPs, JobError> {
    let Some(value) = value else { return Ok(DurationPs::ZERO) };
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|error: UnitError| JobError::value(key, value, error.to_string()))
}

/// Puts the jobs of a `profile` in the place of the table that names it. Keys beside it go to each of its jobs, those of the
/// input and the submission to the first; a `name` goes before the names of the profile's own.
fn expand_jobs(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Array(given)) = table.get_mut("job") else { return Ok(()) };
    let mut jobs = Vec::new();
    for job in std::mem::take(given) {
        let toml::Value::Table(mut keys) = job else {
            jobs.push(job);
            continue;
        };
        let Some(name) = keys.remove("profile") else {
            jobs.push(keys.into());
            continue;
        };
        let mut profile = preset("job.profile", &name, &PROFILES)?;
        let Some(toml::Value::Array(own)) = profile.remove("job") else { continue };
        let prefix = keys.remove("name");
        let prefix = prefix.as_ref().and_then(toml::Value::as_str);
        let is_single = own.len() == 1;
        let renamed = |own: &str| match prefix {
            None => own.to_owned(),
            Some(prefix) if is_single => prefix.to_owned(),
            Some(prefix) => format!("{prefix}-{own}"),
        };
        for (number, own) in own.into_iter().enumerate() {
            let toml::Value::Table(mut own) = own else { continue };
            for key in ["name", "input_of"] {
                if let Some(toml::Value::String(name)) = own.get_mut(key) {
                    *name = renamed(name);
                }
            }
            for (key, value) in &keys {
                if number == 0 || !matches!(key.as_str(), "input" | "input_of" | "submit") {
                    own.insert(key.clone(), value.clone());
                }
            }
            jobs.push(own.into());
        }
    }
    *given = jobs;
    Ok(())
}
