//! The keys by which a measurement waits for the network, and has batches.

use super::config::{TrafficConfig, TrafficError};
use super::plan::span_ps;
use super::span::Span;
use super::steps::{Convergence, StepPlan};
use crate::fabric::packet::LinkTime;
use crate::statistics::MAX_ROWS;
use crate::units::DurationPs;

impl TrafficConfig {
    /// Refuses values of `convergence`, `batches`, `batch` and `evolution` that contradict others.
    pub(super) fn check_steps(&self) -> Result<(), TrafficError> {
        let ends_itself =
            [("table", self.table.is_some()), ("count", self.count.is_some()), ("bursts", self.bursts.is_some())];
        for (key, given) in [("convergence", self.convergence.is_some()), ("batches", self.batches.is_some())] {
            if let Some((other, _)) = ends_itself.iter().find(|(_, has)| *has && given) {
                let reason = format!("with traffic.{other} the run ends by itself; leave this out");
                return Err(TrafficError::key(key, reason));
            }
        }
        match (self.batches, self.batch) {
            (None, Some(_)) => return Err(TrafficError::key("batch", "it belongs to traffic.batches".to_owned())),
            (Some(_), None) => {
                let reason = "it needs traffic.batch, how long each is (INSEE: 10 batches of \"1000 cycles\")";
                return Err(TrafficError::key("batches", reason.to_owned()));
            }
            (Some(batches), Some(_)) if !(2..=MAX_ROWS as u64).contains(&batches) => {
                return Err(TrafficError::value("batches", batches, &format!("2 to {MAX_ROWS}")));
            }
            _ => {}
        }
        if self.batches.is_some() && self.measurement.is_some() {
            let reason = "traffic.batches x traffic.batch says how long the measurement is; leave this out";
            return Err(TrafficError::key("measurement", reason.to_owned()));
        }
        let interval = self.convergence.map(|convergence| convergence.interval);
        for (key, span) in [("convergence.interval", interval), ("batch", self.batch), ("evolution", self.evolution)] {
            if let Some(span @ (Span::Time(DurationPs(0)) | Span::Cycles(0))) = span {
                return Err(TrafficError::value(key, format!("\"{span}\""), "longer than 0"));
            }
        }
        if let Some(Convergence { threshold, .. }) = self.convergence
            && !(threshold > 0.0 && threshold <= 1.0)
        {
            return Err(TrafficError::value(
                "convergence.threshold",
                format!("{threshold:?}"),
                "above 0 and at most 1.0",
            ));
        }
        Ok(())
    }

    /// What they come to. `times`: the end of the warm-up, that of the measurement, and the run's, as if there were no convergence.
    pub(super) fn steps(&self, link: &LinkTime, times: (u64, u64, u64)) -> Result<StepPlan, TrafficError> {
        let (from, until, end) = times;
        let ps = |key: &str, span: Span| span_ps(key, span, link);
        let convergence = match self.convergence {
            Some(Convergence { interval, threshold, most }) => {
                let interval = ps("convergence.interval", interval)?;
                if ps("convergence.most", most)? / interval >= MAX_ROWS as u64 {
                    let allowed = format!("less than {MAX_ROWS} times traffic.convergence.interval");
                    return Err(TrafficError::value("convergence.most", format!("\"{most}\""), &allowed));
                }
                Some((interval, threshold, from.saturating_add(ps("convergence.most", most)?)))
            }
            None => None,
        };
        let batches = match (self.batches, self.batch) {
            (Some(batches), Some(batch)) => Some((batches, ps("batch", batch)?)),
            _ => None,
        };
        let evolution_ps = self.evolution.map(|span| ps("evolution", span)).transpose()?;
        Ok(StepPlan {
            convergence,
            warm_up_ps: from,
            measurement_ps: until - from,
            drain_ps: end - until,
            batches,
            evolution_ps,
        })
    }
}
