//! Data that stays on a host between the runs of an experiment: the next point or step works on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_runner::kept_data::DataSlot;

use crate::order::Order;

/// What a run left for the next of its experiment.
#[derive(Default)]
pub(super) struct Held {
    slot: Option<(String, Arc<Mutex<DataSlot>>)>,
    since: Option<Instant>,
}

impl Held {
    /// Where the data of an order's run is found and left; that of another experiment is removed before.
    pub(super) async fn of(&mut self, order: &Order) -> Arc<Mutex<DataSlot>> {
        let experiment = order.experiment.as_ref().map(|place| place.id.as_str());
        let is_same = self.slot.as_ref().is_some_and(|(id, _)| Some(id.as_str()) == experiment);
        if !is_same {
            // What can't be removed is in the way of the run, which says so.
            let _ = self.release().await;
        }
        self.since = Some(Instant::now());
        let Some(id) = experiment.filter(|_| order.keeps_data) else {
            return Arc::new(Mutex::new(DataSlot::fresh()));
        };
        let fresh = || (id.to_owned(), Arc::new(Mutex::new(DataSlot::handed_on())));
        Arc::clone(&self.slot.get_or_insert_with(fresh).1)
    }

    /// A run has ended: from now on the next is waited for.
    pub(super) fn rest(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Whether data waits for a run that does not come.
    pub(super) fn is_left(&self, patience: Duration) -> bool {
        self.slot.is_some() && self.since.is_some_and(|since| since.elapsed() > patience)
    }

    /// Removes what waits; says what could not be.
    pub(super) async fn release(&mut self) -> String {
        let Some((_, slot)) = self.slot.take() else { return String::new() };
        // Not on this thread, which tells the broker meanwhile that the agent lives.
        let removed = tokio::task::spawn_blocking(move || {
            slot.lock().unwrap_or_else(PoisonError::into_inner).finish(false)
        });
        match removed.await {
            Ok(Ok(_)) => String::new(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        }
    }
}
