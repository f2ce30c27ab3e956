//! Exact mean value analysis of closed queueing networks.
//!
//! Method of M. Reiser and S. S. Lavenberg, "Mean-value analysis of closed multichain queuing
//! networks", JACM 27(2), 1980, for one chain. Multi-server stations are computed from their
//! marginal probabilities.

/// Station of a closed network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Service demand of one customer in one cycle: visits × service time.
    pub demand_s: f64,
    /// Number of servers; `None` if the station is only a delay.
    pub servers: Option<u32>,
}

/// Steady state of a closed network.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Number of cycles per second.
    pub rate_per_s: f64,
    /// Mean time of a cycle without the think time.
    pub response_s: f64,
    /// Mean number of customers at each centre.
    pub customers: Vec<f64>,
}

/// Solves the network exactly for `population` customers that think for `think_s` between cycles.
pub fn exact(centres: &[Centre], population: u32, think_s: f64) -> Solution {
    let mut queue = vec![0.0; centres.len()];
    // Marginal probabilities of `j` customers at each multi-server centre, for `j` < servers.
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

/// Updates the marginal probabilities of a multi-server centre when the total number of customers
/// rises from n - 1 to n.
fn update_marginal(p: &mut [f64], servers: u32, busy: f64) {
    let c = f64::from(servers);
    for j in (1..p.len()).rev() {
        p[j] = busy / j as f64 * p[j - 1];
    }
    let partly: f64 = (1..p.len()).map(|j| (c - j as f64) * p[j]).sum();
    p[0] = (1.0 - (busy + partly) / c).max(0.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves the same network by an independent method, with normalisation constants over every
    /// state (J. P. Buzen, "Computational algorithms for closed queueing networks", CACM 16(9),
    /// 1973).
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
}
