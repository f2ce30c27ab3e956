//! Collects the queued calls of a link as slices for one `sendmsg`. The slices refer to headers in
//! the slots and to payloads in the caller's arena, so nothing is copied.

use std::io::IoSlice;

use crate::core::Core;
use crate::slot::{Payload, State};
use crate::xdr::padded;

/// Maximum number of slices in a `sendmsg`. A WRITE requires two slices (three with padding), so a
/// `sendmsg` can contain 64 WRITEs. The kernel accepts up to 1,024 slices.
pub const SLICES_MAX: usize = 128;

const PADDING: [u8; 3] = [0; 3];

impl Core {
    /// Fills `slices` with the queued calls of the link `link`. Returns the number of used slices.
    pub fn gather<'a>(
        &'a mut self,
        link: usize,
        arena: &'a [u8],
        slices: &mut [IoSlice<'a>; SLICES_MAX],
    ) -> usize {
        if self.links[link].broken.is_some() {
            return 0;
        }
        if self.links[link].stale {
            self.weed(link);
        }
        let core = &*self;
        let mut skip = core.links[link].head_sent;
        let mut used = 0;
        for &(index, _) in &core.links[link].queue {
            if used + 3 > SLICES_MAX {
                break;
            }
            let slot = core.slots.get(index);
            let size = slot.payload_bytes();
            let header = &core.slots.header(index)[..slot.header_bytes as usize];
            let payload = match slot.payload {
                _ if size == 0 => &[],
                Payload::Arena(at) => slice(arena, usize::try_from(at).unwrap_or(usize::MAX), size),
                Payload::Retained(at) => slice(core.retain.bytes(), at, size),
            };
            for part in [header, payload, &PADDING[..padded(size) - size]] {
                if skip >= part.len() {
                    skip -= part.len();
                    continue;
                }
                slices[used] = IoSlice::new(&part[skip..]);
                skip = 0;
                used += 1;
            }
        }
        used
    }

    /// Records that `size_bytes` of the collected slices were sent.
    pub fn sent(&mut self, link: usize, size_bytes: usize, now_ns: u64) {
        let queue = &mut self.links[link];
        let mut rest = size_bytes + queue.head_sent;
        while let Some(&(index, _)) = queue.queue.front() {
            let slot = self.slots.get_mut(index);
            let whole = slot.header_bytes as usize + padded(slot.payload_bytes());
            if rest < whole {
                break;
            }
            rest -= whole;
            queue.queue.pop_front();
            slot.state = State::Sent;
            slot.sent_ns = now_ns;
            slot.transmissions += 1;
            slot.transmissions_on_link += 1;
            let stats = self.stats.procedure_mut(slot.procedure);
            if slot.transmissions == 1 {
                stats.calls += 1;
            } else {
                stats.retransmissions += 1;
                slot.retransmissions += 1;
            }
        }
        queue.head_sent = rest;
    }

    /// Returns true if the link `link` has queued calls.
    #[must_use]
    pub fn has_output(&self, link: usize) -> bool {
        !self.links[link].queue.is_empty()
    }

    /// Removes ended calls from the queue. The first call may be partly sent, but such a call
    /// cannot end unless its connection is closed.
    fn weed(&mut self, link: usize) {
        let queue = &mut self.links[link];
        queue.stale = false;
        let slots = &self.slots;
        queue.queue.retain(|(index, xid)| {
            let slot = slots.get(*index);
            slot.xid == *xid && slot.state == State::Queued
        });
    }
}

/// The range is in the arena: its end was included in `arena_bytes_needed` at the submission, and
/// the client checked the arena's length against that number.
#[inline]
fn slice(bytes: &[u8], at: usize, size: usize) -> &[u8] {
    at.checked_add(size).and_then(|end| bytes.get(at..end)).unwrap_or_default()
}
