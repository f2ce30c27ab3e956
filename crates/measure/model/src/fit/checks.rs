//! Arithmetic checks of a published table: whether its columns are consistent, and whether they are
//! possible for the hardware.
//!
//! - Bandwidth identity: bandwidth = data operations × I/O size + all operations × protocol bytes.
//!   The protocol bytes are fitted once for MB = 1e6 bytes and once for MB = 2^20 bytes. The better
//!   fit determines the unit of the column, and its residuals show whether each row is consistent.
//! - Little's law: rate × latency is the concurrency of the system. A product above clients × depth
//!   is impossible. If the product is far below clients × depth, the clients did not keep their
//!   queues full, for example because of a barrier or a think time.
//! - Port limits: the network ports and the drives must be able to reach the throughput that the
//!   published rates imply.

use super::table::{Row, Table};

/// Consistency checks between the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Checks {
    /// Unit of the bandwidth column: 1e6 or 2^20 bytes.
    pub unit_bytes: f64,
    /// Number of protocol bytes of a data operation that fits the table best.
    pub protocol_bytes: f64,
    /// Median absolute relative residual of the bandwidth identity.
    pub identity_median: f64,
    /// Rows whose published bandwidth differs from the bandwidth identity by more than 2 %, with
    /// the relative residual of each row.
    pub identity_odd: Vec<(String, f64)>,
    /// Smallest and largest value of rate × latency among the rows that belong to the matrix of
    /// sizes and read shares.
    pub concurrency: (f64, f64),
    /// Rows in which rate × latency exceeds the number of operations that the clients can have
    /// outstanding.
    pub concurrency_impossible: Vec<(String, f64)>,
    /// Highest byte rate in one direction of the network, over all rows.
    pub network_bytes_per_s_max: f64,
    /// Smallest and largest share of metadata operations among the rows.
    pub metadata_share: Option<(f64, f64)>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the rows that have all values that the bandwidth identity uses. Each item contains (row,
/// data operations, I/O bytes, bandwidth).
fn complete(table: &Table) -> Vec<(&Row, f64, f64, f64)> {
    table
        .matrix()
        .filter_map(|r| Some((r, r.data_ops_per_s()?, r.io_bytes? as f64, r.bandwidth_mb_per_s?)))
        .collect()
}

/// Checks a table. `outstanding_max` returns clients × depth for a row, if this product is known.
pub fn check(table: &Table, outstanding_max: impl Fn(&Row) -> Option<f64>) -> Checks {
    let rows = complete(table);
    let fit = |unit: f64| {
        // Small I/Os determine the protocol bytes best. The median over rows is robust against
        // outliers.
        let protocol = median(
            rows.iter().map(|(r, ops, io, bw)| (bw * unit - ops * io) / r.ops_per_s).collect(),
        )
        .max(0.0);
        let model = |(r, ops, io, bw): &(&Row, f64, f64, f64)| {
            bw * unit / (ops * io + r.ops_per_s * protocol) - 1.0
        };
        let residuals: Vec<f64> = rows.iter().map(model).collect();
        let middle = median(residuals.iter().map(|r| r.abs()).collect());
        (unit, protocol, residuals, middle)
    };
    let (mib, mb) = (fit(1_048_576.0), fit(1e6));
    let best = if mb.3 < mib.3 { mb } else { mib };
    let (unit_bytes, protocol_bytes, residuals, identity_median) = best;
    let little: Vec<(String, f64)> =
        table.matrix().map(|r| (r.label(), r.ops_per_s * r.latency_ms * 1e-3)).collect();
    // A latency that is printed with one decimal may have a rounding error of 0.05.
    let possible = |row: &Row, n: f64| {
        let rounding = row.ops_per_s * 0.05e-3;
        outstanding_max(row).is_none_or(|most| n - rounding <= most)
    };
    let shares: Vec<f64> =
        table.matrix().filter_map(|r| r.data_ops_per_s().map(|d| 1.0 - d / r.ops_per_s)).collect();
    let one_way = table.matrix().map(|r| {
        let io = r.io_bytes.unwrap_or(0) as f64;
        // Without columns for reads and writes, the operations are divided by the read share.
        let share = r.read_share.unwrap_or(0.0);
        let reads = r.read_ops_per_s.unwrap_or(share * r.ops_per_s);
        let writes = r.write_ops_per_s.unwrap_or((1.0 - share) * r.ops_per_s);
        (reads * (io + protocol_bytes)).max(writes * (io + protocol_bytes))
    });
    let least = |v: &mut dyn Iterator<Item = f64>| v.fold(f64::INFINITY, f64::min);
    Checks {
        unit_bytes,
        protocol_bytes,
        identity_median,
        identity_odd: rows
            .iter()
            .zip(&residuals)
            .filter(|(_, r)| r.abs() > 0.02)
            .map(|((row, ..), r)| (row.label(), *r))
            .collect(),
        concurrency: (
            least(&mut little.iter().map(|l| l.1)),
            little.iter().map(|l| l.1).fold(0.0, f64::max),
        ),
        concurrency_impossible: table
            .matrix()
            .zip(&little)
            .filter(|(row, (_, n))| !possible(row, *n))
            .map(|(_, l)| l.clone())
            .collect(),
        network_bytes_per_s_max: one_way.fold(0.0, f64::max),
        metadata_share: (!shares.is_empty()).then(|| {
            (least(&mut shares.iter().copied()), shares.iter().copied().fold(0.0, f64::max))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_tables_mean_mebibytes_with_280_protocol_bytes() {
        for text in [
            include_str!("../../data/zfs-mirrors-random.csv"),
            include_str!("../../data/zfs-raidz2-random.csv"),
        ] {
            let checks = check(&Table::parse(text).unwrap(), |_| Some(480.0));
            assert_eq!(checks.unit_bytes, 1_048_576.0);
            assert!((checks.protocol_bytes - 280.0).abs() < 10.0, "{}", checks.protocol_bytes);
            assert!(checks.identity_median < 0.0006, "{}", checks.identity_median);
            assert!(checks.concurrency.0 > 180.0 && checks.concurrency.1 < 390.0);
            assert!(checks.concurrency_impossible.is_empty());
            let (low, high) = checks.metadata_share.unwrap();
            assert!(low > 0.04 && high < 0.06);
            // Four 10 GbE ports can transfer at most 5 GB/s in each direction.
            assert!(checks.network_bytes_per_s_max < 5e9);
        }
    }

    #[test]
    fn a_row_with_another_unit_stands_out() {
        let text = include_str!("../../data/zfs-mirrors-random.csv")
            .replace("32,random,100,3778,", "32,random,100,3961,");
        let checks = check(&Table::parse(&text).unwrap(), |_| Some(300.0));
        assert_eq!(checks.identity_odd.len(), 1);
        assert!(checks.identity_odd[0].0.starts_with("32 KiB"));
        assert!(!checks.concurrency_impossible.is_empty());
    }

    #[test]
    fn the_busiest_row_is_known_without_columns_for_reads_and_writes() {
        let text = "io_kib,read_percent,ops_per_s,latency_ms\n8,100,974,1\n1024,100,282,1\n1024,50,\
                    300,1\n";
        let checks = check(&Table::parse(text).unwrap(), |_| None);
        assert_eq!(checks.network_bytes_per_s_max, 282.0 * 1_048_576.0);
    }
}
