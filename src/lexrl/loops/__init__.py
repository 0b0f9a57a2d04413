"""Two loops, one compiled, one stepping environments from Python: the same algorithms, the same numbers."""
