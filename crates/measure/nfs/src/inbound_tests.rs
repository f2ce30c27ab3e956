use super::*;
use proptest::prelude::*;

/// Encodes records in fragments of these sizes.
fn encode(records: &[(Vec<u8>, Vec<usize>)]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (record, cuts) in records {
        let mut rest = &record[..];
        for cut in cuts {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            wire.extend_from_slice(&(now.len() as u32).to_be_bytes());
            wire.extend_from_slice(now);
            rest = later;
        }
        wire.extend_from_slice(&(rest.len() as u32 | LAST_FRAGMENT).to_be_bytes());
        wire.extend_from_slice(rest);
    }
    wire
}

/// Passes `wire` in pieces and returns the records. If `stream` is true, the payload of long
/// records is written to the arena. The first 100 bytes of a long record are its head, and the last
/// 2 bytes are padding.
fn decode(wire: &[u8], pieces: &[usize], limit: usize, stream: bool) -> Vec<Vec<u8>> {
    let mut inbound = Inbound::new(limit);
    let mut arena = vec![0u8; limit];
    let mut records = Vec::new();
    let mut pending: Option<(Vec<u8>, usize)> = None;
    let (mut at, mut piece) = (0, 0);
    loop {
        loop {
            match inbound.step().unwrap() {
                InboundStep::More => break,
                InboundStep::Record(record) => records.push(record.to_vec()),
                InboundStep::Head { head, record_bytes } if stream => {
                    let head = head[..100].to_vec();
                    let payload = record_bytes - 102;
                    inbound.stream(100, (7, payload), 2, &mut arena);
                    pending = Some((head, payload));
                }
                InboundStep::Head { record_bytes, .. } => inbound.buffer_it(record_bytes).unwrap(),
                InboundStep::Streamed => {
                    let (mut record, payload) = pending.take().unwrap();
                    record.extend_from_slice(&arena[7..7 + payload]);
                    record.extend_from_slice(&[0xee; 2]);
                    records.push(record);
                }
            }
        }
        if at == wire.len() {
            return records;
        }
        let size = pieces.get(piece % pieces.len().max(1)).copied().unwrap_or(1).max(1);
        piece += 1;
        let end = (at + size).min(wire.len());
        at += inbound.feed(&wire[at..end], &mut arena);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_survive_any_fragments_and_any_arrival(
        records in proptest::collection::vec(
            (
                proptest::collection::vec(any::<u8>(), 0..30_000),
                proptest::collection::vec(0usize..9_000, 0..4),
            ),
            1..8,
        ),
        pieces in proptest::collection::vec(1usize..70_000, 1..8),
    ) {
        let got = decode(&encode(&records), &pieces, 40_000, false);
        let sent: Vec<_> = records.into_iter().map(|(record, _)| record).collect();
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn long_records_are_streamed_whole(
        sizes in proptest::collection::vec(600usize..600_000, 1..5),
        pieces in proptest::collection::vec(1usize..300_000, 1..6),
    ) {
        let records: Vec<(Vec<u8>, Vec<usize>)> = sizes
            .iter()
            .map(|size| {
                let mut record: Vec<u8> = (0..*size).map(|i| (i * 31 % 251) as u8).collect();
                let end = record.len();
                record[end - 2..].fill(0xee);
                (record, vec![])
            })
            .collect();
        let got = decode(&encode(&records), &pieces, 700_000, true);
        let sent: Vec<_> = records.into_iter().map(|(record, _)| record).collect();
        prop_assert_eq!(got, sent);
    }
}

#[test]
fn an_oversized_record_is_refused_by_its_mark_alone() {
    let mut inbound = Inbound::new(1000);
    inbound.feed(&(1001 | LAST_FRAGMENT).to_be_bytes(), &mut []);
    let expected = Violation::Oversized { record_bytes: 1001, limit_bytes: 1000 };
    assert_eq!(inbound.step(), Err(expected));
}

#[test]
fn fragments_that_add_up_to_too_much_are_refused() {
    let mut inbound = Inbound::new(1000);
    let mut wire = 600u32.to_be_bytes().to_vec();
    wire.extend_from_slice(&[1; 600]);
    wire.extend_from_slice(&(401 | LAST_FRAGMENT).to_be_bytes());
    inbound.feed(&wire, &mut []);
    assert!(matches!(inbound.step(), Err(Violation::Oversized { record_bytes: 1001, .. })));
}

#[test]
fn endless_empty_fragments_are_refused_and_use_no_memory() {
    let mut inbound = Inbound::new(1 << 20);
    let before = inbound.memory_bytes();
    let mut fragments = 0;
    let error = loop {
        inbound.feed(&[0; 4], &mut []);
        fragments += 1;
        if let Err(error) = inbound.step() {
            break error;
        }
    };
    assert_eq!(error, Violation::TooManyFragments { limit: FRAGMENTS_MAX });
    assert_eq!(fragments, FRAGMENTS_MAX + 1);
    assert_eq!(inbound.memory_bytes(), before);
}

#[test]
fn memory_stays_within_the_limit_while_fragments_trickle() {
    let mut inbound = Inbound::new(100_000);
    for _ in 0..99 {
        inbound.feed(&1000u32.to_be_bytes(), &mut []);
        inbound.feed(&[7; 1000], &mut []);
        assert_eq!(inbound.step(), Ok(InboundStep::More));
    }
    assert!(inbound.memory_bytes() <= BUFFER_BYTES + 2 * 100_000);
}
