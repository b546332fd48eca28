//! From which value of a swept key on a job is done sooner than over a network that it is set against.

use std::collections::BTreeMap;

use pages::format;

use super::jobs::{JobPoint, JobSweep};

/// The places of points along a key, by the values of the other keys.
type ByOthers<'s> = BTreeMap<Vec<(usize, usize)>, Vec<(f64, &'s JobPoint)>>;

impl JobSweep {
    /// A sentence for each swept key whose values are quantities, and each combination of the others: from which value on the job is done
    /// sooner than over the reference. None where there is no reference.
    #[must_use]
    pub fn pays_against(&self) -> Vec<String> {
        let Some(reference) = &self.reference else { return Vec::new() };
        let mut lines = Vec::new();
        for (along, axis) in self.axes.iter().enumerate() {
            let Some(at) = super::quantities::quantities(&axis.values).filter(|at| at.len() > 1) else { continue };
            let mut groups: ByOthers = BTreeMap::new();
            for point in &self.points {
                let Some(place) = point.values.get(along).and_then(|value| at.get(*value)) else { continue };
                let others = point.values.iter().copied().enumerate().filter(|(number, _)| *number != along);
                groups.entry(others.collect()).or_default().push((*place, point));
            }
            for (others, mut points) in groups {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let values = others.iter().map(|(number, value)| (&self.axes[*number], value));
                let with = match super::sweep::label(values) {
                    empty if empty.is_empty() => String::new(),
                    others => format!("With {others}: "),
                };
                let of = |point: &JobPoint| point.values.get(along).map_or("", |value| axis.text(*value)).to_owned();
                let points: Vec<(String, f64)> =
                    points.into_iter().map(|(_, point)| (of(point), point.summary.job_time_s)).collect();
                let key = axis.path.rsplit('.').next().unwrap_or_default();
                let over = format!("{} over {}", format::seconds(reference.job_time_s), reference.name);
                lines.push(format!("{with}{}", sentence(key, &points, reference.job_time_s, &over)));
            }
        }
        lines
    }
}

/// From which value of `key` on `points`, ordered by it, take less than `limit`.
fn sentence(key: &str, points: &[(String, f64)], limit: f64, over: &str) -> String {
    let sooner = |(_, time): &&(String, f64)| *time < limit;
    let paying = points.iter().filter(sooner).count();
    let up = points.iter().rev().take_while(sooner).last();
    let down = points.iter().take_while(sooner).last();
    let says = |(value, time): &(String, f64), how: &str| {
        let some = "; it takes less at some other values, too";
        let run = if how == "up" {
            points.iter().rev().take_while(sooner).count()
        } else {
            points.iter().take_while(sooner).count()
        };
        format!(
            "sooner done from {key} = {value} {how}, where it takes {}, and {over}{}.",
            format::seconds(*time),
            if run == paying { "" } else { some },
        )
    };
    match (up, down) {
        _ if paying == points.len() => format!("sooner done at every value of {key} that was tried: it takes {over}."),
        (Some(point), _) => says(point, "up"),
        (None, Some(point)) => says(point, "down"),
        (None, None) if paying == 0 => {
            let best = points.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
            format!(
                "sooner done at no value of {key} that was tried: at best it takes {}, and {over}.",
                format::seconds(best)
            )
        }
        (None, None) => format!("sooner done at some values of {key} in the middle only; it takes {over}."),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_key_pays_from_its_first_value_behind_which_all_do() {
        let of = |times: &[f64]| {
            let points: Vec<_> =
                times.iter().enumerate().map(|(index, time)| (format!("{}", 1 << index), *time)).collect();
            sentence("wavelengths", &points, 10.0, "10 s over x")
        };
        assert!(of(&[12.0, 11.0, 9.0, 8.0]).starts_with("sooner done from wavelengths = 4 up, where it takes 9"));
        assert!(of(&[8.0, 9.0, 11.0]).starts_with("sooner done from wavelengths = 2 down"));
        assert!(of(&[9.0, 11.0, 9.0]).ends_with("at some other values, too."));
        assert!(of(&[9.0, 9.0]).contains("every value of wavelengths"));
        assert!(of(&[11.0, 10.0]).contains("no value of wavelengths"));
        assert!(of(&[11.0, 9.0, 11.0]).contains("in the middle only"));
    }
}
