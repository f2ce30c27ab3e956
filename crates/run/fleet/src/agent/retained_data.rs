//! Data that remains on a host between the runs of an experiment, because the next point or step
//! uses it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_plan::Target;
use plimsoll_runner::data_slot::DataSlot;

use crate::order::Order;

/// Data of the current experiment.
#[derive(Default)]
pub(super) struct RetainedData {
    experiment: Option<String>,
    /// Data of each target. An experiment that compares targets uses several of them.
    slots: Vec<(Vec<Target>, Arc<Mutex<DataSlot>>)>,
    since: Option<Instant>,
}

impl RetainedData {
    /// Returns the slot for the data of an order's run on these targets. Removes the data of any
    /// other experiment first.
    pub(super) async fn slot_for(
        &mut self,
        order: &Order,
        targets: &[Target],
    ) -> Arc<Mutex<DataSlot>> {
        let experiment = order.experiment.as_ref().map(|place| place.id.clone());
        if self.experiment != experiment {
            // If the data cannot be removed, the run will fail and report this.
            let _ = self.release().await;
        }
        self.since = Some(Instant::now());
        if experiment.is_none() || !order.keeps_data {
            return Arc::new(Mutex::new(DataSlot::fresh()));
        }
        self.experiment = experiment;
        if let Some((_, slot)) = self.slots.iter().find(|(of, _)| of == targets) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Mutex::new(DataSlot::reused()));
        self.slots.push((targets.to_vec(), Arc::clone(&slot)));
        slot
    }

    /// Restarts the timeout for the next run that uses the data.
    pub(super) fn restart_timer(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Returns true if data has waited for the next run for longer than `timeout`.
    pub(super) fn is_expired(&self, timeout: Duration) -> bool {
        !self.slots.is_empty() && self.since.is_some_and(|since| since.elapsed() > timeout)
    }

    /// Removes all retained data. Returns the errors; empty if there were no errors.
    pub(super) async fn release(&mut self) -> String {
        self.experiment = None;
        let slots = std::mem::take(&mut self.slots);
        // The removal runs on another thread, because this thread sends the agent's heartbeat.
        let removed = tokio::task::spawn_blocking(move || {
            let finish = |(_, slot): (_, Arc<Mutex<DataSlot>>)| {
                slot.lock().unwrap_or_else(PoisonError::into_inner).finish(false)
            };
            let failed = slots.into_iter().filter_map(|slot| finish(slot).err());
            failed.map(|error| error.to_string()).collect::<Vec<_>>().join("; ")
        });
        removed.await.unwrap_or_else(|error| error.to_string())
    }
}
