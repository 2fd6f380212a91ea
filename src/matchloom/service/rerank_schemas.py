"""What programs that speak the field's rerank, models and embeddings APIs send, and what they get.

Fields that are not known here are left alone: each client sends some of its own.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from matchloom.service.schemas import Answered, Listed, whole_number

_QUERY, _DOCUMENTS = "I forgot my password", ["Choose Reset password.", "Ask sales."]
AtLeast0 = Annotated[int, Field(ge=0), BeforeValidator(whole_number)]
Model = Annotated[
    str | None,
    Field(
        default=None,
        description="A served system, or bm25, which counts words in the documents. Any other name, which "
        "clients send by default, means the first system; `model` of the answer names the system that was used.",
    ),
]
Documents = Annotated[
    Listed[str | dict[str, Any]],
    Field(
        description="Texts, or objects with a `text`. Of an object without one all its texts are read.",
        examples=[_DOCUMENTS],
    ),
]
Explain = Annotated[
    bool | None, Field(default=None, description="Say of the best 100 which words of the document made the score.")
]


class Lenient(BaseModel):
    """What a client sends, and perhaps more."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="ignore")


class _Rerank(Lenient):
    query: Annotated[str, Field(validation_alias=AliasChoices("query", "question"), examples=[_QUERY])]
    model: Model
    explain: Explain


class RerankRequest(_Rerank):
    """Documents by falling relevance, as Cohere, Jina and vLLM ask for them."""

    documents: Documents
    top_n: Annotated[
        AtLeast0 | None, Field(default=None, description="The largest number of results; all by default, and with 0.")
    ]
    return_documents: Annotated[bool | None, Field(default=None, description="Return the documents.")]
    rank_fields: Annotated[
        Annotated[Listed[str], Field(max_length=100)] | None,
        Field(default=None, description="Of objects: the fields to read, in this order."),
    ]


class RerankTextsRequest(_Rerank):
    """Texts by falling relevance, as Text Embeddings Inference is asked for them."""

    texts: Documents
    return_text: Annotated[bool | None, Field(default=None, description="Return the texts.")]
    raw_scores: Annotated[bool | None, Field(default=None, description="Scores as the system has them.")]


class Span(Answered):
    """Words of a document that spoke for it: text[start:end], counted in code points."""

    start: int
    end: int
    contribution: float = Field(description="What they added to the score as the system has it.")


class RerankResult(Answered):
    """A document: where it stood in the request, and how relevant it is."""

    index: int
    relevance_score: float = Field(ge=0, le=1)
    document: dict[str, Any] | None = Field(default=None, description="If it was requested.")
    relevant_spans: list[Span] | None = Field(default=None, description="With `explain`: in the order of the text.")


class Usage(Answered):
    """Words that were read, parted at spaces."""

    prompt_tokens: int
    total_tokens: int


class RerankAnswer(Answered):
    """The documents, the most relevant first."""

    id: str
    object: Literal["list"]
    model: str
    results: list[RerankResult]
    usage: Usage
    meta: dict[str, Any]


class RerankedText(Answered):
    """A text: where it stood in the request, and its score."""

    index: int
    score: float
    text: str | None = None
    relevant_spans: list[Span] | None = None


class ModelOut(Answered):
    """A system that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsAnswer(Answered):
    """The systems, the first one first, and bm25."""

    object: Literal["list"]
    data: list[ModelOut]


class EmbeddingsRequest(Lenient):
    """Sentence vectors, as OpenAI's clients ask for them."""

    input: Annotated[str | Listed[str], Field(examples=[_DOCUMENTS])]
    model: Model
    encoding_format: Annotated[
        Literal["float", "base64"] | None, Field(default=None, description="base64: single precision, little-endian.")
    ]


class Embedding(Answered):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsAnswer(Answered):
    """The vectors, in the order of the texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage
