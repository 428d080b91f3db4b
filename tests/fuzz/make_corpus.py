"""The corpus: small files that the fuzzers start from.

`python -m tests.fuzz.make_corpus` writes them again, for example after a new version of the model file. Files named
`found-*` are inputs that once broke something; they are kept as they are.
"""

import gzip
from pathlib import Path

import numpy as np
import polars as pl

from rgld import RGLD

from ..fit.relation_tables import related
from ..modelfile.model_files import MIXED_SETTINGS, SMALL, X, mixed

FOLDER = Path(__file__).parent / "corpus"

LOCAL_ONLY = {
    **SMALL,
    "n_global_views": 0,
    "aggregation": "standard",
    "projection": "orthogonal",
    "calibration_fraction": 0.3,
}
LEVERAGE = {
    **SMALL,
    "global_score": "leverage",
    "bandwidth_multipliers": (1.0,),
    "preprocessing": ("arcsinh-standard", "quantile"),
    "projection": "orthogonal",
    "aggregation": "standard",
    "whitening": 0.1,
    "trim": 0.2,
}
RELATED = {**SMALL, "relations": True, "calibration_fraction": 0.1, "aggregation": "standard"}
TABLE = mixed(14)

CSV = {
    "plain": b"a,b,c\n" + b"".join(b"%d,%.2f,x%d\n" % (i, i / 7, i % 3) for i in range(12)),
    "semicolons": b"Betrag;Ort\n" + b"".join(b"%d,%d;Ort %d\n" % (i, i * 7, i % 4) for i in range(12)),
    "quotes": b'name,"a ""b""",when\n' + b'"x, y",1,2024-01-05\n"two\nlines",2.5,2024-02-29\n' * 5,
    "gaps": b"a,b\n1,\n,2\n\nNA,3\nnull,-inf\n5,6\n" * 2,
    "comments": b"# made by hand\n# twice\na\tb\n" + b"1\t2\n3\t4\n5\t9\n" * 3,
    "utf16": "Größe,Preis\n1,2\n3,4\n5,60\n".encode("utf-16"),
    "latin": "Größe,Preis\n1,é\n3,ü\n5,ü\n".encode("windows-1252"),
    "carriage-returns": b"a,b\r1,2\r3,4\r5,60\r",
    "wide": b",".join(b"c%d" % j for j in range(40)) + b"\n" + (b",".join(b"%d" % j for j in range(40)) + b"\n") * 4,
    "zipped": gzip.compress(b"a,b\n" + b"1,2\n3,4\n5,60\n" * 4, mtime=0),
}

TABLES = {
    "numbers": """
        frame = "pandas"
        columns = [("a", [1, 2.5, None, 7]), ("b", [nan, 0, -1, inf])]
    """,
    "mixed": """
        frame = "polars"
        columns = [("city", ["Oslo", "Rome", None, "Oslo"]), ("when", [date(2024, 1, 1), None, date(1, 1, 1), None])]
    """,
    "objects": """
        frame = "object array"
        columns = [("a", [1, 2.5, True, 7]), ("b", [Decimal("1.5"), Fraction(1, 3), 10**30, 0])]
    """,
    "arrow": """
        frame = "arrow"
        columns = [("x", [True, False, None, True]), ("y", ["1", "2", "three", ""])]
    """,
}  # fmt: skip


def write_corpus() -> None:
    """Write all files that were not found by a fuzzer."""
    for name in ("models", "streams", "csv", "parquet", "arrays", "tables"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    RGLD(**SMALL, random_state=0).fit(X).save(FOLDER / "models" / "numbers.rgld")
    RGLD(**LOCAL_ONLY, random_state=0).fit(X).save(FOLDER / "models" / "local.rgld")
    RGLD(**MIXED_SETTINGS, random_state=0).fit(TABLE).save(FOLDER / "models" / "mixed.rgld")
    RGLD(**LEVERAGE, random_state=0).fit(X).save(FOLDER / "models" / "leverage.rgld")
    with_levels = related().with_columns((pl.col("quantity") // 12).alias("level"))
    RGLD(**RELATED, random_state=0).fit(with_levels).save(FOLDER / "models" / "relations.rgld")
    RGLD(**LEVERAGE, random_state=0).partial_fit(X).save(FOLDER / "streams" / "leverage.rgld")
    RGLD(**SMALL, random_state=0).partial_fit(X).save(FOLDER / "streams" / "numbers.rgld")
    RGLD(**MIXED_SETTINGS, random_state=0).partial_fit(TABLE, half_life=100.0).save(FOLDER / "streams" / "mixed.rgld")
    for name, content in CSV.items():
        (FOLDER / "csv" / f"{name}.csv").write_bytes(content)
    for name, text in TABLES.items():
        lines = [line.strip() for line in text.strip().splitlines()]
        (FOLDER / "tables" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    for compression in ("uncompressed", "snappy", "zstd"):
        TABLE.write_parquet(FOLDER / "parquet" / f"{compression}.parquet", compression=compression, statistics=False)
    nested = TABLE.with_columns(pl.concat_list("code").alias("list"), pl.col("city").cast(pl.Categorical))
    nested.select("list", "city", "amount").write_parquet(FOLDER / "parquet" / "nested.parquet")
    TABLE.select("amount", "city", "flag").write_ipc(FOLDER / "parquet" / "table.arrow")
    TABLE.select("amount", "city", "when").write_ipc_stream(FOLDER / "parquet" / "stream.arrow")
    np.save(FOLDER / "arrays" / "matrix.npy", X)
    np.savez(FOLDER / "arrays" / "stored.npz", X=X, y=np.arange(20))
    np.savez_compressed(FOLDER / "arrays" / "packed.npz", X=X.astype(np.float32), y=np.arange(20))


if __name__ == "__main__":
    write_corpus()
