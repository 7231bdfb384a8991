"""Figure 1 of the GMLM paper: larger k, lower error, at J = 0.05 (weak couplings).

What is drawn and what the text leaves open: see ``gmlm_common``.

    python experiments/gmlm_fig1.py            # writes results/gmlm_fig1.json and .png
"""

from gmlm_common import main

if __name__ == "__main__":
    main("gmlm_fig1", 1, 0.05, __doc__ or "")
