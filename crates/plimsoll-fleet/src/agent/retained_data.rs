//! Data that stays on a host between the runs of an experiment: the next point or step works on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_plan::Target;
use plimsoll_runner::kept_data::DataSlot;

use crate::order::Order;

/// What runs of an experiment left for the next.
#[derive(Default)]
pub(super) struct RetainedData {
    experiment: Option<String>,
    /// By what it lies on: the sides of a comparison have data of their own.
    slots: Vec<(Vec<Target>, Arc<Mutex<DataSlot>>)>,
    since: Option<Instant>,
}

impl RetainedData {
    /// Where the data of an order's run on these targets is found and left; that of another experiment is removed before.
    pub(super) async fn slot_for(
        &mut self,
        order: &Order,
        targets: &[Target],
    ) -> Arc<Mutex<DataSlot>> {
        let experiment = order.experiment.as_ref().map(|place| place.id.clone());
        if self.experiment != experiment {
            // What can't be removed is in the way of the run, which says so.
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
        let slot = Arc::new(Mutex::new(DataSlot::handed_on()));
        self.slots.push((targets.to_vec(), Arc::clone(&slot)));
        slot
    }

    /// A run has ended: from now on the next is waited for.
    pub(super) fn restart_timer(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Whether data waits for a run that does not come.
    pub(super) fn is_expired(&self, timeout: Duration) -> bool {
        !self.slots.is_empty() && self.since.is_some_and(|since| since.elapsed() > timeout)
    }

    /// Removes what waits; says what could not be.
    pub(super) async fn release(&mut self) -> String {
        self.experiment = None;
        let slots = std::mem::take(&mut self.slots);
        // Not on this thread, which tells the broker meanwhile that the agent lives.
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
