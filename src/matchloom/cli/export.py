"""`matchloom export`: a matcher as ONNX graphs."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

import matchloom
from matchloom.cli.printing import note
from matchloom.cli.reading import read_texts
from matchloom.data.pydocs import read_pydocs

_COMPARED = 400  # texts


def command(
    matcher: Annotated[Path, typer.Argument(metavar="MATCHER", help="A matcher's folder.", show_default=False)],
    onnx: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write into; created if needed.", show_default=False)
    ],
    int8: Annotated[bool, typer.Option("--int8", help="Write a pretrained encoder in eight bits.")] = False,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Texts on which --int8 is compared with the original encoder: one per line, or a pairs file. "
            "Default: some of Python's own documentation.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a matcher as ONNX graphs, which run without torch.

    encode.onnx encodes texts (encode_right.onnx encodes candidates, where a model reads these differently), match.onnx
    scores pairs of encoded texts, and export.json describes their inputs and how to make these from texts; that needs
    vocab.txt and tokenizer.json, too. The graphs take any number of texts of any length. Before anything is written,
    they score pairs of many sizes, and the largest difference from the matcher's own scores is reported. Match-SRNN and
    RAE cannot be exported.

    --int8 writes the matrices of a pretrained encoder in eight bits, with a scale for each output. It reports the
    cosine of its word vectors with those of the original encoder, and how many texts each encodes per second on one
    thread. It needs the extras networks and onnx.

    \b
    Examples:
      matchloom export runs/faq --onnx faq.onnx
      matchloom export runs/minilm --onnx minilm.int8 --int8 --texts answers.txt
    """
    from matchloom.export import export_onnx

    loaded = matchloom.Matcher.load(matcher)
    compared = None
    if int8:
        found = read_texts(texts) if texts is not None else [pair.text for pair in read_pydocs()]
        step = max(1, len(found) // _COMPARED)
        compared = list(islice(found, 0, None, step))[:_COMPARED]
    elif texts is not None:
        note("--texts is for --int8 and was not read")
    made = export_onnx(loaded, onnx, int8=int8, texts=compared)
    print(f"{', '.join(made.files)} are in {made.folder}.")
    print(f"On {made.check.pairs} pairs of many sizes scores differ by at most {made.check.difference:.1e}.")
    if made.int8 is not None:
        one = made.int8
        print(
            f"In eight bits, {one.texts} texts: cosine of a word's vectors at least {one.least_cosine:.4f} (mean "
            f"{one.mean_cosine:.4f}); {one.int8_speed:,.0f} texts a second, not {one.float_speed:,.0f} "
            f"({one.int8_speed / one.float_speed:.2f} times); {one.int8_bytes / 1e6:,.0f} MB, not "
            f"{one.float_bytes / 1e6:,.0f}."
        )
