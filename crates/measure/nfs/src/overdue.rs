//! Handles lost connections, reconnections and overdue calls.

use crate::core::Core;
use crate::error::CallError;
use crate::op::Completion;
use crate::slot::State;
use crate::stats::{DisconnectReason, Event};

impl Core {
    /// Handles the loss of a connection. Its outstanding calls return to the queue in the order of
    /// their submission. Returns the number of these calls.
    pub fn link_lost(&mut self, link: usize, why: DisconnectReason, now_ns: u64) -> u32 {
        let mut calls: Vec<u32> = self
            .slots
            .indices()
            .filter(|index| {
                let slot = self.slots.get(*index);
                slot.is_on_link() && slot.link as usize == link
            })
            .collect();
        calls.sort_by_key(|index| self.slots.get(*index).sequence);
        let queue = &mut self.links[link];
        queue.queue.clear();
        queue.head_sent = 0;
        queue.stale = false;
        queue.strays_allowed = 0;
        queue.broken = None;
        queue.proven = false;
        queue.streaming = None;
        if let Some(inbound) = &mut queue.inbound {
            inbound.clear();
        }
        for &index in &calls {
            let slot = self.slots.get_mut(index);
            slot.state = State::Queued;
            slot.transmissions_on_link = 0;
            // A server with a reply cache may reply to a call twice, and one of the two replies may
            // be for the old connection.
            queue.strays_allowed += u32::from(slot.transmissions > 0);
            queue.queue.push_back((index, slot.xid));
        }
        let count = calls.len() as u32;
        self.stats.disconnects += 1;
        self.stats.event(Event::Disconnected {
            server: queue.server,
            connection: queue.number,
            at_ns: now_ns,
            why,
            calls: count,
        });
        count
    }

    /// Records that a connection is open again, `outage_ns` after its loss.
    pub fn link_restored(&mut self, link: usize, outage_ns: u64, now_ns: u64) {
        let link = &self.links[link];
        for &(index, _) in &link.queue {
            self.slots.get_mut(index).sent_ns = now_ns;
        }
        self.stats.outage_ns += outage_ns;
        self.stats.event(Event::Reconnected {
            server: link.server,
            connection: link.number,
            at_ns: now_ns,
            outage_ns,
            calls: link.queue.len() as u32,
        });
    }

    /// If the connection of a link must be replaced, returns the reason. The driver then closes the
    /// connection and calls [`Core::link_lost`].
    #[must_use]
    pub fn broken(&self, link: usize) -> Option<DisconnectReason> {
        self.links[link].broken
    }

    /// Handles a violation of the framing. Every call on the connection fails, because the client
    /// cannot know which replies were damaged.
    pub fn fail_link(
        &mut self,
        link: usize,
        error: CallError,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        for index in self.slots.indices() {
            let slot = self.slots.get(index);
            if slot.is_on_link() && slot.link as usize == link {
                self.fail(index, error, now_ns, out);
            }
        }
    }

    /// Ends a call with an error. The call may be in any state.
    pub(crate) fn fail(
        &mut self,
        index: u32,
        error: CallError,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        if let Some(entry) = self.slots.get_mut(index).entry.take() {
            self.retain.settle(entry);
            self.prune(index);
        }
        self.finish(index, Err(error), now_ns, out);
    }

    /// Handles overdue calls and due retries. The driver calls this function every few dozen
    /// milliseconds.
    pub fn tick(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        for index in self.slots.indices() {
            let slot = self.slots.get(index);
            if matches!(slot.state, State::Free | State::Fresh | State::Recovering) {
                continue;
            }
            let age_ns = now_ns.saturating_sub(slot.submitted_ns);
            if age_ns >= self.config.give_up_after_ns
                || self.is_over.is_some_and(|over| over(age_ns))
            {
                self.give_up(index, age_ns, now_ns, out);
                continue;
            }
            match slot.state {
                State::Waiting { until_ns } if now_ns >= until_ns => {
                    self.slots.renew_xid(index);
                    self.patch_xid(index);
                    self.enqueue(index, now_ns);
                }
                State::Sent
                    if now_ns.saturating_sub(slot.sent_ns) >= self.config.retransmit_after_ns =>
                {
                    self.retransmit(index, now_ns);
                }
                _ => {}
            }
        }
        self.release_held(now_ns);
    }

    fn give_up(&mut self, index: u32, after_ns: u64, now_ns: u64, out: &mut Vec<Completion>) {
        let slot = self.slots.get(index);
        if slot.state == State::Sent {
            // After the call has failed, the caller owns the arena range again, so a late reply
            // must not write to it.
            self.links[slot.link as usize].broken.get_or_insert(DisconnectReason::GivenUp);
        }
        if slot.state == State::Held {
            self.held.retain(|held| *held != index);
        }
        let transmissions = slot.retransmissions + u32::from(slot.transmissions > 0);
        self.fail(index, CallError::TimedOut { after_ns, transmissions }, now_ns, out);
    }

    fn retransmit(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get_mut(index);
        let link = &mut self.links[slot.link as usize];
        if slot.transmissions_on_link >= 2 {
            link.broken.get_or_insert(DisconnectReason::NoReply);
            return;
        }
        slot.state = State::Queued;
        slot.sent_ns = now_ns;
        link.strays_allowed += 1;
        link.queue.push_back((index, slot.xid));
    }

    pub(crate) fn patch_xid(&mut self, index: u32) {
        let xid = self.slots.get(index).xid;
        let at = crate::rpc::XID_AT;
        self.slots.header_mut(index)[at..at + 4].copy_from_slice(&xid.to_be_bytes());
    }
}
