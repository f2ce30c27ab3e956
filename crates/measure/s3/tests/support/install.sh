#!/usr/bin/env bash
# Installs the S3 server that the tests start, s3s-fs, into tools/ below the build's directory.
set -euo pipefail
cd "$(dirname "$0")/../../../../.."
target=${CARGO_TARGET_DIR:-target}
if [ ! -x "$target/tools/bin/s3s-fs" ] && ! command -v s3s-fs > /dev/null; then
  # Line tables and build files are not needed afterwards.
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target/tools/build \
    cargo install s3s-fs@0.14.1 --locked --quiet --debug --features binary --root "$target/tools"
  rm -rf "$target/tools/build"
fi
