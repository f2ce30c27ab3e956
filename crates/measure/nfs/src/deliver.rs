//! Delivers received records to the calls that wait for them.

use nfs3_types::nfs3::nfsstat3;

use crate::core::{Core, Streaming};
use crate::error::{CallError, Violation};
use crate::inbound::{Inbound, InboundStep};
use crate::op::{Completion, Procedure, Stability};
use crate::reply::{metadata, read_head, says_done_before, written};
use crate::rpc::{Answer, read_answer, read_xid};
use crate::slot::{NONE, Owner, Payload, State};
use crate::stats::Event;
use crate::xdr::{Reader, padded};

/// Describes how the remaining part of a long READ reply is received.
struct Plan {
    head_bytes: usize,
    into: (usize, usize),
    tail_bytes: usize,
    streaming: Streaming,
}

/// Way in which a long record is received. The head of the record determines it.
enum LongRecord {
    Stream(Plan),
    Buffer,
    Discard,
}

impl Core {
    /// Returns the receive state of a link.
    pub fn inbound(&mut self, link: usize) -> Option<&mut Inbound> {
        self.links.get_mut(link)?.inbound.as_mut()
    }

    /// Delivers all complete records of `link`.
    ///
    /// # Errors
    /// Returns a [`Violation`] if the framing is broken, or if a reply matches no call. No further
    /// data on this connection can be trusted.
    pub fn deliver(
        &mut self,
        link: usize,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), Violation> {
        // The receive state is taken out of the link during the delivery, so that records can be
        // read while calls are modified.
        let Some(mut inbound) = self.links[link].inbound.take() else { return Ok(()) };
        let result = self.drain(link, &mut inbound, arena, now_ns, out);
        self.links[link].inbound = Some(inbound);
        result
    }

    fn drain(
        &mut self,
        link: usize,
        inbound: &mut Inbound,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), Violation> {
        loop {
            match inbound.step()? {
                InboundStep::More => return Ok(()),
                InboundStep::Record(record) => self.record(link, record, arena, now_ns, out)?,
                InboundStep::Head { head, record_bytes } => {
                    match self.plan(link, head, record_bytes, arena.len())? {
                        LongRecord::Stream(plan) => {
                            self.links[link].streaming = Some(plan.streaming);
                            inbound.stream(plan.head_bytes, plan.into, plan.tail_bytes, arena);
                        }
                        LongRecord::Buffer => inbound.buffer_it(record_bytes)?,
                        LongRecord::Discard => {
                            self.count_stray(link);
                            inbound.discard(record_bytes);
                        }
                    }
                }
                InboundStep::Streamed => {
                    let streamed = self.links[link].streaming.take();
                    if let Some(Streaming { xid, count, eof }) = streamed
                        && let Some(index) = self.claim(link, xid)
                    {
                        self.read_progress(index, (count, eof), now_ns, out);
                    }
                }
            }
        }
    }

    /// Decides how to receive a long record.
    fn plan(
        &mut self,
        link: usize,
        head: &[u8],
        record_bytes: usize,
        arena_bytes: usize,
    ) -> Result<LongRecord, Violation> {
        let mut reader = Reader::new(head);
        let xid = read_xid(&mut reader)?;
        let Some(index) = self.slots.find(xid).filter(|i| self.is_on(*i, link)) else {
            return if self.links[link].strays_allowed > 0 {
                Ok(LongRecord::Discard)
            } else {
                Err(Violation::UnknownXid { xid })
            };
        };
        let slot = self.slots.get(index);
        let (Procedure::Read, Payload::Arena(at)) = (slot.procedure, slot.payload) else {
            return Ok(LongRecord::Buffer);
        };
        let Ok(Answer::Accepted(results)) = read_answer(reader) else {
            return Ok(LongRecord::Buffer);
        };
        let Ok(read) = read_head(results, slot.size_bytes) else { return Ok(LongRecord::Buffer) };
        let (count, head_bytes) = (read.count as usize, head.len() - read.data.rest().len());
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        // If the sizes of the parts do not add up to the size of the record, the whole record is
        // received and then rejected.
        if head_bytes + padded(count) != record_bytes || at.saturating_add(count) > arena_bytes {
            return Ok(LongRecord::Buffer);
        }
        Ok(LongRecord::Stream(Plan {
            head_bytes,
            into: (at, count),
            tail_bytes: padded(count) - count,
            streaming: Streaming { xid, count: read.count, eof: read.eof },
        }))
    }

    #[inline]
    fn is_on(&self, index: u32, link: usize) -> bool {
        self.slots.get(index).link as usize == link
    }

    /// Removes a call from the link when its reply has arrived.
    #[inline]
    fn claim(&mut self, link: usize, xid: u32) -> Option<u32> {
        let index = self.slots.find(xid).filter(|index| self.is_on(*index, link))?;
        self.links[link].proven = true;
        self.leave_link(index);
        self.slots.get_mut(index).state = State::Sent;
        Some(index)
    }

    fn count_stray(&mut self, link: usize) {
        let link = &mut self.links[link];
        link.strays_allowed = link.strays_allowed.saturating_sub(1);
        self.stats.duplicate_replies += 1;
    }

    /// Delivers a complete record.
    #[inline]
    fn record(
        &mut self,
        link: usize,
        record: &[u8],
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), Violation> {
        let mut reader = Reader::new(record);
        let xid = read_xid(&mut reader)?;
        let Some(index) = self.claim(link, xid) else {
            if self.links[link].strays_allowed == 0 {
                return Err(Violation::UnknownXid { xid });
            }
            self.count_stray(link);
            return Ok(());
        };
        let outcome = match read_answer(reader) {
            Ok(Answer::Accepted(results)) => self.results(index, results, arena, now_ns, out),
            Ok(Answer::Refused(error)) => Err(error.into()),
            Err(violation) => Err(violation.into()),
        };
        if let Err(error) = outcome {
            self.refused(index, error, now_ns, out);
        }
        Ok(())
    }

    #[inline]
    fn results(
        &mut self,
        index: u32,
        results: Reader<'_>,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), CallError> {
        let slot = self.slots.get(index);
        if slot.keep_reply {
            self.kept.clear();
            self.kept.extend_from_slice(results.rest());
        }
        match slot.procedure {
            Procedure::Read => self.on_read(index, results, arena, now_ns, out),
            Procedure::Write => self.on_write(index, results, arena, now_ns, out),
            Procedure::Commit => self.on_commit(index, results, now_ns, out),
            procedure => {
                let outcome = metadata(procedure, results)?;
                if let (Some(handle), true) = (outcome.handle, slot.into != NONE) {
                    self.objects[slot.into as usize].handle = handle;
                }
                self.finish(index, Ok(outcome.value), now_ns, out);
                Ok(())
            }
        }
    }

    #[inline]
    fn on_read(
        &mut self,
        index: u32,
        results: Reader<'_>,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), CallError> {
        let slot = self.slots.get(index);
        let read = read_head(results, slot.size_bytes)?;
        let size = read.count as usize;
        let mut rest = read.data;
        let data = rest.rest();
        rest.skip(padded(size), "data")?;
        rest.end()?;
        if let Payload::Arena(at) = slot.payload {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let into = at.checked_add(size).and_then(|end| arena.get_mut(at..end));
            // The client checked the arena's length before it polled.
            if let Some(into) = into {
                into.copy_from_slice(&data[..size]);
            }
        }
        self.read_progress(index, (read.count, read.eof), now_ns, out);
        Ok(())
    }

    /// Records that a READ returned `count` bytes. Completes the operation, or requests the
    /// remaining bytes.
    #[inline]
    fn read_progress(
        &mut self,
        index: u32,
        (count, eof): (u32, bool),
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        let slot = self.slots.get_mut(index);
        if count < slot.size_bytes && !eof {
            if count == 0 {
                self.finish(index, Err(CallError::NoProgress), now_ns, out);
            } else {
                self.go_on(index, count, now_ns);
            }
            return;
        }
        slot.done_bytes += count;
        let done = slot.done_bytes;
        self.finish(index, Ok(done), now_ns, out);
    }

    fn on_write(
        &mut self,
        index: u32,
        results: Reader<'_>,
        arena: &[u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), CallError> {
        let slot = self.slots.get(index);
        let answer = written(results, (slot.size_bytes, slot.stability))?;
        if answer.count == 0 {
            return Err(CallError::NoProgress);
        }
        let (entry, first, short) =
            (slot.entry, slot.done_bytes == 0, answer.count < slot.size_bytes);
        self.note_verifier(index, answer.verifier, now_ns);
        if let Some(entry) = entry {
            let entry = self.retain.get_mut(entry);
            entry.mixed |= !first && entry.verifier != answer.verifier;
            entry.unstable |= answer.committed == Stability::Unstable;
            entry.verifier = answer.verifier;
        }
        if short {
            self.go_on(index, answer.count, now_ns);
            return Ok(());
        }
        let slot = self.slots.get_mut(index);
        slot.done_bytes += answer.count;
        let done = slot.done_bytes;
        if slot.owner == Owner::Caller && entry.is_some() {
            self.write_acknowledged(index, arena);
            self.release_held(now_ns);
        }
        self.finish(index, Ok(done), now_ns, out);
        Ok(())
    }

    /// Handles the acknowledgement of all bytes of a WRITE. If the server may still lose the write,
    /// the log keeps its data.
    fn write_acknowledged(&mut self, index: u32, arena: &[u8]) {
        let slot = self.slots.get_mut(index);
        let (Some(entry), Payload::Arena(at)) = (slot.entry.take(), slot.payload) else { return };
        let last_part = u64::from(slot.size_bytes);
        let size = slot.done_bytes as usize;
        let start = (at + last_part) as usize - size;
        match arena.get(start..start + size) {
            Some(data) if self.retain.get(entry).unstable => self.retain.acknowledge(entry, data),
            _ => self.retain.settle(entry),
        }
        self.prune(index);
    }

    /// Sends another call for the remaining part of a short transfer.
    fn go_on(&mut self, index: u32, count: u32, now_ns: u64) {
        self.slots.renew_xid(index);
        let slot = self.slots.get_mut(index);
        slot.done_bytes += count;
        slot.offset_bytes += u64::from(count);
        slot.size_bytes -= count;
        slot.payload = match slot.payload {
            Payload::Arena(at) => Payload::Arena(at + u64::from(count)),
            Payload::Retained(at) => Payload::Retained(at + count as usize),
        };
        self.stats.continuations += 1;
        self.encode_again(index);
        self.enqueue(index, now_ns);
    }

    /// Handles a reply with an error status. The call fails, is sent again, or counts as a success
    /// because an earlier transmission was executed.
    fn refused(&mut self, index: u32, error: CallError, now_ns: u64, out: &mut Vec<Completion>) {
        let slot = self.slots.get_mut(index);
        match error {
            CallError::Status(nfsstat3::NFS3ERR_JUKEBOX) => {
                slot.state = State::Waiting { until_ns: now_ns + self.config.jukebox_retry_ns };
                self.stats.jukebox_retries += 1;
            }
            CallError::Status(status)
                if slot.retransmissions > 0 && says_done_before(slot.procedure, status) =>
            {
                self.stats.replays += 1;
                self.finish(index, Ok(0), now_ns, out);
            }
            error => self.fail(index, error, now_ns, out),
        }
    }

    /// Checks whether the write verifier has changed. Reports each new verifier of a server only
    /// once.
    pub(crate) fn note_verifier(&mut self, index: u32, verifier: [u8; 8], now_ns: u64) {
        let slot = self.slots.get(index);
        let object = &mut self.objects[slot.object as usize];
        let before = object.verifier.replace(verifier);
        if before.is_none_or(|before| before == verifier) {
            return;
        }
        let server = &mut self.servers[slot.server.0 as usize];
        if server.verifier.replace(verifier) != Some(verifier) {
            self.stats.event(Event::VerifierChanged { server: slot.server, at_ns: now_ns });
        }
    }
}
