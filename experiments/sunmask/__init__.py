"""SUNMASK: four-part music (Table 2, Figure 3) and EMNLP2017 News."""
