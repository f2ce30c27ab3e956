#![allow(clippy::unwrap_used)]
use super::*;

// Modelled on `XmlResultParser.cpp` of diskspd 2.2.
const XML: &str = r#"<Results>
<System><ComputerName>x</ComputerName><Tool><Version>2.2.0</Version></Tool></System>
<Profile><TimeSpans><TimeSpan><Duration>10</Duration><Targets><Target><Path>f</Path><BlockSize>4096</BlockSize>
<DisableOSCache>true</DisableOSCache><RequestCount>8</RequestCount><Random>4096</Random><WriteRatio>0</WriteRatio>
</Target></Targets></TimeSpan></TimeSpans></Profile>
<TimeSpan><TestTimeSeconds>10.00</TestTimeSeconds><ThreadCount>1</ThreadCount>
<Latency><AverageReadMilliseconds>0.800</AverageReadMilliseconds><ReadLatencyStdev>0.100</ReadLatencyStdev>
<Bucket><Percentile>0</Percentile><ReadMilliseconds>0.050</ReadMilliseconds></Bucket>
<Bucket><Percentile>50</Percentile><ReadMilliseconds>0.790</ReadMilliseconds></Bucket>
<Bucket><Percentile>100</Percentile><ReadMilliseconds>9.000</ReadMilliseconds></Bucket></Latency>
<Iops><Bucket SampleMillisecond="1000" Read="10000" Write="0" Total="10000"/><Bucket SampleMillisecond="2000" Read="9990" Write="0"/></Iops>
<Thread><Id>0</Id><Target><Path>f</Path><BytesCount>409600000</BytesCount><IOCount>100000</IOCount>
<ReadBytes>409600000</ReadBytes><ReadCount>100000</ReadCount><WriteBytes>0</WriteBytes><WriteCount>0</WriteCount>
<AverageReadLatencyMilliseconds>0.800</AverageReadLatencyMilliseconds></Target></Thread></TimeSpan></Results>"#;

#[test]
fn xml_is_read_with_its_profile() {
    assert!(is_xml(XML));
    let reported = read_xml(XML, "r.xml").unwrap().remove(0);
    assert_eq!(reported.source.version.as_deref(), Some("2.2.0"));
    let part = &reported.parts[0];
    assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 8.0);
    assert_eq!((part.setting.direct, part.setting.pattern), (Some(true), Some(Pattern::Random)));
    assert_eq!(part.operations[0].count[0].value, 100_000.0);
    assert_eq!(part.operations.len(), 1);
    let total = &reported.parts[1];
    assert_eq!(total.operations[0].latencies[0].percentiles[0].quantile, 0.5);
    assert_eq!(total.operations[0].latencies[0].max_ns.as_ref().unwrap().value, 9e6);
    assert_eq!(total.series[0].points.len(), 2);
    assert!(read_xml(&XML[..900], "r").unwrap_err().contains("cut off"));
    assert!(read_xml("<Results><a></Results>", "r").is_err());
}

const TEXT: &str = "Command Line: diskspd -b4K\n\nInput parameters:\n\ttimespan:   1\n\tduration: 10s\n\tpath: 'f'\n\
        \t\tthink time: 0ms\n\t\tsoftware cache disabled\n\t\tblock size: 4KiB\n\t\tusing random I/O (alignment: 4KiB)\n\
        \t\tnumber of outstanding I/O operations per thread: 8\n\nResults for timespan 1:\n***\n\nactual test time:\t\
        10.00s\nthread count:\t\t1\n\nTotal IO\nthread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  \
        AvgLat  | LatStdDev |  file\n---\n     0 |       409600000 |       100000 |      39.06 |   10000.00 |    0.800 \
        |     0.100 | f (1GiB)\n---\ntotal:         409600000 |       100000 |      39.06 |   10000.00 |    0.800 |     \
        0.100\n\nRead IO\nthread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  \
        file\n---\n     0 |       409600000 |       100000 |      39.06 |   10000.00 |    0.800 |     0.100 | f (1GiB)\n\
        ---\ntotal:         409600000 |       100000 |      39.06 |   10000.00 |    0.800 |     0.100\n\nWrite IO\nthread \
        |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\n---\n     0 |         \
        0 |            0 |       0.00 |       0.00 |    0.000 |       N/A | f (1GiB)\n\nTotal latency distribution:\n  \
        %-ile |  Read (ms) | Write (ms) | Total (ms)\n---\n    min |      0.050 |        N/A |      0.050\n   50th |      \
        0.790 |        N/A |      0.790\n3-nines |      2.000 |        N/A |      2.000\n    max |      9.000 |        N/A \
        |      9.000\n";

#[test]
fn text_is_read_with_its_profile() {
    assert!(is_text(TEXT));
    let reported = read_text(TEXT, "r.txt").unwrap().remove(0);
    let part = &reported.parts[0];
    assert_eq!(part.rank.as_deref(), Some("thread 0"));
    assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 8.0);
    assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 4096.0);
    assert_eq!(part.operations[0].rate_per_s[0].value, 10_000.0);
    let total = &reported.parts[1];
    assert!(total.is_total);
    let latency = &total.operations[0].latencies[0];
    assert_eq!(latency.percentiles.iter().map(|p| p.quantile).collect::<Vec<_>>(), [0.5, 0.999]);
    assert_eq!(latency.max_ns.as_ref().unwrap().value, 9e6);
    assert!(reported.parts.iter().all(|part| part.operations.len() == 1), "of reads only");
    assert!(read_text("Command Line: x\n", "r").is_err());
}

fn impossible(reported: &ToolResult) -> Vec<String> {
    use plimsoll_judge::conservation::{DeclaredFacts, Severity, audit};
    let findings = audit(reported, &DeclaredFacts::default()).findings;
    let impossible = findings.into_iter().filter(|f| f.severity == Severity::Impossible);
    impossible.map(|finding| finding.says).collect()
}

#[test]
fn reads_and_writes_add_up_to_the_first_table() {
    // The shape of diskspd 2.2 with a mix of reads and writes.
    let (header, rule) = (
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\n",
        "---------------------------------------\n",
    );
    let table = |name: &str, figures: &str| {
        format!(
            "{name} IO\n{header}{rule}     0 |{figures} | f (1GiB)\n{rule}total:  {figures}\n\n"
        )
    };
    let text = [
        "actual test time:\t10.00s\nthread count:\t\t1\n\n".to_owned(),
        table("Total", " 409600000 | 100000 | 39.06 | 10000.00 | 0.800 | 0.100"),
        table("Read", " 307200000 | 75000 | 29.30 | 7500.00 | 0.700 | 0.500"),
        table("Write", " 102400000 | 25000 | 9.77 | 2500.00 | 1.100 | 0.500"),
        "total:\n  %-ile |  Read (ms) | Write (ms) | Total (ms)\n    min |      0.050 |      0.060 |      0.050\n   \
         99th |      2.100 |      2.300 |      2.200\n    max |      9.000 |      8.000 |      9.000\n"
            .to_owned(),
    ]
    .concat();
    let audited = |text: &str| impossible(&read_text(text, "r.txt").unwrap()[0]);
    assert_eq!(audited(&text), [""; 0]);
    for (from, to, word) in [
        ("total:   409600000 | 100000", "total:   409600000 | 200000", "operations of reads"),
        ("| 39.06 | 10000.00 | 0.800", "| 39.06 | 20000.00 | 0.800", "rate of reads"),
        ("| 39.06 |", "| 78.12 |", "bandwidth of reads"),
        ("10000.00 | 0.800", "10000.00 | 0.300", "mean latency"),
        ("      2.200", "      6.200", "p99 of reads"),
        ("      9.000\n", "      8.000\n", "maximum latency"),
    ] {
        assert!(text.contains(from), "{from}");
        let says = audited(&text.replace(from, to)).join("; ");
        assert!(says.contains(word), "{word}: {says}");
    }
}

#[test]
fn xml_states_reads_and_writes_together_as_well() {
    let write = "<WriteBytes>0</WriteBytes><WriteCount>0</WriteCount>";
    let both = XML.replace(
        write,
        "<WriteBytes>4096</WriteBytes><WriteCount>1</WriteCount><AverageLatencyMilliseconds>0.800</AverageLatencyMilliseconds>\
         <AverageWriteLatencyMilliseconds>0.900</AverageWriteLatencyMilliseconds>",
    );
    let total = |text: &str, bytes: &str, count: &str| {
        text.replace("<BytesCount>409600000", &format!("<BytesCount>{bytes}"))
            .replace("<IOCount>100000", &format!("<IOCount>{count}"))
            .replace("<Bucket><Percentile>100<", "<AverageTotalMilliseconds>0.800</AverageTotalMilliseconds><Bucket><Percentile>100<")
    };
    let audited = |text: &str| impossible(&read_xml(text, "r.xml").unwrap()[0]);
    assert_eq!(audited(&total(&both, "409604096", "100001")), [""; 0]);
    assert_eq!(audited(&total(&both, "409604096", "200001")).len(), 1);
    assert_eq!(audited(&total(&both, "409600000", "100001")).len(), 1);
    let slower = total(&both, "409604096", "100001").replace("Total", "X").replace(
        "<AverageXMilliseconds>0.800</AverageXMilliseconds>",
        "<AverageTotalMilliseconds>0.300</AverageTotalMilliseconds>",
    );
    assert!(!audited(&slower).is_empty());
}
