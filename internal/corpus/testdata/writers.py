"""Writes one corpus with every writer and option that people use, into the
folder argv[1], and prints {file: sha256 of its texts} as JSON: each text as a
little-endian uint32 length (0xffffffff for null) and its bytes."""
import hashlib
import json
import os
import random
import struct
import sys

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet

ROWS = 2500

folder = sys.argv[1]
random.seed(4)
words = ["paper", "Straße", "読む", "a", "the", "\u0000", "long" * 40]


def text(i):
    if i % 11 == 3:
        return None
    if i % 13 == 4:
        return ""
    if i % 50 == 7:
        return "the same text again"
    return " ".join(random.choices(words, k=random.randint(1, 40))) + f" {i}"


texts = [text(i) for i in range(ROWS)]
table = pyarrow.table({"id": pyarrow.array(range(ROWS), pyarrow.int64()), "text": texts})
sums = {}


def digest(values):
    h = hashlib.sha256()
    for v in values:
        if v is None:
            h.update(struct.pack("<I", 0xFFFFFFFF))
        else:
            b = v.encode()
            h.update(struct.pack("<I", len(b)) + b)
    return h.hexdigest()


def path(name):
    sums[name + ".parquet"] = digest(texts)
    return os.path.join(folder, name + ".parquet")


for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    for version in ["1.0", "2.0"]:
        dictionary = version == "2.0"
        pyarrow.parquet.write_table(
            table, path(f"pyarrow_{codec}_{version}"), compression=codec, data_page_version=version,
            use_dictionary=dictionary, write_page_checksum=dictionary, data_page_size=2000, row_group_size=500)
for encoding in ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"]:
    pyarrow.parquet.write_table(table, path(f"pyarrow_{encoding}"), use_dictionary=False,
                                column_encoding={"text": encoding, "id": "DELTA_BINARY_PACKED"})
pandas.DataFrame({"id": range(ROWS), "text": texts}).to_parquet(path("pandas"))
for codec in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    polars.DataFrame({"id": range(ROWS), "text": texts}).write_parquet(
        path(f"polars_{codec}"), compression=codec, row_group_size=300, data_page_size=3000)
duckdb.sql("SET enable_progress_bar = false")
for codec in ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"]:  # its brotli takes 20 s a file
    for version in ["V1", "V2"]:
        duckdb.sql(f"COPY (FROM \"table\") TO '{path(f'duckdb_{codec}_{version}')}' "
                   f"(FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048)")
print(json.dumps(sums))
