"""Sentencepiece, once: how it is imported, trained and opened by whoever cuts words into pieces.

It is an extra, imported only when it is needed. A vocabulary is the content of its model file. Training is seeded, in
one thread and without normalisation; what differs between applications is passed through.
"""

import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

from anyfill.checks import refuse, require_count, require_member, require_package


def sentencepiece(extra: str = "text") -> Any:
    """The package; ValueError with what to install if it is not there."""
    return require_package("sentencepiece", "vocabulary of pieces", extra=extra)


@lru_cache(maxsize=4)
def processor(model: bytes) -> Any:
    """What encodes and decodes by the content of a model file; ValueError if it is none."""
    made = sentencepiece().SentencePieceProcessor()
    try:
        loaded = bool(model) and bool(made.LoadFromSerializedProto(model))
    except (RuntimeError, OSError):
        loaded = False
    if not loaded:
        raise refuse("vocabulary", expected="a sentencepiece model", got=f"{len(model)} bytes that are none")
    return made


def trained_model(lines: Iterable[str], size: int, *, kind: str = "unigram", **options: Any) -> bytes:
    """The content of a model file with at most ``size`` pieces, learnt from lines; fewer if there are not so many.

    Args:
        lines: blank ones are passed over.
        size: at least 300, of which 256 are bytes.
        kind: "unigram" or "bpe".
        options: of ``SentencePieceTrainer``, over those set here.

    Raises:
        ValueError: there are too few lines.
        Whatever ``lines`` raise while they are read.
    """
    require_count("size", size, minimum=300)
    require_member("kind", kind, ("unigram", "bpe"))
    package = sentencepiece()
    package.set_random_generator_seed(0)
    raised: list[BaseException] = []
    written = _watched(lines, raised)
    first = next(written, None)
    if first is None:
        raise refuse("text", expected="at least one word", got="none")
    content = io.BytesIO()
    settings: dict[str, Any] = {
        "hard_vocab_limit": False,
        "character_coverage": 0.9995,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "bos_id": -1,
        "eos_id": -1,
        "shuffle_input_sentence": True,
        "minloglevel": 2,
    }
    try:
        package.SentencePieceTrainer.train(
            sentence_iterator=chain([first], written),
            model_writer=content,
            vocab_size=size,
            model_type=kind,
            **(settings | options),
        )
    except (RuntimeError, OSError) as error:
        if raised:  # the trainer wraps it into a complaint of its own
            raise raised[0] from None
        raise refuse("text", expected=f"enough of it for {size} pieces", got=" ".join(str(error).split())) from None
    return content.getvalue()


def _watched(lines: Iterable[str], raised: list[BaseException]) -> Iterator[str]:
    """The lines that are not blank; what reading them raises is noted down."""
    try:
        yield from (line for line in lines if line.strip())
    except BaseException as error:
        raised.append(error)
        raise
