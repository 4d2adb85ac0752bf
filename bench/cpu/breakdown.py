"""Where the cores' time goes in a run of localembed: the devices' own account
of how long they were busy, and within that an ONNX Runtime profile of the very
graph they run, on one thread."""

import json
import os
import pathlib
import subprocess
import tempfile
from collections import Counter

import numpy
import onnxruntime

BATCH_TOKENS = 512
RUNS = 20
LINEAR = "linear layers"
GROUPS = {
    "Softmax": "softmax",
    "LayerNormalization": "layer norms and residual sums",
    "SkipLayerNormalization": "layer norms and residual sums",
    "Add": "biases and residual sums",
    "Gelu": "gelu",
    "BiasGelu": "gelu",
    "Transpose": "transposes and splits",
    "Split": "transposes and splits",
    "Slice": "transposes and splits",
    "Reshape": "transposes and splits",
}


def profile(model: pathlib.Path, items: int, length: int) -> dict[str, float]:
    """The share of each group of operators in a Run on a batch of this shape."""
    root = pathlib.Path(__file__).resolve().parents[2]
    graph = subprocess.run(["go", "run", "./bench/cpu/graph", model], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as scratch:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(scratch, "profile")
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model))
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        ids = 1000 + numpy.arange(items * length).reshape(items, length) % 20000
        for _ in range(RUNS):
            session.run(None, {session.get_inputs()[0].name: ids})
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    spent = Counter()
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            operator = event["args"]["op_name"]
            if "MatMul" in operator or "Gemm" in operator:
                # Only products with a weight matrix have parameters.
                group = LINEAR if int(event["args"]["parameter_size"]) > 0 else "attention products"
            else:
                group = GROUPS.get(operator, "other operators")
            spent[group] += event["dur"]
    total = sum(spent.values())
    return {group: us / total for group, us in spent.most_common()}


def show(model: pathlib.Path, cores: int, report: dict, flop_per_token: int, ceiling: float) -> None:
    """Prints shares of all cores' time between the devices' opening and their last batch."""
    length = round(report["tokens"] / report["vectors_computed"])
    items = max(1, BATCH_TOKENS // length)
    operators = profile(model, items, length)
    busy = sum(device["busy_share"] for device in report["devices"]) / cores
    at_ceiling = report["tokens_per_second"] * flop_per_token / ceiling
    linear = operators.pop(LINEAR)
    rows = [(f"{LINEAR}, had they the ceiling's speed", at_ceiling), (f"{LINEAR}, what they take longer", linear * busy - at_ceiling)]
    rows += [(group, share * busy) for group, share in operators.items()]
    rows.append(("devices not running a batch", 1 - busy))
    print(f"where the cores' time goes (median round; operators from a profile of {items} texts of {length} tokens)")
    for label, share in rows:
        print(f"  {label:45} {share:6.1%}")
