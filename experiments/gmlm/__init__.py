"""GMLM (Promises and Pitfalls of Generative Masked Language Modeling): Figures 1 to 3, and small networks."""
