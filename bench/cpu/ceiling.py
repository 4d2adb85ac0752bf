"""The GEMM-only ceiling: what ONNX Runtime reaches here on nothing but the
matrix products that the model's linear layers consist of."""

import os
import threading
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROWS, NARROW, WIDE = 1024, 384, 1536  # rows, and MiniLM's two layer widths
PRODUCTS = 12  # two a layer, each with its own weights: as in the model they do not all fit the cache
FLOP_PER_RUN = PRODUCTS * 2 * ROWS * NARROW * WIDE


def chain() -> bytes:
    """An ONNX model: x[ROWS, NARROW] times PRODUCTS matrices, one after another."""
    random = numpy.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for i in range(PRODUCTS):
        shape = (NARROW, WIDE) if i % 2 == 0 else (WIDE, NARROW)
        # Variance 1/inputs keeps the values near 1: denormals and infinities have other speeds.
        matrix = random.standard_normal(shape).astype(numpy.float32) / numpy.float32(shape[0] ** 0.5)
        weights.append(onnx.numpy_helper.from_array(matrix, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
        value = f"y{i}"
    graph = helper.make_graph(
        nodes, "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, NARROW])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [ROWS, NARROW])],
        weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model.SerializeToString()


class Ceiling:
    """One single-threaded session per core."""

    def __init__(self, cores: int):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = chain()
        self.sessions = [
            onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]) for _ in range(cores)]
        self.x = numpy.random.default_rng(1).standard_normal((ROWS, NARROW)).astype(numpy.float32)
        self.measure(0.5)  # warm

    def measure(self, seconds: float) -> float:
        """FLOP/s of all sessions running at once for that long."""
        rates = [0.0] * len(self.sessions)
        barrier = threading.Barrier(len(self.sessions))

        def work(i: int) -> None:
            barrier.wait()
            runs, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds:
                self.sessions[i].run(None, {"x": self.x})
                runs += 1
            rates[i] = runs * FLOP_PER_RUN / spent

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(self.sessions))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(rates)


if __name__ == "__main__":
    cores = len(os.sched_getaffinity(0))
    print(f"{Ceiling(cores).measure(3) / 1e9:.1f} GFLOP/s on {cores} cores")
