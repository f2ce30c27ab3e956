//! Processes several items in parallel, on all cores. The results are in the order of the items,
//! and do not depend on the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies a function to each item.
pub(crate) fn side_by_side<T: Sync, R: Send>(things: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(at) else { return done };
            done.push((at, of(thing)));
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others = 1..cores.min(things.len());
        let threads: Vec<_> = others.map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for thread in threads {
            match thread.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_things() {
        let things: Vec<u32> = (0..1000).collect();
        let squares: Vec<u32> = things.iter().map(|x| x * x).collect();
        assert_eq!(side_by_side(&things, |x| x * x), squares);
        assert_eq!(side_by_side(&[] as &[u32], |x| *x), Vec::<u32>::new());
    }
}
