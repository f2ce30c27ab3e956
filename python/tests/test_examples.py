"""Runs the example notebooks whole, as a reader would."""

import subprocess
import sys
import unittest
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=600
    )
    return done.returncode, done.stdout, done.stderr


class Examples(unittest.TestCase):
    def test_one_run_is_shown_with_what_was_judged(self):
        code, out, err = run("a_run.py")
        self.assertEqual(code, 0, err)
        self.assertIn("latency_ns_avg", out)
        self.assertIn("uneven_share", out)

    def test_a_study_shows_its_spread_and_what_was_found(self):
        code, out, err = run("a_study.py")
        self.assertEqual(code, 0, err)
        self.assertIn("spread_share", out)
        self.assertRegex(out, r"IMPOSSIBLE +1")
        self.assertRegex(out, r"littles-law +1")

    def test_each_example_is_run(self):
        there = sorted(path.name for path in EXAMPLES.glob("*.py"))
        self.assertEqual(there, ["a_run.py", "a_study.py"])


if __name__ == "__main__":
    unittest.main()
