"""Compares the graph that localembed builds with an ONNX export of the same folder:

    .cache/bench-venv/bin/python bench/cpu/export.py [TEXTS]

torch exports all-MiniLM-L6-v2 into a copy of its folder; bin/localembed then embeds
the same texts with the built graph and with `--onnx`, in turn, three times. It prints
the largest difference of a component and the ratio of tokens/s, and fails past 1e-6.
"""
import glob, json, shutil, subprocess, sys, tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import AutoModel

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / ".cache/models/all-MiniLM-L6-v2"
CORPUS = ROOT.parent / "shared/reference/debian_3k.parquet"
if not CORPUS.exists():
    CORPUS = ROOT / ".cache/demo/corpus.parquet"
ROUNDS = 3


class Hidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state


def export(folder):
    shutil.copytree(MODEL, folder)
    model = AutoModel.from_pretrained(str(MODEL), attn_implementation="eager").eval().float()
    ids = torch.randint(1000, 2000, (2, 16))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {n: {0: "texts", 1: "tokens"} for n in names + ["last_hidden_state"]}
    torch.onnx.export(Hidden(model), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(folder / "model.onnx"),
                      input_names=names, output_names=["last_hidden_state"], dynamic_axes=axes, opset_version=17, dynamo=False)


def embed(folder, out, texts, *flags):
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([ROOT / "bin/localembed", "run", "--model", folder, "--out", out, "--quiet", "--limit", texts, *flags, CORPUS], check=True)
    shards = pq.read_table(sorted(glob.glob(f"{out}/part-*.parquet")), columns=["embedding"])
    vectors = shards["embedding"].combine_chunks().flatten().to_numpy()
    return vectors, json.load(open(f"{out}/report.json"))["tokens_per_second"]


def main():
    texts = sys.argv[1] if len(sys.argv) > 1 else "1000"
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "model"
        export(folder)
        ratios = []
        for _ in range(ROUNDS):
            built, fast = embed(folder, f"{tmp}/built", texts)
            exported, slow = embed(folder, f"{tmp}/exported", texts, "--onnx")
            ratios.append(fast / slow)
            print(f"built {fast:.0f} tokens/s, exported {slow:.0f} tokens/s, ratio {fast / slow:.3f}")
        difference = float(np.abs(built - exported).max())
        print(json.dumps({"largest_difference": difference, "ratio": round(float(np.median(ratios)), 3)}))
        if difference > 1e-6:
            sys.exit("the built graph and the export differ by more than 1e-6")


if __name__ == "__main__":
    main()
