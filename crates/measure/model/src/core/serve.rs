//! Handles the arrival, service and departure of I/Os at stations, for each discipline.

use super::StationId;
use super::program::Step;
use super::sim::{EVENT_STATION, Sim};
use super::station::{Discipline, Door, NONE};
use super::trace::Mark;

impl Sim {
    /// Handles the arrival of a token at a station. This function and all other functions that
    /// every event calls are inlined. When they were not inlined, function calls made up a tenth of
    /// all instructions for an event.
    #[inline(always)]
    pub(super) fn enter(&mut self, index: u32, step: Step) {
        let now_ns = self.now_ns;
        let token = &mut self.tokens[index];
        token.enter_ns = now_ns;
        (token.amount, token.target, token.background) =
            (step.amount, step.target, step.background);
        let station = &mut self.stations[step.target as usize];
        station.account(now_ns);
        station.count_arrival();
        match &mut station.discipline {
            Discipline::Fcfs { .. } | Discipline::Disordered { .. } => {
                if station.busy < station.servers {
                    station.busy += 1;
                    token.start_ns = now_ns;
                    self.events.push(now_ns + station.service_ns(step.amount), index);
                } else {
                    self.queue(index, step);
                }
            }
            Discipline::Disk(arm) => {
                let write = step.extra & crate::core::program::DISK_WRITE != 0;
                let address = step.extra & !crate::core::program::DISK_WRITE;
                arm.queue(index, address, step.amount, write, step.background, now_ns);
                if station.busy == 0 {
                    station.busy = 1;
                    self.start_disk(step.target);
                }
            }
            Discipline::Delay => {
                token.start_ns = now_ns;
                station.busy += 1;
                self.events.push(now_ns + step.amount, index);
            }
            Discipline::Sharing(_)
            | Discipline::Bucket { .. }
            | Discipline::Doors { .. }
            | Discipline::Gate { .. } => self.enter_otherwise(index, step),
        }
    }

    /// Handles the arrival of a token at a station that is not a queue. Models have few such
    /// stations, so this code is separate from the hot path.
    #[inline(never)]
    fn enter_otherwise(&mut self, index: u32, step: Step) {
        let now_ns = self.now_ns;
        let token = &mut self.tokens[index];
        let station = &mut self.stations[step.target as usize];
        let demand_ns = station.service_ns(step.amount);
        match &mut station.discipline {
            Discipline::Sharing(sharing) => {
                token.start_ns = now_ns;
                sharing.enter(now_ns, station.servers, index, demand_ns);
                self.plan_shared(step.target);
            }
            Discipline::Bucket { ns_per_token, burst_ns, theoretical_ns } => {
                let cost_ns = step.amount as f64 * *ns_per_token;
                let pass_ns = (*theoretical_ns - (*burst_ns - cost_ns)).max(now_ns as f64);
                *theoretical_ns = theoretical_ns.max(pass_ns) + cost_ns;
                let at_ns = libm::ceil(pass_ns) as u64;
                token.start_ns = at_ns;
                self.events.push(at_ns, index);
            }
            Discipline::Doors { doors } => match doors.get_mut(step.amount as usize) {
                Some(door) if door.is_closed => door.waiting.push(index),
                _ => {
                    token.start_ns = now_ns;
                    self.leave(index);
                    self.ready.push(index);
                }
            },
            Discipline::Gate { free, waiting, .. } => {
                if waiting.is_empty() && *free >= step.amount {
                    *free -= step.amount;
                    token.start_ns = now_ns;
                    self.leave(index);
                    self.ready.push(index);
                } else {
                    waiting.push_back((index, step.amount));
                }
            }
            _ => {}
        }
    }

    /// Queues a token that arrived while all servers were busy.
    #[inline(always)]
    fn queue(&mut self, index: u32, step: Step) {
        let station = &mut self.stations[step.target as usize];
        if let Discipline::Disordered { waiting, .. } = &mut station.discipline {
            waiting.push_back(index);
            return;
        }
        self.tokens[index].next = NONE;
        let fifo = if step.background { &mut station.background } else { &mut station.foreground };
        if fifo.tail == NONE {
            fifo.head = index;
        } else {
            self.tokens[fifo.tail].next = index;
        }
        fifo.tail = index;
    }

    /// Removes the next token to serve from the queue.
    #[inline(always)]
    fn dequeue(&mut self, target: u32) -> Option<u32> {
        let station = &mut self.stations[target as usize];
        let background_every = match &mut station.discipline {
            Discipline::Disordered { waiting, random_share, stream } => {
                if waiting.len() > 1 && stream.chance(*random_share) {
                    let at = stream.below(waiting.len() as u64) as usize;
                    return waiting.remove(at);
                }
                return waiting.pop_front();
            }
            Discipline::Fcfs { background_every } => *background_every,
            _ => return None,
        };
        let due = background_every != 0 && station.since_background >= background_every;
        let take_background =
            station.background.head != NONE && (due || station.foreground.head == NONE);
        let fifo = if take_background {
            station.since_background = 0;
            &mut station.background
        } else {
            station.since_background = station.since_background.saturating_add(1);
            &mut station.foreground
        };
        let index = fifo.head;
        if index == NONE {
            return None;
        }
        fifo.head = self.tokens[index].next;
        if fifo.head == NONE {
            fifo.tail = NONE;
        }
        Some(index)
    }

    /// Handles the end of a service, or the end of a wait at a delay or bucket.
    #[inline(always)]
    pub(super) fn served(&mut self, index: u32) {
        let now_ns = self.now_ns;
        let target = self.leave(index);
        let amount = self.tokens[index].amount;
        let station = &mut self.stations[target as usize];
        match station.discipline {
            Discipline::Fcfs { .. } | Discipline::Disordered { .. } => match self.dequeue(target) {
                Some(next) => {
                    let token = &mut self.tokens[next];
                    token.start_ns = now_ns;
                    let service_ns = self.stations[target as usize].service_ns(token.amount);
                    self.events.push(now_ns + service_ns, next);
                }
                None => self.stations[target as usize].busy -= 1,
            },
            Discipline::Disk(_) => self.start_disk(target),
            Discipline::Delay => station.busy -= 1,
            // A bucket has no server. It counts the time in which the passed tokens accumulate.
            Discipline::Bucket { ns_per_token, .. } => {
                station.stats.busy_ns += (amount as f64 * ns_per_token) as u64;
            }
            _ => {}
        }
    }

    /// Starts the disk's next command if a command waits.
    fn start_disk(&mut self, target: u32) {
        let station = &mut self.stations[target as usize];
        let Discipline::Disk(arm) = &mut station.discipline else { return };
        match arm.start_next(self.now_ns) {
            Some((index, demand_ns)) => {
                let service_ns = station.service_ns(demand_ns);
                if let Discipline::Disk(arm) = &mut station.discipline {
                    arm.delay_end(service_ns - demand_ns);
                }
                self.tokens[index].start_ns = self.now_ns;
                self.events.push(self.now_ns + service_ns, index);
            }
            None => station.busy = 0,
        }
    }

    /// Handles a possible departure from a processor-sharing station.
    pub(super) fn shared(&mut self, target: u32) {
        let now_ns = self.now_ns;
        let station = &mut self.stations[target as usize];
        let Discipline::Sharing(sharing) = &mut station.discipline else { return };
        // If a token arrived after this event was scheduled, the departure is later than scheduled,
        // and another event is scheduled for the departure.
        if sharing.next_ns(station.servers).is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        if let Some(index) = sharing.leave(now_ns, station.servers) {
            self.leave(index);
            self.ready.push(index);
        }
        self.plan_shared(target);
    }

    fn plan_shared(&mut self, target: u32) {
        let station = &mut self.stations[target as usize];
        let Discipline::Sharing(sharing) = &station.discipline else { return };
        station.busy = station.servers.min(station.customers);
        if let Some(due_ns) = sharing.next_ns(station.servers) {
            self.events.push(due_ns, EVENT_STATION | target);
        }
    }

    /// Counts a token's departure and continues its program. Returns the station that the token
    /// left.
    #[inline(always)]
    fn leave(&mut self, index: u32) -> u32 {
        let now_ns = self.now_ns;
        let token = &mut self.tokens[index];
        let station = &mut self.stations[token.target as usize];
        station.account(now_ns);
        station.count_departure(now_ns, token.enter_ns, token.start_ns, token.background);
        token.pc += 1;
        if token.traced {
            self.mark(index);
        }
        self.tokens[index].target
    }

    /// Records the times of a visit if its token is traced.
    #[cold]
    fn mark(&mut self, index: u32) {
        let token = &self.tokens[index];
        let mark = Mark { enter_ns: token.enter_ns, start_ns: token.start_ns, end_ns: self.now_ns };
        self.slots[token.io].marks[token.pc as usize - 1] = mark;
    }

    /// Returns tokens to a gate, and admits the I/Os that wait at the gate, in the gate's order.
    pub(super) fn give(&mut self, target: u32, amount: u64) {
        let now_ns = self.now_ns;
        let mut back = amount;
        loop {
            let station = &mut self.stations[target as usize];
            let index = match &mut station.discipline {
                Discipline::Gate { free, waiting, random } => {
                    *free += std::mem::take(&mut back);
                    let at = match random {
                        Some(stream) => stream.below(waiting.len() as u64) as usize,
                        None => 0,
                    };
                    match waiting.get(at) {
                        Some(&(index, need)) if need <= *free => {
                            *free -= need;
                            waiting.remove(at);
                            index
                        }
                        _ => return,
                    }
                }
                Discipline::Doors { doors } => {
                    let Some(door) = doors.get_mut(amount as usize) else { return };
                    match door.waiting.pop() {
                        Some(index) => index,
                        None => {
                            door.is_closed = false;
                            return;
                        }
                    }
                }
                _ => return,
            };
            self.tokens[index].start_ns = now_ns;
            self.leave(index);
            self.ready.push(index);
        }
    }

    /// Closes a door. Tokens that arrive at the door wait until a program opens it. Memory is
    /// allocated for all door numbers up to the largest, so the numbers should be small.
    pub fn close(&mut self, doors: StationId, door: u64) {
        if let Discipline::Doors { doors } = &mut self.stations[doors.0 as usize].discipline {
            let number = door as usize;
            if doors.len() <= number {
                doors.resize_with(number + 1, Door::default);
            }
            doors[number].is_closed = true;
        }
    }
}
