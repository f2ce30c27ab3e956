# %% [markdown]
# # A study: repeats, their spread, and results of other tools
#
# `python a_study.py EXPERIMENT AUDIT.json` runs all of it; AUDIT.json is the output of
# `plimsoll audit DIR --table --json`.

# %%
import json
import sys
import tempfile
from pathlib import Path

import pandas as pd

import plimsoll_frames as pf

BUNDLES = Path(__file__).parents[2] / "crates/run/cli/tests/fixtures/earlier"
study = pf.open_study(sys.argv[1] if len(sys.argv) > 1 else BUNDLES)
print(study.runs[["run_id", "plan", "verdict", "rate_per_s"]].to_string())

# %% [markdown]
# Repeats of one plan: if they differ much, a single run says little.

# %%
rates = study.runs.groupby("plan")["rate_per_s"]
spread = pd.DataFrame(
    {
        "runs": rates.count(),
        "mean": rates.mean(),
        "spread_share": (rates.max() - rates.min()) / rates.mean(),
        "deviation_share": rates.std() / rates.mean(),
    }
)
print(spread.to_string())

# %% [markdown]
# The slowest class of each run.

# %%
worst = study.classes.loc[study.classes.groupby("run_id")["latency_ns_avg"].idxmax()]
print(worst[["run_id", "name", "latency_ns_avg"]].to_string(index=False))

# %% [markdown]
# Results of other tools: the number of results with each finding. Without a file, two sample rows show the form.

# %%
if len(sys.argv) > 2:
    audit = pf.read_audit(sys.argv[2])
else:
    rows = [
        {
            "result": name,
            "rate_per_s": rate,
            "audit": {"verdict": verdict, "reason": "", "findings": [{"rule": r} for r in rules]},
            "remarks": [],
        }
        for name, rate, verdict, rules in [
            ("a.json", 1000.0, "CONSISTENT", []),
            ("b.json", 9000.0, "IMPOSSIBLE", ["littles-law", "rate-size-bandwidth"]),
        ]
    ]
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "audit.json"
        file.write_text(json.dumps({"results": rows}))
        audit = pf.read_audit(file)
print(audit["verdict"].value_counts().to_string())
print(audit.explode("rules").dropna(subset="rules").groupby("rules").size().to_string())
