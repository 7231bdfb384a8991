"""One script per table or figure of a paper: ``python -m experiments.sfarm.table1`` writes results/sfarm/table1.json.

Run from the root of the repository. What a run writes on its way (lines, samples, logs) goes to results/PAPER/logs.
"""
