"""Writes tokenizer_classes.json: what transformers 5 makes of folders whose
tokenizer_config.json, config.json, tokenizer.json and the files of older versions say different things.

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
    # Tokens that tokenizer.json does not have among its added ones.
    word, spaced = {"content": "word", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True}, "spaces and"
    for base in (BERT, "roberta-bf16-shards-prefix", "xlmr-mean-long-limit", "modernbert-cls-biases", "qwen3-last-one-key-head"):
        yield base, {}, {}, {}, {"added_tokens.json": {"word": 400, "a": 3, spaced: 5}}
        yield base, {"additional_special_tokens": ["word", spaced], "mask_token": "cat"}, {}, {}
        yield base, {"added_tokens_decoder": {"401": word, "400": {**word, "content": spaced, "special": False, "normalized": True}}}, {}, {}, {
            "added_tokens.json": {"Hello": 9}, "special_tokens_map.json": {"additional_special_tokens": ["cat"], "cls_token": "a"}}
        yield base, {"extra_special_tokens": {"image_token": "word"}, "other_token": "cat"}, {}, {}
        yield base, {}, {}, {}, {"special_tokens_map.json": {"mask_token": word, "additional_special_tokens": ["cat"], "bos_token": "a-b"}}
    for named in ({"cls_token": "[MASK]"}, {"extra_special_tokens": [{k: v for k, v in word.items() if k != "special"}, "cat"]}, {"unk_token": {"content": "[PAD]"}}):
        yield BERT, {"tokenizer_class": "BertTokenizer"}, {}, {}, {"special_tokens_map.json": named}
        yield BERT, {"tokenizer_class": "BertTokenizer", "extra_special_tokens": ["Hello"]}, {}, {}, {"special_tokens_map.json": named}
    for list_ in ("additional_special_tokens", "extra_special_tokens"):
        yield BERT, {list_: ["word"]}, {}, {}, {"special_tokens_map.json": {"additional_special_tokens": ["cat"]}}
        yield BERT, {list_: ["word"]}, {}, {}, {"special_tokens_map.json": {"extra_special_tokens": ["cat"]}}
    # Tokens that a class has by itself.
    for base, name in ((BERT, "BertTokenizer"), ("mpnet-cls-prefix", "MPNetTokenizer"), ("roberta-bf16-shards-prefix", "RobertaTokenizer"), ("qwen3-last-one-key-head", "Qwen2Tokenizer"),
                       ("xlmr-mean-long-limit", "XLMRobertaTokenizer"), ("camembert-mean", "CamembertTokenizer"), ("albert-cls-groups", "AlbertTokenizer")):
        none = dict.fromkeys(("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"))
        yield base, {**none, "tokenizer_class": name}, {}, {"added_tokens": []}


def put(path, fields):
    now = json.loads(path.read_text())
    for key, value in fields.items():
        if value is None:
            now.pop(key, None)
        else:
            now[key] = value
    path.write_text(json.dumps(now))


found = []
for base, config, model, tokenizer, *others in cases():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / base
        shutil.copytree(HERE / "zoo" / base, folder)
        for name, fields in (("tokenizer_config.json", config), ("config.json", model), ("tokenizer.json", tokenizer)):
            put(folder / name, fields)
        others = others[0] if others else {}
        for name, fields in others.items():
            (folder / name).write_text(json.dumps(fields))
        try:
            loaded = AutoTokenizer.from_pretrained(folder)
            ids = [loaded(text)["input_ids"] for text in TEXTS]
        except Exception:
            ids = None
    found.append({"folder": base, "tokenizer_config.json": config, "config.json": model, "tokenizer.json": tokenizer, **others, "ids": ids})
with open(HERE / "tokenizer_classes.json", "w") as out:
    out.write('{"texts": ' + json.dumps(TEXTS) + ',\n"cases": [\n' + ",\n".join(json.dumps(c) for c in found) + "\n]}\n")
print(len(found), "cases,", sum(c["ids"] is None for c in found), "that fail")
