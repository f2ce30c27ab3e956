use super::*;

fn starts<P: Pacing>(pacing: &mut P, now_ns: u64) -> Vec<Start> {
    std::iter::from_fn(|| pacing.next(now_ns)).collect()
}

#[test]
fn closed_places_are_ready_when_they_come_back() {
    let mut closed = ClosedLoop::new(&[2, 1], 100);
    let first = starts(&mut closed, 150);
    let who: Vec<_> = first.iter().map(|s| (s.place, s.client, s.intended_ns)).collect();
    assert_eq!(who, [(0, 0, 100), (1, 0, 100), (2, 1, 100)]);
    assert_eq!((closed.due_ns(), closed.next(200)), (None, None));
    closed.completed(1, 300);
    assert_eq!(starts(&mut closed, 300)[0].intended_ns, 300);
    closed.completed(2, 310);
    closed.stop(320);
    assert_eq!(closed.next(400), None);
    closed.completed(0, 330);
    assert_eq!(closed.due_ns(), None);
}

#[test]
fn thinking_places_come_back_later_in_order_of_time() {
    let mut thinking = ThinkTimeLoop::new(&[1, 1], &[1000, 10], 0);
    assert_eq!(starts(&mut thinking, 0).len(), 2);
    thinking.completed(0, 50);
    thinking.completed(1, 60);
    assert_eq!(thinking.due_ns(), Some(70));
    assert_eq!(thinking.next(69), None);
    let start = thinking.next(2000).unwrap();
    assert_eq!((start.client, start.intended_ns), (1, 70));
    assert_eq!(thinking.next(2000).unwrap().intended_ns, 1050);
}

#[test]
fn a_barrier_waits_for_the_whole_batch_of_one_client() {
    let mut barrier = BatchBarrier::new(&[2, 1], 0, 0);
    assert_eq!(starts(&mut barrier, 0).len(), 3);
    barrier.completed(0, 10);
    assert_eq!(barrier.due_ns(), None);
    barrier.completed(2, 20);
    let next = starts(&mut barrier, 20);
    assert_eq!((next.len(), next[0].client, next[0].place), (1, 1, 2));
    barrier.completed(1, 30);
    let next = starts(&mut barrier, 30);
    assert_eq!(next.len(), 2);
    assert!(next.iter().all(|start| start.client == 0 && start.intended_ns == 30));
}

#[test]
fn a_barrier_with_a_think_time_pauses_after_each_batch() {
    let mut barrier = BatchBarrier::new(&[2, 1], 50, 0);
    assert!(barrier.is_scheduled());
    assert_eq!(starts(&mut barrier, 0).len(), 3);
    for (place, now_ns) in [(0, 10), (2, 20), (1, 30)] {
        barrier.completed(place, now_ns);
    }
    assert_eq!((barrier.due_ns(), starts(&mut barrier, 69).len()), (Some(70), 0));
    let next = starts(&mut barrier, 75);
    assert_eq!(next.iter().map(|s| (s.client, s.intended_ns)).collect::<Vec<_>>(), [(1, 70)]);
    let next = starts(&mut barrier, 80);
    assert!(next.len() == 2 && next.iter().all(|s| (s.client, s.intended_ns) == (0, 80)));
}

#[test]
fn open_arrivals_keep_their_times_when_places_run_out() {
    let arrivals = vec![vec![10u64, 20, 30, 40].into_iter(), vec![15, 25].into_iter()];
    let mut open = OpenLoop::new(arrivals, 2, 1000);
    assert_eq!(open.due_ns(), Some(1010));
    let first = starts(&mut open, 1022);
    let who: Vec<_> = first.iter().map(|s| (s.client, s.intended_ns, s.held)).collect();
    assert_eq!(who, [(0, 1010, false), (1, 1015, false)]);
    assert_eq!(open.due_ns(), None, "without a place nothing is due");
    open.completed(first[0].place, 1100);
    let next = open.next(1101).unwrap();
    assert_eq!((next.client, next.intended_ns, next.held), (0, 1020, true));
    open.completed(next.place, 1110);
    open.stop(1030);
    assert_eq!(open.next(1111).unwrap().intended_ns, 1025);
    open.never_started(&mut |_, _| panic!("1030 and 1040 are after the stop"));
}

#[test]
fn open_counts_what_it_never_started() {
    let mut open = OpenLoop::new(vec![0u64.., 5..], 1, 0);
    open.next(3).unwrap();
    open.stop(10);
    let mut left = Vec::new();
    open.never_started(&mut |client, at_ns| left.push((client, at_ns)));
    left.sort_unstable();
    let all = (1..10).map(|at_ns| (0, at_ns)).chain((5..10).map(|at_ns| (1, at_ns)));
    assert_eq!(left, all.collect::<Vec<_>>());
}

#[test]
fn open_clients_come_in_order_of_time() {
    let arrivals: Vec<_> = (1..8u64).map(|step| (0..).map(move |k| k * step * 7 + step)).collect();
    let mut open = OpenLoop::new(arrivals, 1000, 0);
    let all = starts(&mut open, 300);
    assert!(all.windows(2).all(|pair| pair[0].intended_ns <= pair[1].intended_ns));
    let want: u64 = (1..8).map(|step| (300 - step) / (step * 7) + 1).sum();
    assert_eq!(all.len() as u64, want);
}

#[test]
fn a_cap_gives_one_start_per_turn_and_catches_up_only_so_far() {
    let every_100 = (0u64..).map(|k| k * 100);
    let mut capped = RateCap::new(ClosedLoop::new(&[4], 0), every_100, 0, 250);
    assert_eq!(starts(&mut capped, 0).len(), 1);
    assert_eq!((capped.due_ns(), capped.next(99)), (Some(100), None));
    let two = starts(&mut capped, 210);
    assert_eq!(two.iter().map(|s| s.intended_ns).collect::<Vec<_>>(), [100, 200]);
    for place in 0..3 {
        capped.completed(place, 1000);
    }
    let after = starts(&mut capped, 1000);
    let intended: Vec<_> = after.iter().map(|s| s.intended_ns).collect();
    assert_eq!(intended, [800, 1000, 1000], "of 300 to 1000, turns older than 250 ns are gone");
}

#[test]
fn every_place_gets_its_turn_where_not_all_can_start() {
    // Each operation completes before the next is due, so a single slot would be enough for this
    // rate. The turns must still be shared.
    let every_100 = (0u64..).map(|k| k * 100);
    let mut capped = RateCap::new(ClosedLoop::new(&[1, 1, 2], 0), every_100, 0, 0);
    let mut barrier = BatchBarrier::new(&[1, 1, 1, 1], 0, 0);
    let (mut by_client, mut by_barrier) = ([0; 3], [0; 4]);
    for turn in 0..400u64 {
        let start = capped.next(turn * 100).unwrap();
        by_client[start.client as usize] += 1;
        capped.completed(start.place, turn * 100 + 50);
        let start = barrier.next(turn).unwrap();
        by_barrier[start.client as usize] += 1;
        barrier.completed(start.place, turn);
    }
    assert_eq!(by_client, [100, 100, 200]);
    assert_eq!(by_barrier, [100; 4]);
}

#[test]
fn ended_clients_start_nothing_more() {
    let mut open = OpenLoop::new(vec![0u64.., 0..], 4, 0);
    let first = open.next(0).unwrap();
    open.retire(first);
    assert!(starts(&mut open, 100).iter().all(|start| start.client != first.client));
    let mut barrier = BatchBarrier::new(&[2], 0, 0);
    let start = barrier.next(0).unwrap();
    barrier.retire(start);
    let start = barrier.next(0).unwrap();
    barrier.retire(start);
    assert_eq!(barrier.due_ns(), None);
}
