#!/usr/bin/env python3
"""Asks fio itself what a size means: one write of that size to its null engine, and how many bytes it
counts. Made fio-3.33-sizes.csv with Debian's 3.33-3."""

import json
import subprocess

TEXTS = """4096 4096b 4096B 4k 4K 4kb 4kB 4KB 4ki 4kI 4kib 4kiB 4Ki 4KiB 1m 1M 1mb 1MB 1mi 1mib 1MiB
1000k 1000ki 1000kib 1024ki 2g 2gb 2gi 2gib 0x1000 0x10k""".split()

print("# text,kb_base,bytes: by tests/golden/fio-sizes.py; empty where fio refuses")
for base in (1024, 1000):
    for text in TEXTS:
        run = subprocess.run(
            ["fio", "--name=a", "--ioengine=null", "--rw=write", f"--kb_base={base}",
             f"--bs={text}", "--size=4294967296", "--number_ios=1", "--output-format=json"],
            capture_output=True, text=True, check=False)
        try:
            bytes_ = json.loads(run.stdout)["jobs"][0]["write"]["io_bytes"]
        except (json.JSONDecodeError, KeyError, IndexError):
            bytes_ = ""
        print(f"{text},{base},{bytes_}")
