"""Run with `python -m unittest discover python/tests` where the package is installed."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

import plimsoll_frames as pf

BUNDLES = Path(__file__).parents[2] / "crates/run/cli/tests/fixtures/earlier"


class Frames(unittest.TestCase):
    def test_a_bundle_is_read_as_it_says(self):
        bundle = pf.open_bundle(BUNDLES / "rules-9")
        run = json.loads((BUNDLES / "rules-9/run.json").read_text())
        self.assertEqual(len(bundle.phases), len(run["phases"]))
        self.assertEqual(list(bundle.classes["count"]), [c["count"] for c in run["classes"]])
        first = run["classes"][0]
        self.assertAlmostEqual(
            bundle.classes["latency_ns_avg"][0], first["latency_ns_sum"] / first["count"]
        )
        lines = (BUNDLES / "rules-9/series.csv").read_text().splitlines()[1:]
        self.assertEqual(len(bundle.series) + len(bundle.gauges), len(lines))
        self.assertFalse(bundle.series["count"].isna().any())
        self.assertFalse(bundle.gauges["value"].isna().any())
        self.assertEqual(bundle.verdict["run_id"], bundle.run_id)
        self.assertEqual(len(bundle.findings), len(bundle.verdict["findings"]))

    def test_the_intervals_make_the_total(self):
        bundle = pf.open_bundle(BUNDLES / "rules-9")
        measure = [i for i, p in enumerate(bundle.run["phases"]) if p["kind"] == "measure"][0]
        series = bundle.series[bundle.series["phase"] == measure]
        for _, row in bundle.classes.iterrows():
            within = series.loc[series["name"] == row["name"], "count"].sum()
            drained = row["drained"] if "drained" in bundle.classes else 0
            self.assertEqual(within, row["count"] - drained)

    def test_a_study_has_a_row_a_run(self):
        study = pf.open_study(BUNDLES)
        self.assertEqual(len(study.runs), len(list(BUNDLES.rglob("run.json"))))
        self.assertGreater(len(study.runs), 1)
        self.assertTrue((study.runs["rate_per_s"] > 0).all())
        self.assertEqual(set(study.classes["run_id"]), set(study.runs["run_id"]))

    def test_what_is_changed_or_no_bundle_is_refused(self):
        with tempfile.TemporaryDirectory() as home:
            copy = Path(home) / "run"
            shutil.copytree(BUNDLES / "rules-9", copy)
            series = copy / "series.csv"
            series.write_text(series.read_text().replace("351", "951", 1))
            with self.assertRaises(pf.SealBroken):
                pf.open_bundle(copy)
            self.assertEqual(pf.open_bundle(copy, check_seal=False).series["count"][0], 951)
            with self.assertRaises(pf.NotABundle):
                pf.open_bundle(home)
            with self.assertRaises(pf.NotABundle):
                pf.open_study(Path(home) / "nothing")

    def test_an_audit_has_a_row_a_result(self):
        said = {
            "results": [
                {
                    "result": "a.json",
                    "rate_per_s": 5.0,
                    "audit": {
                        "verdict": "IMPOSSIBLE",
                        "reason": "r",
                        "findings": [{"rule": "littles-law"}, {"rule": "littles-law"}],
                    },
                    "remarks": [],
                }
            ],
            "unreadable": [],
            "passed_over": 0,
        }
        with tempfile.TemporaryDirectory() as home:
            file = Path(home) / "audit.json"
            file.write_text(json.dumps(said))
            frame = pf.read_audit(file)
        self.assertEqual(list(frame["verdict"]), ["IMPOSSIBLE"])
        self.assertEqual(frame["rules"][0], ["littles-law"])


if __name__ == "__main__":
    unittest.main()
