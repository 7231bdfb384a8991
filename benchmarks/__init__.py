"""Speed and quality beside other packages: ``python -m benchmarks.likelihood`` writes results/likelihood.json."""
