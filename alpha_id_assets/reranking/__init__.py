"""Training of the learned reranker that ships with the runtime. Pure but for its command (``__main__``)."""
