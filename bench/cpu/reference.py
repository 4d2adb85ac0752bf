"""sentence-transformers as one installs it: torch, fp32, its default batch size,
all cores.

    reference.py MODEL CORPUS LIMIT

A process that stays warm: for every line on stdin it embeds the corpus once and
answers on stdout with a line {"tokens": real tokens, "seconds": wall}.
"""

import json
import sys
import time

import pyarrow.parquet
from sentence_transformers import SentenceTransformer


def main(folder: str, corpus: str, limit: int) -> None:
    texts = pyarrow.parquet.read_table(corpus, columns=["text"])["text"].to_pylist()
    texts = [t for t in texts if t][: limit or None]
    model = SentenceTransformer(folder, device="cpu")
    # Real tokens: without padding, cut at the model's limit, specials included.
    encoded = model.tokenizer(texts, truncation=True, max_length=model.max_seq_length)
    tokens = sum(map(len, encoded["input_ids"]))
    model.encode(texts[:128], show_progress_bar=False)
    print(json.dumps({"tokens": tokens, "texts": len(texts)}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        model.encode(texts, show_progress_bar=False)
        print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
