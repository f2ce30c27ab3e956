#!/usr/bin/env python3
"""Golden values for the statistics of plimsoll-judge, from SciPy.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python generate.py > scipy.json

The committed file was made with the versions that it names. Inputs are part of the file, so the
test needs no random numbers that agree between languages.
"""

import json

import numpy
import scipy
from scipy import special, stats

rng = numpy.random.default_rng(20_251_121)


def rounded(values):
    """Values short enough to be read, and exact in JSON."""
    return [round(float(v), 6) for v in values]


def t_distribution():
    freedoms = [0.5, 1, 2, 2.7, 5, 9, 30, 364.5, 1e4, 1e7]
    points = [-40, -8, -2.3, -1, -0.01, 0, 0.5, 1.96, 6, 25]
    probabilities = [1e-12, 1e-6, 1e-4, 0.005, 0.025, 0.3, 0.5, 0.6, 0.95, 0.975, 0.9995]
    return {
        "cdf": [[x, v, stats.t.cdf(x, v)] for v in freedoms for x in points],
        "quantile": [[p, v, stats.t.ppf(p, v)] for v in freedoms for p in probabilities],
    }


def special_functions():
    beta = [(0.5, 0.5, 0.1), (2, 3, 0.4), (50, 2, 0.97), (1e4, 2e4, 0.333), (0.1, 700, 1e-4)]
    binomial = [(3, 10, 0.5), (989, 1000, 0.99), (990, 1000, 0.99), (0, 60, 0.05)]
    binomial += [(999_100, 1_000_000, 0.999), (99_899_900, 100_000_000, 0.999)]
    probabilities = [1e-300, 1e-15, 1e-5, 0.025, 0.4, 0.5, 0.7, 0.975, 0.999999]
    return {
        "beta": [[a, b, x, special.betainc(a, b, x)] for a, b, x in beta],
        "binomial": [[k, n, p, stats.binom.cdf(k, n, p)] for k, n, p in binomial],
        "normal_quantile": [[p, stats.norm.ppf(p)] for p in probabilities],
    }


def moments():
    cases = []
    for values in (
        rng.normal(1e9, 3, 50),
        rng.exponential(2, 200),
        rng.lognormal(3, 1, 31),
        rng.integers(0, 4, 40),
    ):
        values = rounded(values)
        # The mean of values near 1e9 is only exact to 1e-7. Without the offset it is exact.
        shifted = numpy.array(values) - values[0]
        cases.append(
            {
                "values": values,
                "mean": numpy.mean(values),
                "variance": numpy.var(shifted, ddof=1),
            }
        )
    return cases


def autocorrelations():
    values = [0.0]
    for noise in rng.normal(0, 1, 120):
        values.append(0.7 * values[-1] + noise)
    values = numpy.array(rounded(values))
    centred = values - values.mean()
    product = numpy.correlate(centred, centred, "full")[len(values) - 1 :]
    return {"values": values.tolist(), "by_lag": (product / product[0])[:20].tolist()}


def repeats():
    cases = []
    for n in (2, 3, 5, 20):
        values = rounded(rng.normal(100, 4, n))
        low, high = stats.t.interval(0.95, n - 1, numpy.mean(values), stats.sem(values))
        spread = (max(values) - min(values)) / numpy.mean(values)
        cases.append({"values": values, "low": low, "high": high, "spread": spread})
    return cases


def welch():
    cases = []
    for n, m, ratio, noise in ((5, 5, 1.05, 0.01), (4, 7, 1.0, 0.03), (2, 3, 1.4, 0.1)):
        a = rounded(1e4 * rng.lognormal(0, noise, n))
        b = rounded(1e4 * ratio * rng.lognormal(0, 3 * noise, m))
        test = stats.ttest_ind(numpy.log(b), numpy.log(a), equal_var=False)
        low, high = test.confidence_interval(0.95)
        cases.append(
            {
                "a": a,
                "b": b,
                "t": test.statistic,
                "freedom": test.df,
                "p_value": test.pvalue,
                "ratio": stats.gmean(b) / stats.gmean(a),
                "low": numpy.exp(low),
                "high": numpy.exp(high),
            }
        )
    return cases


def quantile_ranks():
    """Ranks l < u so that P(l <= X < u) with X binomial is at least 95 %, half in each tail."""
    cases = []
    for n, p in ((100, 0.5), (1000, 0.99), (2000, 0.95), (123_457, 0.999), (10_000_000, 0.9999)):
        low = int(stats.binom.ppf(0.025, n, p))
        high = int(stats.binom.ppf(0.975, n, p)) + 1
        cases.append([n, p, max(low, 1), min(high, n)])
    return cases


def slopes():
    """Windows of five rounds: range and rise of the least-squares line over their mean."""
    # Drawn for removed tests. Without these draws, all later values would change.
    rng.normal(0, 1, 687)
    cases = []
    for noise in (0.01, 0.03, 0.05, 0.08, 0.1, 0.2):
        rounds = rounded(rng.normal(1000, 1000 * noise, 5))
        mean = numpy.mean(rounds)
        slope = stats.linregress(range(5), rounds).slope
        rise = abs(slope) * 4 / mean
        excursion = (max(rounds) - min(rounds)) / mean
        cases.append({"rounds": rounds, "excursion": excursion, "slope_excursion": rise})
    return cases


def batches():
    """Plain batch means of white noise without lag-1 correlation: t with nine degrees of freedom."""
    cases = []
    while len(cases) < 3:
        n = (60, 300, 1800)[len(cases)]
        values = numpy.array(rounded(rng.normal(50, 5, n)))
        centred = values - values.mean()
        # So negative that the correction for correlation is exactly zero.
        if (centred[1:] * centred[:-1]).sum() / (centred**2).sum() > -2.0 / n:
            continue
        finest = values.reshape(-1, 2).mean(1)
        centred = finest - finest.mean()
        if (centred[1:] * centred[:-1]).sum() / (centred**2).sum() > 0:
            continue
        means = values.reshape(10, -1).mean(1)
        low, high = stats.t.interval(0.95, 9, means.mean(), stats.sem(means))
        cases.append({"values": values.tolist(), "means": means.tolist(), "low": low, "high": high})
    return cases


print(
    json.dumps(
        {
            "scipy": scipy.__version__,
            "numpy": numpy.__version__,
            "t": t_distribution(),
            "special": special_functions(),
            "moments": moments(),
            "autocorrelation": autocorrelations(),
            "repeats": repeats(),
            "welch": welch(),
            "quantile_ranks": quantile_ranks(),
            "slopes": slopes(),
            "batches": batches(),
        },
        indent=None,
        separators=(",", ":"),
    ).replace('],"', '],\n"')
)
