//! Detects the format of a file from its first and last bytes.

use crate::{
    diskspd, elbencho, elbencho_live, fio, io500, ioping, ior, iozone, jetstress, mdtest,
    pgbench_log, sysbench, table, terminal, text, vdbench, vector_db, warp, warp_csv, warp_text,
    yabs,
};

/// Known format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// fio's JSON, alone or inside the JSON of kubestr.
    FioJson,
    /// fio's terse output.
    FioTerse,
    /// fio's text output.
    FioText,
    /// fio's interval or latency log.
    FioLog,
    /// diskspd's XML output.
    DiskspdXml,
    /// diskspd's text output.
    DiskspdText,
    /// elbencho's CSV.
    ElbenchoCsv,
    /// elbencho's JSON.
    ElbenchoJson,
    /// elbencho's terminal table.
    ElbenchoText,
    /// elbencho's live statistics.
    ElbenchoLive,
    /// ioping's statistics.
    Ioping,
    /// iozone's report.
    Iozone,
    /// IOR's table of iterations, as text or CSV.
    Ior,
    /// IO500's `result.txt`.
    Io500Result,
    /// IO500's `result_summary.txt`.
    Io500Summary,
    /// IO500: table with the times of a phase on each rank.
    Io500Ranks,
    /// MLPerf Storage: summary of a run.
    MlperfSummary,
    /// MLPerf Storage: times of the epochs of a run.
    MlperfEpochs,
    /// MLPerf Storage: output of a single rank.
    MlperfRank,
    /// MLPerf Storage: report on several runs.
    MlperfReport,
    /// KV-cache benchmark: JSON.
    KvCache,
    /// KV-cache benchmark: summary of all ranks.
    KvCacheRun,
    /// warp's JSON.
    Warp,
    /// Output of `warp analyze`.
    WarpText,
    /// Vector-database benchmark: JSON.
    VectorDb,
    /// warp's CSV with a row for each segment.
    WarpSegments,
    /// warp's CSV with a row for each operation.
    WarpOperations,
    /// mdtest's text output.
    Mdtest,
    /// vdbench's flat file.
    VdbenchFlat,
    /// vdbench's summary or terminal output.
    VdbenchSummary,
    /// Jetstress's HTML report.
    Jetstress,
    /// Jetstress's XML report.
    JetstressXml,
    /// sysbench's fileio report.
    Sysbench,
    /// pgbench's report.
    Pgbench,
    /// pgbench's transaction log.
    PgbenchLog,
    /// Output of `dd`.
    Dd,
    /// kubestr's text output of fio.
    Kubestr,
    /// YABS's table of fio's rates.
    Yabs,
    /// Hand-made table.
    Table,
}

impl Format {
    /// Returns the name of the format that users see.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::FioJson => "fio JSON",
            Self::FioTerse => "fio terse",
            Self::FioText => "fio text",
            Self::FioLog => "fio log",
            Self::DiskspdXml => "diskspd XML",
            Self::DiskspdText => "diskspd text",
            Self::ElbenchoCsv => "elbencho CSV",
            Self::ElbenchoJson => "elbencho JSON",
            Self::ElbenchoText => "elbencho text",
            Self::ElbenchoLive => "elbencho live CSV",
            Self::Ioping => "ioping",
            Self::Iozone => "iozone",
            Self::Ior => "IOR",
            Self::Io500Result => "IO500 result",
            Self::Io500Summary => "IO500 summary",
            Self::Io500Ranks => "IO500 ranks",
            Self::MlperfSummary => "MLPerf Storage summary",
            Self::MlperfEpochs => "MLPerf Storage epochs",
            Self::MlperfRank => "MLPerf Storage rank",
            Self::MlperfReport => "MLPerf Storage report",
            Self::KvCache => "KV-cache JSON",
            Self::KvCacheRun => "KV-cache run summary",
            Self::Warp => "warp JSON",
            Self::WarpText => "warp text",
            Self::VectorDb => "vector-database JSON",
            Self::WarpSegments => "warp CSV",
            Self::WarpOperations => "warp operations",
            Self::Mdtest => "mdtest",
            Self::VdbenchFlat => "vdbench flat file",
            Self::VdbenchSummary => "vdbench summary",
            Self::Jetstress => "Jetstress HTML",
            Self::JetstressXml => "Jetstress XML",
            Self::Sysbench => "sysbench",
            Self::Pgbench => "pgbench",
            Self::PgbenchLog => "pgbench log",
            Self::Dd => "dd",
            Self::Kubestr => "kubestr text",
            Self::Yabs => "YABS text",
            Self::Table => "table",
        }
    }
}

/// Function that returns true if the sample of a text has a certain format.
type Is = fn(&str) -> bool;

/// JSON formats. Each is recognised by names that occur only in this format.
const JSON: &[(Is, Format)] = &[
    (|text| text.contains("\"fio version\""), Format::FioJson),
    (elbencho::is_json, Format::ElbenchoJson),
    (warp::is_text, Format::Warp),
    (vector_db::is_text, Format::VectorDb),
    (|text| text.contains("\"end_to_end_latencies\""), Format::KvCache),
    (
        |text| text.contains("\"trials_per_option\"") && text.contains("\"options\""),
        Format::KvCacheRun,
    ),
    (
        |text| text.contains("\"num_accelerators\"") && text.contains("\"metric\""),
        Format::MlperfSummary,
    ),
    (|text| text.contains("\"num_benchmark_runs\""), Format::MlperfReport),
    (
        |text| text.contains("\"potential_caching\"") && text.contains("\"host_memory_GB\""),
        Format::MlperfRank,
    ),
    (|text| text.contains("\"block1\"") && text.contains("\"duration\""), Format::MlperfEpochs),
];

const OTHERS: &[(Is, Format)] = &[
    (diskspd::is_xml, Format::DiskspdXml),
    (diskspd::is_text, Format::DiskspdText),
    (elbencho::is_csv, Format::ElbenchoCsv),
    (elbencho::is_text, Format::ElbenchoText),
    (elbencho_live::is, Format::ElbenchoLive),
    (ioping::is, Format::Ioping),
    (iozone::is, Format::Iozone),
    (ior::is, Format::Ior),
    (mdtest::is, Format::Mdtest),
    (warp_text::is, Format::WarpText),
    (warp_csv::is_segments, Format::WarpSegments),
    (warp_csv::is_operations, Format::WarpOperations),
    (io500::is_result, Format::Io500Result),
    (io500::is_summary, Format::Io500Summary),
    (io500::is_ranks, Format::Io500Ranks),
    (jetstress::is_xml, Format::JetstressXml),
    (jetstress::is, Format::Jetstress),
    (vdbench::is_flat, Format::VdbenchFlat),
    (vdbench::is_summary, Format::VdbenchSummary),
    (fio::log::is, Format::FioLog),
    (fio::terse::is, Format::FioTerse),
    (fio::text::is, Format::FioText),
    (terminal::is_kubestr, Format::Kubestr),
    (yabs::is, Format::Yabs),
    (sysbench::is, Format::Sysbench),
    (terminal::is_pgbench, Format::Pgbench),
    (pgbench_log::is, Format::PgbenchLog),
    (terminal::is_dd, Format::Dd),
    (table::is, Format::Table),
];

/// Returns the format of a file from its [`sample`](crate::walk::sample), or `None` if the format
/// is unknown.
#[must_use]
pub fn detect(sample: &[u8]) -> Option<Format> {
    let text = text::decode(cut(sample))?;
    let text = text.as_ref();
    let first =
        |forms: &[(Is, Format)]| forms.iter().find(|(is, _)| is(text)).map(|(_, format)| *format);
    first(JSON).filter(|_| holds_json(text)).or_else(|| first(OTHERS))
}

/// Returns true if a line starts with a JSON object. Without this check, the source code of a
/// program could match, because it may contain all names of a format.
fn holds_json(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('{'))
}

/// Removes an incomplete character at the end of the text.
fn cut(head: &[u8]) -> &[u8] {
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
}
