"""MAC (Training and Inference on Any-Order Autoregressive Models the Right Way): tables, and text8 beside others."""
