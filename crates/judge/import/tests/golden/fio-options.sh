#!/bin/sh
# Prints the names of fio's options, from fio itself. Made fio-3.33-options.txt with Debian's 3.33-3.
set -eu
echo "# Option names of $(fio --version), by tests/golden/fio-options.sh"
{
    fio --cmdhelp=all | awk '{print $1}'
    fio --enghelp=io_uring | awk '{print $1}'
    fio --enghelp=libaio | awk '{print $1}'
} | tr -d ':' | LC_ALL=C sort -u
