"""Tables, holes, methods and scores of the imputation benchmark (``benchmarks/imputation.py``)."""
