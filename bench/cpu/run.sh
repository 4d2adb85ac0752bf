#!/usr/bin/env bash
# Compares localembed on this machine's CPU with sentence-transformers and with the
# GEMM-only ceiling:
#
#	bench/cpu/run.sh [--rounds N] [--limit N] [CORPUS]
#
# What it compares with goes into .cache/bench-venv (2.1 GB), once. Nothing else
# of the project needs that.
. "$(dirname "$0")/../../scripts/lib.sh"
need_python
need_linux_x86_64
need cc "Install a C compiler; on Debian and Ubuntu: apt-get install build-essential."
need readelf "It comes with the C compiler's binutils; on Debian and Ubuntu: apt-get install binutils."
cd "$root"
[ -x bin/localembed ] || die "bin/localembed is missing. Build it with: make build"
[ -d .cache/models/all-MiniLM-L6-v2 ] || die "the model is missing. Fetch it with: make model"

venv=$cache/bench-venv
if ! cmp -s bench/cpu/requirements.txt "$venv/ready"; then
	echo "Installing torch and sentence-transformers into $venv (650 MB to download)" >&2
	rm -rf "$venv"
	python3 -m venv --without-pip "$venv" ||
		die "python3 -m venv failed. On Debian and Ubuntu: apt-get install python3-venv."
	python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check \
		--no-deps --require-hashes --only-binary=:all: -r bench/cpu/requirements.txt ||
		die "installing bench/cpu/requirements.txt failed. It is made for Python 3.11 to 3.14; check that pip can reach its package index, then run the same command again."
	"$venv/bin/python" bench/cpu/stub_cuda.py "$venv/stub-cuda"
	cp bench/cpu/requirements.txt "$venv/ready"
fi
exec "$venv/bin/python" bench/cpu/bench.py "$@"
