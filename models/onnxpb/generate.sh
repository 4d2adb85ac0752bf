#!/bin/sh
# Makes onnx.pb.go from onnx.proto. It needs Go and Python 3 with pip; both
# packages are fetched at fixed versions and nothing is left behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install --quiet grpcio-tools==1.85.1 setuptools
"$tmp/venv/bin/pip" download --quiet --no-deps --dest "$tmp" onnx==1.23.2
(cd "$tmp" && python3 -m zipfile -e onnx-1.23.2-*.whl wheel)
GOBIN="$tmp/bin" go install google.golang.org/protobuf/cmd/protoc-gen-go
PATH="$tmp/bin:$PATH" "$tmp/venv/bin/python" -m grpc_tools.protoc \
	--proto_path="$tmp/wheel/onnx" --go_out="$here" \
	--go_opt=paths=source_relative --go_opt=Monnx.proto=localembed/models/onnxpb onnx.proto
