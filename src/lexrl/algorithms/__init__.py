"""The algorithms, one file each; `lexrl.LPPO` and the catalog find them by name."""
