"""matchloom inside other frameworks: one small module each, which imports its framework and is imported by its user.

langchain, llama_index, haystack, pyterrier    what finds answers, and what reorders documents
cross_encoder                                  predict and rank, as sentence-transformers' evaluators call them
scikit_learn                                   an estimator for pairs of texts
mteb, ir_datasets                              a searcher to be measured; data sets as pairs and entries
mcp                                            tools for agents
"""
