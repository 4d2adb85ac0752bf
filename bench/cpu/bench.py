"""Compares localembed on the CPU with sentence-transformers and with the
GEMM-only ceiling, all warm, on one corpus, in one run. Called by run.sh.

Other load and the clock of a shared machine drift by tens of percent, so the
three are measured in turns: each round gives a ratio of neighbours in time, and
the result is the median of the rounds' ratios.

The last line is {"tokens_per_second", "ratio_sentence_transformers",
"ratio_gemm"}. ratio_gemm is the share of the ceiling that the model's linear
layers reach: real tokens times 21.2 MFLOP over seconds over the ceiling.
Warm means for localembed: its report's tokens_per_second, from the devices'
opening to their last batch; for sentence-transformers: encode() of a process
that has encoded before. The column "whole process" counts localembed's start
and its last shard, too.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import breakdown
from ceiling import Ceiling

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / ".cache/models/all-MiniLM-L6-v2"
DEBIAN = ROOT.parent / "shared/reference/debian_3k.parquet"
DEMO = ROOT / ".cache/demo/corpus.parquet"

# Two operations a weight of all-MiniLM-L6-v2's linear layers: six layers of
# 4·384² in attention and 2·384·1536 in the feed-forward part.
FLOP_PER_TOKEN = 6 * 2 * (4 * 384 * 384 + 2 * 384 * 1536)

FINISHED = (0, 3)  # exit codes; 3: some rows are dead letters


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/cpu/run.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", nargs="?", type=pathlib.Path, help="Parquet file with a text column (default: the Debian reference corpus if it is there, else the demo corpus)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default 3)")
    parser.add_argument("--limit", type=int, default=0, help="only the corpus's first N rows (default: all)")
    args = parser.parse_args()
    corpus = args.corpus or find_corpus()
    if args.rounds < 1 or args.limit < 0 or not corpus.is_file():
        parser.error(f"need at least one round, a limit from 0 and a corpus that is a file, got {corpus}")

    cores = len(os.sched_getaffinity(0))
    print(f"{corpus}, {cores} cores, {args.rounds} rounds")
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"other programs run here (load {load:.1f}): they slow the three unequally, so repeat this on a quiet machine")
    ceiling = Ceiling(cores)
    reference = Reference(corpus, args.limit)
    localembed(corpus, 64)  # warms the page cache

    rounds = []
    print("round  localembed tok/s  whole process  devices busy  sentence-transformers tok/s  ceiling GFLOP/s  ratio s-t  ratio gemm")
    for number in range(1, args.rounds + 1):
        before = ceiling.measure(2)
        ours = localembed(corpus, args.limit)
        after = ceiling.measure(2)
        theirs = reference.measure()
        rounds.append(Round(ours, theirs, (before + after) / 2))
        print(f"{number:5}  {rounds[-1]}", flush=True)
    reference.close()

    middle = sorted(rounds, key=lambda r: r.ratio_gemm)[len(rounds) // 2]
    breakdown.show(MODEL, cores, middle.ours, FLOP_PER_TOKEN, middle.ceiling)
    print(json.dumps({
        "tokens_per_second": round(statistics.median(r.ours["tokens_per_second"] for r in rounds)),
        "ratio_sentence_transformers": round(statistics.median(r.ratio_reference for r in rounds), 3),
        "ratio_gemm": round(statistics.median(r.ratio_gemm for r in rounds), 3),
    }))


class Round:
    def __init__(self, ours: dict, theirs: float, ceiling: float):
        self.ours, self.theirs, self.ceiling = ours, theirs, ceiling
        self.ratio_reference = ours["tokens_per_second"] / theirs
        self.ratio_gemm = ours["tokens_per_second"] * FLOP_PER_TOKEN / ceiling

    def __str__(self) -> str:
        devices = self.ours["devices"]
        busy = statistics.mean(d["busy_share"] for d in devices)
        return (f"{self.ours['tokens_per_second']:16.0f}  {self.ours['tokens'] / self.ours['wall']:13.0f}"
                f"  {len(devices):6} x {busy:3.0%}  {self.theirs:27.0f}  {self.ceiling / 1e9:15.1f}"
                f"  {self.ratio_reference:9.3f}  {self.ratio_gemm:10.3f}")


def find_corpus() -> pathlib.Path:
    if DEBIAN.is_file():
        return DEBIAN
    if not DEMO.is_file():
        subprocess.run(["go", "run", "./demo/corpus", "-o", str(DEMO)], cwd=ROOT, check=True)
    return DEMO


def localembed(corpus: pathlib.Path, limit: int) -> dict:
    """Runs the binary into a fresh folder; its report, with the process's wall time."""
    scratch = ROOT / ".cache/tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    out = tempfile.mkdtemp(prefix="bench-cpu-", dir=scratch)
    try:
        command = [ROOT / "bin/localembed", "run", "--model", MODEL, "--out", out, "--devices", "cpu", "--quiet"]
        if limit:
            command += ["--limit", str(limit)]
        start = time.perf_counter()
        done = subprocess.run([*command, corpus], stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        if done.returncode not in FINISHED:
            sys.exit(f"bench-cpu: localembed ended with exit code {done.returncode}; its message is above")
        report = json.loads(pathlib.Path(out, "report.json").read_text())
    finally:
        shutil.rmtree(out)
    return report | {"wall": wall}


class Reference:
    """The warm sentence-transformers process (reference.py)."""

    def __init__(self, corpus: pathlib.Path, limit: int):
        venv = pathlib.Path(sys.prefix)
        libraries = [venv / "stub-cuda", *venv.glob("lib/python*/site-packages/nvidia/*/lib")]
        self.process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("reference.py"), MODEL, corpus, str(limit)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {
                "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
                "CUDA_VISIBLE_DEVICES": "",
                "HF_HUB_OFFLINE": "1",
                "TQDM_DISABLE": "1",
            })
        self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench-cpu: sentence-transformers ended early; its message is above")
        return json.loads(line)

    def measure(self) -> float:
        """Real tokens per second of one pass over the corpus."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.answer()
        return answer["tokens"] / answer["seconds"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    main()
