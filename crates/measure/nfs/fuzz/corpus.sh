#!/usr/bin/env bash
# The fuzzer's corpus lies in the repository as one archive.
#
#   fuzz/corpus.sh unpack   corpus.tar.gz → corpus/core, before fuzzing
#   fuzz/corpus.sh pack     corpus/core → corpus.tar.gz, after `cargo fuzz cmin`
set -euo pipefail
cd "$(dirname "$0")"
case "${1:-}" in
  unpack)
    mkdir -p corpus
    tar -xzf corpus.tar.gz -C corpus
    ;;
  pack)
    # The same files give the same archive.
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C corpus -cf - core |
      gzip -9n > corpus.tar.gz
    ;;
  *)
    echo "usage: fuzz/corpus.sh unpack|pack" >&2
    exit 2
    ;;
esac
