"""Compares graphs that localembed builds with torch's ONNX exports, for shapes of models
that MiniLM does not have, with random weights:

    .cache/bench-venv/bin/python bench/cpu/shapes.py [bert-base] [modernbert-base] [qwen3-0.6b]

For each shape it writes a model folder with MiniLM's tokenizer, exports it beside, and
embeds the same texts with both in turn. It prints the size, the seconds of a run of one
text, which loads the model, the least cosine, and the ratio of tokens/s.
"""
import gc, shutil, statistics, sys, tempfile, time
from pathlib import Path

import torch
import transformers

from export import MODEL, embed

SHAPES = {  # config, texts
    "bert-base": (lambda t: t.BertConfig(), 100),
    "modernbert-base": (lambda t: t.ModernBertConfig(), 100),
    "qwen3-0.6b": (lambda t: t.Qwen3Config(vocab_size=151669, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
                                           num_key_value_heads=8, head_dim=128, max_position_embeddings=32768), 30),
}
ROUNDS = 3


class Hidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state


def write(config, folder):
    """The model folder, and in it the export."""
    torch.manual_seed(1)
    config._attn_implementation = "eager"
    model = transformers.AutoModel.from_config(config).eval().float()
    model.save_pretrained(folder)
    for name in ["tokenizer.json", "tokenizer_config.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json"]:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(MODEL / name, folder / name)
    pooling = folder / "1_Pooling/config.json"
    pooling.write_text(pooling.read_text().replace("384", str(config.hidden_size)))
    ids = torch.randint(1000, 2000, (2, 16))
    axes = {n: {0: "texts", 1: "tokens"} for n in ["input_ids", "attention_mask", "last_hidden_state"]}
    (folder / "onnx").mkdir()
    with torch.no_grad():
        torch.onnx.export(Hidden(model), (ids, torch.ones_like(ids)), str(folder / "onnx/model.onnx"), input_names=["input_ids", "attention_mask"],
                          output_names=["last_hidden_state"], dynamic_axes=axes, opset_version=17, dynamo=False)


def size(paths):
    return sum(p.stat().st_size for p in paths) / 1e6


def shape(name, tmp):
    config, texts = SHAPES[name]
    folder = tmp / name
    write(config(transformers), folder)
    gc.collect()
    print(f"{name}: model.safetensors {size(folder.glob('*.safetensors')):.0f} MB, export {size((folder / 'onnx').iterdir()):.0f} MB", flush=True)
    speeds, vectors, loads = ([], []), [None, None], [None, None]
    for turn in range(ROUNDS + 1):
        for i, flags in enumerate([(), ("--onnx",)]):
            start = time.time()
            v, speed = embed(folder, tmp / f"out{i}", "1" if turn == 0 else str(texts), *flags)
            if turn == 0:
                loads[i] = time.time() - start
            else:
                vectors[i] = v.reshape(-1, config(transformers).hidden_size)
                speeds[i].append(speed)
    cosines = (vectors[0] * vectors[1]).sum(1)
    ratios = [a / b for a, b in zip(*speeds)]
    print(f"  one text: {loads[0]:.1f} s built, {loads[1]:.1f} s exported; least cosine {cosines.min():.7f}")
    print(f"  tokens/s built {statistics.median(speeds[0]):.0f}, exported {statistics.median(speeds[1]):.0f}; "
          f"ratios {', '.join(f'{r:.2f}' for r in ratios)}, median {statistics.median(ratios):.2f}", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        for name in sys.argv[1:] or SHAPES:
            shape(name, Path(tmp))
