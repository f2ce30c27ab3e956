#![allow(clippy::unwrap_used)]

use std::io::Write as _;

use super::*;

const BLKPARSE: &str = include_str!("../../tests/traces/sample.blkparse");
const IOLOG_V3: &str = include_str!("../../tests/traces/sample.iolog");
const MSR: &str = "128166372003061629,usr,0,Read,10995532800,16384,30123\n128166372016382155,usr,0,Write,2517696,4096,37711\n128166372016382000,usr,1,Read,1024,512,31\n";
const ALIBABA: &str = "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n12,R,350868463616,8192,1577808144360852\n";

const TENCENT: &str = "1538323200,668835600,16,1,2201\n1538323200,741361648,128,1,1063\n1538323201,499958512,8,0,1063\n";
const SPC: &str =
    "2,7733370,8192,W,0.000000\n2,238382,4096,W,0.010000\n1,20314,8192,r,0.02000000000001\n";
const SYSTOR: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n1456749600.000000010,0.000379,R,4,1234432,4096\n1456749600.500000000,0.001,W,6,8192,16384\n1456749601.000000000,0.001,,6,0,0\n";

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn all(bytes: &[u8]) -> Result<(TraceStatistics, Vec<Record>), ImportError> {
    let mut records = Vec::new();
    let account = read(file(bytes).path(), &mut |record| {
        records.push(*record);
        true
    })?;
    Ok((account, records))
}

fn record(at_ns: u64, offset_bytes: u64, size_bytes: u32, is_read: bool) -> Record {
    let operation = if is_read { Operation::Read } else { Operation::Write };
    Record { at_ns, volume: 0, offset_bytes, size_bytes, operation }
}

fn count(records: &[Record], operation: Operation) -> usize {
    records.iter().filter(|record| record.operation == operation).count()
}

#[test]
fn reads_queue_events_of_blkparse() {
    let (account, records) = all(BLKPARSE.as_bytes()).unwrap();
    assert_eq!((account.format, account.stage), (Format::Blkparse, Some(Stage::Queued)));
    // Each operation is read from its queued event, not from its issued or completed event. Sectors
    // have 512 bytes.
    assert_eq!(records[0], record(9_507_758, 223_490 * 512, 8 * 512, false));
    assert_eq!(account.volumes.iter().map(|volume| volume.operations).sum::<u64>(), 5);
    assert_eq!(
        (count(&records, Operation::Read), count(&records, Operation::WriteDurable)),
        (3, 1)
    );
    // One flush is a separate event, and the other flush precedes a write.
    assert_eq!((count(&records, Operation::DataSync), account.flushes), (2, 2));
    let left: Vec<(&str, u64)> = account.left_out.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let expected = [("commands that transfer no data", 1), ("discards", 1)];
    assert_eq!(left, expected);
    assert_eq!(account.unreadable, 0, "{account:?}");
    assert_eq!(account.volumes.len(), 2);
}

#[test]
fn uses_issue_events_if_queue_events_are_missing() {
    let issued: String =
        BLKPARSE.lines().filter(|line| !line.contains(" Q ")).map(|l| format!("{l}\n")).collect();
    let (account, records) = all(issued.as_bytes()).unwrap();
    assert_eq!((account.stage, records.len()), (Some(Stage::Issued), 1));
}

#[test]
fn fio_logs_of_both_versions_have_their_times_in_microseconds() {
    let (account, records) = all(IOLOG_V3.as_bytes()).unwrap();
    assert_eq!(account.format, Format::IologV3);
    assert_eq!(records[0], record(203_000, 1_011_712, 4096, true));
    assert_eq!((records.len(), account.flushes, count(&records, Operation::Sync)), (5, 1, 1));
    assert!(account.left_out.is_empty(), "{:?}", account.left_out);
    assert_eq!(account.volumes[0].name, "/mnt/with blank/f");
    let v2 = "fio version 2 iolog\n/a b add\n/a b open\n/a b read 0 4096\n/a b wait 1500 0\n/a b \
              write 8192 512\n/a b trim 0 4096\n/a b close\n";
    let (account, records) = all(v2.as_bytes()).unwrap();
    assert_eq!(records, [record(0, 0, 4096, true), record(1_500_000, 8192, 512, false)]);
    assert!(account.timed && account.left_out.get("discards") == Some(&1));
    let untimed = "fio version 2 iolog\n/f read 0 4096\n/f read 4096 4096\n";
    assert!(!all(untimed.as_bytes()).unwrap().0.timed);
}

#[test]
fn recognises_msr_and_alibaba_traces() {
    let (account, records) = all(MSR.as_bytes()).unwrap();
    assert_eq!(account.format, Format::Msr);
    assert_eq!(records[0].at_ns, 12_816_637_200_306_162_900);
    let volumes: Vec<&str> = account.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(volumes, ["usr.0", "usr.1"]);
    assert_eq!((records[1].size_bytes, records[1].operation), (4096, Operation::Write));
    // This operation started earlier than the previous record. The reader does not change the
    // order.
    assert!(records[2].at_ns < records[1].at_ns);
    let (account, records) = all(ALIBABA.as_bytes()).unwrap();
    assert_eq!((account.format, account.volumes.len()), (Format::Alibaba, 3));
    assert_eq!(records[1].at_ns, 1_577_808_144_360_813_000);
    let headed = format!("device_id,opcode,offset,length,timestamp\n{ALIBABA}");
    assert_eq!(all(headed.as_bytes()).unwrap().1, records);
}

#[test]
fn a_gzipped_trace_reads_the_same_with_the_files_digest() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(MSR.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let (plain, gzipped) = (all(MSR.as_bytes()).unwrap(), all(&packed).unwrap());
    assert_eq!(plain.1, gzipped.1);
    assert_ne!(plain.0.sha256, gzipped.0.sha256);
    assert_eq!(gzipped.0.file_bytes, packed.len() as u64);
    assert!(opens(&packed) && opens(MSR.as_bytes()) && !opens(b"[global]\nrw=read\n"));
}

#[test]
fn garbage_is_refused_with_a_sentence_and_never_panics() {
    for bytes in
        [&b""[..], b"\n\n", b"hello\nworld\n", &[0xff; 4096], b"a,b,c,d,e\n", b"{\"jobs\": []}"]
    {
        let error = all(bytes).unwrap_err();
        assert!(error.says.contains("no known trace format"), "{error}");
    }
    // The first lines are valid, but other content follows.
    let broken = format!("{MSR}{}", "not a line\n".repeat(40));
    assert!(
        all(broken.as_bytes())
            .unwrap_err()
            .says
            .contains("40 of its 43 lines do not have this format")
    );
    let empty = "fio version 3 iolog\n0 /f add\n1 /f open\n2 /f close\n";
    assert!(all(empty.as_bytes()).unwrap_err().says.contains("no read or write"));
    // The reader counts and skips a long line, truncated numbers, and numbers larger than any
    // device or transfer.
    let long = format!("{MSR}{}\n", "9".repeat(1 << 20));
    assert_eq!(all(format!("{}{long}", MSR.repeat(20)).as_bytes()).unwrap().0.unreadable, 1);
    let huge = format!(
        "{MSR}1,a,0,Read,18446744073709551615,512,1\n2,a,0,Read,0,99999999999,1\n3,a,0,Read,0,0,1\n"
    );
    let (account, records) = all(huge.as_bytes()).unwrap();
    assert_eq!((records.len(), account.left_out.values().sum::<u64>()), (3, 3));
    assert!(read(Path::new("/dev/null"), &mut |_| true).is_err());
    assert!(read(Path::new("/no/such/trace"), &mut |_| true).is_err());
}

proptest::proptest! {
    /// Arbitrary bytes after a valid start do not make the reader panic.
    #[test]
    fn no_bytes_panic(
        head in proptest::sample::select(vec!["", MSR, ALIBABA, BLKPARSE, IOLOG_V3]),
        tail in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400),
    ) {
        let mut bytes = head.as_bytes().to_vec();
        bytes.extend(tail);
        let _ = all(&bytes);
    }

    /// A few changed bytes in a valid trace do not make the reader panic.
    #[test]
    fn no_change_panics(
        text in proptest::sample::select(vec![MSR, ALIBABA, BLKPARSE, IOLOG_V3]),
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()), 1..20),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = all(&bytes);
    }
}

#[test]
fn reads_traces_of_tencent_spc_and_systor() {
    let (account, records) = all(TENCENT.as_bytes()).unwrap();
    assert_eq!((account.format, account.unreadable), (Format::Tencent, 0));
    let first = record(1_538_323_200_000_000_000, 668_835_600 * 512, 16 * 512, false);
    assert_eq!((records[0], records[2].operation), (first, Operation::Read));
    assert_eq!(account.volumes.len(), 2);
    let (account, records) = all(SPC.as_bytes()).unwrap();
    assert_eq!((account.format, account.unreadable), (Format::Spc, 0));
    assert_eq!(records[1], record(10_000_000, 238_382 * 512, 4096, false));
    assert_eq!((records[2].at_ns, records[2].operation), (20_000_000, Operation::Read));
    let (account, records) = all(SYSTOR.as_bytes()).unwrap();
    assert_eq!((account.format, account.unreadable), (Format::Systor, 0));
    assert_eq!(records[0], record(1_456_749_600_000_000_010, 1_234_432, 4096, true));
    assert_eq!((records.len(), account.left_out["operations without a type"]), (2, 1));
}

#[test]
fn a_refusal_names_what_to_do() {
    let says = |bytes: &[u8]| all(bytes).unwrap_err().to_string();
    assert!(says(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2]).contains("zstd -d"));
    assert!(says(b"\x00\x01\x02vscsi").contains("CloudPhysics"));
    assert!(says(b"1000, 45000, 0, 4096, 0\n").contains("Tencent block-trace CSV, SPC CSV"));
}
