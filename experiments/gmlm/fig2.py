"""Figure 2 of the GMLM paper: larger k, lower error, at J = 0.3 (a peaked law with two modes).

What is drawn and what the text leaves open: see ``experiments.gmlm.common``.

    python -m experiments.gmlm.fig2            # writes results/gmlm/fig2.json and .png
"""

from experiments.gmlm.common import main

if __name__ == "__main__":
    main("gmlm/fig2", 2, 0.3, __doc__ or "")
