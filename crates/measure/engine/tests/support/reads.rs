//! Stepped workload that always has the same number of reads in flight.

use plimsoll_workload::step::{
    Arena, Class, ClassGroup, Completion, FileSpec, Io, IoKind, StepWorkload, Wait,
};

pub struct Reads {
    depth: usize,
    free: Vec<u64>,
    stopped: bool,
    classes: [Class; 1],
}

impl Reads {
    pub fn new(depth: u32) -> Self {
        let class = Class {
            name: "read".to_owned(),
            group: ClassGroup::Transactional,
            is_read: true,
            instance: 0,
        };
        let free = (0..u64::from(depth)).collect();
        Self { depth: depth as usize, free, stopped: false, classes: [class] }
    }
}

impl StepWorkload for Reads {
    fn files(&self) -> &[FileSpec] {
        &[]
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn arena_size_bytes(&self) -> u64 {
        0
    }

    fn depth_max(&self) -> usize {
        self.depth
    }

    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        _: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait {
        self.free.extend(completions.iter().map(|completion| completion.token));
        if self.stopped {
            return if self.free.len() == self.depth { Wait::Done } else { Wait::Completion };
        }
        out.extend(self.free.drain(..).map(|token| Io {
            token,
            kind: IoKind::Read,
            file: 0,
            class: 0,
            offset_bytes: 0,
            size_bytes: 4096,
            buffer_offset_bytes: token * 4096,
            intended_ns: now_ns,
        }));
        Wait::Completion
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn counters(&self, _: &mut dyn FnMut(&'static str, u32, u64)) {}
}
