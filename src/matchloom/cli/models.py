"""`matchloom models`: what can be trained, with which arguments, and what needs no training."""

from __future__ import annotations

from matchloom.cli.printing import console, table

LEXICAL_ABOUT = {
    "random": "A number drawn from the seed and the pair: the lowest floor.",
    "overlap": "The share of the query's words that the text holds, rare words weighing more.",
    "bm25": "BM25 on the words as they are.",
    "bm25_stemmed": "BM25 on stems, without function words.",
    "soft_coverage": "For each query word its nearest word of the text; needs word vectors.",
    "trans_lm": "How likely the query is by the text's words and their translations; 'matchloom trans-lm' learns them.",
}


def command() -> None:
    """List models and lexical scorers.

    The models are those that 'matchloom train' knows, with their arguments and defaults, and where their authors
    trained them with other settings than the defaults of 'matchloom train', these.

    \b
    Examples:
      matchloom models
      matchloom train faq.tsv --out runs/faq --model mv_lstm --set interaction=cosine --set k=10
    """
    from matchloom import MODELS
    from matchloom.lexical import LEXICAL
    from matchloom.models import model_arguments, model_training

    trained = table("model", "arguments (--set NAME=VALUE) and their defaults", "what it does")
    for name, make in MODELS.items():
        arguments = " ".join(f"{key}={written(value)}" for key, value in model_arguments(name).items())
        about = _first_line(make.__doc__)
        if theirs := model_training(name):
            about += f" Trained with {' '.join(f'{key}={written(value)}' for key, value in theirs.items())}."
        trained.add_row(name, arguments, about)
    untrained = table("lexical", "what it does")
    for name in LEXICAL:
        untrained.add_row(name, LEXICAL_ABOUT[name])
    printer = console()
    printer.print(trained)
    printer.print()
    printer.print(untrained)


def written(value: object) -> str:
    """A value as `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
