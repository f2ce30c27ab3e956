# %% [markdown]
# # One run: measurement and judgement
#
# A notebook in percent format: editors and `jupytext` open it as cells, `python a_run.py RUN` runs all of it.

# %%
import sys
from pathlib import Path

import plimsoll_frames as pf

BUNDLES = Path(__file__).parents[2] / "crates/run/cli/tests/fixtures/earlier"
run = pf.open_bundle(sys.argv[1] if len(sys.argv) > 1 else BUNDLES / "rules-9")
print(run.run_id, run.verdict["verdict"])

# %% [markdown]
# The measurement: rate and mean latency of each class, and the share of intervals whose rate differs from
# the mean by more than a tenth.

# %%
measure = run.phases.index[run.phases["kind"] == "measure"][0]
series = run.series[run.series["phase"] == measure]
by_class = series.groupby("name")["rate_per_s"]
uneven = by_class.apply(lambda rate: ((rate / rate.mean() - 1).abs() > 0.1).mean())
table = run.classes.set_index("name")[["count", "rate_per_s", "latency_ns_avg"]]
table = table.assign(uneven_share=uneven)
print(table.to_string())

# %% [markdown]
# Activity of the host during the run, and its correlation with the rate.

# %%
gauges = run.gauges[run.gauges["phase"] == measure]
wide = gauges.pivot_table(index="start_s", columns="name", values="value")
total = series.groupby("start_s")["rate_per_s"].sum()
with_rate = wide.corrwith(total).dropna().sort_values(key=abs, ascending=False)
print(with_rate.head(5).to_string())

# %% [markdown]
# The verdict, and open questions.

# %%
if not run.checks.empty:
    print(run.checks.to_string())
print(run.findings[["rule", "outcome", "says"]].to_string() if not run.findings.empty else "no finding")
