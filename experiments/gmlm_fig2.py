"""Figure 2 of the GMLM paper: larger k, lower error, at J = 0.3 (a peaked law with two modes).

What is drawn and what the text leaves open: see ``gmlm_common``.

    python experiments/gmlm_fig2.py            # writes results/gmlm_fig2.json and .png
"""

from gmlm_common import main

if __name__ == "__main__":
    main("gmlm_fig2", 2, 0.3, __doc__ or "")
