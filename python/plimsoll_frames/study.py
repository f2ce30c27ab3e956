"""Several runs: a directory of bundles, or what `plimsoll audit --json` says of foreign results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from .bundle import Bundle, NotABundle, open_bundle


@dataclass(frozen=True)
class Study:
    """The bundles below a directory, by their place."""

    bundles: tuple[Bundle, ...]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a run."""
        rows = []
        for bundle in self.bundles:
            classes = bundle.classes
            place = bundle.run.get("experiment") or {}
            known = not classes.empty and "rate_per_s" in classes
            rows.append(
                {
                    "run_id": bundle.run_id,
                    "plan": bundle.run["name"],
                    "arm": place.get("arm"),
                    "number": place.get("number"),
                    "started": pd.to_datetime(bundle.run["started_unix_ns"], unit="ns", utc=True),
                    "measured_s": bundle.measured_s,
                    "verdict": bundle.verdict.get("verdict"),
                    "rate_per_s": classes["rate_per_s"].sum() if known else None,
                    "bandwidth_bytes_per_s": (
                        classes["bandwidth_bytes_per_s"].sum() if known else None
                    ),
                    "path": str(bundle.path),
                }
            )
        return pd.DataFrame(rows)

    def _all(self, of: str) -> pd.DataFrame:
        frames = [getattr(bundle, of).assign(run_id=bundle.run_id) for bundle in self.bundles]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def classes(self) -> pd.DataFrame:
        """The classes of all runs, with their `run_id`."""
        return self._all("classes")

    @cached_property
    def series(self) -> pd.DataFrame:
        """The intervals of all runs, with their `run_id`."""
        return self._all("series")


def open_study(path: str | Path, check_seal: bool = True) -> Study:
    """Opens all bundles in a directory and below it."""
    found = sorted(file.parent for file in Path(path).rglob("run.json"))
    if not found:
        raise NotABundle(f"{path}: no bundle lies in it or below it")
    return Study(tuple(open_bundle(directory, check_seal) for directory in found))


def read_audit(path: str | Path) -> pd.DataFrame:
    """What `plimsoll audit DIR --table --json` printed: a row a result, `rules` the rules that found something."""
    with Path(path).open(encoding="utf-8") as file:
        said = json.load(file)
    rows = []
    for result in said["results"]:
        audit = result["audit"]
        row = {name: value for name, value in result.items() if name not in ("audit", "remarks")}
        row["verdict"] = audit["verdict"]
        row["reason"] = audit["reason"]
        row["rules"] = sorted({finding["rule"] for finding in audit["findings"]})
        rows.append(row)
    return pd.DataFrame(rows)
