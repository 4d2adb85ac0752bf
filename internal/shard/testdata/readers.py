"""Reads shards with pyarrow, DuckDB, polars and pandas, as a user does, and exits with a
sentence when one of them sees something else than was written.

    readers.py vectors SHARD DIM RAW     embedding equals the little-endian floats in RAW, bit by bit
    readers.py columns SHARD CORPUS ROWS COLUMN...
                                         columns equal the corpus's, in type and value; ROWS is
                                         how many of the corpus's first rows were written
    readers.py failures FILE             prints the dead letters as JSON, from each reader
    readers.py corpus FILE               writes a corpus with one column of each type there is and
                                         prints their names
"""

import decimal
import json
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


def check(ok, *what):
    if not ok:
        sys.exit(" ".join(map(str, what)))


def vectors(shard, dim, raw):
    dim = int(dim)
    want = np.fromfile(raw, dtype="<u4").reshape(-1, dim)
    n = len(want)

    def same(reader, got):
        got = np.ascontiguousarray(got, dtype=np.float32).view(np.uint32).reshape(-1, dim)
        check(got.shape == want.shape, reader, "sees", got.shape, "vectors, not", want.shape)
        check((got == want).all(), reader, "sees other vectors")

    t = pq.read_table(shard)
    typ = t.schema.field("embedding").type
    check(pa.types.is_fixed_size_list(typ) and typ.list_size == dim and typ.value_type == pa.float32(), "pyarrow sees", typ)
    check(not t.schema.field("embedding").nullable, "pyarrow sees a nullable embedding")
    check(t["embedding"].null_count == 0, "pyarrow sees null vectors")
    same("pyarrow", t["embedding"].combine_chunks().flatten().to_numpy() if n else np.empty(0))

    # by one row of the middle, through the page index
    if n:
        row = pq.read_table(shard, filters=[("row", "==", n // 2)])
        check(row.num_rows >= 1, "pyarrow finds no row", n // 2)

    rel = duckdb.sql(f"from '{shard}'")
    typ = dict(zip(rel.columns, map(str, rel.types)))["embedding"]
    check(typ == "FLOAT[]", "DuckDB sees", typ)
    lengths = duckdb.sql(f"select distinct len(embedding) from '{shard}'").fetchall()
    check(n == 0 or lengths == [(dim,)], "DuckDB sees vectors of", lengths)
    same("DuckDB", [x for (v,) in rel.project("embedding").fetchall() for x in v])

    s = pl.read_parquet(shard)["embedding"]
    check(s.dtype == pl.Array(pl.Float32, dim), "polars sees", s.dtype)
    same("polars", s.explode().to_numpy() if n else np.empty(0))
    lazy = pl.scan_parquet(shard).filter(pl.col("row") == n // 2).select("row").collect()
    check(n == 0 or len(lazy) >= 1, "polars finds no row", n // 2)

    col = pd.read_parquet(shard)["embedding"]
    same("pandas", np.concatenate(col.to_list()) if n else np.empty(0))


def columns(shard, corpus, rows, *names):
    rows, names = int(rows), list(names)
    a, b = pq.read_table(corpus, columns=names), pq.read_table(shard, columns=names)
    a = a.select(names).slice(0, rows).replace_schema_metadata()
    b = b.select(names).replace_schema_metadata()
    for name in names:
        fa, fb = a.schema.field(name), b.schema.field(name)
        check(fa.type == fb.type, "pyarrow:", name, "is", fb.type, "not", fa.type)
        check(fa.nullable == fb.nullable, "pyarrow:", name, "has another nullability")
        check(same_lists(a[name].to_pylist(), b[name].to_pylist()), "pyarrow:", name, "has other values")
    quoted = ", ".join(f'"{n}"' for n in names)
    ra = duckdb.sql(f"select {quoted} from '{corpus}' limit {rows}")
    rb = duckdb.sql(f"select {quoted} from '{shard}'")
    check(list(map(str, ra.types)) == list(map(str, rb.types)), "DuckDB:", rb.types, "not", ra.types)
    check(same_lists(ra.fetchall(), rb.fetchall()), "DuckDB has other values")
    pa_, pb = pl.read_parquet(corpus, columns=names).head(rows), pl.read_parquet(shard, columns=names)
    for name in names:
        nulls = pb[name].dtype == pl.Null  # polars sees the Null type through ARROW:schema only
        check(pa_[name].dtype == pb[name].dtype or nulls, "polars:", name, "is", pb[name].dtype, "not", pa_[name].dtype)
        check(same_lists(pa_[name].to_list(), pb[name].to_list()), "polars:", name, "has other values")
    da, db = pd.read_parquet(corpus, columns=names).head(rows), pd.read_parquet(shard, columns=names)
    for name in names:
        check(str(da[name].dtype) == str(db[name].dtype), "pandas:", name, "is", db[name].dtype, "not", da[name].dtype)
        check(same_lists(da[name].to_list(), db[name].to_list()), "pandas:", name, "has other values")


def same_lists(a, b):
    """Equality in which NaN equals NaN, by the exact text of each value."""
    return len(a) == len(b) and all(repr(x) == repr(y) for x, y in zip(a, b))


def failures(path):
    out = {"pyarrow": pq.read_table(path).to_pylist(), "polars": pl.read_parquet(path).to_dicts()}
    rel = duckdb.sql(f"from '{path}'")
    out["DuckDB"] = [dict(zip(rel.columns, row)) for row in rel.fetchall()]
    print(json.dumps(out, default=lambda v: v.hex() if isinstance(v, bytes) else str(v)))


def corpus(path):
    """Every type that pyarrow can write, with nulls, in 300 rows and 3 row groups. There is no
    ARROW:schema in it: what only Arrow knows (time zones, dictionaries, large offsets) is not
    carried over."""
    n = 300
    rnd = np.random.default_rng(1)

    def some(make, typ):
        return pa.array([None if i % 5 == 1 else make(i) for i in range(n)], typ)

    big = 2**63
    cols = {
        "i8": some(lambda i: i % 256 - 128, pa.int8()),
        "i16": some(lambda i: i - 150, pa.int16()),
        "i32": some(lambda i: i - 2**31, pa.int32()),
        "i64": some(lambda i: i - 2**63, pa.int64()),
        "u8": some(lambda i: i % 256, pa.uint8()),
        "u16": some(lambda i: 65535 - i, pa.uint16()),
        "u32": some(lambda i: 2**32 - 1 - i, pa.uint32()),
        "u64": some(lambda i: 2 * big - 1 - i, pa.uint64()),
        "f16": some(lambda i: np.float16(i / 7), pa.float16()),
        "f32": some(lambda i: [float("nan"), float("inf"), -0.0, i / 3][i % 4], pa.float32()),
        "f64": some(lambda i: [float("nan"), float("-inf"), -0.0, i / 3][i % 4], pa.float64()),
        "bool": some(lambda i: i % 3 == 0, pa.bool_()),
        "bool_req": pa.array([i % 7 == 0 for i in range(n)]),
        "str": some(lambda i: "é" * (i % 40), pa.string()),
        "large": some(lambda i: str(i), pa.large_string()),
        "view": some(lambda i: str(i) * 5, pa.string_view()),
        "bin": some(lambda i: bytes([i % 256, 0xFF]), pa.binary()),
        "fixed": some(lambda i: bytes([i % 256, 0, 1]), pa.binary(3)),
        "dict": some(lambda i: "abc"[i % 3], pa.string()).dictionary_encode(),
        "date": some(lambda i: i * 100 - 10000, pa.date32()),
        "t32": some(lambda i: i * 1000, pa.time32("ms")),
        "t64us": some(lambda i: i * 1000, pa.time64("us")),
        "t64ns": some(lambda i: i * 1000, pa.time64("ns")),
        "ts_ms": some(lambda i: i * 10**9, pa.timestamp("ms")),
        "ts_us": some(lambda i: -i * 10**12, pa.timestamp("us")),
        "ts_ns": some(lambda i: i * 10**15, pa.timestamp("ns")),
        "ts_utc": some(lambda i: i * 10**12, pa.timestamp("us", "UTC")),
        "ts_berlin": some(lambda i: i * 10**12, pa.timestamp("us", "Europe/Berlin")),
        "dec5": some(lambda i: decimal.Decimal(i) / 100, pa.decimal128(5, 2)),
        "dec18": some(lambda i: -decimal.Decimal(i) / 8, pa.decimal128(18, 3)),
        "dec38": some(lambda i: decimal.Decimal(i) * 10**30, pa.decimal128(38, 3)),
        "null": pa.nulls(n),
        "list": some(lambda i: [None, i, i + 1][: i % 4], pa.list_(pa.int32())),
        "list_large": some(lambda i: ["x" * j for j in range(i % 4)], pa.large_list(pa.string())),
        "list_fixed": some(lambda i: [i, 1.5], pa.list_(pa.float32(), 2)),
        "list_list": some(lambda i: [[1, None], [], None, [i]][: i % 5], pa.list_(pa.list_(pa.int64()))),
        "list_struct": some(lambda i: [{"a": i, "b": None}, None][: i % 3], pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()}))),
        "struct": some(lambda i: {"x": i % 100, "y": {"z": None if i % 2 else "q"}}, pa.struct({"x": pa.int8(), "y": pa.struct({"z": pa.string()})})),
        "map": some(lambda i: [(str(j), j or None) for j in range(i % 4)], pa.map_(pa.string(), pa.int32())),
        "map_list": some(lambda i: [(j, [j, None]) for j in range(i % 3)], pa.map_(pa.int32(), pa.list_(pa.int32()))),
        "text_long": some(lambda i: str(i) * 20000 if i < 3 else "", pa.string()),
        "random": pa.array(rnd.bytes(8 * n)[8 * i : 8 * i + 8] for i in range(n)),
    }
    pq.write_table(pa.table(cols), path, row_group_size=n // 3, store_schema=False)
    print(*cols)


{"corpus": corpus, "vectors": vectors, "columns": columns, "failures": failures}[sys.argv[1]](*sys.argv[2:])
