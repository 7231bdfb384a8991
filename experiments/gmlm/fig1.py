"""Figure 1 of the GMLM paper: larger k, lower error, at J = 0.05 (weak couplings).

What is drawn and what the text leaves open: see ``experiments.gmlm.common``.

    python -m experiments.gmlm.fig1            # writes results/gmlm/fig1.json and .png
"""

from experiments.gmlm.common import main

if __name__ == "__main__":
    main("gmlm/fig1", 1, 0.05, __doc__ or "")
