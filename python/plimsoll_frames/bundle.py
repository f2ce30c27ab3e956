"""One run: its bundle's files as frames."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

#: Files that a bundle may have besides its seal; others are not looked at.
SEAL = "SHA256SUMS"


class NotABundle(ValueError):
    """The directory holds no bundle."""


class SealBroken(ValueError):
    """A file is not the one that was sealed."""


@dataclass(frozen=True)
class Bundle:
    """A bundle. Frames are made when they are asked for."""

    path: Path
    run: dict
    verdict: dict

    @property
    def run_id(self) -> str:
        return self.run["run_id"]

    @property
    def measured_s(self) -> float | None:
        """Length of the measurement; None where there was none."""
        for phase in self.run["phases"]:
            if phase["kind"] == "measure" and phase["duration_ns"] > 0:
                return phase["duration_ns"] / 1e9
        return None

    @cached_property
    def phases(self) -> pd.DataFrame:
        """A row a phase, with `start_s` and `duration_s`."""
        frame = pd.DataFrame(self.run["phases"])
        if not frame.empty:
            frame["start_s"] = frame["start_ns"] / 1e9
            frame["duration_s"] = frame["duration_ns"] / 1e9
        return frame

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Totals of each class of I/O over the measurement, with rates and means."""
        frame = pd.DataFrame(self.run["classes"])
        if frame.empty:
            return frame
        count = frame["count"].where(frame["count"] > 0)
        frame["latency_ns_avg"] = frame["latency_ns_sum"] / count
        seconds = self.measured_s
        if seconds is not None:
            # Operations that completed after the end count for latencies, not for rates.
            drained = frame["drained"] if "drained" in frame else 0
            drained_bytes = frame["drained_bytes"] if "drained_bytes" in frame else 0
            frame["rate_per_s"] = (frame["count"] - drained) / seconds
            frame["bandwidth_bytes_per_s"] = (frame["size_bytes"] - drained_bytes) / seconds
        return frame

    @cached_property
    def _rows(self) -> pd.DataFrame:
        frame = pd.read_csv(self.path / "series.csv")
        frame["start_s"] = frame["start_ns"] / 1e9
        frame["duration_s"] = frame["duration_ns"] / 1e9
        return frame

    @cached_property
    def series(self) -> pd.DataFrame:
        """A row an interval and class: counts, bytes, latencies, and rates made of them."""
        frame = self._rows[self._rows["count"].notna()].drop(columns="value").reset_index(drop=True)
        seconds = frame["duration_s"].where(frame["duration_s"] > 0)
        frame["rate_per_s"] = frame["count"] / seconds
        frame["bandwidth_bytes_per_s"] = frame["bytes"] / seconds
        frame["latency_ns_avg"] = frame["sum_ns"] / frame["count"].where(frame["count"] > 0)
        return frame

    @cached_property
    def gauges(self) -> pd.DataFrame:
        """A row an interval and gauge, such as `cpu.busy_share`."""
        rows = self._rows[self._rows["count"].isna()]
        names = ["phase", "start_ns", "duration_ns", "name", "value", "start_s", "duration_s"]
        return rows[names].reset_index(drop=True)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """A row a judged figure; `ok` is missing where it stayed open."""
        return pd.DataFrame(self.verdict.get("checks", []))

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row a rule that did not pass."""
        return pd.DataFrame(self.verdict.get("findings", []))


def _json(path: Path) -> dict:
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def _check_seal(directory: Path) -> None:
    seal = directory / SEAL
    if not seal.is_file():
        raise SealBroken(f"{directory}: it has no seal ({SEAL})")
    for line in seal.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if not name or "/" in name:
            raise SealBroken(f"{seal}: {line!r} is no line of a seal")
        file = directory / name
        if not file.is_file():
            raise SealBroken(f"{file}: it is sealed and not there")
        if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise SealBroken(f"{file}: it is not the file that was sealed")


def open_bundle(path: str | Path, check_seal: bool = True) -> Bundle:
    """Opens the bundle in a directory.

    Only hashes are checked; signatures and the ledger are what `plimsoll report` checks.
    """
    directory = Path(path)
    if not (directory / "run.json").is_file():
        raise NotABundle(f"{directory}: it holds no run.json")
    if check_seal:
        _check_seal(directory)
    verdict = directory / "verdict.json"
    return Bundle(
        path=directory,
        run=_json(directory / "run.json"),
        verdict=_json(verdict) if verdict.is_file() else {},
    )
