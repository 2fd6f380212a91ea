"""The reader of each file format: the one table of what can be read."""

from __future__ import annotations

from matchloom.data.formats.archives import folder_rows, zip_rows
from matchloom.data.formats.json_rows import json_rows, jsonl_rows
from matchloom.data.formats.markdown import markdown_rows
from matchloom.data.formats.parquet import parquet_rows
from matchloom.data.formats.row import Reader
from matchloom.data.formats.sheets import sheet_rows
from matchloom.data.formats.tables import csv_rows, tsv_rows
from matchloom.data.formats.web import html_rows

#: Format -> what yields its rows.
READERS: dict[str, Reader] = {
    "tsv": tsv_rows,
    "csv": csv_rows,
    "jsonl": jsonl_rows,
    "json": json_rows,
    "parquet": parquet_rows,
    "sheet": sheet_rows,
    "markdown": markdown_rows,
    "html": html_rows,
    "zip": zip_rows,
    "folder": folder_rows,
}
#: How a file's name ends -> its format.
FORMATS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "tsv",
    ".xlsx": "sheet",
    ".ods": "sheet",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".zip": "zip",
}
