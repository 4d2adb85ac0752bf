# Shared by the set-up scripts: where things go, and what a person is told when
# something is missing. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache
mkdir -p "$cache"

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# need COMMAND WHAT: stop with the way to get WHAT when COMMAND is not there.
need() {
	command -v "$1" >/dev/null 2>&1 || die "$1 is missing. $2"
}

need_go() { need go "Install Go 1.26 or newer from https://go.dev/dl/ and put its bin folder on PATH."; }

need_rust() {
	need cargo "Install Rust 1.85 or newer with https://rustup.rs; it builds the tokenizer library once."
	# rustup's cargo looks for its toolchain below HOME. Under another HOME it lies beside
	# the cargo that PATH names.
	if ! cargo --version >/dev/null 2>&1; then
		local rustup
		rustup=$(dirname "$(dirname "$(dirname "$(command -v cargo)")")")/.rustup
		[ ! -d "$rustup" ] || export RUSTUP_HOME=$rustup
		cargo --version >/dev/null 2>&1 ||
			die "cargo has no toolchain. Run 'rustup default stable' and the same command again."
	fi
	if ! command -v cc >/dev/null 2>&1; then
		die "a C compiler is missing. On Debian and Ubuntu: apt-get install build-essential."
	fi
}

need_python() {
	need python3 "Install Python 3.11 or newer with pip; on Debian and Ubuntu: apt-get install python3 python3-pip."
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		die "Python 3.11 or newer is needed, found $(python3 --version)."
	python3 -m pip --version >/dev/null 2>&1 ||
		die "pip is missing for $(command -v python3). On Debian and Ubuntu: apt-get install python3-pip."
}

need_linux_x86_64() {
	[ "$(uname -sm)" = "Linux x86_64" ] ||
		die "the pinned ONNX Runtime is for Linux on x86_64, this is $(uname -sm). Put a libonnxruntime 1.24 or newer into .cache/lib yourself, or name it with LOCALEMBED_ORT_LIB."
}

# checked FOLDER NAME: every file of scripts/sha256/NAME below FOLDER has the recorded checksum.
checked() {
	(cd "$1" && sha256sum --quiet --strict -c "$root/scripts/sha256/$2") >&2 ||
		die "files in $1 differ from scripts/sha256/$2. Remove that folder and run the same command again; if it happens again, what was downloaded is not what this project was tested with."
}

# unwheel REQUIREMENTS FOLDER: download the one wheel that scripts/requirements/REQUIREMENTS
# names (pip compares its checksum) and unpack it into FOLDER. The tags are fixed, so that
# the same file is fetched whatever Python runs this.
unwheel() {
	rm -rf "$2"
	mkdir -p "$2"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
		--platform manylinux_2_28_x86_64 --platform any \
		--dest "$2" -r "$root/scripts/requirements/$1" ||
		die "downloading scripts/requirements/$1 failed. Check that pip can reach its package index, then run the same command again."
	python3 -m zipfile -e "$2"/*.whl "$2"
}
