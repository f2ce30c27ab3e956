//! Tests that no operation of a mail store under load allocates memory.

use plimsoll_workload::mailbox::{
    Create, DatabaseConfig, DatabaseState, Duplicate, Format, Group, MailboxConfig,
    MemoryGenerationMap, Pace, Phase, PhaseIo, Store,
};
use plimsoll_workload::step::{Arena, Completion, HeapArena, Io, IoKind, StepWorkload, Wait};

/// Files in memory. Every I/O completes in the next step.
struct Files(Vec<Vec<u8>>);

impl Files {
    fn answer(&mut self, io: &Io, arena: &mut HeapArena) {
        let start = io.offset_bytes as usize;
        let range = start..start + io.size_bytes as usize;
        let file = &mut self.0[io.file as usize];
        let Some(buffer) = arena.bytes(io.buffer_offset_bytes, io.size_bytes) else { panic!() };
        match io.kind {
            IoKind::Read => buffer.copy_from_slice(&file[range]),
            IoKind::Write | IoKind::WriteDurable => file[range].copy_from_slice(buffer),
            IoKind::Flush => {}
        }
    }

    /// Runs a machine until it ends, or for `steps` steps. Returns the number of allocations after
    /// step `counted_from`.
    fn run(&mut self, machine: &mut dyn StepWorkload, steps: u64, counted_from: u64) -> u64 {
        let mut arena = HeapArena(vec![0; machine.arena_size_bytes() as usize]);
        let mut out: Vec<Io> = Vec::with_capacity(machine.depth_max());
        let mut completions: Vec<Completion> = Vec::with_capacity(machine.depth_max());
        let (mut now_ns, mut allocations) = (0, 0);
        for step in 0..steps {
            out.clear();
            let mut wait = Wait::Done;
            let counted = allocation_counter::measure(|| {
                wait = machine.step(now_ns, &completions, &mut arena, &mut out);
            });
            if step >= counted_from {
                allocations += counted.count_total;
            }
            if wait == Wait::Done {
                break;
            }
            completions.clear();
            let submitted_ns = now_ns;
            now_ns = match wait {
                Wait::Until(at) if out.is_empty() => at,
                _ => now_ns + 200_000,
            };
            for io in &out {
                self.answer(io, &mut arena);
                let (token, result) = (io.token, Ok(io.size_bytes));
                completions.push(Completion { token, result, submitted_ns, completed_ns: now_ns });
            }
        }
        allocations
    }
}

#[test]
fn a_loaded_store_allocates_nothing() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![0u8; 64])));
    assert_eq!(counted.count_total, 1, "the counter works");
    for pace in [Pace::Free { think_ns: 50_000 }, Pace::Target { rate_ios_per_s: 20_000.0 }] {
        let databases = (0..2).map(|id| DatabaseConfig::new(id, 0, 1, 400)).collect();
        let config = MailboxConfig {
            cache_bytes: 8 << 20,
            checkpoint_depth_bytes: 1 << 20,
            checkpoint_step_bytes: 1 << 18,
            log_files: 6,
            copies: 2,
            maintenance_interval_ns: 1_000_000,
            pace,
            ..MailboxConfig::new(1, 2, databases, 8)
        };
        let state = |d: &DatabaseConfig| {
            DatabaseState::new(d.clone(), Box::new(MemoryGenerationMap::new(d.pages_max)))
        };
        let states = config.databases.iter().map(state).collect();
        let store = Store::new(config, states).unwrap();
        let sizes = store.files().iter().map(|file| vec![0; file.size_bytes as usize]);
        let mut files = Files(sizes.collect());
        let io = PhaseIo::default();
        let mut create = Create::new(store, io);
        files.run(&mut create, u64::MAX, u64::MAX);
        let mut format = Format::new(Box::new(create).into_store(), io);
        files.run(&mut format, u64::MAX, u64::MAX);
        let mut duplicate = Duplicate::new(Box::new(format).into_store(), io);
        files.run(&mut duplicate, u64::MAX, u64::MAX);
        let store = Box::new(duplicate).into_store();
        let mut group = Group::new(store, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        let allocations = files.run(&mut group, 4_000, 100);
        assert_eq!(group.poison(), None);
        assert!(group.operations() > 5_000, "{} operations", group.operations());
        assert_eq!(allocations, 0, "{pace:?}");
    }
}
