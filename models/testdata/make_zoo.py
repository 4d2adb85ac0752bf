"""Writes zoo/: tiny model folders with random weights, and the vectors that
sentence-transformers computes for them.

    LD_LIBRARY_PATH=.cache/bench-venv/stub-cuda .cache/bench-venv/bin/python models/testdata/make_zoo.py [NAME...]
    … make_zoo.py --random COUNT SEED FOLDER [MODEL_TYPE...]

With --random it writes COUNT folders into FOLDER that mix the rules at random; the test
reads that folder too where LOCALEMBED_ZOO names it.

Each folder covers rules that a reader of model folders can get wrong: the
architectures, spellings of pooling, order of modules, prompts, limits, types and
places of weights. Weights are drawn so wide that a wrong rule shows: a vector
computed with another activation, order or position is off by far more than
rounding. FOLDER.reference.json holds the texts, their token ids and vectors, computed
in fp32 on the CPU with one text a batch. All texts are made up here, from a list of
words. .cache/bench-venv is what bench/cpu/run.sh installs.
"""

import json
import pathlib
import random
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

ZOO = pathlib.Path(__file__).parent / "zoo"
WANTED: list[str] = []
KINDS: list[str] = []  # to draw from at random; all where empty

WORDS = """river stone winter lamp garden cloud copper letter window harbour engine forest market signal bridge
paper candle mountain wheel silver music ladder kettle orchard compass needle barrel meadow anchor feather""".split()
VERBS = "carries follows measures repairs hides counts divides returns paints orders".split()
LINKS = "near under without beside during against because of and or".split()


def sentence(rng: random.Random, words: int) -> str:
    out = []
    for i in range(words):
        kind = (WORDS, VERBS, LINKS)[i % 3]
        out.append(rng.choice(kind))
    return " ".join(out).capitalize() + rng.choice([".", "!", "?", ";"])


def training_texts() -> list[str]:
    rng = random.Random(1)
    return [sentence(rng, rng.randint(3, 20)) for _ in range(400)] + ["Café Über naïve 0123456789 ( ) [ ] - , : '"]


def texts(long: bool) -> list[str]:
    rng = random.Random(2)
    some = [
        "a",
        sentence(rng, 9),
        sentence(rng, 160),  # longer than every limit
        "  \n" + sentence(rng, 5) + "\t \n ",
        "the [SEP] stone </s> is <pad> near [PAD] the <mask> river [MASK][CLS]<s>",
        "ÉTÉ Über naïve: 漢字 and \U0001f600 cafe\u0301",
        "RIVER Stone wINTER 12,345.67 (lamp)--[cloud]",
        "stone\x00lamp \x00",
        sentence(rng, 30),
        sentence(rng, 2).strip(".!?;"),
    ]
    if long:  # built graphs take long texts in blocks of 256 tokens
        return some + [" ".join(sentence(rng, rng.randint(4, 25)) for _ in range(n)) for n in (14, 40, 62)]
    return some


# Tokenizers. Each gives (tokenizer, names of its special tokens).


def wordpiece(normalizer, names=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]"):
    t = Tokenizer(models.WordPiece(unk_token=unk))
    t.normalizer, t.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(training_texts(), trainers.WordPieceTrainer(vocab_size=220, special_tokens=list(names), show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, t.token_to_id(cls)), (sep, t.token_to_id(sep))])
    return t, dict(pad_token=pad, unk_token=unk, cls_token=cls, sep_token=sep, mask_token=mask)


def uncased():
    return wordpiece(normalizers.BertNormalizer(lowercase=True))


def cased():
    return wordpiece(normalizers.BertNormalizer(lowercase=False))


def cased_sequence():
    return wordpiece(normalizers.Sequence([normalizers.NFD(), normalizers.Replace(Regex(r"-+"), " "), normalizers.StripAccents()]))


def mpnet_words():
    return wordpiece(normalizers.BertNormalizer(lowercase=True), names=("<s>", "<pad>", "</s>", "[UNK]", "<mask>"),
                     pad="<pad>", cls="<s>", sep="</s>", mask="<mask>")


def byte_bpe():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t.train_from_iterator(training_texts(), trainers.BpeTrainer(
        vocab_size=340, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False, trim_offsets=True)
    return t, dict(pad_token="<pad>", unk_token="<unk>", cls_token="<s>", sep_token="</s>", bos_token="<s>", eos_token="</s>", mask_token="<mask>")


def unigram(names, normalizer, pad, unk, cls, sep, mask):
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer = normalizer, pre_tokenizers.Metaspace()
    t.train_from_iterator(training_texts(), trainers.UnigramTrainer(
        vocab_size=200, special_tokens=list(names), unk_token=unk, show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} {sep} $B {sep}",
        special_tokens=[(cls, t.token_to_id(cls)), (sep, t.token_to_id(sep))])
    return t, dict(pad_token=pad, unk_token=unk, cls_token=cls, sep_token=sep, mask_token=mask)


def xlmr_pieces():
    return unigram(("<s>", "<pad>", "</s>", "<unk>", "<mask>"), normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                   "<pad>", "<unk>", "<s>", "</s>", "<mask>")


def camembert_pieces():
    return unigram(("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>", "<mask>"),
                   normalizers.Replace(Regex(" {2,}"), " "), "<pad>", "<unk>", "<s>", "</s>", "<mask>")


def albert_pieces():
    return unigram(("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
                   normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                   "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")


# Weights.


def draw(model: torch.nn.Module, seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=g)
            if "sinusoidal" in name or not p.requires_grad:
                continue
            if "embeddings" in name and p.dim() == 2 and "project" not in name and "mapping" not in name:
                p.copy_(noise * 0.8)
            elif p.dim() >= 2:
                p.copy_(noise * (1.6 / p.shape[-1] ** 0.5))
            elif "norm" in name.lower() and name.endswith("weight"):
                p.copy_(1 + noise * 0.3)
            else:
                p.copy_(noise * 0.4)


def save_weights(model, folder: pathlib.Path, dtype, shards: int, buffers: dict) -> None:
    if model.config.model_type == "nomic_bert":
        with tempfile.TemporaryDirectory() as d:  # only save_pretrained writes the published names
            model.save_pretrained(d)
            tensors = load_file(pathlib.Path(d) / "model.safetensors")
    else:
        tensors = {k: v.detach().clone().contiguous() for k, v in model.state_dict().items()}
    tensors = {k: v.to(dtype) if v.is_floating_point() else v for k, v in tensors.items()} | buffers
    if shards == 1:
        return save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    names, where = list(tensors), {}
    random.Random(3).shuffle(names)
    for i in range(shards):
        part = names[i::shards]
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        where |= {n: file for n in part}
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    write(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": dict(sorted(where.items()))})


def write(path: pathlib.Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# Folders.

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
OLD = "sentence_transformers.models."
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
}


def bert(**k):
    return transformers.BertConfig(**(SIZES | dict(max_position_embeddings=80) | k))


def roberta(kind=transformers.RobertaConfig, **k):
    return kind(**(SIZES | dict(max_position_embeddings=82, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, layer_norm_eps=1e-5) | k))


def distilbert(**k):
    return transformers.DistilBertConfig(**(dict(dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=80) | k))


def make(name, covers, *, config, tokenizer, cls=transformers.AutoModel, pooling, modules=(), new=False, sbert=None, tok=None, st=None,
         dtype=torch.float32, shards=1, buffers=None, calls=None, model_max=None, seed=None, limit=None, config_extra=None, leave_out=(), long=False):
    """modules: what comes after the pooling, each (kind, config or None). calls: (call, args, prompt) each."""
    if WANTED and name not in WANTED:
        return
    folder = ZOO / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    t, specials = tokenizer()
    t.save(str(folder / "tokenizer.json"), pretty=False)
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **specials,
                                             **({"model_max_length": model_max} if model_max else {}), **(tok or {})})
    config.vocab_size = t.get_vocab_size()
    model = cls.from_config(config) if cls is transformers.AutoModel else cls(config)
    draw(model, seed or sum(map(ord, name)))
    config.architectures = [type(model).__name__]
    saved = config.to_dict() | (config_extra or {})
    write(folder / "config.json", {k: v for k, v in saved.items() if k not in ("id2label", "label2id", "_name_or_path", *leave_out)})
    save_weights(model, folder, dtype, shards, buffers or {})
    if sbert is not None:
        write(folder / "sentence_bert_config.json", sbert)
    write(folder / "config_sentence_transformers.json", {"__version__": {"sentence_transformers": "6.2.0"}, **(st or {})})
    spell = (lambda k: NEW[k]) if new else (lambda k: OLD + k)
    listed = [{"idx": 0, "name": "0", "path": "", "type": spell("Transformer")},
              {"idx": 1, "name": "1", "path": "1_Pooling", "type": spell("Pooling")}]
    write(folder / "1_Pooling" / "config.json", pooling)
    g = torch.Generator().manual_seed(len(name))
    for i, (kind, c) in enumerate(modules, 2):
        path = f"{i}_{kind}"
        listed.append({"idx": i, "name": str(i), "path": path, "type": spell(kind)})
        if c is not None:
            write(folder / path / "config.json", c)
            weights = {"linear.weight": torch.randn(c["out_features"], c["in_features"], generator=g) * 0.5}
            if c["bias"]:
                weights["linear.bias"] = torch.randn(c["out_features"], generator=g)
            save_file(weights, folder / path / "model.safetensors")
    write(folder / "modules.json", listed)
    reference(folder, covers, calls or [("encode", {}, "")], limit, texts(long))


def reference(folder: pathlib.Path, covers: str, calls, limit, all_texts) -> None:
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True)
    if limit:
        model.max_seq_length = limit
    file, loaded = json.loads((folder / "tokenizer.json").read_text()), json.loads(model.tokenizer.backend_tokenizer.to_str())
    for key in ("normalizer", "pre_tokenizer", "post_processor"):
        if "do_lower_case" not in covers and file[key] != loaded[key]:
            print(f"{folder.name}: transformers replaced the tokenizer's {key}", file=sys.stderr)
    t, out = model.tokenizer, []
    for call, args, prompt in calls:
        how = {k: v for k, v in args.items()}
        if call == "encode_document" and model.prompts.get("document", "") != prompt:
            call_model, how = model.encode, how | {"prompt": prompt}
        else:
            call_model = getattr(model, call)
        vectors = call_model(all_texts, batch_size=1, convert_to_numpy=True, show_progress_bar=False, **how)
        plain = [t(prompt + x, truncation=False, verbose=False)["input_ids"] for x in all_texts]
        ids = [t(prompt + x, truncation=True, max_length=model.max_seq_length)["input_ids"] for x in all_texts]
        lengths = [float((v.astype("float64") ** 2).sum() ** 0.5) for v in vectors]
        out.append({
            "call": call, "args": args, "prompt_text": prompt, "dim": int(vectors.shape[1]),
            "normalized": all(abs(n - 1) < 1e-5 for n in lengths),
            "n_tokens": [len(x) for x in ids], "truncated": [len(p) > len(x) for p, x in zip(plain, ids)],
            **({"input_ids": ids} if not out else {}),
            "embeddings": [[float(f"{x:.7g}") for x in v] for v in vectors.tolist()],
        })
    doc = {"folder": folder.name, "expect": "match", "covers": covers, "min_cosine": 0.9999, "max_seq_length": model.max_seq_length,
           "computed": "fp32 on CPU, batch_size=1 (fp16/bf16 weights widened to fp32)", "texts": all_texts, "calls": out}
    (folder.parent / (folder.name + ".reference.json")).write_text(json.dumps(doc, ensure_ascii=True, separators=(",", ":")).replace('],[', '],\n[') + "\n")
    print(folder.name, doc["max_seq_length"], out[0]["dim"], sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()))


def old(width, include_prompt=None, **on):
    names = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
    c = {"word_embedding_dimension": width, **{"pooling_mode_" + n: on.get(n, False) for n in names}}
    return c if include_prompt is None else c | {"include_prompt": include_prompt}


def new_pooling(width, mode, include_prompt=True):
    return {"embedding_dimension": width, "pooling_mode": mode, "include_prompt": include_prompt}


def dense(i, o, activation, bias=True):
    return ("Dense", {"in_features": i, "out_features": o, "bias": bias, "activation_function": "torch.nn.modules." + activation})


NORMALIZE = ("Normalize", None)


def modernbert(**k):
    return transformers.ModernBertConfig(**(SIZES | dict(max_position_embeddings=180, local_attention=16, pad_token_id=0, bos_token_id=2, eos_token_id=3,
                                                         cls_token_id=2, sep_token_id=3) | k))


def nomic(**k):
    return transformers.NomicBertConfig(**(SIZES | dict(max_position_embeddings=180) | k))


def qwen(**k):
    return transformers.Qwen3Config(**(SIZES | dict(max_position_embeddings=180, head_dim=8, num_key_value_heads=1) | k))


def qwen_bpe():
    t, _ = byte_bpe()
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])])
    return t, dict(pad_token="<pad>", eos_token="</s>")


def four(config):
    """What transformers 4 wrote instead of rope_parameters and layer_types."""
    rope = config.rope_parameters
    if "full_attention" in rope:
        return {"global_rope_theta": rope["full_attention"]["rope_theta"], "local_rope_theta": rope["sliding_attention"]["rope_theta"]}
    return {"rope_theta": rope["rope_theta"], "rope_scaling": None}


HEADS = {"bert": transformers.BertForPreTraining, "roberta": transformers.RobertaForMaskedLM, "camembert": transformers.CamembertForMaskedLM,
         "xlm-roberta": transformers.XLMRobertaForMaskedLM, "distilbert": transformers.DistilBertForMaskedLM, "mpnet": transformers.MPNetForMaskedLM,
         "electra": transformers.ElectraForPreTraining, "albert": transformers.AlbertForMaskedLM, "modernbert": transformers.ModernBertForMaskedLM,
         "nomic_bert": transformers.NomicBertForMaskedLM, "qwen3": transformers.Qwen3ForCausalLM}
ACTIVATIONS = """gelu gelu_python gelu_new gelu_pytorch_tanh gelu_python_tanh gelu_accurate gelu_fast gelu_10 quick_gelu relu relu2 relu6 leaky_relu silu swish
mish hardswish sigmoid tanh linear laplace""".split()
DENSE = "Identity Tanh ReLU ReLU6 Hardtanh LeakyReLU ELU CELU SELU GELU SiLU Mish Hardswish Sigmoid Softsign".split()
MODES = {"cls_token": "cls", "max_tokens": "max", "mean_tokens": "mean", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
         "weightedmean_tokens": "weightedmean", "lasttoken": "lasttoken"}


def random_folder(rng: random.Random, name: str) -> None:
    kind = rng.choice(KINDS or list(HEADS))
    heads = rng.choice([1, 2, 3, 4])
    hidden = heads * rng.choice([4, 6, 8])
    act, eps, layers = rng.choice(ACTIVATIONS), rng.choice([1e-12, 1e-5, 0.05]), rng.choice([1, 2, 2, 3, 4])
    positions, inner = rng.randint(60, 200), rng.randint(5, 40)
    sizes = dict(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner, hidden_act=act,
                 layer_norm_eps=eps, max_position_embeddings=positions)
    usable, pieces = positions, rng.choice([uncased, cased, cased_sequence])
    if kind == "bert":
        config = bert(**sizes, type_vocab_size=rng.choice([1, 2, 3]))
    elif kind in ("roberta", "xlm-roberta", "camembert"):
        cls = {"roberta": transformers.RobertaConfig, "xlm-roberta": transformers.XLMRobertaConfig, "camembert": transformers.CamembertConfig}[kind]
        config, usable = roberta(cls, **sizes, ), positions - 2
        pieces = {"roberta": byte_bpe, "xlm-roberta": xlmr_pieces, "camembert": camembert_pieces}[kind]
    elif kind == "distilbert":
        config = distilbert(dim=hidden, n_layers=layers, n_heads=heads, hidden_dim=inner, activation=act, max_position_embeddings=positions,
                            sinusoidal_pos_embds=hidden % 2 == 0 and rng.random() < 0.5)
    elif kind == "mpnet":
        config = transformers.MPNetConfig(**sizes, relative_attention_num_buckets=rng.choice([32, 40]), pad_token_id=1)
        usable, pieces = positions - 2, mpnet_words
    elif kind == "electra":
        config = transformers.ElectraConfig(**sizes, embedding_size=rng.choice([hidden, hidden // 2, hidden + 3]))
    elif kind == "modernbert":
        config = modernbert(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner, hidden_activation=act, norm_eps=eps,
                            max_position_embeddings=positions, local_attention=rng.choice([1, 2, 3, 7, 16, 33, 128]), attention_bias=rng.random() < 0.3,
                            mlp_bias=rng.random() < 0.3, norm_bias=rng.random() < 0.3, global_attn_every_n_layers=rng.choice([1, 2, 3]),
                            rope_parameters={k: {"rope_type": "default", "rope_theta": rng.choice([100.0, 10000.0])} for k in ("full_attention", "sliding_attention")})
    elif kind == "nomic_bert":
        config = nomic(**sizes, type_vocab_size=rng.choice([1, 2, 3]), rope_parameters={"rope_type": "default", "rope_theta": rng.choice([100.0, 10000.0])})
    elif kind == "qwen3":
        keys = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
        config = qwen(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner, hidden_act=act, rms_norm_eps=eps,
                      max_position_embeddings=positions, num_key_value_heads=keys, head_dim=rng.choice([4, 6, 8, 10, 16]), attention_bias=rng.random() < 0.3,
                      use_sliding_window=rng.random() < 0.3, sliding_window=rng.choice([1, 5, 20]), max_window_layers=rng.randint(0, 2),
                      rope_parameters={"rope_type": "default", "rope_theta": rng.choice([100.0, 10000.0])}, tie_word_embeddings=rng.random() < 0.5)
        pieces = rng.choice([qwen_bpe, uncased])
    else:
        inner_groups = rng.choice([1, 2])
        sizes["num_hidden_layers"] = layers = rng.choice([2, 3, 4])
        config = transformers.AlbertConfig(**sizes, embedding_size=rng.choice([hidden, hidden // 2, hidden + 3]),
                                           num_hidden_groups=rng.randint(1, layers), inner_group_num=inner_groups)
        pieces = albert_pieces
    modes = rng.sample(list(MODES), rng.choice([1, 1, 1, 2, 3]))
    include = rng.choice([None, True, False])
    if rng.random() < 0.5:
        pooling, modes = old(hidden, include, **{m: True for m in modes}), [m for m in MODES if m in modes]
    else:
        pooling = new_pooling(hidden, [MODES[m] for m in modes] if len(modes) > 1 or rng.random() < 0.3 else MODES[modes[0]], include is not False)
    width, modules = hidden * len(modes), []
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        if rng.random() < 0.4:
            modules.append(NORMALIZE)
            continue
        out = rng.randint(4, 40)
        place = rng.choice(DENSE)
        modules.append(dense(width, out, ("linear." if place == "Identity" else "activation.") + place, bias=rng.random() < 0.6))
        width = out
    if rng.random() < 0.5:
        modules.append(NORMALIZE)
    prompts = {n: p for n, p in [("query", "Query: "), ("document", rng.choice(["", "the stone: ", "passage:"])), ("passage", "passage: ")] if rng.random() < 0.5}
    chosen = prompts.get("document") or prompts.get("passage") or ""
    limit = rng.choice([None, None, usable, rng.randint(20, usable), usable + 50])
    model_max = rng.choice([None, rng.randint(25, 300)])
    asked = limit if limit is not None else min(model_max or 10**9, positions)
    half = rng.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
    st = {"prompts": prompts} if prompts else {}
    if rng.random() < 0.2:
        st["truncate_dim"] = rng.randint(1, width + 5)
    sbert = None if limit is None else {"max_seq_length": limit, "do_lower_case": rng.random() < 0.4}
    print(name, kind, act, pooling, [m if c is None else (m, c) for m, c in modules], sbert, model_max, half, st, flush=True)
    make(name, f"{kind}, drawn at random" + (", do_lower_case" if sbert else ""), config=config, tokenizer=pieces, pooling=pooling, modules=modules,
         cls=HEADS[kind] if rng.random() < 0.5 else transformers.AutoModel, new=rng.random() < 0.5, sbert=sbert, model_max=model_max, st=st, dtype=half,
         shards=rng.choice([1, 1, 2, 4]), tok={"padding_side": rng.choice(["left", "right"])}, limit=min(asked, usable), seed=rng.randint(1, 10**6),
         calls=[("encode_document", {}, chosen), ("encode", {"prompt": ""}, "")])


def main() -> None:
    global ZOO
    if sys.argv[1:2] == ["--random"]:
        KINDS.extend(sys.argv[5:])
        count, seed, ZOO = int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])
        for i in range(count):
            random_folder(random.Random(1000 * seed + i), f"random-{seed}-{i}")
        return
    WANTED.extend(sys.argv[1:])
    make("bert-max-mean-booleans", "BERT, silu; old booleans max and mean, written mean first: joined as max, mean; no Normalize",
         config=bert(hidden_act="silu"), tokenizer=uncased, pooling=old(16, mean_tokens=True, max_tokens=True), sbert={"max_seq_length": 64, "do_lower_case": False})
    make("bert-mean-reference", "BERT, gelu, nothing special: mean without Normalize",
         config=bert(), tokenizer=uncased, pooling=old(16, mean_tokens=True), sbert={"max_seq_length": 64, "do_lower_case": False})
    make("bert-six-poolings-list", "BERT, gelu_new, new names; all six poolings as a list in an order of its own; Normalize over all of them",
         config=bert(hidden_act="gelu_new"), tokenizer=uncased, new=True, modules=[NORMALIZE], model_max=72,
         pooling=new_pooling(16, ["weightedmean", "lasttoken", "mean", "cls", "mean_sqrt_len_tokens", "max"]))
    make("bert-lasttoken-left", "BERT, gelu_fast; lasttoken; the tokenizer pads on the left",
         config=bert(hidden_act="gelu_fast"), tokenizer=uncased, pooling=new_pooling(16, "lasttoken"), new=True, tok={"padding_side": "left"}, model_max=60)
    make("bert-cls-one-layer", "BERT, one layer, quick_gelu, 3 heads; cls + Normalize; the tokenizer pads on the left; layer_norm_eps 0.1",
         config=bert(hidden_act="quick_gelu", num_hidden_layers=1, hidden_size=24, num_attention_heads=3, layer_norm_eps=0.1), tokenizer=uncased,
         pooling=old(24, cls_token=True), modules=[NORMALIZE], tok={"padding_side": "left"}, sbert={"max_seq_length": 50})
    make("bert-exclude-prompt", "BERT, gelu_pytorch_tanh; mean without the prompt's tokens (include_prompt false), prompts for query and document",
         config=bert(hidden_act="gelu_pytorch_tanh"), tokenizer=uncased, pooling=old(16, include_prompt=False, mean_tokens=True), modules=[NORMALIZE],
         st={"prompts": {"query": "river: ", "document": "stone lamp: "}, "default_prompt_name": None}, sbert={"max_seq_length": 40},
         calls=[("encode_document", {}, "stone lamp: "), ("encode_query", {}, "river: "), ("encode", {"prompt": ""}, "")])
    make("roberta-exclude-prompt", "RoBERTa; cls, max, weightedmean and lasttoken without the prompt's tokens; byte-level BPE, whose prompt ends with a token of its own",
         config=roberta(hidden_act="relu"), tokenizer=byte_bpe, pooling=new_pooling(16, ["cls", "max", "weightedmean", "lasttoken"], False), new=True,
         st={"prompts": {"document": "passage: "}, "default_prompt_name": "document"}, sbert={"max_seq_length": 60},
         calls=[("encode_document", {}, "passage: "), ("encode", {}, "passage: "), ("encode", {"prompt": ""}, "")])
    make("bert-two-dense", "BERT, swish; two Dense of different activations, the first without a bias, then Normalize",
         config=bert(hidden_act="swish"), tokenizer=uncased, pooling=old(16, mean_tokens=True), sbert={"max_seq_length": 64},
         modules=[dense(16, 24, "activation.ReLU", bias=False), dense(24, 12, "linear.Identity"), NORMALIZE])
    make("distilbert-normalize-dense", "DistilBERT, gelu; cls, Normalize, then Dense with GELU: the order is that of modules.json",
         config=distilbert(activation="gelu"), tokenizer=uncased, pooling=old(16, cls_token=True), sbert={"max_seq_length": 64},
         modules=[NORMALIZE, dense(16, 20, "activation.GELU"), dense(20, 10, "activation.Sigmoid")])
    make("bert-fp16-shards-heads", "BERT, three layers, relu; fp16 in three shards, saved with pretraining heads and the prefix bert., int64 position_ids among them; mean_sqrt_len",
         config=bert(hidden_act="relu", num_hidden_layers=3), tokenizer=cased, cls=transformers.BertForPreTraining, pooling=old(16, mean_sqrt_len_tokens=True),
         dtype=torch.float16, shards=3, sbert={"max_seq_length": 64, "do_lower_case": False},
         buffers={"bert.embeddings.position_ids": torch.arange(80).unsqueeze(0)})
    make("roberta-bf16-shards-prefix", "RoBERTa, tanh; bf16 in two shards with the prefix roberta. and a head; cls + Normalize",
         config=roberta(hidden_act="tanh"), tokenizer=byte_bpe, cls=transformers.RobertaForMaskedLM, pooling=old(16, cls_token=True),
         modules=[NORMALIZE], dtype=torch.bfloat16, shards=2, sbert={"max_seq_length": 72})
    make("camembert-mean", "CamemBERT, gelu; Unigram whose special tokens do not come first; pad id 1; prefix roberta.; no sentence_bert_config.json, so positions decide",
         config=roberta(transformers.CamembertConfig, bos_token_id=5, eos_token_id=6), tokenizer=camembert_pieces, cls=transformers.CamembertForMaskedLM,
         pooling=old(16, mean_tokens=True), model_max=70)
    make("xlmr-mean-long-limit", "XLM-RoBERTa, gelu; mean without Normalize; max_seq_length 512 is more than the 80 usable positions, so 80 is the limit",
         config=roberta(transformers.XLMRobertaConfig), tokenizer=xlmr_pieces, pooling=old(16, mean_tokens=True), sbert={"max_seq_length": 512, "do_lower_case": False}, limit=80)
    make("distilbert-cls-sinusoidal", "DistilBERT, sinusoidal positions, relu; cls without Normalize; prefix distilbert. and a head",
         config=distilbert(activation="relu", sinusoidal_pos_embds=True), tokenizer=cased, cls=transformers.DistilBertForMaskedLM,
         pooling=old(16, cls_token=True), sbert={"max_seq_length": 64})
    make("electra-max-equal", "ELECTRA, embedding_size = hidden_size, so no projection; discriminator head and prefix electra.; max + Normalize; gelu_python",
         config=transformers.ElectraConfig(**SIZES, embedding_size=16, max_position_embeddings=80, hidden_act="gelu_python"), tokenizer=uncased,
         cls=transformers.ElectraForPreTraining, pooling=old(16, max_tokens=True), modules=[NORMALIZE], sbert={"max_seq_length": 64})
    make("albert-mean-one-group", "ALBERT, one group of one layer used three times, embedding_size 8, gelu; mean + Normalize; prefix albert.",
         config=transformers.AlbertConfig(**(SIZES | dict(num_hidden_layers=3)), embedding_size=8, max_position_embeddings=80, hidden_act="gelu",
                                          num_hidden_groups=1, inner_group_num=1), tokenizer=albert_pieces, cls=transformers.AlbertForMaskedLM,
         pooling=old(16, mean_tokens=True), modules=[NORMALIZE], sbert={"max_seq_length": 64})
    make("albert-cls-groups", "ALBERT, four layers in two groups of two inner layers each, embedding_size = hidden_size, relu; cls",
         config=transformers.AlbertConfig(**(SIZES | dict(num_hidden_layers=4)), embedding_size=16, max_position_embeddings=80, hidden_act="relu",
                                          num_hidden_groups=2, inner_group_num=2), tokenizer=albert_pieces, pooling=old(16, cls_token=True), sbert={"max_seq_length": 64})
    make("mpnet-cls-prefix", "MPNet, three layers, gelu; cls without Normalize; prefix mpnet. and a head; texts long enough for the far relative positions",
         config=transformers.MPNetConfig(**(SIZES | dict(num_hidden_layers=3)), max_position_embeddings=182, relative_attention_num_buckets=32, pad_token_id=1,
                                         bos_token_id=0, eos_token_id=2), tokenizer=mpnet_words, cls=transformers.MPNetForMaskedLM,
         pooling=old(16, cls_token=True), sbert={"max_seq_length": 180})
    make("bert-truncate-dim", "BERT, gelu; mean + Dense with Tanh; truncate_dim 7 in config_sentence_transformers.json, no Normalize",
         config=bert(), tokenizer=uncased, pooling=old(16, mean_tokens=True), modules=[dense(16, 16, "activation.Tanh")], st={"truncate_dim": 7}, sbert={"max_seq_length": 64})
    make("bert-lowercase-sequence", "BERT, gelu_10; do_lower_case with a tokenizer whose normalizer is a Sequence without Lowercase; weightedmean",
         config=bert(hidden_act="gelu_10"), tokenizer=cased_sequence, pooling=old(16, weightedmean_tokens=True), sbert={"max_seq_length": 64, "do_lower_case": True})
    make("bert-passage-prompt", "BERT, mish; no prompt named document but passage and corpus: localembed takes passage for documents",
         config=bert(hidden_act="mish"), tokenizer=uncased, pooling=old(16, mean_tokens=True), modules=[NORMALIZE], sbert={"max_seq_length": 64},
         st={"prompts": {"corpus": "corpus ", "passage": "passage: ", "query": "query: "}, "default_prompt_name": "query"},
         calls=[("encode_document", {}, "passage: "), ("encode_query", {}, "query: "), ("encode", {}, "query: ")])
    make("bert-corpus-prompt", "BERT, relu6, one head; an empty document prompt and one named corpus: localembed takes corpus for documents; normalize_embeddings",
         config=bert(hidden_act="relu6", num_attention_heads=1), tokenizer=uncased, pooling=old(16, mean_tokens=True), sbert={"max_seq_length": 64},
         st={"prompts": {"document": "", "corpus": "Corpus: "}},
         calls=[("encode_document", {}, "Corpus: "), ("encode", {"normalize_embeddings": True}, "")])
    kept = modernbert(num_hidden_layers=4, local_attention=7, global_attn_every_n_layers=2)
    make("modernbert-mean-version4", "ModernBERT as transformers 4 spells it (global_attn_every_n_layers 2, two rope thetas); an odd window of 7, texts longer than it; mean; prefix model. and a head",
         config=kept, tokenizer=uncased, cls=transformers.ModernBertForMaskedLM, pooling=old(16, mean_tokens=True), model_max=170,
         config_extra=four(kept) | {"global_attn_every_n_layers": 2}, leave_out=("layer_types", "rope_parameters"))
    make("modernbert-cls-biases", "ModernBERT with all biases; the last layer is local, window 4; own layer_types and thetas; bf16; cls + Normalize",
         config=modernbert(num_hidden_layers=3, local_attention=4, attention_bias=True, mlp_bias=True, norm_bias=True, hidden_activation="silu",
                           layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                           rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}),
         tokenizer=cased, pooling=old(16, cls_token=True), modules=[NORMALIZE], dtype=torch.bfloat16, model_max=170)
    make("nomic-cls-one-type", "NomicBERT, native port: one token type, gelu, cls; theta 10000; two shards; prompts",
         config=nomic(type_vocab_size=1, hidden_act="gelu", rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), tokenizer=uncased,
         pooling=old(16, cls_token=True), shards=2, model_max=170, st={"prompts": {"document": "search_document: ", "query": "search_query: "}},
         calls=[("encode_document", {}, "search_document: "), ("encode_query", {}, "search_query: ")])
    make("nomic-mean-head-size", "NomicBERT, native port: head_dim 4 where hidden_size / heads is 8; mean + Normalize; prefix of a head",
         config=nomic(head_dim=4), tokenizer=uncased, cls=transformers.NomicBertForMaskedLM, pooling=old(16, mean_tokens=True), modules=[NORMALIZE], model_max=60)
    make("qwen3-last-one-key-head", "Qwen3, 4 heads to one of keys, head_dim 6 where hidden_size / heads is 4; biases; untied head and prefix model.; three shards; last token, left padding",
         config=qwen(num_attention_heads=4, head_dim=6, attention_bias=True), tokenizer=qwen_bpe, cls=transformers.Qwen3ForCausalLM, shards=3,
         pooling=old(16, lasttoken=True), modules=[NORMALIZE], tok={"padding_side": "left"}, model_max=170)
    make("qwen3-mean-window", "Qwen3, mean over causal attention; a sliding window of 9 from the second layer on; rope_theta 1000",
         config=qwen(num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=3, use_sliding_window=True, sliding_window=9, max_window_layers=1,
                     rope_parameters={"rope_type": "default", "rope_theta": 1000.0}), tokenizer=qwen_bpe, pooling=old(16, mean_tokens=True), model_max=170)
    kept = qwen(num_key_value_heads=2)
    make("qwen3-last-window-version4", "Qwen3 as transformers 4 spells it, window of 5 in the last layer, which only the last token needs; as many heads of keys as of queries",
         config=qwen(num_key_value_heads=2, use_sliding_window=True, sliding_window=5, max_window_layers=1), tokenizer=qwen_bpe, pooling=new_pooling(16, "lasttoken"),
         config_extra=four(kept), leave_out=("layer_types", "rope_parameters"), model_max=170)
    mixed = ["full_attention", "sliding_attention"] * 2
    make("modernbert-cls-long", "ModernBERT, texts of up to 1 200 tokens; every second layer is local, window 30, the last one too, of which only the first token is needed; cls + Normalize",
         config=modernbert(num_hidden_layers=4, local_attention=30, layer_types=mixed, max_position_embeddings=1200), tokenizer=uncased, pooling=old(16, cls_token=True),
         modules=[NORMALIZE], model_max=1200, long=True)
    make("qwen3-last-long", "Qwen3, texts of up to 1 200 tokens; 4 heads to 2 of keys; every second layer has a window of 21, the last one too, of which only the last token is needed; last token",
         config=qwen(num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=4, layer_types=mixed, use_sliding_window=True, sliding_window=21, max_position_embeddings=1200),
         tokenizer=qwen_bpe, pooling=old(16, lasttoken=True), tok={"padding_side": "left"}, model_max=1200, long=True)
    make("xlmr-mean-long", "XLM-RoBERTa, texts of up to 1 000 tokens; fp16; mean + Normalize", config=roberta(transformers.XLMRobertaConfig, max_position_embeddings=1002),
         tokenizer=xlmr_pieces, pooling=old(16, mean_tokens=True), modules=[NORMALIZE], dtype=torch.float16, sbert={"max_seq_length": 1000, "do_lower_case": False}, long=True)


if __name__ == "__main__":
    main()
