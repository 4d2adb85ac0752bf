"""Writes tokenizer_classes.json: what transformers 5 makes of folders whose
tokenizer_config.json, config.json and tokenizer.json say different things.

    python make_tokenizer_classes.py        needs transformers 5.24

Each case is a folder of zoo/, fields put into its JSON files (null takes one out)
and the ids of a few texts, or none where loading fails.
"""

import json
import pathlib
import shutil
import tempfile

from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
TEXTS = [
    "Hello WORLD, the cat's Über-café!", "  two  spaces and a\ttab ", "数据 数据库 e\u0301", "``quoted'' text", "it is a <mask> [MASK] word",
    "a-b--c x\u0000y \u200bz", "12 345 6789",
]
BERT, PLAIN = "bert-cls-one-layer", "bert-fp16-shards-heads"
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}


def cases():
    # Without a class of its own, the architecture's is taken.
    for base in (BERT, PLAIN, "bert-lowercase-sequence", "distilbert-cls-sinusoidal", "electra-max-equal", "mpnet-cls-prefix",
                 "roberta-bf16-shards-prefix", "xlmr-mean-long-limit", "camembert-mean", "albert-cls-groups"):
        yield base, {"tokenizer_class": None}, {}, {}
        yield base, {"tokenizer_class": None}, {"tokenizer_class": "PreTrainedTokenizerFast"}, {}
        yield base, {"tokenizer_class": "TokenizersBackend"}, {}, {}
    for settings in ({"do_lower_case": False}, {"strip_accents": False}, {"strip_accents": True, "do_lower_case": False},
                     {"tokenize_chinese_chars": False}, {"do_lower_case": True}, {"add_prefix_space": True}, {"unk_token": "[MASK]"},
                     {"cls_token": "[MASK]"}, {"sep_token": {"content": "[PAD]", "__type": "AddedToken"}}):
        for name in ("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizer", "PreTrainedTokenizerFast", "NoSuchTokenizer"):
            if name in ("BertTokenizer", "PreTrainedTokenizerFast") or "do_lower_case" in settings:
                yield BERT, {**settings, "tokenizer_class": name}, {}, {}
        yield PLAIN, {**settings, "tokenizer_class": "BertTokenizer"}, {}, {}
    for settings in ({}, {"do_lower_case": False}, {"strip_accents": False}):
        yield "mpnet-cls-prefix", {**settings, "tokenizer_class": "MPNetTokenizer"}, {}, {}
    for base, name in (("roberta-bf16-shards-prefix", "RobertaTokenizer"), ("xlmr-mean-long-limit", "XLMRobertaTokenizerFast"),
                       ("camembert-mean", "CamembertTokenizer"), ("albert-cls-groups", "AlbertTokenizer")):
        for settings in ({}, {"add_prefix_space": True}, {"add_prefix_space": False}, {"do_lower_case": False}, {"keep_accents": True}):
            yield base, {**settings, "tokenizer_class": name}, {}, {}
    # A class of another kind.
    yield BERT, {"tokenizer_class": "XLMRobertaTokenizer"}, {}, {}
    yield "mpnet-cls-prefix", {"tokenizer_class": "BertTokenizer", "cls_token": "<s>", "sep_token": "</s>"}, {}, {}
    # Parts of tokenizer.json that are not the class's.
    for part in ({"pre_tokenizer": {"type": "Whitespace"}},
                 {"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
                                     "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}}},
                 {"normalizer": {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False, "strip_accents": True, "lowercase": True}}):
        yield BERT, {"tokenizer_class": "BertTokenizer"}, {}, part
        yield BERT, FAST, {}, part


def put(path, fields):
    now = json.loads(path.read_text())
    for key, value in fields.items():
        if value is None:
            now.pop(key, None)
        else:
            now[key] = value
    path.write_text(json.dumps(now))


found = []
for base, config, model, tokenizer in cases():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / base
        shutil.copytree(HERE / "zoo" / base, folder)
        for name, fields in (("tokenizer_config.json", config), ("config.json", model), ("tokenizer.json", tokenizer)):
            put(folder / name, fields)
        try:
            loaded = AutoTokenizer.from_pretrained(folder)
            ids = [loaded(text)["input_ids"] for text in TEXTS]
        except Exception:
            ids = None
    found.append({"folder": base, "tokenizer_config.json": config, "config.json": model, "tokenizer.json": tokenizer, "ids": ids})
with open(HERE / "tokenizer_classes.json", "w") as out:
    out.write('{"texts": ' + json.dumps(TEXTS) + ',\n"cases": [\n' + ",\n".join(json.dumps(c) for c in found) + "\n]}\n")
print(len(found), "cases,", sum(c["ids"] is None for c in found), "that fail")
