"""What PCA, t-SNE and Procrustes share: scaled rows, moments, rounding, certificates."""
