"""SFARM: likelihoods of unobserved features (Table 1) and what to measure next (Figure 5)."""
