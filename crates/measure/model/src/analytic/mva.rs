//! Closed queueing networks: exact mean value analysis, and an approximation that is fast enough
//! for a fit.
//!
//! Exact: M. Reiser and S. S. Lavenberg, "Mean-value analysis of closed multichain queuing
//! networks", JACM 27(2), 1980, one chain, with multi-server stations through their marginal
//! probabilities. Approximate: the Bard-Schweitzer fixed point (P. Schweitzer, 1979), in which a
//! multi-server station is a queue of `service / servers` in series with a delay of the remaining
//! service time (A. Seidmann, P. Schweitzer and S. Shalev-Oren, "Computerized closed queueing
//! network models of flexible manufacturing systems", Large Scale Systems 12, 1987).

/// A station of a closed network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Service demand of one customer per cycle (visits × service).
    pub demand_s: f64,
    /// Servers; `None` for a pure delay.
    pub servers: Option<u32>,
}

/// The steady state of a closed network.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Cycles per second.
    pub rate_per_s: f64,
    /// Time per cycle, think time excluded.
    pub response_s: f64,
    /// Mean number of customers at each centre.
    pub customers: Vec<f64>,
}

/// Solves the network exactly for `population` customers that think for `think_s` between cycles.
pub fn exact(centres: &[Centre], population: u32, think_s: f64) -> Solution {
    let mut queue = vec![0.0; centres.len()];
    // Marginal probabilities of j customers at each multi-server centre, j < servers.
    let mut marginal: Vec<Vec<f64>> = centres
        .iter()
        .map(|c| {
            let mut p = vec![0.0; c.servers.unwrap_or(0) as usize];
            if let Some(first) = p.first_mut() {
                *first = 1.0;
            }
            p
        })
        .collect();
    let (mut rate, mut response) = (0.0, 0.0);
    for n in 1..=population {
        let stay: Vec<f64> = centres
            .iter()
            .zip(&queue)
            .zip(&marginal)
            .map(|((centre, &q), p)| match centre.servers {
                None => centre.demand_s,
                Some(servers) => {
                    let c = f64::from(servers);
                    let idle: f64 =
                        (0..p.len().saturating_sub(1)).map(|j| (c - 1.0 - j as f64) * p[j]).sum();
                    centre.demand_s / c * (1.0 + q + idle)
                }
            })
            .collect();
        response = stay.iter().sum();
        rate = f64::from(n) / (think_s + response);
        for (k, centre) in centres.iter().enumerate() {
            queue[k] = rate * stay[k];
            if let Some(servers) = centre.servers {
                update_marginal(&mut marginal[k], servers, rate * centre.demand_s);
            }
        }
    }
    Solution { rate_per_s: rate, response_s: response, customers: queue }
}

/// Updates the marginal probabilities of a multi-server centre from n - 1 to n customers in total.
fn update_marginal(p: &mut [f64], servers: u32, busy: f64) {
    let c = f64::from(servers);
    for j in (1..p.len()).rev() {
        p[j] = busy / j as f64 * p[j - 1];
    }
    let partly: f64 = (1..p.len()).map(|j| (c - j as f64) * p[j]).sum();
    p[0] = (1.0 - (busy + partly) / c).max(0.0);
}

/// Solves the network by the Bard-Schweitzer approximation; `population` need not be whole.
pub fn approximate(centres: &[Centre], population: f64, think_s: f64) -> Solution {
    let queueing: Vec<f64> =
        centres.iter().map(|c| c.servers.map_or(0.0, |s| c.demand_s / f64::from(s))).collect();
    let delay_s: f64 =
        centres.iter().zip(&queueing).map(|(c, q)| c.demand_s - q).sum::<f64>() + think_s;
    let active = queueing.iter().filter(|q| **q > 0.0).count().max(1);
    let mut queue: Vec<f64> =
        queueing.iter().map(|&q| if q > 0.0 { population / active as f64 } else { 0.0 }).collect();
    let (mut rate, mut response) = (0.0, 0.0);
    let shrink = if population > 1.0 { (population - 1.0) / population } else { 0.0 };
    // The fixed point is a contraction in practice; 1,000 rounds limit the time of slow cases.
    for _ in 0..1000 {
        let stay: Vec<f64> =
            queueing.iter().zip(&queue).map(|(&d, &q)| d * (1.0 + shrink * q)).collect();
        response = stay.iter().sum::<f64>();
        rate = population / (delay_s + response);
        let mut change = 0.0f64;
        for (q, &s) in queue.iter_mut().zip(&stay) {
            let new = rate * s;
            change = change.max((new - *q).abs());
            *q = new;
        }
        if change < 1e-9 * population {
            break;
        }
    }
    response += delay_s - think_s;
    let customers = centres
        .iter()
        .zip(&queueing)
        .zip(&queue)
        .map(|((c, d), q)| q + rate * (c.demand_s - d))
        .collect();
    Solution { rate_per_s: rate, response_s: response, customers }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves the same network by normalisation constants over every state (J. P. Buzen,
    /// "Computational algorithms for closed queueing networks", CACM 16(9), 1973), as an
    /// independent method.
    fn by_convolution(centres: &[Centre], population: usize) -> f64 {
        let mut g = vec![0.0; population + 1];
        g[0] = 1.0;
        for centre in centres {
            let mut factor = vec![1.0; population + 1];
            for n in 1..=population {
                let servers = centre.servers.map_or(n as f64, |s| (n as f64).min(f64::from(s)));
                factor[n] = factor[n - 1] * centre.demand_s / servers;
            }
            let mut next = vec![0.0; population + 1];
            for n in 0..=population {
                next[n] = (0..=n).map(|k| factor[k] * g[n - k]).sum();
            }
            g = next;
        }
        g[population - 1] / g[population]
    }

    fn network() -> Vec<Centre> {
        vec![
            Centre { demand_s: 0.5, servers: Some(1) },
            Centre { demand_s: 1.5, servers: Some(4) },
            Centre { demand_s: 0.3, servers: Some(1) },
            Centre { demand_s: 2.0, servers: None },
        ]
    }

    #[test]
    fn exact_equals_convolution() {
        for population in [1, 2, 5, 20] {
            let rate = exact(&network(), population, 0.0).rate_per_s;
            let expected = by_convolution(&network(), population as usize);
            assert!((rate / expected - 1.0).abs() < 1e-9, "{population}: {rate} {expected}");
        }
    }

    #[test]
    fn approximation_is_close_to_exact() {
        for population in [1u32, 4, 16, 64] {
            let a = approximate(&network(), f64::from(population), 0.0).rate_per_s;
            let e = exact(&network(), population, 0.0).rate_per_s;
            assert!((a / e - 1.0).abs() < 0.09, "{population}: {a} against {e}");
        }
    }
}
