"""The lexical index's fields and analysers, shared by the build and the query: they must not drift apart.

Holds: the tantivy schema, the analysers, the phrase units' file names. Refuses: reading or writing an index.
"""

from __future__ import annotations

from functools import lru_cache

import tantivy

WORDS, TRIGRAMS, EXACT, TWIN, ROW = "words", "trigrams", "exact", "twin", "row"
_PLAIN, _STEMMED = "alpha_id_plain", "alpha_id_german"
UNIT_FILES = ("vocabulary.json", "indptr.npy", "ids.npy", "idf.npy", "weight.npy")


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """Return the schema: stemmed words, trigrams, the whole normalised phrase, its twin key, its row."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(WORDS, tokenizer_name=_STEMMED, index_option="freq")
    builder.add_text_field(TRIGRAMS, tokenizer_name=_PLAIN, index_option="freq")
    builder.add_text_field(EXACT, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(TWIN, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(ROW, fast=True)
    return builder.build()


@lru_cache(maxsize=1)
def german_analyser() -> tantivy.TextAnalyzer:
    """Return the analyser of the word field: blank-separated words, Snowball stems for German."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        .filter(tantivy.Filter.stemmer("german"))
        .build()
    )


def register(index: tantivy.Index) -> tantivy.Index:
    """Register the analysers with an index, opened or new, and return it."""
    index.register_tokenizer(_STEMMED, german_analyser())
    index.register_tokenizer(_PLAIN, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    return index
