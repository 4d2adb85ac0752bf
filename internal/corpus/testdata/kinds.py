"""Writes the kinds of Parquet file that people have into the folder argv[1], and prints what pyarrow reads in
them and in the files go_*.parquet that lie there: {file: {"text": column, "id": column or "", "class": of the
expected error or "", "docs": [[row, chunk, kind, text, id]]}} as JSON. chunk is -1 where there is none, kind "text", "null" or
"empty list", text base64, id as text with \\N for null."""
import base64
import datetime
import decimal
import json
import os
import random
import sys
import uuid

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

folder = sys.argv[1]
random.seed(7)
cases = {}
N = 90


def texts(n=N, nulls=True):
    out = []
    for i in range(n):
        if nulls and i % 11 == 3:
            out.append(None)
        elif i % 17 == 5:
            out.append("")
        elif i % 9 == 2:
            out.append("the same again")
        else:
            out.append(f"{i} " + random.choice(["読む ", "Straße ", "a\u0000b ", "x"]) * random.randint(0, 40))
    return out


def case(name, text="text", id="id", error=""):
    cases[name + ".parquet"] = {"text": text, "id": id, "class": error}
    return os.path.join(folder, name + ".parquet")


def write(name, columns, text="text", id="id", error="", **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, case(name, text, id, error), **options)


ids = pa.array(range(N), pa.int64())
plain = pa.table({"id": ids, "text": texts()})

# Codecs, page versions, encodings, tiny pages, with and without checksums.
for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    for version in ["1.0", "2.0"]:
        for encoding in ["dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]:
            options = {"use_dictionary": True} if encoding == "dictionary" else {
                "use_dictionary": False, "column_encoding": {"text": encoding, "id": "DELTA_BINARY_PACKED" if encoding[0] == "D" else "PLAIN"}}
            write(f"codec_{codec}_{version}_{encoding}", plain, compression=codec, data_page_version=version, data_page_size=300,
                  row_group_size=40, write_page_checksum=encoding != "PLAIN", write_batch_size=8, **options)

# Layouts.
for n in [1, 7, 89, 90, 91]:
    write(f"groups_{n}", plain, row_group_size=n)
write("fallback", {"id": range(400), "text": [f"{i} " + "w" * 300 for i in range(400)]}, dictionary_pagesize_limit=1000, data_page_size=500, write_batch_size=10)
write("page_index", plain, write_page_index=True, data_page_size=100, write_batch_size=4)
write("no_statistics", plain, write_statistics=False, store_schema=False)
for version in ["1.0", "2.4", "2.6"]:
    write(f"format_{version}", plain, version=version, use_deprecated_int96_timestamps=version == "1.0")
write("sorted", plain, sorting_columns=[pq.SortingColumn(0)])
write("split", plain, use_dictionary=False, use_byte_stream_split=["id"])
write("no_rows", plain.slice(0, 0))
write("only_nulls", {"id": ids, "text": pa.array([None] * N, pa.string())}, data_page_size=20, data_page_version="2.0")
write("long", {"id": [1, 2, 3], "text": ["a" * 5_000_000, None, "b" * 3_000_000]}, compression="none", use_dictionary=False)
write("repeats", {"id": ids, "text": ["the same text " * 50] * N}, row_group_size=30)
with pq.ParquetWriter(case("empty_groups"), plain.schema) as w:
    for part in [plain.slice(0, 0), plain.slice(0, 30), plain.slice(0, 0), plain.slice(30), plain.slice(0, 0)]:
        w.write_table(part)

# Ids.
for t in [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()]:
    write(f"id_{t}", {"id": pa.array(range(N), t), "text": texts()}, use_dictionary=False)
    write(f"id_{t}_packed", {"id": pa.array([None, *range(1, N)], t), "text": texts()}, use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED"})
write("id_negative", {"id": pa.array([-(2**63) + i * 7**18 for i in range(N)], pa.int64()), "text": texts()}, use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED"})
write("id_int32_split", {"id": pa.array(range(-9, N - 9), pa.int32()), "text": texts()}, use_dictionary=False, use_byte_stream_split=["id"])
write("id_uint64", {"id": pa.array([2**64 - 1 - i for i in range(N)], pa.uint64()), "text": texts()})
names = [None if i % 10 == 9 else f"doc-{i:05}" for i in range(N)]
for t in [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]:
    for encoding in ["PLAIN", "DELTA_BYTE_ARRAY"]:
        write(f"id_{str(t).split('<')[0]}_{encoding}", {"id": pa.array(names).cast(t) if t != pa.string_view() else pa.array(names, t), "text": texts()},
              use_dictionary=False, column_encoding={"id": encoding}, store_schema=encoding == "PLAIN")
write("id_binary", {"id": pa.array([None if i % 8 == 1 else bytes([i, 0, 255]) for i in range(N)], pa.binary()), "text": texts()})
write("id_fixed", {"id": pa.array([bytes([i] * 5) for i in range(N)], pa.binary(5)), "text": texts()}, use_dictionary=False, column_encoding={"id": "DELTA_BYTE_ARRAY"})
write("id_fixed_split", {"id": pa.array([bytes([i] * 5) for i in range(N)], pa.binary(5)), "text": texts()}, use_dictionary=False, use_byte_stream_split=["id"])
write("id_uuid", {"id": pa.array([None if i == 4 else uuid.UUID(int=i * 2**90 + i).bytes for i in range(N)], pa.uuid()), "text": texts()})
write("id_null", {"id": pa.nulls(N), "text": texts()})
write("id_nested", {"meta": pa.array([None if i % 9 == 1 else {"key": None if i % 7 == 0 else i} for i in range(N)], pa.struct([("key", pa.int64())])), "text": texts()}, id="meta.key")
for name, values, options in [
        ("decimal", pa.array([decimal.Decimal(i) for i in range(N)], pa.decimal128(9, 0)), {}),
        ("decimal_as_int", pa.array([decimal.Decimal(i) for i in range(N)], pa.decimal128(9, 0)), {"store_decimal_as_integer": True}),
        ("timestamp", pa.array([datetime.datetime(2020, 1, 1)] * N), {}),
        ("int96", pa.array([datetime.datetime(2020, 1, 1)] * N), {"use_deprecated_int96_timestamps": True}),
        ("date", pa.array([datetime.date(2020, 1, 1)] * N), {}), ("time", pa.array([datetime.time(3)] * N), {}),
        ("float", pa.array([float(i) for i in range(N)], pa.float32()), {}), ("double", pa.array([float(i) for i in range(N)]), {}),
        ("bool", pa.array([True] * N), {}), ("list", pa.array([[1]] * N), {})]:
    write(f"id_is_{name}", {"id": values, "text": texts()}, error="wrong_type", **options)

# Texts.
for t in [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int16(), pa.string())]:
    raw = texts()
    if "binary" in str(t):
        raw = [None if v is None else v.encode() + (b"\xff" if i % 6 == 0 else b"") for i, v in enumerate(raw)]
    values = pa.array(raw).cast(t) if pa.types.is_dictionary(t) else pa.array(raw, t)
    write(f"text_{str(t).split('<')[0]}", {"id": ids, "text": values})
write("text_required", pa.table([ids, pa.array(texts(nulls=False))], schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.string(), False)])), use_dictionary=False)
write("text_null", {"id": ids, "text": pa.nulls(N)})
write("text_json", {"id": ids, "text": pa.array(['{"a": 1}', None] * (N // 2), pa.json_())})
for name, values in [("int", range(N)), ("double", [1.5] * N), ("bool", [True] * N), ("date", [datetime.date(2020, 1, 1)] * N),
                     ("fixed", pa.array([b"abc"] * N, pa.binary(3))), ("map", pa.array([[("k", "v")]] * N, pa.map_(pa.string(), pa.string()))),
                     ("struct", [{"a": "b"}] * N), ("lists", [[["a"]]] * N), ("list_of_int", [[1]] * N), ("list_of_struct", [[{"a": "b"}]] * N),
                     ("decimal", pa.array([decimal.Decimal(1)] * N, pa.decimal128(30, 2)))]:
    write(f"text_is_{name}", {"id": ids, "text": values}, error="wrong_type")
for outer in [True, False]:
    for inner in [True, False]:
        for leaf in [True, False]:
            kind = pa.struct([pa.field("in", pa.struct([pa.field("text", pa.string(), leaf)]), inner)])
            values = [None if outer and i % 5 == 1 else {"in": None if inner and i % 5 == 2 else {"text": None if leaf and i % 5 == 3 else f"text {i}"}} for i in range(N)]
            write(f"nested_{outer:d}{inner:d}{leaf:d}", pa.table([ids, pa.array(values, kind)], schema=pa.schema([pa.field("id", pa.int64()), pa.field("doc", kind, outer)])), text="doc.in.text")

# Lists of chunks.
chunks = [None if i % 7 == 1 else [None if (i + k) % 5 == 0 else "" if k == 6 else f"{i}/{k} " * (k + 1) for k in range(i % 9)] for i in range(N)]
for compliant in [True, False]:
    for t in [pa.list_(pa.string()), pa.large_list(pa.large_string())]:
        write(f"chunks_{str(t).split('<')[0]}_{compliant}", {"id": ids, "text": pa.array(chunks, t)}, use_compliant_nested_type=compliant,
              data_page_size=50, write_batch_size=3, row_group_size=41, data_page_version="2.0" if compliant else "1.0")
required = [[c or "" for c in chunk or []] for chunk in chunks]
for outer in [True, False]:
    kind = pa.list_(pa.field("element", pa.string(), False))
    write(f"chunks_required_{outer}", pa.table([ids, pa.array([None if outer and not r else r for r in required], kind)],
                                               schema=pa.schema([pa.field("id", pa.int64()), pa.field("text", kind, outer)])), data_page_size=50)
write("chunks_fixed", {"id": ids, "text": pa.array([["a", None], None, ["c", "d"]] * 30, pa.list_(pa.string(), 2))})
write("chunks_nested", {"id": ids, "doc": [None if i % 13 == 0 else {"parts": c} for i, c in enumerate(chunks)]}, text="doc.parts")
write("chunks_empty", {"id": ids, "text": pa.array([[]] * N, pa.list_(pa.string()))})
write("chunks_binary", {"id": ids, "text": pa.array([[b"a", b"\xff"]] * N, pa.list_(pa.binary()))})

# Names.
for name in ["a.b", "текст", " text ", "Text", "te\"xt", "te\nxt", "1"]:
    write(f"name_{name.encode().hex()}", {"id": ids, name: texts(), "text ": ["other"] * N}, text=name)
write("name_path", {"id": ids, "doc.text": texts(), "doc": [{"text": "other"}] * N}, text="doc.text")
write("name_case", {"id": ids, "TEXT": ["other"] * N, "text": texts(), "ID": ["other"] * N})
write("name_missing", {"id": ids, "Text": texts()}, error="no_such_column")

# Encryption.
class Keys(pe.KmsClient):
    def __init__(self, *_):
        super().__init__()

    def wrap_key(self, key, _):
        return base64.b64encode(key)

    def unwrap_key(self, wrapped, _):
        return base64.b64decode(wrapped)


for plaintext in [True, False]:
    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["text"]}, plaintext_footer=plaintext)
    props = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    write(f"encrypted_{plaintext}", plain, error="encrypted_file", encryption_properties=props)

# Other writers.
lists = pa.table({"id": ids, "text": pa.array(chunks)})
duckdb.sql("SET enable_progress_bar = false")
duckdb.sql("CREATE TYPE kind AS ENUM ('a', 'b')")
for version in ["V1", "V2"]:
    for codec in ["uncompressed", "snappy", "zstd", "lz4_raw", "gzip"]:
        for name, query in [("plain", "FROM plain"), ("lists", "FROM lists"), ("enum", "SELECT id, (CASE WHEN text IS NULL THEN NULL ELSE 'b' END)::kind AS text FROM plain"),
                            ("uuid", "SELECT uuid() AS id, text FROM plain"), ("ubigint", "SELECT id::UBIGINT AS id, text FROM plain"),
                            ("struct", "SELECT id, {'text': text} AS doc FROM plain"), ("blob", "SELECT id, encode(text) AS text FROM plain")]:
            if codec == "snappy" or name in ("plain", "lists"):
                duckdb.sql(f"COPY ({query}) TO '{case(f'duckdb_{version}_{codec}_{name}', 'doc.text' if name == 'struct' else 'text')}' "
                           f"(FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version})")
frame = polars.from_arrow(plain)
for codec in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    frame.write_parquet(case(f"polars_{codec}"), compression=codec, data_page_size=200, row_group_size=33)
    polars.from_arrow(lists).write_parquet(case(f"polars_{codec}_lists"), compression=codec, data_page_size=200, row_group_size=33)
frame.with_columns(polars.col("text").cast(polars.Categorical)).write_parquet(case("polars_categorical"))
frame.select("id", polars.struct("text").alias("doc")).write_parquet(case("polars_struct", "doc.text"))
frame.with_columns(polars.col("id").cast(polars.UInt32)).write_parquet(case("polars_uint32"), statistics=False)

for name in sorted(os.listdir(folder)):
    if name.startswith("go_"):
        cases[name] = {"text": "text", "id": "id", "class": ""}


def id_text(v):
    if v is None:
        return "\\N"
    if isinstance(v, bytes):
        return v.hex()
    return str(v)


def column(table, path):
    if path in table.column_names:
        return table[path].to_pylist()
    first, _, rest = path.partition(".")
    values = table[first].to_pylist()
    for part in rest.split("."):
        values = [None if v is None else v[part] for v in values]
    return values


def encoded(v):
    return base64.b64encode(v if isinstance(v, bytes) else v.encode()).decode()


for name, c in cases.items():
    c["docs"] = []
    if c["class"]:
        continue
    table = pq.ParquetFile(os.path.join(folder, name)).read()
    for row, (value, id) in enumerate(zip(column(table, c["text"]), column(table, c["id"]))):
        id = id_text(id)
        if value == [] or value is None:
            c["docs"].append([row, -1, "null" if value is None else "empty list", "", id])
        elif isinstance(value, list):
            c["docs"] += [[row, k, "null", "", id] if v is None else [row, k, "text", encoded(v), id] for k, v in enumerate(value)]
        else:
            c["docs"].append([row, -1, "text", encoded(value), id])
print(json.dumps(cases))
