//! Exact results for open stations: M/M/c and M/G/1.
//!
//! Source: L. Kleinrock, "Queueing Systems, Volume 1: Theory", Wiley 1975. Erlang's C formula is in
//! section 3.5, and the formula of Pollaczek and Khinchine in section 5.6. Rates are per second,
//! times are in seconds.

/// Returns the probability that an arrival at M/M/c waits (Erlang C). `offered` is the arrival rate
/// × the mean service time, and must be less than `servers`.
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    // Computes Erlang B by its recurrence, which does not overflow, and then Erlang C from Erlang
    // B.
    let mut blocked = 1.0;
    for k in 1..=servers {
        blocked = offered * blocked / (f64::from(k) + offered * blocked);
    }
    let c = f64::from(servers);
    c * blocked / (c - offered * (1.0 - blocked))
}

/// Returns the mean time in an M/M/c station. It is infinite if there is no steady state.
pub fn mmc_sojourn_s(servers: u32, arrivals_per_s: f64, service_s: f64) -> f64 {
    let offered = arrivals_per_s * service_s;
    if offered >= f64::from(servers) {
        return f64::INFINITY;
    }
    service_s + erlang_c(servers, offered) * service_s / (f64::from(servers) - offered)
}

/// Returns the mean time in an M/G/1 station. `variation` is the coefficient of variation of the
/// service times: 0 is M/D/1, and 1 is M/M/1. The mean time is infinite if there is no steady
/// state.
pub fn mg1_sojourn_s(arrivals_per_s: f64, service_s: f64, variation: f64) -> f64 {
    let load = arrivals_per_s * service_s;
    if load >= 1.0 {
        return f64::INFINITY;
    }
    service_s + load * service_s * (1.0 + variation * variation) / (2.0 * (1.0 - load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_where_the_formulas_meet() {
        for load in [0.1, 0.5, 0.9, 0.99] {
            let mm1 = 1.0 / (1.0 - load);
            assert!((mmc_sojourn_s(1, load, 1.0) - mm1).abs() < 1e-9 * mm1);
            assert!((mg1_sojourn_s(load, 1.0, 1.0) - mm1).abs() < 1e-9 * mm1);
        }
        // Erlang C for c = 10 and a = 8 is 0.409180, according to tables and to the explicit sum.
        let terms: Vec<f64> = (0..10)
            .scan(1.0, |t, k| {
                let term = *t;
                *t *= 8.0 / f64::from(k + 1);
                Some(term)
            })
            .collect();
        let last = terms[9] * 8.0 / 10.0 * 10.0 / 2.0;
        let expected = last / (terms.iter().sum::<f64>() + last);
        assert!((erlang_c(10, 8.0) - expected).abs() < 1e-12);
        assert!((expected - 0.409_180).abs() < 1e-6);
    }
}
