//! The folder of a prediction.

use std::path::Path;

use trace_tables::write_rows;

use super::detail::Detail;
use super::store::{StoreError, make_folder, read_json, write_json};
use super::tables::PredictedTaskResult;
use crate::predict::{FabricPrediction, PredictedTask, Prediction};

/// What a prediction says.
const PREDICTION: &str = "prediction.json";
/// The replays that its report shows, one a network.
const SHOWN: &str = "shown_replays.json";

/// Writes all but the report of a prediction into a folder, which is made where it is missing. `shown` are the replays that the
/// report shows, one of each network.
///
/// # Errors
/// If something cannot be written.
pub fn write_prediction(folder: &Path, prediction: &Prediction, shown: &[Detail]) -> Result<(), StoreError> {
    make_folder(folder)?;
    write_json(&folder.join(SHOWN), &shown)?;
    let rows_of = |fabric: &FabricPrediction| {
        let row = |task: &PredictedTask| PredictedTaskResult {
            experiment: fabric.name.clone(),
            task: task.task.clone(),
            predicted_s: task.predicted_s,
            least_s: task.least_s,
            most_s: task.most_s,
            recorded_s: task.recorded_s,
            predicted_finish_s: task.predicted_finish_s,
            recorded_finish_s: task.recorded_finish_s,
        };
        fabric.tasks.iter().map(row).collect::<Vec<_>>()
    };
    write_rows(folder, &prediction.fabrics.iter().flat_map(rows_of).collect::<Vec<_>>())?;
    write_json(&folder.join(PREDICTION), prediction)
}

/// Reads a prediction and the replays that its report shows; `None` if the folder holds none.
///
/// # Errors
/// If it cannot be understood.
pub fn read_prediction(folder: &Path) -> Result<Option<(Prediction, Vec<Detail>)>, StoreError> {
    let path = folder.join(PREDICTION);
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some((read_json(&path)?, read_json(&folder.join(SHOWN))?)))
}
