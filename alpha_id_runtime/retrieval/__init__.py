"""Finding candidate rows of the corpus for a phrase: lexical, dense, and the fusion of rankings."""
